/* Recurrent layers: a step is one call for all threads. Each task takes some rows and some of the hidden numbers, makes
 * their product with the weights, and their gates from it while it is in the cache. The weights are packed once for all
 * steps, and multiplied by the tiles of convolutions: of the few rows of a batch, OpenBLAS would pack them at each
 * step. Tasks follow from the shapes alone, so that the bits do not depend on the number of threads. */
#include "backend/recurrent.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "cpu/cpu.h"
#include "cpu/float_product.h"
#include "cpu/recurrent.h"
#include <string.h>

TT_ISA_TABLES(tt_recurrent_table, tt_recurrent_rows)

#define ROWS 128 /* of a task */
#define WIDTH 128 /* hidden numbers of a task */
#define PARALLEL_WORK ((int64_t)1 << 18) /* multiplications that are worth a second thread */

/* Another step: its first row, and how many sequences are in both. */
typedef struct {
    int64_t row, shared;
} neighbour;

typedef struct {
    const tt_recurrent_work *w;
    const tt_recurrent_loops *loops;
    const tt_float_product_loops *products;
    int64_t size, across; /* of an element; tasks to a row */
    int64_t strips, k; /* of a task's packed weights, and their rows */
    char *weights; /* packed, (tasks to a row, strips, k, columns) */
    char *zeros; /* WIDTH of them */
    int64_t row, rows; /* of this step: the first one, and how many there are */
    neighbour before, after;
    bool failed;
} job;

/* The first `m` of `rows` times the weights of task `at` of a row */
static void product(const job *j, int64_t m, const void *const *rows, int64_t at, char *out) {
    int64_t columns = j->products->tile_columns, wide = j->strips * columns;
    tt_rows_product p = {
        m, j->strips, j->k, rows, j->weights + at * j->k * wide * j->size, out, wide,
    };
    if (m) j->products->rows_product(&p);
}

static char *element(const job *j, const tt_array *a, int64_t row, int64_t col, int64_t cols) {
    return a ? a->data + (row * cols + col) * j->size : NULL;
}

/* A row of the states before this step. */
static const char *state(const job *j, const tt_array *states, const tt_array *first, int64_t r, int64_t col) {
    return r < j->before.shared ? element(j, states, j->before.row + r, col, j->w->hidden)
                                : element(j, first, r, col, j->w->hidden);
}

/* How many of a task's rows are those of a neighbour, too. */
static int64_t shared(const neighbour *other, int64_t row, int64_t rows) {
    return other->shared < row ? 0 : least(other->shared - row, rows);
}

/* The rows and the hidden numbers of a task. */
static void cut(const job *j, int64_t task, int64_t *row, int64_t *rows, int64_t *col, int64_t *width) {
    *row = task / j->across * ROWS;
    *rows = least(ROWS, j->rows - *row);
    *col = task % j->across * WIDTH;
    *width = least(WIDTH, j->w->hidden - *col);
}

static char *room(job *j, int64_t elements) {
    char *memory = tt_scratch(elements * j->size);
    if (!memory) __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
    return memory;
}

static void forward_range(void *context, int64_t begin, int64_t end) {
    job *j = context;
    const tt_recurrent_work *w = j->w;
    int64_t hidden = w->hidden, row, rows, col, width, wide = j->strips * j->products->tile_columns;
    const void *before[ROWS];
    char *tile = room(j, ROWS * wide);
    if (!tile) return;
    for (int64_t task = begin; task < end; task++) {
        cut(j, task, &row, &rows, &col, &width);
        for (int64_t r = 0; r < rows; r++) before[r] = state(j, w->y, w->h0, row + r, 0);
        product(j, rows, before, task % j->across, tile);
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = j->row + row + r;
            tt_recurrent_row one = {.n = width,
                                    .hidden = hidden,
                                    .width = width,
                                    .x = element(j, w->x, at, col, w->gates * hidden),
                                    .product = tile + r * wide * j->size,
                                    .b = element(j, w->b, 0, col, 0),
                                    .before = w->c ? state(j, w->c, w->c0, row + r, col)
                                                   : state(j, w->y, w->h0, row + r, col),
                                    .gates = element(j, w->saved, at, col, w->kept * hidden),
                                    .c = element(j, w->c, at, col, hidden),
                                    .y = element(j, w->y, at, col, hidden)};
            j->loops->forward[w->kind](&one);
        }
    }
    tt_scratch_free(tile);
}

static void backward_range(void *context, int64_t begin, int64_t end) {
    job *j = context;
    const tt_recurrent_work *w = j->w;
    int64_t hidden = w->hidden, row, rows, col, width, all = w->gates * hidden;
    int64_t wide = j->strips * j->products->tile_columns;
    const tt_array *of_h = w->of_h ? w->of_h : w->of_x;
    const void *after[ROWS];
    char *tile = room(j, ROWS * wide);
    if (!tile) return;
    for (int64_t task = begin; task < end; task++) {
        cut(j, task, &row, &rows, &col, &width);
        int64_t known = shared(&j->after, row, rows);
        for (int64_t r = 0; r < known; r++) after[r] = element(j, of_h, j->after.row + row + r, 0, all);
        product(j, known, after, task % j->across, tile);
        memset(tile + known * wide * j->size, 0, (size_t)((rows - known) * wide * j->size));
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = j->row + row + r;
            tt_recurrent_row_back one = {.n = width,
                                         .hidden = hidden,
                                         .g = w->g ? element(j, w->g, at, col, hidden) : j->zeros,
                                         .g_c = w->g_c ? element(j, w->g_c, at, col, hidden) : j->zeros,
                                         .product = tile + r * wide * j->size,
                                         .gates = element(j, w->saved, at, col, w->kept * hidden),
                                         .c = element(j, w->c, at, col, hidden),
                                         .y = element(j, w->y, at, col, hidden),
                                         .before = w->c ? state(j, w->c, w->c0, row + r, col)
                                                        : state(j, w->y, w->h0, row + r, col),
                                         .first = element(j, w->of_first, row + r, col, hidden),
                                         .of_x = element(j, w->of_x, at, col, all),
                                         .of_h = element(j, w->of_h, at, col, all)};
            j->loops->backward[w->kind](&one);
        }
    }
    tt_scratch_free(tile);
}

static neighbour look_at(const tt_recurrent_work *w, const int64_t *offsets, int64_t t, int64_t other) {
    if (other < 0 || other >= w->steps) return (neighbour){0, 0};
    return (neighbour){offsets[other], least(w->sizes[t], w->sizes[other])};
}

/* One step after another, in the order of time or against it. */
static bool run(job *j, tt_range_fn fn, bool back) {
    const tt_recurrent_work *w = j->w;
    int64_t *offsets = tt_scratch((w->steps + 1) * (int64_t)sizeof *offsets), total = 0;
    int64_t work = least(ROWS, w->batch) * w->gates * WIDTH * w->hidden;
    int64_t grain = work >= PARALLEL_WORK ? 1 : PARALLEL_WORK / (work + 1) + 1;
    bool several = (w->batch + ROWS - 1) / ROWS * j->across > grain;
    for (int64_t t = 0; offsets && t < w->steps; t++) {
        offsets[t] = total;
        total += w->sizes[t];
    }
    bool ok = offsets != NULL;
    for (int64_t s = 0; ok && s < w->steps; s++) {
        int64_t t = w->reverse != back ? w->steps - 1 - s : s, by = w->reverse ? -1 : 1;
        j->row = offsets[t], j->rows = w->sizes[t];
        j->before = look_at(w, offsets, t, t - by);
        j->after = look_at(w, offsets, t, t + by);
        int64_t tasks = (j->rows + ROWS - 1) / ROWS * j->across;
        if (several) tt_parallel(tasks, grain, fn, j);
        else fn(j, 0, tasks);
        if (j->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for a recurrent layer");
        ok = !j->failed;
    }
    tt_scratch_free(offsets);
    return ok;
}

static job start(const tt_recurrent_work *w) {
    const tt_recurrent_table *table = tt_recurrent_rows[tt_isa_index];
    bool wide = w->dtype == TT_F64;
    return (job){.w = w,
                 .loops = wide ? &table->f64 : &table->f32,
                 .products = tt_float_product_loops_of(w->dtype),
                 .size = tt_itemsizes[w->dtype],
                 .across = (w->hidden + WIDTH - 1) / WIDTH};
}

/* Packs the weights of each task: forward a column is a row of w, back it is a column. Columns beyond the last are
 * 0. */
#define PACK(name, T)                                                                                                  \
    static void pack_##name(const job *j, bool back) {                                                                 \
        const tt_recurrent_work *w = j->w;                                                                             \
        int64_t by = j->products->tile_columns, hidden = w->hidden;                                                    \
        T *to = (T *)j->weights;                                                                                       \
        for (int64_t task = 0; task < j->across; task++) {                                                             \
            int64_t width = least(WIDTH, hidden - task * WIDTH), all = back ? width : w->gates * width;                \
            for (int64_t s = 0; s < j->strips; s++, to += j->k * by)                                                   \
                for (int64_t i = 0; i < by; i++) {                                                                     \
                    int64_t q = s * by + i, at = q < all ? q % width + task * WIDTH : 0;                               \
                    const T *from =                                                                                    \
                        (const T *)w->w->data + (back || q >= all ? at : (q / width * hidden + at) * hidden);          \
                    int64_t step = back ? hidden : 1;                                                                  \
                    for (int64_t k = 0; k < j->k; k++) to[k * by + i] = q < all ? from[k * step] : 0;                  \
                }                                                                                                      \
        }                                                                                                              \
    }
PACK(f32, float)
PACK(f64, double)

static bool run_packed(const tt_recurrent_work *w, job *j, bool back) {
    int64_t columns = j->products->tile_columns, width = least(WIDTH, w->hidden);
    j->k = back ? w->gates * w->hidden : w->hidden;
    j->strips = ((back ? 1 : w->gates) * width + columns - 1) / columns;
    if (!(j->weights = tt_scratch((j->across * j->strips * columns * j->k + 1) * j->size))) return false;
    (w->dtype == TT_F64 ? pack_f64 : pack_f32)(j, back);
    bool ok = run(j, back ? backward_range : forward_range, back);
    tt_scratch_free(j->weights);
    return ok;
}

bool tt_cpu_recurrent(const tt_recurrent_work *w) {
    job j = start(w);
    return run_packed(w, &j, false);
}

bool tt_cpu_recurrent_backward(const tt_recurrent_work *w) {
    job j = start(w);
    if (!(j.zeros = tt_scratch(WIDTH * j.size))) return false;
    memset(j.zeros, 0, (size_t)(WIDTH * j.size));
    if (w->of_first) memset(w->of_first->data, 0, (size_t)(w->of_first->numel * j.size));
    bool ok = run_packed(w, &j, true);
    tt_scratch_free(j.zeros);
    return ok;
}
