/* Convolutions: operands are checked against each other, and what they make is allocated. */
#include "api/conv.h"
#include "backend/backend.h"
#include <string.h>

/* Shape of an array with `ndim` dimensions, of which the last are those of `last`, aligned to the right. */
static void shape_of(int64_t *shape, int ndim, int64_t first, int64_t second, const int64_t *last) {
    shape[0] = first;
    shape[1] = second;
    memcpy(shape + 2, last + TT_CONV_DIMS - (ndim - 2), sizeof *shape * (size_t)(ndim - 2));
}

static bool fits(const char *op, const char *name, const tt_array *a, int dtype, int ndim, const int64_t *shape) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    if (!a) return true;
    if (a->dtype != dtype)
        tt_fail(TT_RUNTIME_ERROR, "%s: expected scalar type %s but found %s", op, tt_dtype_names[dtype],
                tt_dtype_names[a->dtype]);
    else if (a->ndim != ndim || memcmp(a->shape, shape, sizeof *shape * (size_t)ndim) != 0)
        tt_fail(TT_RUNTIME_ERROR, "%s: expected %s of shape %s, but got %s", op, name, tt_shape_text(want, ndim, shape),
                tt_shape_text(have, a->ndim, a->shape));
    else return true;
    return false;
}

/* The strides of a dense array whose channels (dimension 1) lie next to each other. */
static void channels_last_strides(int ndim, const int64_t *shape, int64_t *strides) {
    int64_t step = strides[1] = 1;
    step = shape[1] > 1 ? shape[1] : 1;
    for (int d = ndim - 1; d >= 2; d--) {
        strides[d] = step;
        step *= shape[d] > 1 ? shape[d] : 1;
    }
    strides[0] = step;
}

/* Is that its layout, and no other one too? Of one dimension there is no such layout. */
static bool is_channels_last(const tt_array *a) {
    int64_t strides[TT_CONV_DIMS + 2];
    if (!a || a->ndim < 4 || a->flags & TT_FLAG_CONTIGUOUS) return false;
    channels_last_strides(a->ndim, a->shape, strides);
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != 1 && a->strides[d] != strides[d]) return false;
    return true;
}

/* Reads sizes of n dimensions, aligned to the right. */
static void take(int64_t *to, int n, const int64_t *from, int64_t others) {
    for (int d = 0; d < TT_CONV_DIMS; d++) to[d] = d < TT_CONV_DIMS - n ? others : from[d - (TT_CONV_DIMS - n)];
}

/* Do all places and taps lie within what an int64 counts? */
static bool countable(const tt_conv_work *w) {
    for (int d = 0; d < TT_CONV_DIMS; d++) {
        int64_t walked, reach, sum;
        if (w->padding[d] < 0 || __builtin_mul_overflow(w->places[d], w->stride[d], &walked) ||
            __builtin_mul_overflow(w->taps[d], w->dilation[d], &reach) || __builtin_add_overflow(walked, reach, &sum) ||
            __builtin_add_overflow(sum, w->padding[d], &sum) || __builtin_add_overflow(sum, w->size[d], &sum) ||
            sum > INT64_MAX / 8)
            return false;
    }
    return true;
}

/* Computes the one of the three arrays that is missing; `sizes` are its last dimensions. */
static tt_array *convolve(const char *op, tt_conv_work w, const int64_t *sizes, const int64_t *geometry) {
    tt_array *in[3] = {w.result ? w.result : w.input, w.weight ? w.weight : w.input, w.bias};
    TT_ON_DEVICE(NULL, op, w.bias ? 3 : 2, in);
    if (!tt_ready(in[0]) || !tt_ready(in[1]) || (w.bias && !tt_ready(w.bias))) return tt_decline();
    int ndim = in[0]->ndim, n = ndim - 2, dtype = in[0]->dtype;
    if (n < 1 || n > TT_CONV_DIMS || in[1]->ndim != ndim)
        return tt_fail(TT_RUNTIME_ERROR, "%s: expected tensors of three to five dimensions, got %dD and %dD", op, ndim,
                       in[1]->ndim);
    take(w.stride, n, geometry, 1);
    take(w.padding, n, geometry + n, 0);
    take(w.dilation, n, geometry + 2 * n, 1);
    w.groups = geometry[3 * n];
    for (int d = 0; d < TT_CONV_DIMS; d++)
        if (w.groups < 1 || w.stride[d] < 1 || w.dilation[d] < 1)
            return tt_fail(TT_RUNTIME_ERROR, "%s: non-positive groups, stride or dilation is not supported", op);
    if (dtype == TT_BOOL) return tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for 'bool'", op);
    if (!tt_has_order(op, dtype)) return NULL;
    w.compute = tt_is_integral(dtype) ? TT_I64 : tt_compute_dtype(dtype);
    w.batch = in[0]->shape[0];
    w.in = w.weight ? w.weight->shape[1] : w.input->shape[1] / w.groups;
    w.out = (w.weight ? w.weight->shape[0] : w.result->shape[1]) / w.groups;
    take(w.size, n, w.input ? w.input->shape + 2 : sizes, 1);
    take(w.taps, n, w.weight ? w.weight->shape + 2 : sizes, 1);
    take(w.places, n, w.result ? w.result->shape + 2 : sizes, 1);
    if (!countable(&w)) return tt_fail(TT_RUNTIME_ERROR, "%s: the sizes are too large", op);
    int64_t shapes[3][TT_CONV_DIMS + 2], strides[TT_CONV_DIMS + 2];
    shape_of(shapes[0], ndim, w.batch, w.groups * w.in, w.size);
    shape_of(shapes[1], ndim, w.groups * w.out, w.in, w.taps);
    shape_of(shapes[2], ndim, w.batch, w.groups * w.out, w.places);
    tt_array **all[3] = {&w.input, &w.weight, &w.result};
    int made = !w.input ? 0 : !w.weight ? 1 : 2;
    if (!fits(op, "input", w.input, dtype, ndim, shapes[0]) || !fits(op, "weight", w.weight, dtype, ndim, shapes[1]) ||
        !fits(op, "the result's gradient", w.result, dtype, ndim, shapes[2]) ||
        !fits(op, "bias", w.bias, dtype, 1, &shapes[made][1]))
        return NULL;
    w.channels_last = is_channels_last(in[0]) || is_channels_last(in[1]);
    if (w.channels_last) channels_last_strides(ndim, shapes[made], strides);
    if (tt_numel(ndim, shapes[made]) < 0) return NULL;
    w.computed =
        w.channels_last ? tt_empty_strided(dtype, ndim, shapes[made], strides) : tt_empty(dtype, ndim, shapes[made]);
    if (!(*all[made] = w.computed)) return NULL;
    if (!w.computed->numel || TT_WORK(op, conv, &w)) return w.computed;
    tt_free(w.computed);
    return NULL;
}

tt_array *tt_conv(tt_array *input, tt_array *weight, tt_array *bias, int64_t *places, int64_t *geometry) {
    return convolve("convolution", (tt_conv_work){.input = input, .weight = weight, .bias = bias}, places, geometry);
}

tt_array *tt_conv_input(tt_array *g, tt_array *weight, tt_array *bias, int64_t *size, int64_t *geometry) {
    return convolve("convolution_input", (tt_conv_work){.result = g, .weight = weight, .bias = bias}, size, geometry);
}

tt_array *tt_conv_weight(tt_array *g, tt_array *input, int64_t *taps, int64_t *geometry) {
    return convolve("convolution_weight", (tt_conv_work){.result = g, .input = input}, taps, geometry);
}
