/* Many tensors by few launches: their norms, and all of them scaled. */
#include "cuda/host/cuda.h"
#include "cuda/device/foreach_args.h"

/* Of the tensors from `at` on as many as the arguments hold, in blocks of so many elements: how many. */
static int gather(tt_many_args *p, int n, tt_array *const *in, int at, int64_t chunk, bool *aligned) {
    int64_t blocks = 0;
    for (p->n = 0; at + p->n < n && p->n < TT_MANY; p->n++) {
        const tt_array *a = in[at + p->n];
        int64_t more = (a->numel + chunk - 1) / chunk;
        if (p->n && blocks + more > INT32_MAX) break;
        p->first[p->n] = (uint32_t)blocks;
        p->numel[p->n] = a->numel;
        p->data[p->n] = a->data;
        *aligned &= !((intptr_t)a->data & 15);
        blocks += more;
    }
    p->blocks = (uint32_t)blocks;
    return p->n;
}

bool tt_cuda_norms(int reducer, int then, int n, tt_array *const *in, tt_array *out) {
    int dtype = out->dtype, acc = tt_compute_dtype(dtype), size = tt_itemsizes[dtype];
    int64_t key = tt_key(TT_FAMILY_norms, reducer, then << TT_RED_THEN, dtype, acc, acc, dtype, 0);
    bool ok = true, aligned = true;
    for (int at = 0, count; ok && at < n; at += count) {
        tt_many_args p = {.out = out->data + (int64_t)at * size};
        count = gather(&p, n, in, at, TT_BLOCK, &aligned);
        tt_array *parts = tt_cuda_temporary(acc, p.blocks);
        if (!parts) return false;
        p.parts = parts->data;
        ok = TT_LAUNCH(key, (p.blocks + TT_CUDA_THREADS / 32 - 1) / (TT_CUDA_THREADS / 32), 1, TT_CUDA_THREADS, 0, p) &&
             TT_LAUNCH(key | (int64_t)TT_NORMS_JOINED << 36, p.n, 1, TT_CUDA_THREADS, 0, p);
        tt_free(parts);
    }
    return ok;
}

bool tt_cuda_scale(int n, tt_array *const *arrays, const tt_array *by) {
    int dtype = arrays[0]->dtype, compute = tt_compute_dtype(dtype);
    bool ok = true;
    for (int at = 0, count; ok && at < n; at += count) {
        tt_many_args p = {.by = by->data};
        bool aligned = true;
        count = gather(&p, n, arrays, at, TT_MANY_CHUNK, &aligned);
        ok = TT_LAUNCH(tt_key(TT_FAMILY_scale, 0, aligned ? TT_SCALE_VECTORS : 0, dtype, compute, by->dtype, 0, 0),
                       p.blocks, 1, TT_CUDA_THREADS, 0, p);
    }
    return ok;
}
