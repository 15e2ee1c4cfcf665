/* softmax and normalisation on the CPU, rows shared out over the threads. Operands that are not contiguous, or of a
 * half type, are copied (as float32) first. */
#include "cpu/cpu.h"
#include "cpu/nn.h"
#include "cpu/reduce.h"
#include <string.h>

TT_ISA_TABLES(tt_nn_table, tt_nn)

#define ELEMENTS 16384 /* of a row's work that are worth a thread */

const tt_nn_loops *tt_nn_loops_of(int dtype) {
    return dtype == TT_F64 ? &tt_nn[tt_isa_index]->f64 : &tt_nn[tt_isa_index]->f32;
}

int64_t tt_nn_grain(int64_t n) { return n >= ELEMENTS ? 1 : ELEMENTS / (n + 1) + 1; }

typedef struct {
    const tt_nn_loops *loops;
    char *out;
    const char *a, *y;
    int64_t n, inner, chunks; /* chunks of columns in a slab of n x inner elements */
    int size;
    bool log;
} softmax_job;

static void softmax_range(void *context, int64_t begin, int64_t end) {
    const softmax_job *j = context;
    for (int64_t k = begin; k < end; k++) {
        int64_t column = k % j->chunks * TT_NN_COLUMNS, rest = j->inner - column;
        int64_t at = (k / j->chunks * j->n * j->inner + column) * j->size;
        int64_t m = rest < TT_NN_COLUMNS ? rest : TT_NN_COLUMNS;
        char *out = j->out + at;
        const char *a = j->a + at, *y = j->y ? j->y + at : NULL;
        if (y && j->inner == 1) j->loops->softmax_backward(out, a, y, j->n, j->log);
        else if (y) j->loops->softmax_backward_columns(out, a, y, j->n, j->inner, m, j->log);
        else if (j->inner == 1) j->loops->softmax(out, a, j->n, j->log);
        else j->loops->softmax_columns(out, a, j->n, j->inner, m, j->log);
    }
}

bool tt_cpu_softmax(tt_array *out, tt_array *x, tt_array *y, int64_t n, int64_t inner, bool log) {
    int dtype = tt_compute_dtype(x->dtype);
    tt_plain p[2] = {{0}};
    tt_wide wide = {0};
    bool ok = tt_plain_take(&p[0], x, dtype) && tt_plain_take(&p[1], y, dtype) && tt_wide_start(&wide, out, dtype);
    if (ok) {
        softmax_job j = {tt_nn_loops_of(dtype),
                         wide.array->data,
                         tt_plain_data(&p[0]),
                         tt_plain_data(&p[1]),
                         n,
                         inner,
                         (inner + TT_NN_COLUMNS - 1) / TT_NN_COLUMNS,
                         tt_itemsizes[dtype],
                         log};
        tt_parallel(out->numel / (n * inner) * j.chunks,
                    tt_nn_grain(n * (inner < TT_NN_COLUMNS ? inner : TT_NN_COLUMNS)), softmax_range, &j);
    }
    tt_plain_done(p, 2);
    return tt_wide_end(&wide, ok);
}

/* Normalisation */

typedef struct {
    const tt_nn_loops *loops;
    char *out, *mean, *rstd; /* mean: NULL for rms_norm */
    const char *g, *x, *weight, *bias;
    int64_t n;
    int size;
    double eps;
} norm_job;

static void norm_range(void *context, int64_t begin, int64_t end) {
    const norm_job *j = context;
    for (int64_t r = begin; r < end; r++) {
        int64_t at = r * j->n * j->size, of_row = r * j->size;
        char *mean = j->mean ? j->mean + of_row : NULL, *rstd = j->rstd + of_row;
        if (j->g) j->loops->norm_backward(j->out + at, j->g + at, j->x + at, j->weight, j->n, mean, rstd);
        else j->loops->norm(j->out + at, j->x + at, j->weight, j->bias, j->n, j->eps, mean, rstd);
    }
}

bool tt_cpu_norm(tt_array *out, tt_array *x, tt_array *g, tt_array *weight, tt_array *bias, tt_array *mean,
                 tt_array *rstd, int64_t n, double eps) {
    int dtype = rstd->dtype;
    tt_plain p[4] = {{0}};
    tt_wide wide = {0};
    bool ok = tt_plain_take(&p[0], x, dtype) && tt_plain_take(&p[1], g, dtype) && tt_plain_take(&p[2], weight, dtype) &&
              tt_plain_take(&p[3], bias, dtype) && tt_wide_start(&wide, out, dtype);
    if (ok) {
        norm_job j = {tt_nn_loops_of(dtype),
                      wide.array->data,
                      mean ? mean->data : NULL,
                      rstd->data,
                      tt_plain_data(&p[1]),
                      tt_plain_data(&p[0]),
                      tt_plain_data(&p[2]),
                      tt_plain_data(&p[3]),
                      n,
                      tt_itemsizes[dtype],
                      eps};
        tt_parallel(rstd->numel, tt_nn_grain(n), norm_range, &j);
    }
    tt_plain_done(p, 4);
    return tt_wide_end(&wide, ok);
}

/* Gradients of weight and bias: sums down the columns, in the tree that reducing the leading dimensions has. */

#define TILE 512 /* columns of a thread's piece of work */

typedef struct {
    const tt_nn_loops *loops;
    char *parts; /* of each block of rows, n sums */
    const char *g, *x, *mean, *rstd;
    int64_t rows, n, tiles;
    int size;
} column_job;

static void column_range(void *context, int64_t begin, int64_t end) {
    const column_job *j = context;
    char tile[TT_LANES * TILE * 8] __attribute__((aligned(64)));
    for (int64_t u = begin; u < end; u++) {
        int64_t left = u % j->tiles * TILE, block = u / j->tiles, first = block * TT_BLOCK;
        int64_t rows = j->rows - first < TT_BLOCK ? j->rows - first : TT_BLOCK,
                w = j->n - left < TILE ? j->n - left : TILE;
        int64_t at = (first * j->n + left) * j->size, of_row = first * j->size;
        j->loops->norm_weight(tile, j->g + at, j->x + at, j->mean ? j->mean + of_row : NULL, j->rstd + of_row, rows,
                              j->n, w);
        memcpy(j->parts + (block * j->n + left) * j->size, tile, (size_t)(w * j->size));
    }
}

bool tt_cpu_norm_weight(tt_array *out, tt_array *g, tt_array *x, tt_array *mean, tt_array *rstd, int64_t n) {
    int dtype = rstd->dtype, size = tt_itemsizes[dtype];
    int64_t rows = g->numel / n, blocks = (rows + TT_BLOCK - 1) / TT_BLOCK;
    tt_plain p[2] = {{0}};
    tt_wide wide = {0};
    char *parts = NULL;
    bool ok = tt_plain_take(&p[0], g, dtype) && tt_plain_take(&p[1], x, dtype) && tt_wide_start(&wide, out, dtype) &&
              (blocks == 1 || (parts = tt_scratch(blocks * n * size)));
    if (ok) {
        column_job j = {tt_nn_loops_of(dtype),
                        parts ? parts : wide.array->data,
                        tt_plain_data(&p[0]),
                        tt_plain_data(&p[1]),
                        mean ? mean->data : NULL,
                        rstd->data,
                        rows,
                        n,
                        (n + TILE - 1) / TILE,
                        size};
        int64_t cost = (rows < TT_BLOCK ? rows : TT_BLOCK) * (n < TILE ? n : TILE);
        tt_parallel(blocks * j.tiles, tt_nn_grain(cost), column_range, &j);
        if (parts) {
            tt_join_blocks(tt_get_reducer(TT_RED_sum, dtype), parts, blocks, n * size, n);
            memcpy(wide.array->data, parts, (size_t)(n * size));
        }
    }
    if (parts) tt_scratch_free(parts);
    tt_plain_done(p, 2);
    return tt_wide_end(&wide, ok);
}
