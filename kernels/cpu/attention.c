/* Attention in tiles: the scores of some queries with some keys are all that there ever is of them (Dao, Fu, Ermon,
 * Rudra and Re 2022, arXiv:2205.14135).
 *
 * Forward, a task is a block of queries of one head; it walks over the keys, with the largest score and the sum of
 * exponentials so far. Backward, a task is a range of keys of one head of keys; it walks over the queries that see
 * them, and makes weights anew from the logarithms of the sums. What it finds for the keys is its own; what it finds
 * for the queries is added up over the ranges afterwards, in order. Tasks follow from the shapes alone, so that the
 * bits do not depend on the number of threads. */
#include "backend/attention.h"
#include "backend/plain.h"
#include "core/sizes.h"
#include "cpu/attention.h"
#include "cpu/cpu.h"
#include "cpu/float_product.h"
#include "cpu/openblas.h"
#include "cpu/random.h"
#include <limits.h>
#include <string.h>

TT_ISA_TABLES(tt_attention_table, tt_attention_rows)

/* Queries and keys of a tile, forward and backward. Half of the keys of a derivative's tile of many queries leave it in
 * the first cache (causal, 2 x 12 heads, 1024 x 64: 71 -> 61 ms); small tiles of causal attention compute less that
 * nobody sees (8 x 8 heads, 128 x 32: 1.43 -> 1.36 and 2.19 -> 2.02 ms). */
#define ROWS 64
#define KEYS 1024
#define ROWS_BACK 256
#define KEYS_BACK 64
#define TASKS 8 /* of the derivative, where so many can be had: each range of keys costs memory like the queries' */
#define GROUP 64 /* of random numbers */
#define PARALLEL_WORK ((int64_t)1 << 19) /* multiplications that are worth a second thread */

/* An operand of two dimensions of heads, as the products take it; steps in bytes, `ld` in elements. */
typedef struct {
    char *data;
    int64_t batch, head, ld;
    tt_plain plain;
} heads;

typedef struct {
    const tt_attention_work *w;
    const tt_attention_loops *loops;
    int dtype;
    int64_t size, group; /* of an element; query heads to a head of keys */
    heads query, key, value, out, g, of_query, of_key, of_value;
    char *lse;
    const char *mask;
    int64_t mask_steps[4]; /* in elements */
    int64_t blocks, per_block; /* of queries of a head, forward */
    int64_t parts, per_part, per_tile; /* ranges of keys; keys of each, and of a tile */
    char *partial; /* what ranges but the first find for the queries, (parts - 1, N, H, L, E) */
    bool failed;
} job;

static void look_at(heads *m, const tt_array *a, int size) {
    m->data = a->data;
    m->batch = a->strides[0] * size;
    m->head = a->strides[1] * size;
    m->ld = a->shape[2] > 1 ? a->strides[2] : a->shape[3] ? a->shape[3] : 1;
}

/* As it lies, where BLAS takes that. */
static bool take(heads *m, tt_array *a, int dtype) {
    bool lies = a->dtype == dtype && (a->shape[3] <= 1 || a->strides[3] == 1) &&
                (a->shape[2] <= 1 || (a->strides[2] >= a->shape[3] && a->strides[2] > 0 && a->strides[2] <= INT_MAX));
    m->plain = (tt_plain){a, NULL};
    if (!lies && !tt_plain_copy(&m->plain, a, dtype)) return false;
    look_at(m, m->plain.array, tt_itemsizes[dtype]);
    return true;
}

static char *at(const job *j, const heads *m, int64_t n, int64_t head, int64_t row) {
    return m->data + n * m->batch + head * m->head + row * m->ld * j->size;
}

/* c = alpha a b + beta c */
static void multiply(const job *j, void *memory, bool trans_a, bool trans_b, int64_t m, int64_t n, int64_t k,
                     double alpha, const void *a, int64_t lda, const void *b, int64_t ldb, double beta, void *c,
                     int64_t ldc) {
    tt_float_product p = {j->dtype, m, n, k, {a, lda, trans_a}, {b, ldb, trans_b}, alpha, beta, c, ldc, NULL};
    if (m && n && tt_suits_strips(&p)) tt_multiply_strips(tt_float_product_loops_of(p.dtype), &p, memory);
    else if (m && n) tt_multiply_by_blas(&p);
}

static void clear(const job *j, char *rows, int64_t n, int64_t cols, int64_t ld) {
    for (int64_t r = 0; r < n && cols; r++) memset(rows + r * ld * j->size, 0, (size_t)(cols * j->size));
}

/* The scores of queries from i on with keys from k on. */
static tt_attention_tile score(const job *j, int64_t n, int64_t h, int64_t i, int64_t rows, int64_t k, int64_t cols,
                               char *scores, void *memory) {
    const tt_attention_work *w = j->w;
    tt_attention_tile t = {.scores = scores, .rows = rows, .cols = cols, .seen = w->causal ? i - k + 1 : cols};
    if (j->mask) {
        t.mask_is_bool = w->mask->dtype == TT_BOOL;
        t.mask_row = j->mask_steps[2], t.mask_col = j->mask_steps[3];
        t.mask = j->mask + (n * j->mask_steps[0] + h * j->mask_steps[1] + i * t.mask_row + k * t.mask_col) *
                               tt_itemsizes[w->mask->dtype];
    }
    multiply(j, memory, false, true, rows, cols, w->width, w->scale, at(j, &j->query, n, h, i), j->query.ld,
             at(j, &j->key, n, h / j->group, k), j->key.ld, 0, scores, cols);
    return t;
}

/* to = weights, those that are dropped 0 and the others larger */
static void drop(const job *j, int64_t n, int64_t h, int64_t i, int64_t k, const tt_attention_tile *t, char *to,
                 char *numbers) {
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t first = ((n * j->w->heads + h) * j->w->rows + i + r) * j->w->keys + k, offset = r * t->cols * j->size;
        const void *kept = tt_random_block(&j->w->draw, j->dtype, numbers, first, t->cols);
        j->loops->multiply(to + offset, (char *)t->scores + offset, kept, t->cols);
    }
}

static void forward_block(const job *j, int64_t n, int64_t h, int64_t i, char *scores, char *top, char *sum,
                          char *numbers, void *memory) {
    const tt_attention_work *w = j->w;
    int64_t rows = least(j->per_block, w->rows - i), keys = w->causal ? least(w->keys, i + rows) : w->keys;
    char *out = at(j, &j->out, n, h, i), *lse = j->lse + ((n * w->heads + h) * w->rows + i) * j->size;
    if (!keys) {
        memset(top, 0, (size_t)(rows * j->size));
        memset(sum, 0, (size_t)(rows * j->size));
        clear(j, out, rows, w->out_width, j->out.ld);
    }
    for (int64_t k = 0; k < keys; k += KEYS) {
        tt_attention_tile t = score(j, n, h, i, rows, k, least(KEYS, keys - k), scores, memory);
        t.first = k == 0;
        j->loops->exponentials(&t, top, sum, out, w->out_width, j->out.ld);
        if (w->drops) drop(j, n, h, i, k, &t, scores, numbers);
        multiply(j, memory, false, false, rows, w->out_width, t.cols, 1, scores, t.cols,
                 at(j, &j->value, n, h / j->group, k), j->value.ld, k > 0, out, j->out.ld);
    }
    j->loops->finish(out, rows, w->out_width, j->out.ld, top, sum, lse);
}

static int64_t product_memory(int dtype) {
    return tt_strips_memory(tt_float_product_loops_of(dtype), TT_PRODUCT_COLUMNS, TT_PRODUCT_DEPTH);
}

static void forward_range(void *context, int64_t begin, int64_t end) {
    job *j = context;
    int64_t of_product = product_memory(j->dtype);
    char *memory = tt_scratch(of_product + (ROWS * KEYS + 2 * ROWS + KEYS + 2 * GROUP) * j->size);
    if (!memory) {
        __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
        return;
    }
    char *scores = memory + of_product, *top = scores + ROWS * KEYS * j->size, *sum = top + ROWS * j->size,
         *numbers = sum + ROWS * j->size;
    for (int64_t task = begin; task < end; task++) {
        int64_t head = task / j->blocks;
        forward_block(j, head / j->w->heads, head % j->w->heads, task % j->blocks * j->per_block, scores, top, sum,
                      numbers, memory);
    }
    tt_scratch_free(memory);
}

typedef struct {
    char *weights, *slopes, *kept, *numbers, *delta, *memory; /* kept: weights after dropout, or `weights` */
} room;

/* What keys from k on, up to `cols`, and one head of queries find for each other; of_query: the head's. It is added to
 * what others have found, unless these keys are the `first` of their range, or the head the first that sees them. */
static void backward_block(const job *j, int64_t n, int64_t h, int64_t k, int64_t cols, bool first,
                           const heads *of_query, const room *x) {
    const tt_attention_work *w = j->w;
    int64_t of = h / j->group;
    const char *key = at(j, &j->key, n, of, k), *value = at(j, &j->value, n, of, k);
    char *of_key = at(j, &j->of_key, n, of, k), *of_value = at(j, &j->of_value, n, of, k);
    int64_t begin = w->causal ? k : 0;
    if (h == of * j->group && begin >= w->rows) {
        clear(j, of_key, cols, w->width, j->of_key.ld);
        clear(j, of_value, cols, w->out_width, j->of_value.ld);
    }
    for (int64_t i = begin; i < w->rows; i += ROWS_BACK) {
        bool more = h > of * j->group || i > begin;
        int64_t rows = least(ROWS_BACK, w->rows - i);
        const char *g = at(j, &j->g, n, h, i);
        tt_attention_tile t = score(j, n, h, i, rows, k, cols, x->weights, x->memory);
        j->loops->weights(&t, j->lse + ((n * w->heads + h) * w->rows + i) * j->size);
        if (w->drops) drop(j, n, h, i, k, &t, x->kept, x->numbers);
        multiply(j, x->memory, true, false, cols, w->out_width, rows, 1, x->kept, cols, g, j->g.ld, more, of_value,
                 j->of_value.ld);
        multiply(j, x->memory, false, true, rows, cols, w->out_width, 1, g, j->g.ld, value, j->value.ld, 0, x->slopes,
                 cols);
        j->loops->slopes(x->slopes, x->weights, x->kept, x->delta + i * j->size, rows, cols);
        multiply(j, x->memory, true, false, cols, w->width, rows, w->scale, x->slopes, cols, at(j, &j->query, n, h, i),
                 j->query.ld, more, of_key, j->of_key.ld);
        multiply(j, x->memory, false, false, rows, w->width, cols, w->scale, x->slopes, cols, key, j->key.ld, !first,
                 at(j, of_query, n, h, i), of_query->ld);
    }
}

/* Where a range of keys adds what it finds for the queries. */
static heads found_by(const job *j, int64_t part) {
    const tt_attention_work *w = j->w;
    if (!part) return j->of_query;
    int64_t head = w->rows * w->width * j->size, all = w->batch * w->heads * head;
    return (heads){.data = j->partial + (part - 1) * all, .batch = w->heads * head, .head = head, .ld = w->width};
}

static void backward_range(void *context, int64_t begin, int64_t end) {
    job *j = context;
    const tt_attention_work *w = j->w;
    int64_t tile = ROWS_BACK * KEYS_BACK, of_product = product_memory(j->dtype);
    char *memory = tt_scratch(of_product + ((w->drops ? 3 : 2) * tile + w->rows + KEYS_BACK + 2 * GROUP) * j->size);
    if (!memory) {
        __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
        return;
    }
    room x = {.memory = memory, .weights = memory + of_product};
    x.slopes = x.weights + tile * j->size;
    x.kept = w->drops ? x.slopes + tile * j->size : x.weights;
    x.numbers = (w->drops ? x.kept : x.slopes) + tile * j->size;
    x.delta = x.numbers + (KEYS_BACK + 2 * GROUP) * j->size;
    for (int64_t task = begin; task < end; task++) {
        int64_t part = task % j->parts, head = task / j->parts, n = head / w->of_keys, of = head % w->of_keys;
        int64_t first = part * j->per_part, last = least(w->keys, first + j->per_part);
        heads of_query = found_by(j, part);
        for (int64_t h = of * j->group; h < (of + 1) * j->group; h++) {
            int64_t unseen = first >= last ? w->rows : w->causal ? least(first, w->rows) : 0; /* from any of them */
            clear(j, at(j, &of_query, n, h, 0), unseen, w->width, of_query.ld);
            j->loops->dots(x.delta, at(j, &j->g, n, h, 0), j->g.ld, at(j, &j->out, n, h, 0), j->out.ld, w->rows,
                           w->out_width);
            for (int64_t k = first; k < last; k += j->per_tile)
                backward_block(j, n, h, k, least(j->per_tile, last - k), k == first, &of_query, &x);
        }
    }
    tt_scratch_free(memory);
}

static void add_parts(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    for (int64_t head = begin; head < end; head++)
        for (int64_t part = 1; part < j->parts; part++) {
            int64_t n = head / j->w->heads, h = head % j->w->heads;
            heads from = found_by(j, part);
            for (int64_t i = 0; i < j->w->rows; i++)
                j->loops->add(at(j, &j->of_query, n, h, i), at(j, &from, n, h, i), j->w->width);
        }
}

/* The operands of both directions. */
static bool start(job *j, const tt_attention_work *w) {
    int dtype = tt_compute_dtype(w->query->dtype);
    const tt_attention_table *table = tt_attention_rows[tt_isa_index];
    *j = (job){.w = w, .dtype = dtype, .size = tt_itemsizes[dtype], .parts = 1};
    j->loops = dtype == TT_F64 ? &table->f64 : &table->f32;
    j->group = w->of_keys ? w->heads / w->of_keys : 1;
    j->lse = w->lse->data;
    if (w->mask) {
        j->mask = w->mask->data;
        for (int d = 0; d < 4; d++) j->mask_steps[d] = w->mask->shape[d] == 1 ? 0 : w->mask->strides[d];
    }
    return take(&j->query, w->query, dtype) && take(&j->key, w->key, dtype) && take(&j->value, w->value, dtype);
}

static bool done(job *j, bool ok) {
    heads *all[] = {&j->query, &j->key, &j->value, &j->out, &j->g};
    for (int k = 0; k < 5; k++) tt_plain_done(&all[k]->plain, 1);
    if (ok && j->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for the tiles of scaled_dot_product_attention");
    return ok && !j->failed;
}

/* Runs the tasks, each of so many multiplications; may BLAS not be called by several threads, on this one alone. */
static bool run(job *j, int64_t tasks, int64_t work, tt_range_fn fn) {
    int64_t grain = work >= PARALLEL_WORK ? 1 : PARALLEL_WORK / (work + 1) + 1;
    int claimed, threads = tt_blas_enter(tasks > grain ? tt_get_num_threads() : 1, &claimed);
    if (!threads) return false;
    if (threads > 1) tt_parallel(tasks, grain, fn, j);
    else fn(j, 0, tasks);
    tt_blas_leave(claimed);
    return true;
}

bool tt_cpu_attention(const tt_attention_work *w) {
    job j;
    tt_wide out = {0};
    bool ok = start(&j, w) && tt_wide_start(&out, w->out, j.dtype);
    if (ok) {
        look_at(&j.out, out.array, (int)j.size);
        int64_t most_rows = w->causal && w->rows <= 4 * ROWS ? ROWS / 2 : ROWS;
        j.per_block = w->rows ? pieces(w->rows, pieces(w->rows, most_rows)) : 1; /* of 65, 33 and 32 */
        j.blocks = pieces(w->rows, j.per_block);
        int64_t work = j.per_block * w->keys * (w->width + w->out_width);
        ok = run(&j, w->batch * w->heads * j.blocks, work, forward_range);
    }
    ok = done(&j, ok);
    return out.array ? tt_wide_end(&out, ok) : false;
}

bool tt_cpu_attention_backward(const tt_attention_work *w) {
    job j;
    tt_wide grads[3] = {{0}};
    heads *of[3] = {&j.of_query, &j.of_key, &j.of_value};
    int64_t count = w->batch * w->of_keys;
    bool ok = start(&j, w) && take(&j.out, w->out, j.dtype) && take(&j.g, w->g, j.dtype);
    for (int k = 0; k < 3; k++) {
        ok = ok && tt_wide_start(&grads[k], w->grads[k], j.dtype);
        if (ok) look_at(of[k], grads[k].array, (int)j.size);
    }
    if (ok) {
        j.per_tile = w->causal || w->rows > ROWS_BACK / 2 ? KEYS_BACK / 2 : KEYS_BACK;
        int64_t tiles = pieces(w->keys, j.per_tile), wanted = count ? least(pieces(TASKS, count), tiles) : 1;
        j.per_part = wanted > 1 ? pieces(tiles, wanted) * j.per_tile : w->keys;
        j.parts = wanted > 1 ? pieces(w->keys, j.per_part) : 1;
        int64_t all = w->batch * w->heads * w->rows * w->width * j.size;
        if (j.parts > 1) ok = (j.partial = tt_scratch((j.parts - 1) * all)) != NULL;
        if (!ok) tt_fail(TT_OUT_OF_MEMORY, "out of memory for the derivative of scaled_dot_product_attention");
    }
    ok = ok && run(&j, count * j.parts, w->rows * j.per_part * j.group * (w->width + w->out_width), backward_range);
    if (ok && j.parts > 1) tt_parallel(w->batch * w->heads, 1, add_parts, &j);
    if (j.partial) tt_scratch_free(j.partial);
    ok = done(&j, ok);
    for (int k = 0; k < 3; k++)
        if (grads[k].array) ok = tt_wide_end(&grads[k], ok);
    return ok;
}
