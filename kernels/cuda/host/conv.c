/* Convolutions on a device: by cuDNN (tinytorch/backends/cuda/convolution.py), of arrays that lie as it wants them, and
 * those that it declines by a kernel of ours. */
#include "backend/now.h"
#include "backend/operators.h"
#include "cuda/device/conv_args.h"
#include "cuda/host/cuda.h"
#include <string.h>

extern int tt_cuda_convolve(int, int, tt_convolution *, intptr_t, intptr_t, intptr_t);

/* Of an array of a convolution the strides, in all five dimensions. */
static void steps_of(int64_t *to, const tt_array *a) {
    int missing = TT_CONV_DIMS + 2 - a->ndim;
    memset(to, 0, sizeof *to * (TT_CONV_DIMS + 2));
    to[0] = a->strides[0];
    to[1] = a->strides[1];
    memcpy(to + 2 + missing, a->strides + 2, sizeof *to * (size_t)(a->ndim - 2));
}

static bool own(const tt_conv_work *w) {
    tt_conv_args p = {.input = w->input->data,
                      .weight = w->weight->data,
                      .result = w->result->data,
                      .count = w->computed->numel,
                      .batch = w->batch,
                      .groups = w->groups,
                      .in = w->in,
                      .out = w->out};
    for (int d = 0; d < TT_CONV_DIMS; d++) {
        p.size[d] = w->size[d], p.taps[d] = w->taps[d], p.places[d] = w->places[d];
        p.stride[d] = w->stride[d], p.padding[d] = w->padding[d], p.dilation[d] = w->dilation[d];
    }
    steps_of(p.of_input, w->input);
    steps_of(p.of_weight, w->weight);
    steps_of(p.of_result, w->result);
    int op = w->computed == w->result ? TT_CONV_RESULT : w->computed == w->input ? TT_CONV_INPUT : TT_CONV_WEIGHT;
    int64_t blocks = op == TT_CONV_WEIGHT ? p.count : (p.count + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS;
    return TT_LAUNCH(tt_key(TT_FAMILY_conv, op, 0, w->computed->dtype, w->compute, 0, 0, 0), blocks, 1, TT_CUDA_THREADS,
                     0, p);
}

static int alignment(const void *p) {
    int log = 0;
    while (log < 4 && !((intptr_t)p >> log & 1)) log++;
    return log;
}

/* The library's: 1: it declines, -1: an error. */
static int call(const tt_conv_work *w, tt_array *const three[3], bool channels_last) {
    tt_convolution c = {.computed = w->computed == w->input    ? 0
                                    : w->computed == w->weight ? 1
                                                               : 2,
                        .dtype = w->computed->dtype,
                        .dims = w->computed->ndim == TT_CONV_DIMS + 2 ? 3 : 2,
                        .channels_last = channels_last,
                        .align = 4,
                        .batch = w->batch,
                        .groups = w->groups,
                        .in = w->in,
                        .out = w->out};
    for (int d = 0; d < TT_CONV_DIMS; d++) {
        c.size[d] = w->size[d], c.taps[d] = w->taps[d], c.places[d] = w->places[d];
        c.stride[d] = w->stride[d], c.padding[d] = w->padding[d], c.dilation[d] = w->dilation[d];
    }
    for (int k = 0; k < 3; k++)
        if (alignment(three[k]->data) < c.align) c.align = alignment(three[k]->data);
    int64_t at[3] = {(intptr_t)three[0]->data, (intptr_t)three[1]->data, (intptr_t)three[2]->data};
    int device = tt_device - 1, status = tt_convolve_again(&c, at);
    if (status <= 0) return status;
    TT_LEAVE_TO_PYTHON;
    status = tt_cuda_convolve(device, tt_cuda_stream(device), &c, (intptr_t)at[0], (intptr_t)at[1], (intptr_t)at[2]);
    if (status < 0) tt_fail(TT_PYTHON_ERROR, "the convolution could not be computed");
    return status;
}

/* Does it lie without gaps in this order: that of its dimensions, or with its channels next to each other? */
static bool lies(const tt_array *a, bool channels_last) {
    int64_t step = 1;
    if (!channels_last) return a->flags & TT_FLAG_CONTIGUOUS;
    for (int k = 0; k < a->ndim; k++) {
        int d = k == 0 ? 1 : k == a->ndim - 1 ? 0 : a->ndim - k;
        if (a->shape[d] != 1 && a->strides[d] != step) return false;
        step *= a->shape[d];
    }
    return true;
}

static tt_array *fresh(const tt_array *like, bool channels_last) {
    int64_t strides[TT_CONV_DIMS + 2], step = like->shape[1];
    if (!channels_last) return tt_empty(like->dtype, like->ndim, like->shape);
    strides[1] = 1;
    for (int d = like->ndim - 1; d >= 2; d--) {
        strides[d] = step;
        step *= like->shape[d];
    }
    strides[0] = step;
    return tt_empty_strided(like->dtype, like->ndim, like->shape, strides);
}

/* By the library, in this order of memory: operands that lie otherwise are copied. 1: it declines, -1: an error. */
static int by_library(const tt_conv_work *w, bool channels_last) {
    tt_array *given[3] = {w->input, w->weight, w->result}, *three[3], *made[3] = {NULL, NULL, NULL};
    int status = 0;
    for (int k = 0; k < 3 && status == 0; k++) {
        three[k] = given[k];
        if (lies(given[k], channels_last)) continue;
        three[k] = made[k] = fresh(given[k], channels_last);
        if (!made[k] || (given[k] != w->computed && tt_copy_now(made[k], given[k]) < 0)) status = -1;
    }
    if (status == 0) status = call(w, three, channels_last);
    for (int k = 0; k < 3; k++) {
        if (!made[k]) continue;
        if (status == 0 && given[k] == w->computed && tt_copy_now(w->computed, made[k]) < 0) status = -1;
        tt_free(made[k]);
    }
    return status;
}

/* Is it the gradient of a weight of one tap that meets whole elements alone? */
static bool is_product(const tt_conv_work *w) {
    if (w->computed != w->weight || w->groups != 1) return false;
    for (int d = 0; d < TT_CONV_DIMS; d++)
        if (w->taps[d] != 1 || w->padding[d] || (w->places[d] - 1) * w->stride[d] >= w->size[d]) return false;
    return true;
}

/* ... by matrices: of each image that of the gradients by that of the elements met, and the sum over images; or where
 * the channels lie next to each other one product of all. */
static bool by_product(const tt_conv_work *w) {
    int64_t strides[TT_CONV_DIMS + 2], shape[3] = {w->batch, w->out, w->in};
    tt_array met = *w->input, *input = NULL, *result = NULL, *parts = NULL;
    int n = met.ndim - 2;
    for (int d = 0; d < met.ndim; d++) strides[d] = met.strides[d] * (d < 2 ? 1 : w->stride[TT_CONV_DIMS - n + d - 2]);
    int64_t sizes[TT_CONV_DIMS + 2] = {w->batch, w->in};
    memcpy(sizes + 2, w->result->shape + 2, sizeof *sizes * (size_t)n);
    met.shape = sizes;
    met.strides = strides;
    met.numel = tt_numel(met.ndim, sizes);
    tt_update_flags(&met);
    int64_t places = w->result->numel / (w->batch * w->out);
    bool last = w->channels_last, ok = true;
    tt_gemm g = {.m = w->out, .n = w->in, .dtype = w->computed->dtype};
    if (last) g.k = w->batch * places, g.count = 1, g.lda = w->out, g.ldb = w->in, g.trans = 1;
    else {
        g.k = g.lda = g.ldb = places, g.count = w->batch, g.trans = 2;
        g.step_a = w->out * places, g.step_b = w->in * places;
        ok = w->batch == 1 || (parts = tt_empty(g.dtype, 3, shape));
    }
    if (ok && !lies(&met, last)) ok = (input = fresh(&met, last)) && tt_copy_now(input, &met) == 0;
    if (ok && !lies(w->result, last)) ok = (result = fresh(w->result, last)) && tt_copy_now(result, w->result) == 0;
    ok = ok && tt_cuda_multiply(&g, (result ? result : w->result)->data, (input ? input : &met)->data,
                                (parts ? parts : w->computed)->data);
    if (ok && parts) {
        tt_array sum = *w->computed;
        sum.ndim = 2;
        sum.shape = shape + 1;
        sum.strides = (int64_t[]){w->in, 1};
        tt_update_flags(&sum);
        ok = tt_cuda_reduce(&sum, parts, 1, TT_RED_sum, g.dtype, g.dtype, TT_RED_ALONE);
    }
    for (int k = 0; k < 3; k++) {
        tt_array *made = k == 0 ? input : k == 1 ? result : parts;
        if (made) tt_free(made);
    }
    return ok;
}

/* Is it one product of matrices of a half type: one tap that meets each place, channels next to each other? The library
 * has the same kernels for it, and takes five times as long to be asked. */
static bool is_one_product(const tt_conv_work *w) {
    if (!tt_is_half(w->computed->dtype) || w->groups != 1 || !lies(w->input, true) || !lies(w->weight, true) ||
        !lies(w->result, true))
        return false;
    for (int d = 0; d < TT_CONV_DIMS; d++)
        if (w->taps[d] != 1 || w->padding[d] || w->stride[d] != 1) return false;
    return true;
}

static bool by_one_product(const tt_conv_work *w) {
    int64_t rows = w->input->numel / w->in;
    if (w->computed == w->weight) return by_product(w);
    bool back = w->computed == w->input;
    tt_gemm g = {.m = rows,
                 .n = back ? w->in : w->out,
                 .k = back ? w->out : w->in,
                 .lda = back ? w->out : w->in,
                 .ldb = w->in,
                 .count = 1,
                 .dtype = w->computed->dtype,
                 .trans = back ? 0 : 2};
    return tt_cuda_multiply(&g, (back ? w->result : w->input)->data, w->weight->data, w->computed->data);
}

/* computed += bias, of its channels */
static bool add_bias(const tt_conv_work *w) {
    int64_t shape[TT_CONV_DIMS + 2], strides[TT_CONV_DIMS + 2] = {0};
    tt_array row = *w->bias;
    for (int d = 0; d < w->computed->ndim; d++) shape[d] = 1;
    shape[1] = w->bias->numel;
    strides[1] = w->bias->strides[0];
    row.ndim = w->computed->ndim;
    row.shape = shape;
    row.strides = strides;
    tt_update_flags(&row);
    return tt_cuda_elementwise(TT_OP_add, w->computed->dtype, w->computed, 2, (tt_array *[]){w->computed, &row});
}

bool tt_cuda_conv(const tt_conv_work *w) {
    int status = 1;
    if (!w->input->numel || !w->weight->numel || !w->result->numel) {
        if (tt_fill_now(w->computed, TT_KIND_INT, 0, 0) < 0) return false;
        status = 0;
    } else if (!tt_is_integral(w->computed->dtype)) {
        if (w->channels_last && is_one_product(w)) status = by_one_product(w) ? 0 : -1;
        if (status == 1) status = by_library(w, w->channels_last);
        if (status == 1 && is_product(w)) status = by_product(w) ? 0 : -1;
        if (status == 1 && w->channels_last) status = by_library(w, false);
    }
    if (status == 1) status = own(w) ? 0 : -1;
    return status == 0 && (!w->bias || add_bias(w));
}
