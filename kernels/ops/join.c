/* Joining arrays: one allocation, then a copy into the view where each of them goes. */
#include "backend/backend.h"
#include "api/join.h"
#include "ops/layout.h"

/* The device's kernel, of images whose channels lie closest together: as it would join (batch, *spatial, channels). */
static int join_last(tt_array *out, int n, tt_array **in, int dim) {
    tt_array **views = tt_scratch((n + 1) * (int64_t)sizeof *views);
    int made = 0, joined = -1;
    while (views && made <= n && (views[made] = tt_channels_last(made ? in[made - 1] : out))) made++;
    if (made > n)
        joined = tt_here()->join(views[0], n, views + 1, dim == 0 ? 0 : dim == 1 ? out->ndim - 1 : dim - 1, 0);
    while (made > 0) tt_free(views[--made]);
    if (views) tt_scratch_free(views);
    return joined;
}

/* The result of cat lies as its operands do, where all are images in channels_last. */
tt_array *tt_join(int n, tt_array **in, int dim, int dtype, int stack) {
    const char *op = stack ? "stack" : "cat";
    char want[TT_SHAPE_TEXT], have[TT_SHAPE_TEXT];
    TT_ON_DEVICE(NULL, op, n, in);
    if (n < 1) return tt_fail(TT_RUNTIME_ERROR, "%s: expected a non-empty list of Tensors", op);
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM], start = 0;
    int ndim = in[0]->ndim + (stack ? 1 : 0);
    if (ndim == 0) return tt_fail(TT_RUNTIME_ERROR, "zero-dimensional tensor (at position 0) cannot be concatenated");
    if (ndim > TT_MAX_NDIM)
        return tt_fail(TT_RUNTIME_ERROR, "stack: only tensors with up to %d dims are supported, got %d", TT_MAX_NDIM,
                       ndim);
    for (int d = 0, s = 0; d < ndim; d++) shape[d] = stack && d == dim ? 0 : in[0]->shape[s++];
    if (!stack) shape[dim] = 0;
    for (int k = 0; k < n; k++) {
        const tt_array *a = in[k];
        if (!tt_current(a)) return tt_decline();
        bool fits = a->ndim == in[0]->ndim;
        for (int d = 0; fits && d < a->ndim; d++) fits = (!stack && d == dim) || a->shape[d] == in[0]->shape[d];
        if (!fits) {
            tt_shape_text(want, in[0]->ndim, in[0]->shape);
            tt_shape_text(have, a->ndim, a->shape);
            return stack ? tt_fail(TT_RUNTIME_ERROR,
                                   "stack expects each tensor to be equal size, but got %s at entry 0 "
                                   "and %s at entry %d",
                                   want, have, k)
                         : tt_fail(TT_RUNTIME_ERROR,
                                   "cat: Sizes of tensors must match except in dimension %d. Expected "
                                   "%s but got %s for tensor number %d in the list.",
                                   dim, want, have, k);
        }
        if (__builtin_add_overflow(shape[dim], stack ? 1 : a->shape[dim], &shape[dim]))
            return tt_fail(TT_RUNTIME_ERROR, "cat: the sum of the sizes in dimension %d overflows", dim);
    }
    bool by_one_kernel = tt_here()->join; /* for all: they must be there */
    for (int k = 0; by_one_kernel && k < n; k++)
        if (!tt_ready(in[k])) return tt_decline();
    bool last = !stack && ndim >= 4 && ndim <= 5;
    for (int k = 0; last && k < n; k++) last = tt_channels_are_last(in[k], ndim - 2);
    tt_array *out = last ? tt_spatial(&(tt_array){.ndim = ndim, .shape = shape}, dtype, ndim - 2, shape + 2, true)
                         : tt_empty(dtype, ndim, shape);
    if (!out) return NULL;
    int joined = !by_one_kernel ? 0 : last ? join_last(out, n, in, dim) : tt_here()->join(out, n, in, dim, stack);
    if (joined > 0) return out;
    if (joined < 0) {
        tt_free(out);
        return NULL;
    }
    tt_array part = *out;
    part.shape = shape;
    for (int k = 0; k < n; k++) {
        part.shape[dim] = stack ? 1 : in[k]->shape[dim];
        part.data = out->data + start * out->strides[dim] * tt_itemsizes[dtype];
        part.numel = tt_numel(ndim, part.shape);
        start += part.shape[dim];
        if (!part.numel) continue;
        tt_array from = *in[k];
        if (stack) { /* the same elements, with the new dimension */
            from.ndim = ndim;
            from.shape = shape;
            from.strides = strides;
            strides[dim] = 0;
            for (int d = 0; d < in[k]->ndim; d++) strides[d + (d >= dim)] = in[k]->strides[d];
        }
        tt_update_flags(&part);
        if (tt_copy(&part, &from, -1) < 0) {
            tt_free(out);
            return NULL;
        }
    }
    return out;
}

tt_array *tt_join_plain(int n, tt_array **in, int dim, int stack) {
    if (n < 1) return tt_decline();
    int ndim = in[0]->ndim + (stack ? 1 : 0), dtype = in[0]->dtype;
    if (dim < -ndim || dim >= ndim) return tt_decline();
    for (int k = 0; k < n; k++) {
        if (!stack && in[k]->ndim == 1 && !in[k]->numel) return tt_decline();
        if (in[k]->dtype != dtype && (dtype = tt_promote(dtype, in[k]->dtype)) < 0) return NULL;
    }
    return tt_join(n, in, dim < 0 ? dim + ndim : dim, dtype, stack);
}
