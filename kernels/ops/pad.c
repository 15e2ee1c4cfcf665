/* Padding with a number: an array of it, and a copy into the view where the elements that stay go. */
#include "api/pad.h"
#include "backend/now.h"

tt_array *tt_pad(tt_array *a, int64_t *pads, int64_t *strides, int kind, double f, int64_t i) {
    int64_t shape[TT_MAX_NDIM], kept[TT_MAX_NDIM], from = tt_offset(a), to = 0;
    TT_ON_DEVICE(NULL, "pad", 1, &a);
    for (int d = 0; d < a->ndim; d++) {
        int64_t before = pads[2 * d], behind = pads[2 * d + 1];
        if (__builtin_add_overflow(a->shape[d], before, &shape[d]) ||
            __builtin_add_overflow(shape[d], behind, &shape[d]))
            return tt_fail(TT_RUNTIME_ERROR, "pad: the size of dimension %d overflows", d);
        kept[d] = a->shape[d] + (before < 0 ? before : 0) + (behind < 0 ? behind : 0);
        if (before < 0) from -= before * a->strides[d];
    }
    tt_array *out =
        strides ? tt_empty_strided(a->dtype, a->ndim, shape, strides) : tt_full(a->dtype, a->ndim, shape, kind, f, i);
    if (!out) return NULL;
    for (int d = 0; d < a->ndim; d++)
        if (pads[2 * d] > 0) to += pads[2 * d] * out->strides[d];
    tt_array *part = tt_view(out, a->ndim, kept, out->strides, to);
    tt_array *stays = part ? tt_view(a, a->ndim, kept, a->strides, from) : NULL;
    bool done = stays && (!strides || tt_fill(out, kind, f, i, -1) == 0) && tt_copy(part, stays, -1) == 0;
    if (stays) tt_free(stays);
    if (part) tt_free(part);
    if (done) return out;
    tt_free(out);
    return NULL;
}
