/* The gradient of a normalisation's weight: sums of g (x - mean) rstd down the columns, in the tree of
 * Note [The tree of a reduction], whose lanes are shared out among threads as in family reduce. TT_D0: the dtype of g and
 * x, TT_D1: that computed in. */
#pragma once
#include "cuda/prelude.cuh"
#include "cuda/rows_args.h"
#define TT_ARGS tt_norm_weight_args
#define TT_BLOCK 1024
#define TT_LANES 32
#define TT_COLUMNS (1 << (TT_VARIANT >> 1))
#define TT_SLOTS (TT_CUDA_THREADS / TT_COLUMNS < TT_LANES ? TT_CUDA_THREADS / TT_COLUMNS : TT_LANES)
#define TT_AT_ONCE (TT_CUDA_THREADS / TT_COLUMNS / TT_SLOTS)
#define TT_OWN (TT_LANES / TT_SLOTS)
#define TT_BATCH (8 / TT_OWN)
typedef TT_TYPE(TT_D1) number;
typedef TT_TYPE(TT_D0) stored_type;

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ number shared[TT_CUDA_THREADS];
    const int slot = threadIdx.x / TT_COLUMNS % TT_SLOTS;
    const int64_t column = blockIdx.x % p.tiles * TT_COLUMNS + threadIdx.x % TT_COLUMNS;
    const int64_t block = blockIdx.x / p.tiles * TT_AT_ONCE + threadIdx.x / (TT_COLUMNS * TT_SLOTS);
    const int64_t first = block * TT_BLOCK;
    const bool live = column < p.n && block < p.blocks;
    const int rows = !live ? 0 : p.rows - first < TT_BLOCK ? (int)(p.rows - first) : TT_BLOCK;
    const stored_type *g = (const stored_type *)p.g + first * p.n + column;
    const stored_type *x = (const stored_type *)p.x + first * p.n + column;
    const number *mean = (const number *)p.mean + first, *rstd = (const number *)p.rstd + first;
    number a[TT_OWN];
#pragma unroll
    for (int k = 0; k < TT_OWN; k++) a[k] = -(number)0;
#pragma unroll 1
    for (int b = 0; b < TT_LANES && b * TT_LANES < rows; b += TT_BATCH) {
        stored_type gs[TT_BATCH][TT_OWN], xs[TT_BATCH][TT_OWN];
#pragma unroll
        for (int e = 0; e < TT_BATCH; e++)
#pragma unroll
            for (int k = 0; k < TT_OWN; k++) {
                const int i = (b + e) * TT_LANES + k * TT_SLOTS + slot;
                if (i < rows) {
                    gs[e][k] = g[i * p.n];
                    xs[e][k] = x[i * p.n];
                }
            }
#pragma unroll
        for (int e = 0; e < TT_BATCH; e++)
#pragma unroll
            for (int k = 0; k < TT_OWN; k++) {
                const int i = (b + e) * TT_LANES + k * TT_SLOTS + slot;
                if (i >= rows) continue;
                const number m = TT_VARIANT & TT_NORM_RMS ? (number)0 : mean[i];
                a[k] += (number)TT_CONVERT(TT_D0, TT_D1, gs[e][k]) *
                        (((number)TT_CONVERT(TT_D0, TT_D1, xs[e][k]) - m) * rstd[i]);
            }
    }
#pragma unroll
    for (int h = TT_OWN / 2; h > 0; h /= 2)
#pragma unroll
        for (int k = 0; k < h; k++) a[k] += a[k + h];
    shared[threadIdx.x] = a[0];
#pragma unroll
    for (int h = TT_SLOTS / 2; h > 0; h /= 2) {
        __syncthreads();
        if (slot < h) shared[threadIdx.x] += shared[threadIdx.x + h * TT_COLUMNS];
    }
    if (slot || !live) return;
    if (p.parts) ((number *)p.parts)[block * p.n + column] = shared[threadIdx.x];
    else ((stored_type *)p.out)[column] = (stored_type)TT_CONVERT(TT_D1, TT_D0, shared[threadIdx.x]);
}
