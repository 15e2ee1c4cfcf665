/* Dimensions of a table: indexing.h. */
#include "backend/indexing.h"

void tt_merge_dim(int *n, int64_t *shapes, int64_t *strides, int64_t shape, int64_t stride) {
    if (shape == 1) return;
    if (*n && strides[*n - 1] == stride * shape) {
        shapes[*n - 1] *= shape;
        strides[*n - 1] = stride;
        return;
    }
    shapes[*n] = shape;
    strides[(*n)++] = stride;
}
