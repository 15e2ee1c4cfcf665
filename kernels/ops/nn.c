/* softmax and normalisation: one call each, rows shared out over the threads. Operands that are not contiguous, or of a
 * half type, are copied (as float32) first. */
#include "cuda/host/cuda.h"
#include "cpu/nn.h"
#include "cpu/reduce.h"
#include "cpu/simd.h"
#include "api/nn.h"
#include "api/reduce.h"
#include <string.h>

TT_ISA_TABLES(tt_nn_table, tt_nn)

#define ELEMENTS 16384 /* of a row's work that are worth a thread */
#define SHORT 2        /* rows shorter than this are not recorded */

const tt_nn_loops *tt_nn_loops_of(int dtype) {
    return dtype == TT_F64 ? &tt_nn[tt_isa_index]->f64 : &tt_nn[tt_isa_index]->f32;
}

bool tt_nn_is_float(const char *op, const tt_array *a) {
    if (tt_is_floating(a->dtype)) return true;
    tt_fail(TT_RUNTIME_ERROR, "%s: not implemented for '%s'", op, tt_dtype_names[a->dtype]);
    return false;
}

bool tt_plain_take(tt_plain *p, tt_array *a, int dtype) {
    p->copy = NULL;
    p->array = a;
    if (!a || (a->flags & TT_FLAG_CONTIGUOUS && a->dtype == dtype)) return true;
    p->array = p->copy = tt_empty(dtype, a->ndim, a->shape);
    return p->copy && tt_copy_now(p->copy, a) == 0;
}

void tt_plain_done(tt_plain *p, int n) {
    for (int k = 0; k < n; k++)
        if (p[k].copy) tt_free(p[k].copy);
}

tt_array *tt_nn_finish(tt_array *a, int dtype) {
    if (!a || a->dtype == dtype) return a;
    tt_array *out = tt_empty(dtype, a->ndim, a->shape);
    if (out && tt_copy_now(out, a) < 0) {
        tt_free(out);
        out = NULL;
    }
    tt_free(a);
    return out;
}

int64_t tt_nn_grain(int64_t n) { return n >= ELEMENTS ? 1 : ELEMENTS / (n + 1) + 1; }

/* softmax */

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

static tt_array *step(tt_array *made, tt_array **all, int *n) {
    if (made) all[(*n)++] = made;
    return made;
}

static tt_array *as_dtype(tt_array *a, int dtype) { return a->dtype == dtype ? tt_alias(a) : tt_cast(a, dtype); }

/* The same as elementwise operators and reductions, for a few rows that are too long for a thread block. */
static tt_array *softmax_by_parts(tt_array *a, tt_array *y, int dim, bool log) {
    int dtype = tt_compute_dtype(a->dtype), n = 0, sum = tt_reduce_code("sum");
    tt_array *made[8], *out = NULL, *x = step(as_dtype(a, dtype), made, &n);
    if (x && y) {
        tt_array *z = step(as_dtype(y, dtype), made, &n);
        tt_array *e = z ? step(log ? tt_unary(TT_OP_exp, z) : tt_binary(TT_OP_mul, x, z), made, &n) : NULL;
        tt_array *s = e ? step(tt_reduce(sum, log ? x : e, 1, dim, 1, -1), made, &n) : NULL;
        tt_array *d = s ? step(log ? tt_binary(TT_OP_mul, e, s) : tt_binary(TT_OP_sub, x, s), made, &n) : NULL;
        if (d) out = log ? tt_binary(TT_OP_sub, x, d) : tt_binary(TT_OP_mul, z, d);
    } else if (x) {
        tt_array *top = step(tt_reduce(tt_reduce_code("amax"), x, 1, dim, 1, -1), made, &n);
        tt_array *d = top ? step(tt_binary(TT_OP_sub, x, top), made, &n) : NULL;
        tt_array *e = d ? step(tt_unary(TT_OP_exp, d), made, &n) : NULL;
        tt_array *s = e ? step(tt_reduce(sum, e, 1, dim, 1, -1), made, &n) : NULL;
        tt_array *last = s ? step(tt_unary(log ? TT_OP_log : TT_OP_reciprocal, s), made, &n) : NULL;
        if (last) out = log ? tt_binary(TT_OP_sub, d, last) : tt_binary(TT_OP_mul, e, last);
    }
    while (n) tt_free(made[--n]);
    return tt_nn_finish(out, a->dtype);
}

/* On a device half types need no copy: kernels read and write them. */
static tt_array *softmax_on_device(tt_array *a, tt_array *y, int64_t n, int64_t inner, int dim, bool log) {
    tt_plain p[2] = {{0}};
    tt_array *out = NULL;
    if (inner == 1 && a->numel && !tt_cuda_rows_fit(a->numel / n, n)) return softmax_by_parts(a, y, dim, log);
    if (tt_plain_take(&p[0], a, a->dtype) && tt_plain_take(&p[1], y, a->dtype) && (out = tt_empty(a->dtype, a->ndim, a->shape)) &&
        out->numel &&
        !(inner == 1 ? tt_cuda_softmax(out, p[0].array, p[1].array, n, log)
                     : tt_cuda_softmax_columns(out, p[0].array, p[1].array, n, inner, log))) {
        tt_free(out);
        out = NULL;
    }
    tt_plain_done(p, 2);
    return out;
}

static tt_array *softmax(const char *op, tt_array *a, tt_array *y, int dim, int log) {
    TT_ON_DEVICE(NULL, op, 2, ((tt_array *[]){a, y}));
    if (!tt_current(a) || (y && !tt_current(y))) return tt_decline();
    int nd = a->ndim ? a->ndim : 1, dtype = tt_compute_dtype(a->dtype);
    if (dim < -nd || dim >= nd)
        return tt_fail(TT_INDEX_ERROR, "%s: Dimension out of range (expected to be in range of [%d, %d], but got %d)",
                       op, -nd, nd - 1, dim);
    if (!tt_nn_is_float(op, a)) return NULL;
    if (y && (!tt_same_shape(a, y) || a->dtype != y->dtype)) return tt_decline();
    dim = dim < 0 ? dim + nd : dim;
    int64_t outer = 1, inner = 1, n = a->ndim ? a->shape[dim] : 1;
    for (int d = 0; d < dim; d++) outer *= a->shape[d];
    for (int d = dim + 1; d < a->ndim; d++) inner *= a->shape[d];
    tt_plain p[2] = {{0}};
    tt_array *out = NULL;
    if (tt_worth_recording(a) && inner == 1 && n >= SHORT && (out = tt_record_softmax(a, y, dim, log))) return out;
    if (!tt_ready(a) || (y && !tt_ready(y))) return tt_decline();
    if (tt_device) return softmax_on_device(a, y, n, inner, dim, log);
    if (tt_plain_take(&p[0], a, dtype) && tt_plain_take(&p[1], y, dtype) && (out = tt_empty(dtype, a->ndim, a->shape)) && out->numel) {
        softmax_job j = {tt_nn_loops_of(dtype), out->data, tt_plain_data(&p[0]), tt_plain_data(&p[1]), n, inner,
                         (inner + TT_NN_COLUMNS - 1) / TT_NN_COLUMNS, tt_itemsizes[dtype], log};
        tt_parallel(outer * j.chunks, tt_nn_grain(n * (inner < TT_NN_COLUMNS ? inner : TT_NN_COLUMNS)), softmax_range, &j);
    }
    tt_plain_done(p, 2);
    return tt_nn_finish(out, a->dtype);
}

tt_array *tt_softmax(tt_array *a, int dim, int log) {
    return softmax(log ? "log_softmax" : "softmax", a, NULL, dim, log);
}

tt_array *tt_softmax_backward(tt_array *g, tt_array *y, int dim, int log) {
    return softmax(log ? "log_softmax" : "softmax", g, y, dim, log);
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

static bool split_rows(const tt_array *x, int dims, int64_t *rows, int64_t *n) {
    if (dims < 0 || dims > x->ndim) return false;
    *rows = *n = 1;
    for (int d = 0; d < x->ndim; d++) *(d < x->ndim - dims ? rows : n) *= x->shape[d];
    return true;
}

bool tt_nn_too_long(const char *op, int64_t n) {
    if (n <= TT_ROW_LIMIT) return false;
    tt_fail(TT_NOT_IMPLEMENTED, "%s: rows of %lld elements: on a device they have at most %d", op, (long long)n,
            TT_ROW_LIMIT);
    return true;
}

static bool matches(const char *op, const char *name, const tt_array *w, const tt_array *x, int dims) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    if (!w) return true;
    if (w->ndim != dims || memcmp(w->shape, x->shape + x->ndim - dims, sizeof(int64_t) * (size_t)dims) != 0) {
        tt_fail(TT_RUNTIME_ERROR, "%s: Expected %s to be of same shape as normalized_shape, but got %s of shape %s and "
                "normalized_shape = %s", op, name, name, tt_shape_text(have, w->ndim, w->shape),
                tt_shape_text(want, dims, x->shape + x->ndim - dims));
        return false;
    }
    if (w->dtype != x->dtype) {
        tt_fail(TT_RUNTIME_ERROR, "%s: expected %s of dtype %s, got %s", op, name, tt_dtype_names[x->dtype],
                tt_dtype_names[w->dtype]);
        return false;
    }
    return true;
}

tt_array *tt_norm(tt_array *x, tt_array *weight, tt_array *bias, int dims, double eps, int rms, tt_array **stats) {
    const char *op = rms ? "rms_norm" : "layer_norm";
    int64_t rows, n, shape[TT_MAX_NDIM];
    stats[0] = stats[1] = NULL;
    TT_ON_DEVICE(NULL, op, 3, ((tt_array *[]){x, weight, bias}));
    if (!tt_ready(x) || (weight && !tt_ready(weight)) || (bias && !tt_ready(bias))) return tt_decline();
    if (!tt_nn_is_float(op, x)) return NULL;
    if (!split_rows(x, dims, &rows, &n))
        return tt_fail(TT_RUNTIME_ERROR, "%s: normalized_shape has %d dimensions, input only %d", op, dims, x->ndim);
    if (!matches(op, "weight", weight, x, dims) || !matches(op, "bias", bias, x, dims)) return NULL;
    if (tt_device && tt_nn_too_long(op, n)) return NULL;
    int dtype = tt_compute_dtype(x->dtype), own = tt_device ? x->dtype : dtype;
    tt_plain p[3] = {{0}};
    tt_array *out = NULL;
    for (int d = 0; d < x->ndim; d++) shape[d] = d < x->ndim - dims ? x->shape[d] : 1;
    if (tt_plain_take(&p[0], x, own) && tt_plain_take(&p[1], weight, own) && tt_plain_take(&p[2], bias, own) &&
        (stats[0] = tt_empty(dtype, x->ndim, shape)) && (rms || (stats[1] = tt_empty(dtype, x->ndim, shape))) &&
        (out = tt_empty(own, x->ndim, x->shape)) && rows && tt_device) {
        if (n && !tt_cuda_norm(out, p[0].array, NULL, p[1].array, p[2].array, stats[1], stats[0], n, eps)) {
            tt_free(out);
            out = NULL;
        }
    } else if (out && rows) {
        norm_job j = {tt_nn_loops_of(dtype), out->data, rms ? NULL : stats[1]->data, stats[0]->data, NULL, tt_plain_data(&p[0]),
                      tt_plain_data(&p[1]), tt_plain_data(&p[2]), n, tt_itemsizes[dtype], eps};
        tt_parallel(rows, tt_nn_grain(n), norm_range, &j);
    }
    tt_plain_done(p, 3);
    out = tt_nn_finish(out, x->dtype);
    for (int k = 0; !out && k < 2; k++)
        if (stats[k]) {
            tt_free(stats[k]);
            stats[k] = NULL;
        }
    return out;
}

tt_array *tt_norm_backward(tt_array *g, tt_array *x, tt_array *weight, tt_array *rstd, tt_array *mean, int dims) {
    int64_t rows, n;
    TT_ON_DEVICE(NULL, "norm_backward", 5, ((tt_array *[]){g, x, weight, rstd, mean}));
    if (!tt_ready(g) || !tt_ready(x) || (weight && !tt_ready(weight)) || !tt_ready(rstd) || (mean && !tt_ready(mean)))
        return tt_decline();
    if (!tt_same_shape(g, x) || !split_rows(x, dims, &rows, &n)) return tt_decline();
    int dtype = rstd->dtype, own = tt_device ? x->dtype : dtype;
    tt_plain p[3] = {{0}};
    tt_array *out = NULL;
    if (tt_plain_take(&p[0], g, own) && tt_plain_take(&p[1], x, own) && tt_plain_take(&p[2], weight, own) &&
        (out = tt_empty(own, x->ndim, x->shape)) && out->numel && tt_device) {
        if (!tt_cuda_norm(out, p[1].array, p[0].array, p[2].array, NULL, mean, rstd, n, 0)) {
            tt_free(out);
            out = NULL;
        }
    } else if (out && rows) {
        norm_job j = {tt_nn_loops_of(dtype), out->data, mean ? mean->data : NULL, rstd->data, tt_plain_data(&p[0]), tt_plain_data(&p[1]),
                      tt_plain_data(&p[2]), NULL, n, tt_itemsizes[dtype], 0};
        tt_parallel(rows, tt_nn_grain(n), norm_range, &j);
    }
    tt_plain_done(p, 3);
    return tt_nn_finish(out, x->dtype);
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
        int64_t rows = j->rows - first < TT_BLOCK ? j->rows - first : TT_BLOCK, w = j->n - left < TILE ? j->n - left : TILE;
        int64_t at = (first * j->n + left) * j->size, of_row = first * j->size;
        j->loops->norm_weight(tile, j->g + at, j->x + at, j->mean ? j->mean + of_row : NULL, j->rstd + of_row, rows, j->n, w);
        memcpy(j->parts + (block * j->n + left) * j->size, tile, (size_t)(w * j->size));
    }
}

tt_array *tt_norm_weight(tt_array *g, tt_array *x, tt_array *rstd, tt_array *mean, int dims) {
    int64_t rows, n;
    TT_ON_DEVICE(NULL, "norm_weight", 4, ((tt_array *[]){g, x, rstd, mean}));
    if (!tt_ready(g) || !tt_ready(x) || !tt_ready(rstd) || (mean && !tt_ready(mean)) || !tt_same_shape(g, x) ||
        !split_rows(g, dims, &rows, &n))
        return tt_decline();
    int dtype = rstd->dtype, size = tt_itemsizes[dtype], own = tt_device ? x->dtype : dtype;
    int64_t blocks = (rows + TT_BLOCK - 1) / TT_BLOCK;
    tt_plain p[2] = {{0}};
    tt_array *out = NULL;
    char *parts = NULL;
    if (tt_plain_take(&p[0], g, own) && tt_plain_take(&p[1], x, own) && (out = tt_empty(own, dims, g->shape + g->ndim - dims)) &&
        out->numel && tt_device) {
        if (rows ? !tt_cuda_norm_weight(out, p[0].array, p[1].array, mean, rstd, n)
                 : tt_fill_now(out, TT_KIND_FLOAT, 0, 0) < 0) {
            tt_free(out);
            out = NULL;
        }
    } else if (out && out->numel) {
        column_job j = {tt_nn_loops_of(dtype), out->data, tt_plain_data(&p[0]), tt_plain_data(&p[1]), mean ? mean->data : NULL,
                        rstd->data, rows, n, (n + TILE - 1) / TILE, size};
        if (blocks > 1 && !(j.parts = parts = tt_scratch(blocks * n * size))) {
            tt_free(out);
            out = NULL;
        } else if (!rows) memset(out->data, 0, (size_t)(n * size));
        else {
            int64_t cost = (rows < TT_BLOCK ? rows : TT_BLOCK) * (n < TILE ? n : TILE);
            tt_parallel(blocks * j.tiles, tt_nn_grain(cost), column_range, &j);
            if (parts) {
                tt_join_blocks(tt_get_reducer(TT_RED_sum, dtype), parts, blocks, n * size, n);
                memcpy(out->data, parts, (size_t)(n * size));
            }
        }
    }
    if (parts) tt_scratch_free(parts);
    tt_plain_done(p, 2);
    return tt_nn_finish(out, g->dtype);
}

tt_array *tt_column_sums(tt_array *g, int dims) {
    if (dims < 0 || dims > g->ndim) return tt_decline();
    return tt_reduce(tt_reduce_code("sum"), g, 2, ((int64_t)1 << (g->ndim - dims)) - 1, 0, g->dtype);
}
