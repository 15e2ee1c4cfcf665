/* The norms of many tensors: see foreach_args.h; macros as in tree.cuh. */
#pragma once
#include "cuda/device/tree.cuh"
#include "cuda/device/tensors.cuh"
#include "cuda/device/foreach_args.h"

#define TT_ARGS tt_many_args

#if !(TT_VARIANT & TT_NORMS_JOINED)
#define TT_BATCH 16

/* A block of TT_BLOCK elements is a warp's. */
extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const uint32_t block = blockIdx.x * (TT_CUDA_THREADS / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x & 31;
    if (block >= p.blocks) return; /* all of a warp */
    const int tensor = tt_tensor_of(p.first, p.n, block);
    const int64_t first = (int64_t)(block - p.first[tensor]) * TT_BLOCK, left = p.numel[tensor] - first;
    const stored_type *from = (const stored_type *)p.data[tensor] + first;
    accumulator a = nothing();
#pragma unroll
    for (int b = 0; b < TT_LANES; b += TT_BATCH) {
        stored_type x[TT_BATCH];
#pragma unroll
        for (int e = 0; e < TT_BATCH; e++)
            if ((b + e) * 32 + lane < left) x[e] = from[(b + e) * 32 + lane];
#pragma unroll
        for (int e = 0; e < TT_BATCH; e++)
            if ((b + e) * 32 + lane < left) a = join(a, accumulated(contributed(x[e], (acc_type)0), 0));
    }
#pragma unroll
    for (int h = TT_LANES / 2; h > 0; h /= 2) a = join(a, lane_below(a, h));
    if (lane == 0) ((acc_type *)p.parts)[block] = a.value;
}

#else
/* A tensor is a thread block's. */
extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int tensor = blockIdx.x;
    const int64_t count = (p.numel[tensor] + TT_BLOCK - 1) / TT_BLOCK;
    int log_per = 0;
    while ((int64_t)TT_CUDA_THREADS << log_per < count) log_per++;
    const int64_t per = (int64_t)1 << log_per, begin = threadIdx.x * per;
    const accumulator own = joined_parts(p.parts, 0, p.first[tensor], 1, begin, per, count);
    const accumulator a = joined_threads<1, TT_CUDA_THREADS>(own);
    if (threadIdx.x == 0)
        ((result_type *)p.out)[tensor] = (result_type)TT_CONVERT(TT_D2, TT_D3, finish(a.value, 1, (acc_type)0));
}
#endif
