/* Positions of what is set, and positions repeated: sums over tiles, their sums, and then each element's number.
 *
 * TT_OP: of the numbers below. TT_D0: b8, whose elements count 0 or 1, or i64. */
#pragma once
#include "cuda/device/block_sums.cuh"
#include "cuda/device/counting_args.h"
#define TT_ARGS tt_compact_args
#define TT_ITEMS (TT_COUNT_TILE / TT_CUDA_THREADS)
#define TT_WARPS (TT_CUDA_THREADS / 32)

enum { TT_SUMS, TT_BEFORE, TT_NONZERO, TT_STARTS, TT_REPEAT };

static TT_DEVICE int64_t count_of(const TT_ARGS &p, int64_t i) {
    return i >= p.n ? 0 : TT_CODE(TT_D0) != TT_BOOL ? ((const int64_t *)p.in)[i] : ((const uint8_t *)p.in)[i] != 0;
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t tile = (int64_t)blockIdx.x * TT_COUNT_TILE;
    int64_t all;
#if TT_OP == 0
    int64_t own = 0;
    for (int u = 0; u < TT_ITEMS; u++) {
        const int64_t i = tile + u * TT_CUDA_THREADS + threadIdx.x, count = count_of(p, i);
        if (TT_CODE(TT_D0) != TT_BOOL && count < 0) atomicMin((uint64_t *)&p.sums[p.blocks + 1], (uint64_t)i);
        own += count;
    }
    tt_block_scan<int64_t, TT_WARPS>(own, &all);
    if (threadIdx.x == 0) p.sums[blockIdx.x] = all;
#elif TT_OP == 1
    int64_t before = 0;
    for (int64_t begin = 0; begin < p.blocks; begin += TT_CUDA_THREADS) {
        const int64_t i = begin + threadIdx.x;
        const int64_t at = tt_block_scan<int64_t, TT_WARPS>(i < p.blocks ? p.sums[i] : 0, &all);
        if (i < p.blocks) p.sums[i] = before + at;
        before += all;
    }
    if (threadIdx.x == 0) p.sums[p.blocks] = before;
#elif TT_OP == 4
    const int64_t o = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x, *starts = p.sums;
    if (o >= p.blocks) return; /* here: how many results */
    int64_t low = 0, high = p.n; /* the last start not above o */
    while (low < high) {
        const int64_t mid = low + (high - low) / 2;
        if (starts[mid] <= o) low = mid + 1;
        else high = mid;
    }
    p.out[o] = low - 1;
#else
    int64_t before = p.sums[blockIdx.x];
    for (int u = 0; u < TT_ITEMS; u++) {
        const int64_t i = tile + u * TT_CUDA_THREADS + threadIdx.x, count = count_of(p, i);
        const int64_t at = before + tt_block_scan<int64_t, TT_WARPS>(count, &all);
        before += all;
        if (TT_OP == TT_STARTS && i < p.n) p.out[i] = at;
        if (TT_OP != TT_NONZERO || !count) continue;
        if (!p.ndim) p.out[at] = i;
        int64_t rest = i;
        for (int64_t d = p.ndim - 1; d >= 0; d--) {
            const int64_t outer = rest / p.size[d];
            p.out[at * p.ndim + d] = rest - outer * p.size[d];
            rest = outer;
        }
    }
#endif
}
