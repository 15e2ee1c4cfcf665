/* Sorting and selection along one dimension. */
#include "api/sort.h"
#include "backend/backend.h"
#include "ops/dims.h"

/* What to do along which dimension. */
typedef struct {
    int what;
    bool descending;
    int64_t dim, k;
} request;

static tt_array *run(request r, const char *op, tt_array *a, int64_t out_n, bool keepdim, tt_array **indices) {
    tt_sorting j;
    int64_t shape[TT_MAX_NDIM];
    int ndim = 0, size = tt_itemsizes[a->dtype];
    j.a = a;
    j.what = r.what;
    j.descending = r.descending;
    j.dim = r.dim;
    j.k = r.k;
    j.n = a->ndim ? a->shape[j.dim] : 1;
    j.step = a->ndim ? a->strides[j.dim] * size : size;
    j.out_n = out_n;
    j.num_rows = 1;
    j.rows.n = 0;
    if (j.n >= (int64_t)1 << 32) return tt_fail(TT_RUNTIME_ERROR, "%s: at most 2^32 - 1 elements can be sorted", op);
    for (int d = 0; d < a->ndim; d++)
        if (d != j.dim || keepdim) shape[ndim++] = d == j.dim ? out_n : a->shape[d];
    bool like = j.what == TT_SORT; /* a whole of the input's shape takes its layout, too */
    tt_array *values = like ? tt_like(a, a->dtype) : tt_empty(a->dtype, ndim, shape);
    *indices = !values ? NULL : like ? tt_like(a, TT_I64) : tt_empty(TT_I64, ndim, shape);
    if (!*indices) {
        if (values) tt_free(values);
        return NULL;
    }
    if (!values->numel) return values;
    bool dropped = a->ndim && !keepdim;
    j.out_step = a->ndim && keepdim ? values->strides[j.dim] : 1;
    for (int d = 0; d < a->ndim; d++) {
        if (d == j.dim) continue;
        j.rows.size[j.rows.n] = j.out_rows.size[j.rows.n] = a->shape[d];
        j.rows.step[j.rows.n] = a->strides[d] * size;
        j.out_rows.step[j.rows.n++] = values->strides[d - (dropped && d > j.dim)];
        j.num_rows *= a->shape[d];
    }
    j.out_rows.n = j.rows.n;
    j.values = values;
    j.indices = (int64_t *)(*indices)->data;
    if (TT_WORK(op, sort, op, &j)) return values;
    tt_free(values);
    tt_free(*indices);
    return NULL;
}

tt_array *tt_sort(tt_array *a, int64_t dim, int descending, tt_array **indices) {
    TT_ON_DEVICE(NULL, "sort", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!tt_is_real("sort", a->dtype) || !tt_good_dim("sort", a, &dim)) return NULL;
    return run((request){.what = TT_SORT, .descending = descending, .dim = dim}, "sort", a, a->ndim ? a->shape[dim] : 1,
               true, indices);
}

tt_array *tt_topk(tt_array *a, int64_t k, int64_t dim, int largest, tt_array **indices) {
    TT_ON_DEVICE(NULL, "topk", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!tt_has_order("topk", a->dtype) || !tt_good_dim("topk", a, &dim)) return NULL;
    if (a->dtype == TT_BOOL) return tt_fail(TT_NOT_IMPLEMENTED, "topk: not implemented for 'bool'");
    int64_t n = a->ndim ? a->shape[dim] : 1;
    if (k < 0 || k > n)
        return tt_fail(TT_RUNTIME_ERROR,
                       "topk: selected index k out of range: k is %lld, dimension %lld has %lld elements", (long long)k,
                       (long long)dim, (long long)n);
    request j = {.what = TT_TOPK, .descending = largest, .dim = dim, .k = k};
    if (a->ndim == 0) j.k = k = 1; /* a number is its own largest, even of none: as in PyTorch */
    return run(j, "topk", a, k, true, indices);
}

tt_array *tt_pick(int what, tt_array *a, int64_t k, int64_t dim, int keepdim, tt_array **indices) {
    static const char *const names[] = {"kthvalue", "median", "nanmedian", "mode"};
    const char *op = names[what];
    TT_ON_DEVICE(NULL, op, 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!tt_has_order(op, a->dtype) || !tt_good_dim(op, a, &dim)) return NULL;
    if (a->dtype == TT_BOOL && what != TT_MODE)
        return tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for 'bool'", op);
    int64_t n = a->ndim ? a->shape[dim] : 1;
    if (n == 0)
        return tt_fail(TT_INDEX_ERROR, "%s(): Expected reduction dim %lld to have non-zero size.", op, (long long)dim);
    if (what == TT_KTH && (k < 1 || k > n))
        return tt_fail(TT_RUNTIME_ERROR,
                       "kthvalue(): selected number k out of range for dimension %lld: k is %lld, of "
                       "%lld elements",
                       (long long)dim, (long long)k, (long long)n);
    return run((request){.what = what, .dim = dim, .k = k - 1}, op, a, 1, keepdim, indices);
}
