/* A dimension as users name it: dims.h. */
#include "ops/dims.h"

bool tt_good_dim(const char *op, const tt_array *a, int64_t *dim) {
    int64_t n = a->ndim ? a->ndim : 1;
    if (*dim < -n || *dim >= n) {
        tt_fail(TT_INDEX_ERROR, "%s: Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
                op, (long long)-n, (long long)n - 1, (long long)*dim);
        return false;
    }
    if (*dim < 0) *dim += n;
    return true;
}

int64_t tt_broadcast_batch(const tt_array *a, const tt_array *b, int64_t *batch, int *nbatch) {
    int na = a->ndim > 2 ? a->ndim - 2 : 0, nb = b && b->ndim > 2 ? b->ndim - 2 : 0;
    int64_t count = 1;
    *nbatch = na > nb ? na : nb;
    for (int d = 0; d < *nbatch; d++) {
        int ia = d - (*nbatch - na), ib = d - (*nbatch - nb);
        int64_t x = ia < 0 ? 1 : a->shape[ia], y = ib < 0 ? 1 : b->shape[ib];
        if (x != y && x != 1 && y != 1) {
            tt_fail(TT_RUNTIME_ERROR,
                    "The size of tensor a (%lld) must match the size of tensor b (%lld) at non-singleton dimension %d",
                    (long long)x, (long long)y, d);
            return -1;
        }
        batch[d] = x == 1 ? y : x;
        count *= batch[d];
    }
    return count;
}
