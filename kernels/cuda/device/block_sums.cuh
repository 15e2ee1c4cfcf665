/* Sums over the threads of a block, for the kernels that count and place. All threads of the block take part. */
#pragma once
#include "cuda/device/prelude.cuh"

/* The sum of `x` over the threads before this one, of a block of 32 * warps; the sum over all into *total. */
template <typename T, int warps> static TT_DEVICE T tt_block_scan(T x, T *total) {
    __shared__ T sums[warps];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    T sum = x;
#pragma unroll
    for (int by = 1; by < 32; by *= 2) {
        const T below = __shfl_up_sync(~0u, sum, by);
        if (lane >= by) sum += below;
    }
    __syncthreads(); /* the sums of a scan before this one have been read */
    if (lane == 31) sums[warp] = sum;
    __syncthreads();
    T before = 0, all = 0;
#pragma unroll
    for (int w = 0; w < warps; w++) {
        if (w == warp) before = all;
        all += sums[w];
    }
    *total = all;
    return before + sum - x;
}
