/* What follows from an order, or from counting: unique elements and rows, histograms. */
#include "api/index.h"
#include "api/sort.h"
#include "backend/backend.h"
#include "backend/now.h"
#include "backend/plain.h"
#include <math.h>

static tt_array *unique(tt_array *a, int64_t n, int64_t width, int consecutive, tt_array **inverse, tt_array **counts) {
    tt_plain x = {0};
    if (!tt_ready(a)) return tt_decline();
    if (!tt_is_real("unique", a->dtype) || !tt_plain_take(&x, a, a->dtype)) return NULL;
    tt_array *first = TT_WORK_ARRAY("unique", groups, x.array, n, width, consecutive, inverse, counts);
    tt_plain_done(&x, 1);
    return first;
}

tt_array *tt_unique_rows(tt_array *a, int consecutive, tt_array **more) {
    TT_ON_DEVICE(NULL, "unique", 1, &a);
    return unique(a, a->shape[0], a->shape[0] ? a->numel / a->shape[0] : 0, consecutive, more, more + 1);
}

tt_array *tt_distinct(tt_array *a, int consecutive) {
    TT_ON_DEVICE(NULL, "unique", 1, &a);
    tt_plain x = {0};
    if (!tt_ready(a)) return tt_decline();
    if (!tt_is_real("unique", a->dtype) || !tt_plain_take(&x, a, a->dtype)) return NULL;
    tt_array *out = TT_WORK_ARRAY("unique", distinct, x.array, consecutive);
    tt_plain_done(&x, 1);
    return out;
}

tt_array *tt_unique(tt_array *a, int consecutive, tt_array **more) {
    TT_ON_DEVICE(NULL, "unique", 1, &a);
    tt_array *first = unique(a, a->numel, 1, consecutive, more, more + 1), *out = NULL;
    tt_plain x = {0};
    if (first && tt_plain_take(&x, a, a->dtype)) {
        tt_array flat = *x.array; /* as a vector */
        flat.ndim = 1;
        flat.shape = &flat.numel;
        flat.strides = (int64_t[]){1};
        out = tt_gather(&flat, 0, first);
        tt_plain_done(&x, 1);
    }
    if (first && !out) {
        tt_free(more[0]);
        tt_free(more[1]);
    }
    if (first) tt_free(first);
    return out;
}

tt_array *tt_bincount(tt_array *a, tt_array *weights, int64_t min_length) {
    TT_ON_DEVICE(NULL, "bincount", 2, ((tt_array *[]){a, weights}));
    if (!tt_ready(a) || (weights && !tt_ready(weights))) return tt_decline();
    if (!tt_has_order("bincount", a->dtype) || (weights && !tt_has_order("bincount", weights->dtype))) return NULL;
    if (a->ndim != 1 || tt_is_floating(a->dtype))
        return tt_fail(tt_is_floating(a->dtype) ? TT_NOT_IMPLEMENTED : TT_RUNTIME_ERROR,
                       "bincount: only supports 1-d non-negative integral inputs, got %d dimensions of "
                       "%s",
                       a->ndim, tt_dtype_names[a->dtype]);
    if (min_length < 0) return tt_fail(TT_RUNTIME_ERROR, "bincount: minlength should be >= 0");
    if (weights && !tt_same_shape(a, weights))
        return tt_fail(TT_RUNTIME_ERROR, "bincount: weights should be 1-d and have the same length as input");
    int dtype = !weights ? TT_I64 : weights->dtype == TT_F32 ? TT_F32 : TT_F64;
    tt_plain p[2] = {{0}};
    tt_array *out = NULL;
    if (!tt_plain_take(&p[0], a, TT_I64) || !tt_plain_take(&p[1], weights, dtype)) goto done;
    tt_array *x = p[0].array, *w = p[1].array;
    const int64_t *v = (const int64_t *)x->data;
    int64_t n = min_length, least = 0, largest = -1;
    if (x->numel && !TT_WORK("bincount", extremes, v, TT_I64, x->numel, &least, &largest)) goto done;
    if (least < 0) {
        tt_fail(TT_RUNTIME_ERROR, "bincount: only supports 1-d non-negative integral inputs, got %lld",
                (long long)least);
        goto done;
    }
    if (largest >= n) n = largest < INT64_MAX ? largest + 1 : largest;
    if (!(out = tt_full_now(dtype, 1, &n, TT_KIND_INT, 0, 0))) goto done;
    if (x->numel && !(w ? TT_WORK("bincount", add_at, out, x, w)
                        : TT_WORK("bincount", histogram, v, TT_I64, x->numel, 0, 0, out))) {
        tt_free(out);
        out = NULL;
    }
done:
    tt_plain_done(p, 2);
    return out;
}

tt_array *tt_histc(tt_array *a, int64_t bins, double lo, double hi) {
    TT_ON_DEVICE(NULL, "histc", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (a->dtype != TT_F32 && a->dtype != TT_F64)
        return tt_fail(TT_NOT_IMPLEMENTED, "histc: not implemented for '%s'", tt_dtype_names[a->dtype]);
    if (bins <= 0) return tt_fail(TT_RUNTIME_ERROR, "histc: bins must be > 0, but got %lld", (long long)bins);
    tt_array *out = NULL;
    tt_plain p = {0};
    if (!tt_plain_take(&p, a, TT_F64)) return NULL;
    const double *v = (const double *)p.array->data;
    if (lo == hi && a->numel && !TT_WORK("histc", extremes, v, TT_F64, a->numel, &lo, &hi)) goto done;
    if (lo == hi) lo -= 1, hi += 1;
    if (!isfinite(lo) || !isfinite(hi) || lo > hi) {
        if (lo > hi) tt_fail(TT_RUNTIME_ERROR, "histc: max must be larger than min");
        else tt_fail(TT_RUNTIME_ERROR, "histc: range of [%g, %g] is not finite", lo, hi);
        goto done;
    }
    if (!(out = tt_full_now(a->dtype, 1, &bins, TT_KIND_INT, 0, 0))) goto done;
    if (a->numel && !TT_WORK("histc", histogram, v, TT_F64, a->numel, lo, hi, out)) {
        tt_free(out);
        out = NULL;
    }
done:
    tt_plain_done(&p, 1);
    return out;
}
