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
