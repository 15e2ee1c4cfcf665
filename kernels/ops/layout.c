/* Images whose channels lie closest together: layout.h. */
#include "ops/layout.h"
#include <string.h>

bool tt_channels_are_last(const tt_array *a, int dims) {
    int64_t least = 0;
    if (dims < 2 || a->ndim != dims + 2 || a->flags & TT_FLAG_CONTIGUOUS) return false;
    for (int k = 0; k < a->ndim; k++) {
        int d = k == 0 ? 1 : k < a->ndim - 1 ? a->ndim - k : 0;
        if (!a->shape[d] || a->strides[d] < least || (d == 0 && least == a->strides[1])) return false;
        least = a->strides[d] * (a->shape[d] > 1 ? a->shape[d] : 1);
    }
    return true;
}

tt_array *tt_channels_last(tt_array *a) {
    int64_t shape[5], strides[5];
    for (int d = 0; d < a->ndim; d++) {
        int from = d == 0 ? 0 : d == a->ndim - 1 ? 1 : d + 1;
        shape[d] = a->shape[from];
        strides[d] = a->strides[from];
    }
    return tt_view(a, a->ndim, shape, strides, tt_offset(a));
}

tt_array *tt_spatial(const tt_array *like, int dtype, int dims, const int64_t *sizes, bool last) {
    int64_t shape[5], strides[5], step = 1;
    int n = like->ndim;
    memcpy(shape, like->shape, sizeof(int64_t) * (size_t)(n - dims));
    memcpy(shape + n - dims, sizes, sizeof(int64_t) * (size_t)dims);
    if (!last) return tt_empty(dtype, n, shape);
    for (int k = 0; k < n; k++) {
        int d = k == 0 ? 1 : k < n - 1 ? n - k : 0;
        strides[d] = step;
        step *= shape[d] > 1 ? shape[d] : 1;
    }
    return tt_empty_strided(dtype, n, shape, strides);
}
