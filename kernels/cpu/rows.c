/* softmax and normalisation on the CPU, rows shared out over the threads. Operands that are not contiguous are copied
 * first. Rows of a half type become float32, and results such, in the cache; long ones, by copies. */
#include "core/sizes.h"
#include "cpu/cpu.h"
#include "cpu/nn.h"
#include "cpu/reduce.h"
#include <string.h>

TT_ISA_TABLES(tt_nn_table, tt_nn)

#define ELEMENTS 16384      /* of a row's work that are worth a thread */
#define LONGEST 8192        /* elements of rows that are cast in the cache */
#define COLUMNS_ROOM 131072 /* numbers of columns that are kept in the cache */
#define NARROWEST 128       /* columns of which they are kept: pieces of fewer take longer than copies of all */
#define TOGETHER 2048       /* elements of short rows that are cast at once */

const tt_nn_loops *tt_nn_loops_of(int dtype) {
    return dtype == TT_F64 ? &tt_nn[tt_isa_index]->f64 : &tt_nn[tt_isa_index]->f32;
}

int64_t tt_nn_grain(int64_t n) { return n >= ELEMENTS ? 1 : ELEMENTS / (n + 1) + 1; }

/* Rows of n elements of `out`, made from those of a and of b, which may be NULL, and the casts of a half type. */
typedef struct {
    char *out;
    const char *a, *b;
    int64_t n;
    int size, stored; /* of a number computed, and of an element */
    tt_cast_loop widen, narrow;
} rows;

typedef struct {
    rows in;
    void (*row)(const void *job, void *out, const void *a, const void *b, int64_t r);
} row_job; /* what each job begins with */

static void rows_range(void *context, int64_t begin, int64_t end) {
    const row_job *job = context;
    const rows *j = &job->in;
    int64_t pitch = j->n * j->stored;
    if (!j->widen) {
        for (int64_t r = begin; r < end; r++)
            job->row(job, j->out + r * pitch, j->a + r * pitch, j->b ? j->b + r * pitch : NULL, r);
        return;
    }
    float a[LONGEST] __attribute__((aligned(64))), b[LONGEST] __attribute__((aligned(64)));
    int64_t together = j->n < TOGETHER ? TOGETHER / j->n : 1;
    for (int64_t r = begin, m; r < end; r += m) {
        m = end - r < together ? end - r : together;
        j->widen(a, j->a + r * pitch, m * j->n);
        if (j->b) j->widen(b, j->b + r * pitch, m * j->n);
        for (int64_t k = 0; k < m; k++) job->row(job, a + k * j->n, a + k * j->n, j->b ? b + k * j->n : NULL, r + k);
        j->narrow(j->out + r * pitch, a, m * j->n);
    }
}

/* Can rows of n elements be cast in the cache? */
static bool in_cache(const tt_array *out, const tt_array *a, const tt_array *b, int64_t n) {
    return tt_is_half(a->dtype) && 0 < n && n <= LONGEST && out->dtype == a->dtype && (!b || b->dtype == a->dtype);
}

/* The operands, contiguous, of the dtype computed in or that of `out`. */
static bool rows_start(rows *j, tt_plain p[2], tt_wide *wide, tt_array *out, tt_array *a, tt_array *b, int64_t n,
                       int dtype, bool cached) {
    int stored = cached ? out->dtype : dtype;
    if (!tt_plain_take(&p[0], a, stored) || !tt_plain_take(&p[1], b, stored) || !tt_wide_start(wide, out, stored))
        return false;
    *j = (rows){.out = wide->array->data,
                .a = tt_plain_data(&p[0]),
                .b = tt_plain_data(&p[1]),
                .n = n,
                .size = tt_itemsizes[dtype],
                .stored = tt_itemsizes[stored],
                .widen = cached ? tt_isa->casts[stored][dtype] : NULL,
                .narrow = cached ? tt_isa->casts[dtype][stored] : NULL};
    return true;
}

typedef struct {
    row_job rows;
    const tt_nn_loops *loops;
    int64_t inner, width, chunks; /* chunks of up to `width` columns in a slab of n x inner elements */
    bool log, kept; /* kept: exponentials of columns, until their sums are there */
    bool failed;
} softmax_job;

static void softmax_row(const void *job, void *out, const void *a, const void *y, int64_t r) {
    (void)r;
    const softmax_job *j = job;
    if (y) j->loops->softmax_backward(out, a, y, j->rows.in.n, j->log);
    else j->loops->softmax(out, a, j->rows.in.n, j->log);
}

static void columns_range(void *context, int64_t begin, int64_t end) {
    softmax_job *j = context;
    const rows *in = &j->rows.in;
    tt_nn_halves casts = {in->widen, in->narrow, NULL}, *half = in->widen ? &casts : NULL;
    if (j->kept && half && !(casts.room = tt_scratch(in->n * j->width * in->size))) {
        __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t k = begin; k < end; k++) {
        int64_t column = k % j->chunks * j->width, rest = j->inner - column;
        int64_t at = (k / j->chunks * in->n * j->inner + column) * in->stored, m = rest < j->width ? rest : j->width;
        char *out = in->out + at;
        const char *a = in->a + at;
        if (in->b) j->loops->softmax_backward_columns(out, a, in->b + at, in->n, j->inner, m, j->log, half);
        else j->loops->softmax_columns(out, a, in->n, j->inner, m, j->log, half);
    }
    tt_scratch_free(casts.room);
}

bool tt_cpu_softmax(tt_array *out, tt_array *x, tt_array *y, int64_t n, int64_t inner, bool log) {
    int dtype = tt_compute_dtype(x->dtype);
    tt_plain p[2] = {{0}};
    tt_wide wide = {0};
    bool kept = inner > 1 && !y && !log;
    int64_t width = inner < TT_NN_COLUMNS ? inner : TT_NN_COLUMNS, narrowest = inner < NARROWEST ? inner : NARROWEST;
    bool cached = in_cache(out, x, y, inner == 1 ? n : 1) && (!kept || n * narrowest <= COLUMNS_ROOM);
    if (cached && kept && width > COLUMNS_ROOM / n) width = COLUMNS_ROOM / n;
    softmax_job j = {.rows.row = softmax_row,
                     .loops = tt_nn_loops_of(dtype),
                     .inner = inner,
                     .width = width,
                     .log = log,
                     .kept = kept};
    j.chunks = (inner + width - 1) / width;
    bool ok = rows_start(&j.rows.in, p, &wide, out, x, y, n, dtype, cached);
    if (ok)
        tt_parallel_to_and_fro(out->numel / (n * inner) * j.chunks, tt_nn_grain(n * width),
                               inner == 1 ? rows_range : columns_range, &j);
    if (ok && j.failed) tt_fail(TT_OUT_OF_MEMORY, "softmax: out of memory for the columns that are kept");
    tt_plain_done(p, 2);
    return tt_wide_end(&wide, ok && !j.failed);
}

/* Normalisation */

typedef struct {
    row_job rows;
    const tt_nn_loops *loops;
    char *mean, *rstd; /* mean: NULL for rms_norm */
    const char *weight, *bias;
    double eps;
} norm_job;

static void norm_row(const void *job, void *out, const void *x, const void *g, int64_t r) {
    const norm_job *j = job;
    int64_t of_row = r * j->rows.in.size;
    char *mean = j->mean ? j->mean + of_row : NULL, *rstd = j->rstd + of_row;
    if (g) j->loops->norm_backward(out, g, x, j->weight, j->rows.in.n, mean, rstd);
    else j->loops->norm(out, x, j->weight, j->bias, j->rows.in.n, j->eps, mean, rstd);
}

bool tt_cpu_norm(tt_array *out, tt_array *x, tt_array *g, tt_array *weight, tt_array *bias, tt_array *mean,
                 tt_array *rstd, int64_t n, double eps) {
    int dtype = rstd->dtype;
    tt_plain p[4] = {{0}};
    tt_wide wide = {0};
    norm_job j = {.rows.row = norm_row, .loops = tt_nn_loops_of(dtype), .eps = eps};
    bool ok = tt_plain_take(&p[2], weight, dtype) && tt_plain_take(&p[3], bias, dtype) &&
              rows_start(&j.rows.in, p, &wide, out, x, g, n, dtype, in_cache(out, x, g, n));
    if (ok) {
        j.mean = mean ? mean->data : NULL;
        j.rstd = rstd->data;
        j.weight = tt_plain_data(&p[2]);
        j.bias = tt_plain_data(&p[3]);
        tt_parallel_to_and_fro(rstd->numel, tt_nn_grain(n), rows_range, &j);
    }
    tt_plain_done(p, 4);
    return tt_wide_end(&wide, ok);
}

/* Gradients of weight and bias: sums down the columns, in the tree that reducing the leading dimensions has. */

typedef struct {
    const tt_nn_loops *loops;
    char *parts; /* of each block of rows, n sums */
    const char *g, *x, *mean, *rstd;
    int64_t rows, n, width, tiles; /* columns of a tile, and tiles of a block of rows */
    int size, stored;
    tt_cast_loop widen; /* of a half type */
} column_job;

static void column_range(void *context, int64_t begin, int64_t end) {
    const column_job *j = context;
    char tile[TT_LANES * TT_NN_TILE * 8] __attribute__((aligned(64)));
    for (int64_t u = begin; u < end; u++) {
        int64_t left = u % j->tiles * j->width, block = u / j->tiles, first = block * TT_BLOCK;
        int64_t rows = j->rows - first < TT_BLOCK ? j->rows - first : TT_BLOCK, w = least(j->width, j->n - left);
        int64_t at = (first * j->n + left) * j->stored, of_row = first * j->size;
        j->loops->norm_weight(tile, j->g + at, j->x + at, j->mean ? j->mean + of_row : NULL, j->rstd + of_row, rows,
                              j->n * j->stored, w, j->widen);
        memcpy(j->parts + (block * j->n + left) * j->size, tile, (size_t)(w * j->size));
    }
}

bool tt_cpu_norm_weight(tt_array *out, tt_array *g, tt_array *x, tt_array *mean, tt_array *rstd, int64_t n) {
    int dtype = rstd->dtype, size = tt_itemsizes[dtype];
    int64_t rows = g->numel / n, blocks = (rows + TT_BLOCK - 1) / TT_BLOCK;
    tt_plain p[2] = {{0}};
    tt_wide wide = {0};
    char *parts = NULL;
    int stored = tt_is_half(x->dtype) && g->dtype == x->dtype ? x->dtype : dtype;
    bool ok = tt_plain_take(&p[0], g, stored) && tt_plain_take(&p[1], x, stored) && tt_wide_start(&wide, out, dtype) &&
              (blocks == 1 || (parts = tt_scratch(blocks * n * size)));
    if (ok) {
        int64_t width = tt_columns_together(n * rows / most(1, least(rows, TT_BLOCK)), least(n, TT_NN_TILE));
        column_job j = {tt_nn_loops_of(dtype),
                        parts ? parts : wide.array->data,
                        tt_plain_data(&p[0]),
                        tt_plain_data(&p[1]),
                        mean ? mean->data : NULL,
                        rstd->data,
                        rows,
                        n,
                        width,
                        pieces(n, width),
                        size,
                        tt_itemsizes[stored],
                        stored == dtype ? NULL : tt_isa->casts[stored][dtype]};
        tt_parallel(blocks * j.tiles, tt_nn_grain(least(rows, TT_BLOCK) * width), column_range, &j);
        if (parts) {
            tt_join_blocks(tt_get_reducer(TT_RED_sum, dtype), parts, blocks, n * size, n);
            memcpy(wide.array->data, parts, (size_t)(n * size));
        }
    }
    if (parts) tt_scratch_free(parts);
    tt_plain_done(p, 2);
    return tt_wide_end(&wide, ok);
}
