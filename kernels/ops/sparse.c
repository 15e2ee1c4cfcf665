/* Products with sparse matrices: places are checked before anything is written. */
#include "api/sparse.h"
#include "backend/backend.h"
#include "backend/plain.h"

static bool is_matrix(const char *op, const tt_array *a, const tt_array *like) {
    if (a->ndim == 2 && a->dtype == like->dtype && (a->dtype == TT_F32 || a->dtype == TT_F64)) return true;
    tt_fail(TT_RUNTIME_ERROR, "%s: expected matrices of one dtype, float32 or float64", op);
    return false;
}

static bool lie_within(const char *op, const tt_array *places, int64_t count, int64_t n) {
    if (places->ndim != 1 || places->dtype != TT_I64 || places->shape[0] != count) {
        tt_fail(TT_RUNTIME_ERROR, "%s: expected a vector of int64 for each value", op);
        return false;
    }
    if (!tt_here()->on_host) return true; /* kernels look */
    const int64_t *at = (const int64_t *)places->data;
    uint64_t largest = 0; /* of what is negative, too */
    for (int64_t e = 0; e < count; e++)
        if ((uint64_t)at[e] > largest) largest = (uint64_t)at[e];
    if (!count || largest < (uint64_t)n) return true;
    tt_fail(TT_INDEX_ERROR, "%s: index %lld is out of bounds for size %lld", op, (long long)largest, (long long)n);
    return false;
}

/* The missing one of w->a (n rows) and w->values is computed. */
static tt_array *computed(const char *op, tt_array **in, tt_sparse_work *w, int64_t n) {
    TT_ON_DEVICE(NULL, op, 4, in);
    for (int k = 0; k < 4; k++)
        if (!tt_ready(in[k])) return tt_decline();
    tt_plain p[4] = {{0}};
    tt_array *out = NULL;
    bool product = w->a == NULL;
    for (int k = 0; k < 4; k++)
        if (!tt_plain_take(&p[k], in[k], in[k]->dtype)) goto done;
    w->count = p[0].array->numel;
    w->rows = p[0].array;
    w->cols = p[1].array;
    w->b = p[3].array;
    if (!is_matrix(op, w->b, p[2].array->ndim == 2 || product ? p[2].array : w->b)) goto done;
    if (product && (p[2].array->ndim != 1 || p[2].array->numel != w->count)) {
        tt_fail(TT_RUNTIME_ERROR, "%s: expected a value for each place", op);
        goto done;
    }
    if (!product && (!is_matrix(op, p[2].array, w->b) || p[2].array->shape[1] != w->b->shape[1])) {
        tt_fail(TT_RUNTIME_ERROR, "%s: expected matrices of as many columns", op);
        goto done;
    }
    if (!lie_within(op, p[0].array, w->count, n) || !lie_within(op, p[1].array, w->count, w->b->shape[0])) goto done;
    out = product ? tt_empty(w->b->dtype, 2, (int64_t[]){n, w->b->shape[1]}) : tt_empty(w->b->dtype, 1, &w->count);
    if (!out) goto done;
    w->values = product ? p[2].array : out;
    w->a = product ? out : p[2].array;
    bool ok = product ? TT_WORK(op, sparse_product, w) : TT_WORK(op, sparse_dots, w);
    if (!ok) {
        tt_free(out);
        out = NULL;
    }
done:
    tt_plain_done(p, 4);
    return out;
}

tt_array *tt_sparse_product(tt_array *rows, tt_array *cols, tt_array *values, tt_array *dense, int64_t n) {
    tt_array *in[4] = {rows, cols, values, dense};
    if (n < 0) return tt_fail(TT_RUNTIME_ERROR, "mm: expected a number of rows, got %lld", (long long)n);
    return computed("mm", in, &(tt_sparse_work){.a = NULL}, n);
}

tt_array *tt_sparse_dots(tt_array *rows, tt_array *cols, tt_array *a, tt_array *b) {
    tt_array *in[4] = {rows, cols, a, b};
    return computed("mm_values", in, &(tt_sparse_work){.a = a}, a->ndim ? a->shape[0] : 0);
}
