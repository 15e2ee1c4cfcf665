/* Many arrays at once: one after the other, or where the backend does it, by a few kernels for all. */
#include "api/core.h"
#include "api/foreach.h"
#include "api/reduce.h"
#include "backend/backend.h"
#include "backend/now.h"
#include "backend/operators.h"
#include "fuse/fuse.h"
#include "ops/reduce.h"

/* Where they are done one by one, fused mode records them so. */
static bool handles(int n, tt_array *const *in, bool at_once) {
    if (n < 1 || (TT_RECORDING && !at_once)) return false;
    for (int k = 0; k < n; k++)
        if (!tt_is_floating(in[k]->dtype) || in[k]->dtype != in[0]->dtype || !in[k]->numel || !tt_ready(in[k]))
            return false;
    return true;
}

static bool one_by_one(int op, int n, tt_array *const *in, tt_array *out) {
    int size = tt_itemsizes[out->dtype];
    for (int k = 0; k < n; k++) {
        tt_array *norm = tt_reduce(op, in[k], 0, 0, 0, -1);
        if (!norm) return false;
        tt_array to = *out;
        to.ndim = 0;
        to.numel = 1;
        to.data += (int64_t)k * size;
        bool done = tt_copy_now(&to, norm) == 0;
        tt_free(norm);
        if (!done) return false;
    }
    return true;
}

tt_array *tt_norms(int op, int n, tt_array **in) {
    for (int k = 1; k < n; k++)
        if (in[k]->storage->device != in[0]->storage->device) return tt_decline();
    TT_ON_DEVICE(NULL, "norms", n, in);
    if (!handles(n, in, tt_here()->norms)) return tt_decline();
    int64_t count = n;
    tt_array **whole = tt_scratch(count * (int64_t)sizeof *whole), *out = NULL;
    int made = 0, then, reducer = tt_reducer_of(op, &then);
    for (; whole && made < n; made++) {
        whole[made] = in[made]->flags & TT_FLAG_CONTIGUOUS ? tt_alias(in[made]) : tt_contiguous_now(in[made]);
        if (!whole[made]) break;
    }
    if (whole && made == n && (out = tt_empty(in[0]->dtype, 1, &count)) &&
        !(tt_here()->norms ? tt_here()->norms(reducer, then, n, whole, out) : one_by_one(op, n, whole, out))) {
        tt_free(out);
        out = NULL;
    }
    while (made > 0) tt_free(whole[--made]);
    tt_scratch_free(whole);
    return out;
}

int tt_scale(int n, tt_array **arrays, tt_array *by, int writer) {
    bool same =
        n > 0 && by->numel == 1 && tt_is_floating(by->dtype) && by->storage->device == arrays[0]->storage->device;
    for (int k = 0; same && k < n; k++)
        same = arrays[k]->storage->device == by->storage->device && !(arrays[k]->flags & TT_FLAG_VIEW);
    if (!same) {
        tt_decline();
        return -1;
    }
    TT_ON_DEVICE(-1, "scale", n, arrays);
    same = handles(n, arrays, tt_here()->scale) && tt_ready(by);
    for (int k = 0; same && k < n; k++) same = arrays[k]->flags & TT_FLAG_CONTIGUOUS && tt_ready_to_write(arrays[k]);
    if (!same) {
        tt_decline();
        return -1;
    }
    for (int k = 0; k < n; k++)
        if (!tt_writable("mul_", arrays[k])) return -1;
    if (tt_here()->scale) {
        if (!tt_here()->scale(n, arrays, by)) return -1;
        for (int k = 0; k < n; k++) tt_bump_version(arrays[k], writer);
        return 0;
    }
    for (int k = 0; k < n; k++)
        if (tt_elementwise_out(TT_OP_mul, arrays[k], arrays[k], by, NULL, writer) < 0) return -1;
    return 0;
}
