/* The gradient of a normalisation's weight: sums of g (x - mean) rstd down the columns, in the tree of
 * Note [The tree of a reduction], whose lanes are shared out among threads as in family reduce. TT_D0: the dtype of g
 * and x, TT_D1: that computed in. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/rows_args.h"
#define TT_ARGS tt_norm_weight_args
#define TT_BLOCK 1024
#define TT_LANES 32
#define TT_COLUMNS (1 << (TT_VARIANT >> TT_NORM_COLUMNS)) /* threads of a row */
#define TT_V (TT_VARIANT & TT_NORM_TWO ? 2 : 1)           /* columns of a thread */
#define TT_SLOTS (TT_CUDA_THREADS / TT_COLUMNS < TT_LANES ? TT_CUDA_THREADS / TT_COLUMNS : TT_LANES)
#define TT_AT_ONCE (TT_CUDA_THREADS / TT_COLUMNS / TT_SLOTS)
#define TT_OWN (TT_LANES / TT_SLOTS)
#define TT_BATCH (8 / TT_OWN)
typedef TT_TYPE(TT_D1) number;
typedef TT_TYPE(TT_D0) stored_type;
typedef tt_pack<stored_type, TT_V> elements;

/* The thread's of `n` rows, all of which are there: g and x point to the first, mean and rstd have one for each. */
template <bool whole>
static TT_DEVICE void add_rows(number (&a)[TT_OWN][TT_V], const stored_type *g, const stored_type *x, int64_t step,
                               const number *mean, const number *rstd, int n) {
    const int slot = threadIdx.x / TT_COLUMNS % TT_SLOTS;
    int64_t at = slot * step;
#pragma unroll 1
    for (int b = 0; b < TT_LANES && b * TT_LANES < n; b += TT_BATCH) {
        elements gs[TT_BATCH][TT_OWN], xs[TT_BATCH][TT_OWN];
#pragma unroll
        for (int e = 0; e < TT_BATCH; e++)
#pragma unroll
            for (int k = 0; k < TT_OWN; k++, at += TT_SLOTS * step)
                if (whole || (b + e) * TT_LANES + k * TT_SLOTS + slot < n) {
                    gs[e][k] = *(const elements *)(g + at);
                    xs[e][k] = *(const elements *)(x + at);
                }
#pragma unroll
        for (int e = 0; e < TT_BATCH; e++)
#pragma unroll
            for (int k = 0; k < TT_OWN; k++) {
                const int i = (b + e) * TT_LANES + k * TT_SLOTS + slot;
                if (!whole && i >= n) continue;
                const number m = TT_VARIANT & TT_NORM_RMS ? (number)0 : mean[i], r = rstd[i];
#pragma unroll
                for (int v = 0; v < TT_V; v++)
                    a[k][v] += (number)TT_CONVERT(TT_D0, TT_D1, gs[e][k].at[v]) *
                               (((number)TT_CONVERT(TT_D0, TT_D1, xs[e][k].at[v]) - m) * r);
            }
    }
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ number shared[TT_V][TT_CUDA_THREADS];
    const int slot = threadIdx.x / TT_COLUMNS % TT_SLOTS;
    const int64_t column = (blockIdx.x % p.tiles * TT_COLUMNS + threadIdx.x % TT_COLUMNS) * TT_V;
    const int64_t block = blockIdx.x / p.tiles * TT_AT_ONCE + threadIdx.x / (TT_COLUMNS * TT_SLOTS);
    const int64_t first = block * TT_BLOCK, left = p.rows - first;
    const bool live = column < p.n && block < p.blocks;
    number a[TT_OWN][TT_V];
#pragma unroll
    for (int k = 0; k < TT_OWN; k++)
#pragma unroll
        for (int v = 0; v < TT_V; v++) a[k][v] = -(number)0;
    if (live) {
        const stored_type *g = (const stored_type *)p.g + first * p.n + column;
        const stored_type *x = (const stored_type *)p.x + first * p.n + column;
        const number *mean = (const number *)p.mean + first, *rstd = (const number *)p.rstd + first;
        if (left >= TT_BLOCK) add_rows<true>(a, g, x, p.n, mean, rstd, TT_BLOCK);
        else add_rows<false>(a, g, x, p.n, mean, rstd, (int)left);
    }
#pragma unroll
    for (int v = 0; v < TT_V; v++) {
#pragma unroll
        for (int h = TT_OWN / 2; h > 0; h /= 2)
#pragma unroll
            for (int k = 0; k < h; k++) a[k][v] += a[k + h][v];
        shared[v][threadIdx.x] = a[0][v];
    }
#pragma unroll
    for (int h = TT_SLOTS / 2; h > 0; h /= 2) {
        __syncthreads();
        if (slot < h) {
#pragma unroll
            for (int v = 0; v < TT_V; v++) shared[v][threadIdx.x] += shared[v][threadIdx.x + h * TT_COLUMNS];
        }
    }
    if (slot || !live) return;
#pragma unroll
    for (int v = 0; v < TT_V; v++) {
        const number sum = shared[v][threadIdx.x];
        if (p.parts) ((number *)p.parts)[block * p.n + column + v] = sum;
        else ((stored_type *)p.out)[column + v] = (stored_type)TT_CONVERT(TT_D1, TT_D0, sum);
    }
}
