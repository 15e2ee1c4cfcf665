/* Many arrays at once. On a device all of them go into a few kernels. */
#include "fuse/fuse.h"
#include "core/tt.h"
#include "cpu/reduce.h"
#include "api/core.h"
#include "api/foreach.h"
#include "api/reduce.h"
#include "cpu/simd.h"
#include "cuda/host/cuda.h"
#include <string.h>

/* Fused mode on the CPU records them one by one. */
static bool handles(int n, tt_array *const *in) {
    if (n < 1 || (TT_RECORDING && !tt_device)) return false;
    for (int k = 0; k < n; k++)
        if (in[k]->dtype < TT_F16 || in[k]->dtype != in[0]->dtype || !in[k]->numel || !tt_ready(in[k])) return false;
    return true;
}

static bool norms_here(int op, int n, tt_array *const *in, tt_array *out) {
    int size = tt_itemsizes[out->dtype];
    for (int k = 0; k < n; k++) {
        tt_array *norm = tt_reduce(op, in[k], 0, 0, 0, -1);
        if (!norm) return false;
        memcpy(out->data + (int64_t)k * size, norm->data, (size_t)size);
        tt_free(norm);
    }
    return true;
}

tt_array *tt_norms(int op, int n, tt_array **in) {
    for (int k = 1; k < n; k++)
        if (in[k]->storage->device != in[0]->storage->device) return tt_decline();
    TT_ON_DEVICE(NULL, "norms", n, in);
    if (!handles(n, in)) return tt_decline();
    int64_t count = n;
    tt_array **whole = tt_scratch(count * (int64_t)sizeof *whole), *out = NULL;
    int made = 0, then, reducer = tt_reducer_of(op, &then);
    for (; whole && made < n; made++) {
        whole[made] = in[made]->flags & TT_FLAG_CONTIGUOUS ? tt_alias(in[made]) : tt_contiguous_now(in[made]);
        if (!whole[made]) break;
    }
    if (whole && made == n && (out = tt_empty(in[0]->dtype, 1, &count)) &&
        !(tt_device ? tt_cuda_norms(reducer, then, n, whole, out) : norms_here(op, n, whole, out))) {
        tt_free(out);
        out = NULL;
    }
    while (made > 0) tt_free(whole[--made]);
    tt_scratch_free(whole);
    return out;
}

int tt_scale(int n, tt_array **arrays, tt_array *by, int writer) {
    bool same = n > 0 && by->numel == 1 && by->dtype >= TT_F16 && by->storage->device == arrays[0]->storage->device;
    for (int k = 0; same && k < n; k++)
        same = arrays[k]->storage->device == by->storage->device && !(arrays[k]->flags & TT_FLAG_VIEW);
    if (!same) {
        tt_decline();
        return -1;
    }
    TT_ON_DEVICE(-1, "scale", n, arrays);
    same = handles(n, arrays) && tt_ready(by);
    for (int k = 0; same && k < n; k++) same = arrays[k]->flags & TT_FLAG_CONTIGUOUS && tt_settled(arrays[k]);
    if (!same) {
        tt_decline();
        return -1;
    }
    for (int k = 0; k < n; k++)
        if (!tt_writable("mul_", arrays[k])) return -1;
    if (tt_device) {
        if (!tt_cuda_scale(n, arrays, by)) return -1;
        for (int k = 0; k < n; k++) tt_bump_version(arrays[k], writer);
        return 0;
    }
    for (int k = 0; k < n; k++)
        if (tt_elementwise_out(TT_OP_mul, arrays[k], arrays[k], by, NULL, writer) < 0) return -1;
    return 0;
}
