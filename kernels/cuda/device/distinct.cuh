/* The different elements of a vector whose keys are sorted, or as it lies, without those equal to the one before.
 *
 * TT_OP: of the numbers below. TT_D0: the elements' dtype. The variant: bit 0 as it lies. */
#pragma once
#define TT_DESCENDING 0
#include "cuda/device/block_sums.cuh"
#include "cuda/device/keys.cuh"
#include "cuda/device/counting_args.h"
#define TT_ARGS tt_distinct_args
#define TT_WARPS (TT_CUDA_THREADS / 32)
#define TT_ITEMS (TT_COUNT_TILE / TT_CUDA_THREADS)

enum { TT_SUMS, TT_WRITE, TT_ZERO };

static TT_DEVICE sort_key key_at(const TT_ARGS &p, int64_t i) {
    return TT_VARIANT & 1 ? tt_key_of(((const stored *)p.in)[i]) : ((const sort_key *)p.keys)[i];
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
#if TT_OP == 2
    /* which of the zeros comes first */
    uint32_t own = ~0u;
    for (int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x; i < p.n && own == ~0u;
         i += (int64_t)gridDim.x * TT_CUDA_THREADS)
        if (!(((const stored *)p.in)[i] & ~TT_SIGN)) own = (uint32_t)i;
    if (own != ~0u) atomicMin(p.zero, own);
#else
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int64_t begin = (int64_t)blockIdx.x * TT_COUNT_TILE + warp * (32 * TT_ITEMS);
    sort_key key[TT_ITEMS], before[TT_ITEMS];
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) {
        const int64_t i = begin + u * 32 + lane;
        key[u] = i < p.n ? key_at(p, i) : 0;
        before[u] = lane == 0 && i > 0 && i < p.n ? key_at(p, i - 1) : 0;
    }
    uint32_t heads[TT_ITEMS], mine = 0, all;
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) { /* a warp's elements lie together */
        const int64_t i = begin + u * 32 + lane;
        const sort_key below = __shfl_up_sync(~0u, key[u], 1), other = lane ? below : before[u];
        heads[u] = __ballot_sync(~0u, i < p.n && (i == 0 || key[u] != other || (TT_FLOATING && key[u] == TT_KEY_ONES)));
        mine += __popc(heads[u]);
    }
    const uint32_t earlier = tt_block_scan<uint32_t, TT_WARPS>(lane == 0 ? mine : 0, &all);
#if TT_OP == 0
    if (threadIdx.x == 0) p.sums[blockIdx.x] = all;
#else
    int64_t at = p.sums[blockIdx.x] + __shfl_sync(~0u, earlier, 0);
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) {
        const int64_t to = at + __popc(heads[u] & ((1u << lane) - 1));
        if (heads[u] >> lane & 1) {
            stored value = tt_element_of(key[u]);
            if (TT_VARIANT & 1) value = ((const stored *)p.in)[begin + u * 32 + lane];
#if TT_FLOATING
            else if (key[u] == TT_SIGN) value = ((const stored *)p.in)[*p.zero];
#endif
            ((stored *)p.out)[to] = value;
        }
        at += __popc(heads[u]);
    }
#endif
#endif
}
