/* Fourier transforms over several dimensions: one after the other. */
#include "api/fft.h"
#include "backend/backend.h"
#include "ops/dims.h"

typedef struct {
    const char *op;
    int ndims, dims[TT_MAX_NDIM];
    double scale;
    bool forward;
} transform;

static bool refuse(void *null) { return null != NULL; } /* of tt_fail */

/* False and an error where a dimension is out of range, or named twice. */
static bool take_dims(transform *t, const tt_array *a, int ndims, const int64_t *dims) {
    int64_t seen = 0;
    for (t->ndims = 0; t->ndims < ndims; t->ndims++) {
        int64_t d = dims[t->ndims];
        if (!a->ndim) return refuse(tt_fail(TT_INDEX_ERROR, "%s: the tensor has no dimensions", t->op));
        if (!tt_good_dim(t->op, a, &d)) return false;
        if (seen & tt_bit((int)d)) return refuse(tt_fail(TT_RUNTIME_ERROR, "%s: FFT dims must be unique", t->op));
        seen |= tt_bit((int)d);
        t->dims[t->ndims] = (int)d;
    }
    return true;
}

static bool takes(transform *t, const tt_array *a, bool is_complex, int ndims, const int64_t *dims) {
    if (is_complex ? tt_is_complex(a->dtype) && !tt_is_half(a->dtype) : a->dtype == TT_F32 || a->dtype == TT_F64)
        return take_dims(t, a, ndims, dims);
    return refuse(tt_fail(TT_RUNTIME_ERROR, "%s: Unsupported dtype %s", t->op, tt_dtype_names[a->dtype]));
}

/* Along one dimension: `size` values of the transform. The scale is applied by the first. */
static bool along(transform *t, tt_array *a, tt_array *out, int dim, int64_t size) {
    if (size < 1)
        return refuse(
            tt_fail(TT_RUNTIME_ERROR, "%s: Invalid number of data points (%lld) specified", t->op, (long long)size));
    tt_fft_work w = {.a = a, .out = out, .dim = dim, .size = size, .forward = t->forward, .scale = t->scale};
    t->scale = 1;
    return !out->numel || TT_WORK(t->op, fft, &w);
}

/* Complex numbers over the first `count` of the dimensions, from `a` to `out`, which may be the same. */
static bool over(transform *t, tt_array *a, tt_array *out, int count) {
    for (int k = 0; k < count; k++, a = out)
        if (!along(t, a, out, t->dims[k], a->shape[t->dims[k]])) return false;
    return true;
}

static tt_array *result_like(const tt_array *a, int dtype, int dim, int64_t size) {
    int64_t shape[TT_MAX_NDIM];
    for (int d = 0; d < a->ndim; d++) shape[d] = d == dim ? size : a->shape[d];
    return tt_empty(dtype, a->ndim, shape);
}

static tt_array *given(tt_array *out, bool done) {
    if (done) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_fft(tt_array *a, int ndims, const int64_t *dims, double scale, int forward) {
    transform t = {.op = "fft", .scale = scale, .forward = forward};
    TT_ON_DEVICE(NULL, t.op, 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!takes(&t, a, true, ndims, dims)) return NULL;
    if (!ndims) return tt_clone(a);
    tt_array *out = tt_empty(a->dtype, a->ndim, a->shape);
    return out ? given(out, over(&t, a, out, t.ndims)) : NULL;
}

tt_array *tt_fft_real(tt_array *a, int ndims, const int64_t *dims, double scale, int half) {
    transform t = {.op = "rfft", .scale = scale, .forward = true};
    TT_ON_DEVICE(NULL, t.op, 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!takes(&t, a, false, ndims, dims)) return NULL;
    int last = t.dims[ndims - 1];
    int64_t size = a->shape[last];
    tt_array *out = result_like(a, tt_complex_dtype(a->dtype), last, half ? size / 2 + 1 : size);
    return out ? given(out, along(&t, a, out, last, size) && over(&t, out, out, ndims - 1)) : NULL;
}

tt_array *tt_fft_to_real(tt_array *a, int ndims, const int64_t *dims, double scale, int64_t size) {
    transform t = {.op = "irfft", .scale = scale, .forward = false};
    TT_ON_DEVICE(NULL, t.op, 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!takes(&t, a, true, ndims, dims)) return NULL;
    int last = t.dims[ndims - 1];
    tt_array *between = ndims > 1 ? tt_empty(a->dtype, a->ndim, a->shape) : a;
    tt_array *out = between ? result_like(a, tt_real_dtype(a->dtype), last, size) : NULL;
    if (out) out = given(out, over(&t, a, between, ndims - 1) && along(&t, between, out, last, size));
    if (between && between != a) tt_free(between);
    return out;
}
