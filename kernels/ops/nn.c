/* softmax and normalisation: one call each. */
#include "api/nn.h"
#include "api/reduce.h"
#include "backend/backend.h"
#include "backend/now.h"
#include "backend/operators.h"
#include "fuse/nn_record.h"
#include "ops/nn.h"
#include <string.h>

#define SHORT 2 /* rows shorter than this are not recorded */

bool tt_rows_are_float(const char *op, const tt_array *a) {
    if (tt_is_floating(a->dtype)) return true;
    tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for '%s'", op, tt_dtype_names[a->dtype]);
    return false;
}

/* Are rows of so many elements too long for this thread's device? Then an error. */
bool tt_rows_too_long(const char *op, int64_t n) {
    if (n <= tt_here()->longest_row) return false;
    tt_fail(TT_NOT_IMPLEMENTED, "%s: rows of %lld elements: on a device they have at most %lld", op, (long long)n,
            (long long)tt_here()->longest_row);
    return true;
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
    if (!out || out->dtype == a->dtype) return out;
    tt_array *narrow = tt_cast_now(out, a->dtype);
    tt_free(out);
    return narrow;
}

static tt_array *softmax(const char *op, tt_array *a, tt_array *y, int dim, int log) {
    TT_ON_DEVICE(NULL, op, 2, ((tt_array *[]){a, y}));
    if (!tt_current(a) || (y && !tt_current(y))) return tt_decline();
    int nd = a->ndim ? a->ndim : 1;
    if (dim < -nd || dim >= nd)
        return tt_fail(TT_INDEX_ERROR, "%s: Dimension out of range (expected to be in range of [%d, %d], but got %d)",
                       op, -nd, nd - 1, dim);
    if (!tt_rows_are_float(op, a)) return NULL;
    if (y && (!tt_same_shape(a, y) || a->dtype != y->dtype)) return tt_decline();
    dim = dim < 0 ? dim + nd : dim;
    int64_t inner = 1, n = a->ndim ? a->shape[dim] : 1;
    for (int d = dim + 1; d < a->ndim; d++) inner *= a->shape[d];
    tt_array *out = tt_worth_recording(a) && inner == 1 && n >= SHORT ? tt_record_softmax(a, y, dim, log) : NULL;
    if (out) return out;
    if (!tt_ready(a) || (y && !tt_ready(y))) return tt_decline();
    if (inner == 1 && a->numel && tt_here()->rows_fit && !tt_here()->rows_fit(a->numel / n, n))
        return softmax_by_parts(a, y, dim, log);
    if (!(out = tt_empty(a->dtype, a->ndim, a->shape)) || !out->numel) return out;
    if (TT_WORK(op, softmax, out, a, y, n, inner, log)) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_softmax(tt_array *a, int dim, int log) {
    return softmax(log ? "log_softmax" : "softmax", a, NULL, dim, log);
}

tt_array *tt_softmax_backward(tt_array *g, tt_array *y, int dim, int log) {
    return softmax(log ? "log_softmax" : "softmax", g, y, dim, log);
}

static bool split_rows(const tt_array *x, int dims, int64_t *rows, int64_t *n) {
    if (dims < 0 || dims > x->ndim) return false;
    *rows = *n = 1;
    for (int d = 0; d < x->ndim; d++) *(d < x->ndim - dims ? rows : n) *= x->shape[d];
    return true;
}

static bool matches(const char *op, const char *name, const tt_array *w, const tt_array *x, int dims) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    if (!w) return true;
    if (w->ndim != dims || memcmp(w->shape, x->shape + x->ndim - dims, sizeof(int64_t) * (size_t)dims) != 0) {
        tt_fail(TT_RUNTIME_ERROR,
                "%s: Expected %s to be of same shape as normalized_shape, but got %s of shape %s and "
                "normalized_shape = %s",
                op, name, name, tt_shape_text(have, w->ndim, w->shape),
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
    if (!tt_rows_are_float(op, x)) return NULL;
    if (!split_rows(x, dims, &rows, &n))
        return tt_fail(TT_RUNTIME_ERROR, "%s: normalized_shape has %d dimensions, input only %d", op, dims, x->ndim);
    if (!matches(op, "weight", weight, x, dims) || !matches(op, "bias", bias, x, dims)) return NULL;
    if (tt_rows_too_long(op, n)) return NULL;
    int dtype = tt_compute_dtype(x->dtype);
    tt_array *out = NULL;
    for (int d = 0; d < x->ndim; d++) shape[d] = d < x->ndim - dims ? x->shape[d] : 1;
    bool ok = (stats[0] = tt_empty(dtype, x->ndim, shape)) && (rms || (stats[1] = tt_empty(dtype, x->ndim, shape))) &&
              (out = tt_empty(x->dtype, x->ndim, x->shape)) &&
              (!rows || TT_WORK(op, norm, out, x, NULL, weight, bias, stats[1], stats[0], n, eps));
    if (ok) return out;
    if (out) tt_free(out);
    for (int k = 0; k < 2; k++)
        if (stats[k]) {
            tt_free(stats[k]);
            stats[k] = NULL;
        }
    return NULL;
}

tt_array *tt_norm_backward(tt_array *g, tt_array *x, tt_array *weight, tt_array *rstd, tt_array *mean, int dims) {
    int64_t rows, n;
    TT_ON_DEVICE(NULL, "norm_backward", 5, ((tt_array *[]){g, x, weight, rstd, mean}));
    if (!tt_ready(g) || !tt_ready(x) || (weight && !tt_ready(weight)) || !tt_ready(rstd) || (mean && !tt_ready(mean)))
        return tt_decline();
    if (!tt_same_shape(g, x) || !split_rows(x, dims, &rows, &n)) return tt_decline();
    tt_array *out = tt_empty(x->dtype, x->ndim, x->shape);
    if (!out || !out->numel || TT_WORK("norm_backward", norm, out, x, g, weight, NULL, mean, rstd, n, 0)) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_norm_weight(tt_array *g, tt_array *x, tt_array *rstd, tt_array *mean, int dims) {
    int64_t rows, n;
    TT_ON_DEVICE(NULL, "norm_weight", 4, ((tt_array *[]){g, x, rstd, mean}));
    if (!tt_ready(g) || !tt_ready(x) || !tt_ready(rstd) || (mean && !tt_ready(mean)) || !tt_same_shape(g, x) ||
        !split_rows(g, dims, &rows, &n))
        return tt_decline();
    tt_array *out = tt_empty(g->dtype, dims, g->shape + g->ndim - dims);
    if (!out || !out->numel) return out;
    bool ok = rows ? TT_WORK("norm_weight", norm_weight, out, g, x, mean, rstd, n)
                   : tt_fill_now(out, TT_KIND_FLOAT, 0, 0) == 0;
    if (ok) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_column_sums(tt_array *g, int dims) {
    if (dims < 0 || dims > g->ndim) return tt_decline();
    return tt_reduce(tt_reduce_code("sum"), g, 2, tt_first_bits(g->ndim - dims), 0, g->dtype);
}
