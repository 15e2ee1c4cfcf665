/* Scans along one dimension: cumulative sums, products, extremes, and linear recurrences. */
#include "api/scan.h"
#include "backend/backend.h"
#include "ops/dims.h"

static const char *const names[3] = {"cumsum", "cumprod", "logcumsumexp"};

/* The result, or where that failed, NULL. */
static tt_array *scanned(const char *op, const tt_scan_work *w) {
    if (!w->out->numel || TT_WORK(op, scan, w)) return w->out;
    tt_free(w->out);
    return NULL;
}

tt_array *tt_scan(int op, tt_array *a, int64_t dim, int reverse, int dtype) {
    TT_ON_DEVICE(NULL, names[op], 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!tt_good_dim(names[op], a, &dim)) return NULL;
    int result = dtype >= 0 ? dtype : op != TT_SCAN_LOGSUMEXP && tt_is_integral(a->dtype) ? TT_I64 : a->dtype;
    int compute = tt_is_integral(result) ? TT_I64 : tt_compute_dtype(result);
    if (op == TT_SCAN_LOGSUMEXP && compute == TT_I64)
        return tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for '%s'", names[op], tt_dtype_names[result]);
    tt_array *out = tt_empty(result, a->ndim, a->shape);
    return out ? scanned(
                     names[op],
                     &(tt_scan_work){.op = op, .compute = compute, .dim = dim, .reverse = reverse, .a = a, .out = out})
               : NULL;
}

tt_array *tt_scan_extreme(int largest, tt_array *a, int64_t dim, tt_array **indices) {
    const char *name = largest ? "cummax" : "cummin";
    TT_ON_DEVICE(NULL, name, 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!tt_has_order(name, a->dtype) || !tt_good_dim(name, a, &dim)) return NULL;
    tt_array *out = tt_empty(a->dtype, a->ndim, a->shape);
    *indices = out ? tt_empty(TT_I64, a->ndim, a->shape) : NULL;
    if (*indices)
        out = scanned(name, &(tt_scan_work){.op = largest ? TT_SCAN_MAX : TT_SCAN_MIN,
                                            .compute = tt_compute_dtype(a->dtype),
                                            .dim = dim,
                                            .a = a,
                                            .out = out,
                                            .index = *indices});
    else if (out) {
        tt_free(out);
        out = NULL;
    }
    if (!out && *indices) tt_free(*indices);
    return out;
}

tt_array *tt_recur(tt_array *a, tt_array *b, int64_t dim, int reverse) {
    TT_ON_DEVICE(NULL, "recur", 2, ((tt_array *[]){a, b}));
    if (!tt_ready(a) || !tt_ready(b)) return tt_decline();
    if (!tt_good_dim("recur", a, &dim)) return NULL;
    if (!tt_same_shape(a, b) || a->dtype != b->dtype || tt_is_integral(a->dtype))
        return tt_fail(TT_RUNTIME_ERROR, "recur: expected two tensors of one shape and one floating dtype");
    tt_array *out = tt_empty(a->dtype, a->ndim, a->shape);
    return out ? scanned("recur", &(tt_scan_work){.op = TT_SCAN_RECUR,
                                                  .compute = tt_compute_dtype(a->dtype),
                                                  .dim = dim,
                                                  .reverse = reverse,
                                                  .a = a,
                                                  .b = b,
                                                  .out = out})
               : NULL;
}
