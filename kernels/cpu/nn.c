/* softmax, normalisation and classification losses: one call each, rows shared out over the threads. Operands that are
 * not contiguous, or of a half type, are copied (as float32) first. */
#include "../cuda/cuda.h"
#include "nn.h"
#include "reduce.h"
#include "simd.h"
#include "api/nn.h"
#include "api/reduce.h"
#include <string.h>

TT_ISA_TABLES(tt_nn_table, tt_nn)

#define ELEMENTS 16384 /* of a row's work that are worth a thread */
#define SHORT 2        /* rows shorter than this are not recorded */

static const tt_nn_loops *loops_of(int dtype) {
    return dtype == TT_F64 ? &tt_nn[tt_isa_index]->f64 : &tt_nn[tt_isa_index]->f32;
}

static bool is_float(const char *op, const tt_array *a) {
    if (tt_kind_of(a->dtype) == TT_KIND_FLOAT) return true;
    tt_fail(TT_RUNTIME_ERROR, "%s: not implemented for '%s'", op, tt_dtype_names[a->dtype]);
    return false;
}

/* An operand as the loops want it: itself, or a copy that `done` frees. */
typedef struct { tt_array *array, *copy; } plain;

static bool take(plain *p, tt_array *a, int dtype) {
    p->copy = NULL;
    p->array = a;
    if (!a || (a->flags & TT_FLAG_CONTIGUOUS && a->dtype == dtype)) return true;
    p->array = p->copy = tt_empty(dtype, a->ndim, a->shape);
    return p->copy && tt_copy_now(p->copy, a) == 0;
}

static void done(plain *p, int n) {
    for (int k = 0; k < n; k++)
        if (p[k].copy) tt_free(p[k].copy);
}

static const char *data_of(const plain *p) { return p->array ? p->array->data : NULL; }

/* `a` in the dtype of the result; takes `a`. */
static tt_array *finish(tt_array *a, int dtype) {
    if (!a || a->dtype == dtype) return a;
    tt_array *out = tt_empty(dtype, a->ndim, a->shape);
    if (out && tt_copy_now(out, a) < 0) {
        tt_free(out);
        out = NULL;
    }
    tt_free(a);
    return out;
}

static int64_t grain_of(int64_t n) { return n >= ELEMENTS ? 1 : ELEMENTS / (n + 1) + 1; }

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
    return finish(out, a->dtype);
}

/* On a device half types need no copy: kernels read and write them. */
static tt_array *softmax_on_device(tt_array *a, tt_array *y, int64_t n, int64_t inner, int dim, bool log) {
    plain p[2] = {{0}};
    tt_array *out = NULL;
    if (inner == 1 && a->numel && !tt_cuda_rows_fit(a->numel / n, n)) return softmax_by_parts(a, y, dim, log);
    if (take(&p[0], a, a->dtype) && take(&p[1], y, a->dtype) && (out = tt_empty(a->dtype, a->ndim, a->shape)) &&
        out->numel &&
        !(inner == 1 ? tt_cuda_softmax(out, p[0].array, p[1].array, n, log)
                     : tt_cuda_softmax_columns(out, p[0].array, p[1].array, n, inner, log))) {
        tt_free(out);
        out = NULL;
    }
    done(p, 2);
    return out;
}

static tt_array *softmax(const char *op, tt_array *a, tt_array *y, int dim, int log) {
    TT_ON_DEVICE(NULL, op, 2, ((tt_array *[]){a, y}));
    if (!tt_current(a) || (y && !tt_current(y))) return tt_decline();
    int nd = a->ndim ? a->ndim : 1, dtype = tt_compute_dtype(a->dtype);
    if (dim < -nd || dim >= nd)
        return tt_fail(TT_INDEX_ERROR, "%s: Dimension out of range (expected to be in range of [%d, %d], but got %d)",
                       op, -nd, nd - 1, dim);
    if (!is_float(op, a)) return NULL;
    if (y && (!tt_same_shape(a, y) || a->dtype != y->dtype)) return tt_decline();
    dim = dim < 0 ? dim + nd : dim;
    int64_t outer = 1, inner = 1, n = a->ndim ? a->shape[dim] : 1;
    for (int d = 0; d < dim; d++) outer *= a->shape[d];
    for (int d = dim + 1; d < a->ndim; d++) inner *= a->shape[d];
    plain p[2] = {{0}};
    tt_array *out = NULL;
    if (tt_worth_recording(a) && inner == 1 && n >= SHORT && (out = tt_record_softmax(a, y, dim, log))) return out;
    if (!tt_ready(a) || (y && !tt_ready(y))) return tt_decline();
    if (tt_device) return softmax_on_device(a, y, n, inner, dim, log);
    if (take(&p[0], a, dtype) && take(&p[1], y, dtype) && (out = tt_empty(dtype, a->ndim, a->shape)) && out->numel) {
        softmax_job j = {loops_of(dtype), out->data, data_of(&p[0]), data_of(&p[1]), n, inner,
                         (inner + TT_NN_COLUMNS - 1) / TT_NN_COLUMNS, tt_itemsizes[dtype], log};
        tt_parallel(outer * j.chunks, grain_of(n * (inner < TT_NN_COLUMNS ? inner : TT_NN_COLUMNS)), softmax_range, &j);
    }
    done(p, 2);
    return finish(out, a->dtype);
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

/* Of the rows of a device. */
static bool too_long(const char *op, int64_t n) {
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
    if (!is_float(op, x)) return NULL;
    if (!split_rows(x, dims, &rows, &n))
        return tt_fail(TT_RUNTIME_ERROR, "%s: normalized_shape has %d dimensions, input only %d", op, dims, x->ndim);
    if (!matches(op, "weight", weight, x, dims) || !matches(op, "bias", bias, x, dims)) return NULL;
    if (tt_device && too_long(op, n)) return NULL;
    int dtype = tt_compute_dtype(x->dtype), own = tt_device ? x->dtype : dtype;
    plain p[3] = {{0}};
    tt_array *out = NULL;
    for (int d = 0; d < x->ndim; d++) shape[d] = d < x->ndim - dims ? x->shape[d] : 1;
    if (take(&p[0], x, own) && take(&p[1], weight, own) && take(&p[2], bias, own) &&
        (stats[0] = tt_empty(dtype, x->ndim, shape)) && (rms || (stats[1] = tt_empty(dtype, x->ndim, shape))) &&
        (out = tt_empty(own, x->ndim, x->shape)) && rows && tt_device) {
        if (n && !tt_cuda_norm(out, p[0].array, NULL, p[1].array, p[2].array, stats[1], stats[0], n, eps)) {
            tt_free(out);
            out = NULL;
        }
    } else if (out && rows) {
        norm_job j = {loops_of(dtype), out->data, rms ? NULL : stats[1]->data, stats[0]->data, NULL, data_of(&p[0]),
                      data_of(&p[1]), data_of(&p[2]), n, tt_itemsizes[dtype], eps};
        tt_parallel(rows, grain_of(n), norm_range, &j);
    }
    done(p, 3);
    out = finish(out, x->dtype);
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
    plain p[3] = {{0}};
    tt_array *out = NULL;
    if (take(&p[0], g, own) && take(&p[1], x, own) && take(&p[2], weight, own) &&
        (out = tt_empty(own, x->ndim, x->shape)) && out->numel && tt_device) {
        if (!tt_cuda_norm(out, p[1].array, p[0].array, p[2].array, NULL, mean, rstd, n, 0)) {
            tt_free(out);
            out = NULL;
        }
    } else if (out && rows) {
        norm_job j = {loops_of(dtype), out->data, mean ? mean->data : NULL, rstd->data, data_of(&p[0]), data_of(&p[1]),
                      data_of(&p[2]), NULL, n, tt_itemsizes[dtype], 0};
        tt_parallel(rows, grain_of(n), norm_range, &j);
    }
    done(p, 3);
    return finish(out, x->dtype);
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
    plain p[2] = {{0}};
    tt_array *out = NULL;
    char *parts = NULL;
    if (take(&p[0], g, own) && take(&p[1], x, own) && (out = tt_empty(own, dims, g->shape + g->ndim - dims)) &&
        out->numel && tt_device) {
        if (rows ? !tt_cuda_norm_weight(out, p[0].array, p[1].array, mean, rstd, n)
                 : tt_fill_now(out, TT_KIND_FLOAT, 0, 0) < 0) {
            tt_free(out);
            out = NULL;
        }
    } else if (out && out->numel) {
        column_job j = {loops_of(dtype), out->data, data_of(&p[0]), data_of(&p[1]), mean ? mean->data : NULL,
                        rstd->data, rows, n, (n + TILE - 1) / TILE, size};
        if (blocks > 1 && !(j.parts = parts = tt_scratch(blocks * n * size))) {
            tt_free(out);
            out = NULL;
        } else if (!rows) memset(out->data, 0, (size_t)(n * size));
        else {
            int64_t cost = (rows < TT_BLOCK ? rows : TT_BLOCK) * (n < TILE ? n : TILE);
            tt_parallel(blocks * j.tiles, grain_of(cost), column_range, &j);
            if (parts) {
                tt_join_blocks(tt_get_reducer(TT_RED_SUM, dtype), parts, blocks, n * size, n);
                memcpy(out->data, parts, (size_t)(n * size));
            }
        }
    }
    if (parts) tt_scratch_free(parts);
    done(p, 2);
    return finish(out, g->dtype);
}

tt_array *tt_column_sums(tt_array *g, int dims) {
    if (dims < 0 || dims > g->ndim) return tt_decline();
    return tt_reduce(tt_reduce_code("sum"), g, 2, ((int64_t)1 << (g->ndim - dims)) - 1, 0, g->dtype);
}

/* Classification losses */

typedef struct {
    const tt_nn_loops *loops;
    tt_classes classes;
    char *out, *top, *log_sum;
    const char *x, *g; /* g: a gradient per row, or NULL: `factor` for all */
    double *losses, factor;
    int size;
} loss_job;

static void loss_range(void *context, int64_t begin, int64_t end) {
    const loss_job *j = context;
    for (int64_t i = begin; i < end; i++)
        j->losses[i] = j->loops->class_loss(j->x, i, &j->classes, j->top + i * j->size, j->log_sum + i * j->size);
}

static void loss_backward_range(void *context, int64_t begin, int64_t end) {
    const loss_job *j = context;
    for (int64_t i = begin; i < end; i++) {
        double g = j->factor;
        if (j->g) g *= j->size == 8 ? ((const double *)j->g)[i] : (double)((const float *)j->g)[i];
        j->loops->class_loss_backward(j->out, j->x, i, &j->classes, g, j->top + i * j->size, j->log_sum + i * j->size);
    }
}

static double weight_at(const tt_classes *c, int dtype, int64_t k) {
    if (!c->weight) return 1;
    return dtype == TT_F64 ? ((const double *)c->weight)[k] : (double)((const float *)c->weight)[k];
}

static bool check_classes(const char *op, tt_array *target, tt_array *weight, int64_t rows, int64_t classes,
                          int64_t ignore) {
    char have[TT_SHAPE_TEXT];
    if (target->dtype != TT_I64) {
        tt_fail(TT_RUNTIME_ERROR, "%s: expected scalar type Long (int64) for argument 'target' but found %s", op,
                tt_dtype_names[target->dtype]);
        return false;
    }
    if (target->ndim != 1 || target->shape[0] != rows) {
        tt_fail(TT_VALUE_ERROR, "%s: Expected input batch_size (%lld) to match target batch_size (%lld).", op,
                (long long)rows, (long long)(target->ndim ? target->shape[0] : 1));
        return false;
    }
    if (weight && (weight->ndim != 1 || weight->shape[0] != classes)) {
        tt_fail(TT_RUNTIME_ERROR, "%s: weight tensor should be defined either for all %lld classes or no classes but "
                "got weight tensor of shape: %s", op, (long long)classes, tt_shape_text(have, weight->ndim, weight->shape));
        return false;
    }
    if (tt_device) return true; /* a device's elements are not waited for */
    int64_t step = target->ndim ? target->strides[0] : 0;
    const int64_t *t = (const int64_t *)target->data;
    for (int64_t i = 0; i < rows; i++)
        if (t[i * step] != ignore && (t[i * step] < 0 || t[i * step] >= classes)) {
            tt_fail(TT_INDEX_ERROR, "%s: Target %lld is out of bounds.", op, (long long)t[i * step]);
            return false;
        }
    return true;
}

static void describe(loss_job *j, const plain *p, int dtype, int64_t classes, int logits, int64_t ignore,
                     double smoothing) {
    j->loops = loops_of(dtype);
    j->size = tt_itemsizes[dtype];
    j->x = data_of(&p[0]);
    j->classes = (tt_classes){(const int64_t *)data_of(&p[1]), data_of(&p[2]), (double)classes, smoothing, ignore,
                              classes, logits};
}

/* The sum of all classes' weights in double, an array of one element. */
static tt_array *weights_sum(tt_array *weight) {
    tt_array *sum = tt_reduce(tt_reduce_code("sum"), weight, 0, 0, 0, TT_F64);
    if (!sum || tt_ready(sum)) return sum;
    tt_free(sum);
    return NULL;
}

/* In the tree that reductions have; `v` is used up. */
static double sum_of(double *v, int64_t n) {
    const tt_reducer *r = tt_get_reducer(TT_RED_SUM, TT_F64);
    int64_t blocks = 0;
    for (int64_t i = 0; i < n; i += TT_BLOCK) r->fold(&v[blocks++], v + i, n - i < TT_BLOCK ? n - i : TT_BLOCK, NULL);
    tt_join_blocks(r, (char *)v, blocks, sizeof *v, 1);
    return n ? v[0] : 0;
}

static tt_class_args class_args(const plain *p, int64_t rows, int64_t classes, int64_t ignore, double smoothing,
                                const tt_array *stats) {
    tt_class_args args = {.rows = rows, .n = (int32_t)classes, .x = data_of(&p[0]),
                          .target = (const int64_t *)data_of(&p[1]), .weight = data_of(&p[2]), .ignore = ignore,
                          .smoothing = smoothing};
    if (stats) {
        args.top = stats->data;
        args.log_sum = stats->data + rows * tt_itemsizes[stats->dtype];
    }
    return args;
}

static tt_array *class_loss_on_device(const plain *p, int64_t rows, int64_t classes, int logits, int reduction,
                                      int64_t ignore, double smoothing, tt_array *stats) {
    int64_t shape[2] = {2, rows};
    const tt_array *x = p[0].array;
    int compute = stats->dtype;
    tt_array *out = tt_empty(x->dtype, reduction == 0, &rows), *sums = NULL;
    tt_array *losses = out && reduction ? tt_empty(TT_F64, 2, shape) : NULL;
    tt_class_args args = class_args(p, rows, classes, ignore, smoothing, stats);
    if (losses) args.losses = (double *)losses->data;
    else if (out) args.out = out->data;
    bool ok = out && (losses || !reduction) &&
              (!rows || tt_cuda_class_loss(logits ? TT_CLASS_LOGITS : 0, &args, x->dtype, compute));
    if (ok && reduction)
        ok = (sums = tt_reduce(tt_reduce_code("sum"), losses, 1, 1, 0, -1)) && tt_ready(sums) &&
             tt_cuda_class_total(sums, out, stats->data + 2 * rows * tt_itemsizes[compute], compute, reduction == 1);
    if (sums) tt_free(sums);
    if (losses) tt_free(losses);
    if (ok || !out) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_class_loss(tt_array *x, tt_array *target, tt_array *weight, int logits, int reduction, int64_t ignore,
                        double smoothing, tt_array **stats) {
    const char *op = logits ? "cross_entropy" : "nll_loss";
    *stats = NULL;
    TT_ON_DEVICE(NULL, op, 3, ((tt_array *[]){x, target, weight}));
    if (!tt_ready(x) || !tt_ready(target) || (weight && !tt_ready(weight))) return tt_decline();
    if (!is_float(op, x)) return NULL;
    if (x->ndim != 2) return tt_fail(TT_RUNTIME_ERROR, "%s: input should be 1D or 2D, got %dD", op, x->ndim);
    int64_t rows = x->shape[0], classes = x->shape[1];
    if (!check_classes(op, target, weight, rows, classes, ignore) || (tt_device && too_long(op, classes))) return NULL;
    int dtype = tt_compute_dtype(x->dtype);
    plain p[3] = {{0}};
    tt_array *out = NULL;
    loss_job j = {0};
    if (!(*stats = tt_empty(dtype, 1, (int64_t[]){2 * rows + 1})) || !take(&p[0], x, tt_device ? x->dtype : dtype) ||
        !take(&p[1], target, TT_I64) || !take(&p[2], weight, dtype))
        goto end;
    if (tt_device) {
        out = class_loss_on_device(p, rows, classes, logits, reduction, ignore, smoothing, *stats);
        goto end;
    }
    if (!(j.losses = tt_scratch(2 * rows * (int64_t)sizeof(double))) || !(out = tt_empty(dtype, reduction == 0, &rows)))
        goto end;
    describe(&j, p, dtype, classes, logits, ignore, smoothing);
    j.top = (*stats)->data;
    j.log_sum = j.top + rows * j.size;
    tt_parallel(rows, grain_of(classes), loss_range, &j);
    double *weights = j.losses + rows, divisor;
    for (int64_t i = 0; i < rows; i++) {
        int64_t t = j.classes.target[i];
        weights[i] = t == ignore ? 0 : weight_at(&j.classes, dtype, t);
    }
    divisor = sum_of(weights, rows);
    tt_isa->casts[TT_F64][dtype](j.log_sum + rows * j.size, &divisor, 1);
    if (reduction == 0) tt_isa->casts[TT_F64][dtype](out->data, j.losses, rows);
    else {
        double total = sum_of(j.losses, rows);
        if (reduction == 1) total /= divisor;
        tt_isa->casts[TT_F64][dtype](out->data, &total, 1);
    }
end:
    if (j.losses) tt_scratch_free(j.losses);
    done(p, 3);
    out = finish(out, x->dtype);
    if (!out && *stats) {
        tt_free(*stats);
        *stats = NULL;
    }
    return out;
}

tt_array *tt_class_loss_backward(tt_array *g, tt_array *x, tt_array *target, tt_array *weight, tt_array *stats,
                                 int logits, int reduction, int64_t ignore, double smoothing) {
    const char *op = logits ? "cross_entropy" : "nll_loss";
    TT_ON_DEVICE(NULL, op, 5, ((tt_array *[]){g, x, target, weight, stats}));
    if (!tt_ready(g) || !tt_ready(x) || !tt_ready(target) || (weight && !tt_ready(weight))) return tt_decline();
    int64_t rows = x->shape[0], classes = x->shape[1];
    if (!check_classes(op, target, weight, rows, classes, ignore)) return NULL;
    int dtype = stats->dtype, own = tt_device ? x->dtype : dtype;
    if (g->numel != (reduction == 0 ? rows : 1)) return tt_decline();
    plain p[4] = {{0}};
    tt_array *out = NULL, *all = weight && smoothing != 0 && logits ? weights_sum(weight) : NULL;
    loss_job j = {0};
    if (weight && smoothing != 0 && logits && !all) return NULL;
    if (take(&p[0], x, own) && take(&p[1], target, TT_I64) && take(&p[2], weight, dtype) && take(&p[3], g, dtype) &&
        (out = tt_empty(own, 2, x->shape)) && out->numel && tt_device) {
        tt_class_args args = class_args(p, rows, classes, ignore, smoothing, stats);
        args.out = out->data;
        args.g = data_of(&p[3]);
        args.each_row = reduction == 0;
        if (reduction == 1) args.divisor = stats->data + 2 * rows * tt_itemsizes[dtype];
        if (all) args.weight_sum = (const double *)all->data;
        if (!tt_cuda_class_loss(TT_CLASS_BACKWARD | (logits ? TT_CLASS_LOGITS : 0), &args, own, dtype)) {
            tt_free(out);
            out = NULL;
        }
    } else if (out && rows) {
        describe(&j, p, dtype, classes, logits, ignore, smoothing);
        if (all) j.classes.weight_sum = *(const double *)all->data;
        j.out = out->data;
        j.top = stats->data;
        j.log_sum = j.top + rows * j.size;
        j.factor = 1;
        if (reduction == 0) j.g = data_of(&p[3]);
        else tt_isa->casts[dtype][TT_F64](&j.factor, data_of(&p[3]), 1);
        if (reduction == 1) {
            double divisor;
            tt_isa->casts[dtype][TT_F64](&divisor, j.log_sum + rows * j.size, 1);
            j.factor /= divisor;
        }
        tt_parallel(rows, grain_of(classes), loss_backward_range, &j);
    }
    if (all) tt_free(all);
    done(p, 4);
    return finish(out, x->dtype);
}

tt_array *tt_class_targets(tt_array *target, tt_array *weight, int64_t classes, int dtype, int64_t ignore,
                           double smoothing) {
    TT_ON_DEVICE(NULL, "cross_entropy", 2, ((tt_array *[]){target, weight}));
    if (!tt_ready(target) || (weight && !tt_ready(weight))) return tt_decline();
    if (!check_classes("cross_entropy", target, weight, target->numel, classes, ignore)) return NULL;
    int wide = tt_compute_dtype(dtype);
    plain p[3] = {{0}};
    tt_array *out = tt_empty(tt_device ? dtype : wide, 2, (int64_t[]){target->numel, classes});
    loss_job j = {0};
    bool ok = out && take(&p[1], target, TT_I64) && take(&p[2], weight, wide);
    if (ok && tt_device) {
        tt_class_args args = class_args(p, target->numel, classes, ignore, smoothing, NULL);
        args.out = out->data;
        ok = !out->numel || tt_cuda_class_loss(TT_CLASS_TARGETS, &args, dtype, wide);
    } else if (ok) {
        describe(&j, p, wide, classes, 1, ignore, smoothing);
        for (int64_t i = 0; i < target->numel; i++)
            for (int64_t k = 0; k < classes; k++) {
                int64_t t = j.classes.target[i];
                double q = smoothing / (double)classes + (k == t ? 1 - smoothing : 0);
                q = t == ignore ? 0 : q * weight_at(&j.classes, wide, k);
                tt_isa->casts[TT_F64][wide](out->data + (i * classes + k) * j.size, &q, 1);
            }
    }
    if (out && !ok) {
        tt_free(out);
        out = NULL;
    }
    done(p, 3);
    return finish(out, dtype);
}
