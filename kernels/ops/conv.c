/* Convolutions: operands are checked against each other, and what they make is allocated. */
#include "api/conv.h"
#include "backend/backend.h"

static bool fits(const char *op, const char *name, const tt_array *a, int dtype, const int64_t *shape) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    if (!a) return true;
    if (a->dtype != dtype)
        tt_fail(TT_RUNTIME_ERROR, "%s: expected scalar type %s but found %s", op, tt_dtype_names[dtype],
                tt_dtype_names[a->dtype]);
    else if (a->shape[0] != shape[0] || a->shape[1] != shape[1] || a->shape[2] != shape[2])
        tt_fail(TT_RUNTIME_ERROR, "%s: expected %s of shape %s, but got %s", op, name, tt_shape_text(want, 3, shape),
                tt_shape_text(have, 3, a->shape));
    else return true;
    return false;
}

/* Computes the one of the three arrays that is missing; its size along the convolved dimension stands in the work. */
static tt_array *convolve(const char *op, tt_conv_work w) {
    tt_array *in[2] = {w.result ? w.result : w.input, w.weight ? w.weight : w.input};
    TT_ON_DEVICE(NULL, op, 2, in);
    if (!tt_ready(in[0]) || !tt_ready(in[1])) return tt_decline();
    if (in[0]->ndim != 3 || in[1]->ndim != 3)
        return tt_fail(TT_RUNTIME_ERROR, "%s: expected tensors of three dimensions, got %dD and %dD", op, in[0]->ndim,
                       in[1]->ndim);
    if (w.groups < 1 || w.stride < 1 || w.dilation < 1)
        return tt_fail(TT_RUNTIME_ERROR, "%s: non-positive groups, stride or dilation is not supported", op);
    int dtype = in[0]->dtype;
    if (dtype == TT_BOOL) return tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for 'bool'", op);
    if (!tt_has_order(op, dtype)) return NULL;
    w.compute = tt_is_integral(dtype) ? TT_I64 : tt_compute_dtype(dtype);
    w.batch = in[0]->shape[0];
    w.in = w.weight ? w.weight->shape[1] : w.input->shape[1] / w.groups;
    w.out = (w.weight ? w.weight->shape[0] : w.result->shape[1]) / w.groups;
    if (w.input) w.length = w.input->shape[2];
    if (w.weight) w.taps = w.weight->shape[2];
    if (w.result) w.places = w.result->shape[2];
    int64_t shapes[3][3] = {
        {w.batch, w.groups * w.in, w.length}, {w.groups * w.out, w.in, w.taps}, {w.batch, w.groups * w.out, w.places}};
    if (!fits(op, "input", w.input, dtype, shapes[0]) || !fits(op, "weight", w.weight, dtype, shapes[1]) ||
        !fits(op, "the result's gradient", w.result, dtype, shapes[2]))
        return NULL;
    tt_array **all[3] = {&w.input, &w.weight, &w.result};
    int made = !w.input ? 0 : !w.weight ? 1 : 2;
    if (!(*all[made] = w.computed = tt_empty(dtype, 3, shapes[made]))) return NULL;
    if (!w.computed->numel || TT_WORK(op, conv1d, &w)) return w.computed;
    tt_free(w.computed);
    return NULL;
}

tt_array *tt_conv1d(tt_array *input, tt_array *weight, int64_t places, int64_t stride, int64_t padding,
                    int64_t dilation, int64_t groups) {
    return convolve("conv1d", (tt_conv_work){.input = input,
                                             .weight = weight,
                                             .places = places,
                                             .stride = stride,
                                             .padding = padding,
                                             .dilation = dilation,
                                             .groups = groups});
}

tt_array *tt_conv1d_input(tt_array *g, tt_array *weight, int64_t length, int64_t stride, int64_t padding,
                          int64_t dilation, int64_t groups) {
    return convolve("conv1d_input", (tt_conv_work){.result = g,
                                                   .weight = weight,
                                                   .length = length,
                                                   .stride = stride,
                                                   .padding = padding,
                                                   .dilation = dilation,
                                                   .groups = groups});
}

tt_array *tt_conv1d_weight(tt_array *g, tt_array *input, int64_t taps, int64_t stride, int64_t padding,
                           int64_t dilation, int64_t groups) {
    return convolve("conv1d_weight", (tt_conv_work){.result = g,
                                                    .input = input,
                                                    .taps = taps,
                                                    .stride = stride,
                                                    .padding = padding,
                                                    .dilation = dilation,
                                                    .groups = groups});
}
