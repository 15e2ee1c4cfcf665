/* Of each channel the sums of g and of g (x - mean), in the tree of Note [The tree of a reduction]: what each block of it
 * gives. TT_OP 0: the elements of a block lie in runs, and are a warp's; 1: channels lie closest together, and the lanes of a
 * block are shared out among threads whose neighbours work on neighbouring channels. TT_D0: the dtype of g and x, TT_D1: that
 * computed in. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/batch_norm_args.h"
#define TT_ARGS tt_batch_sums_args
#define TT_BLOCK 1024
#define TT_LANES 32
typedef TT_TYPE(TT_D0) stored;
typedef TT_TYPE(TT_D1) number;

struct sums {
    number g, products;
    TT_DEVICE void add(stored at_g, stored at_x, number mean) {
        const number d = (number)TT_CONVERT(TT_D0, TT_D1, at_g);
        g += d;
        products += d * ((number)TT_CONVERT(TT_D0, TT_D1, at_x) - mean);
    }
    TT_DEVICE void join(const sums &other) {
        g += other.g;
        products += other.products;
    }
};

#if TT_OP == 0
#define TT_BATCH 8 /* elements of a lane that are loaded before the first is used */

static TT_DEVICE void store(const TT_ARGS &p, int64_t c, int64_t block, const sums &s) {
    number *parts = (number *)p.parts + c * p.blocks + block;
    parts[0] = s.g;
    parts[p.channels * p.blocks] = s.products;
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t warp = (int64_t)blockIdx.x * (TT_CUDA_THREADS / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x & 31;
    if (warp >= p.blocks * p.channels) return;
    const int64_t c = warp / p.blocks, block = warp - c * p.blocks, first = block * TT_BLOCK;
    const int64_t run = first / p.inner, start = first - run * p.inner, left = p.n - first;
    const int64_t pitch = p.channels * p.inner;
    const number mean = ((const number *)p.mean)[c];
    const stored *g = (const stored *)p.g + run * pitch + c * p.inner,
                 *x = (const stored *)p.x + run * pitch + c * p.inner;
    sums a = {-(number)0, -(number)0};
    if (start + TT_BLOCK <= p.inner) { /* one run */
        g += start + lane;
        x += start + lane;
#pragma unroll 1
        for (int k = 0; k < TT_BLOCK / 32; k += TT_BATCH) {
            stored gs[TT_BATCH], xs[TT_BATCH];
#pragma unroll
            for (int e = 0; e < TT_BATCH; e++) {
                gs[e] = g[(k + e) * 32];
                xs[e] = x[(k + e) * 32];
            }
#pragma unroll
            for (int e = 0; e < TT_BATCH; e++) a.add(gs[e], xs[e], mean);
        }
    } else {
        int64_t at = start + lane;
#pragma unroll 4
        for (int i = lane; i < TT_BLOCK; i += 32, at += 32) {
            if (i >= left) break;
            while (at >= p.inner) {
                at -= p.inner;
                g += pitch;
                x += pitch;
            }
            a.add(g[at], x[at], mean);
        }
    }
#pragma unroll
    for (int h = 16; h > 0; h /= 2) {
        sums other = {__shfl_down_sync(0xffffffffu, a.g, h), __shfl_down_sync(0xffffffffu, a.products, h)};
        a.join(other);
    }
    if (lane == 0) store(p, c, block, a);
}
#else
#define TT_COLUMNS (1 << (TT_VARIANT >> TT_BATCH_COLUMNS)) /* threads of a row */
#define TT_SLOTS (TT_CUDA_THREADS / TT_COLUMNS < TT_LANES ? TT_CUDA_THREADS / TT_COLUMNS : TT_LANES)
#define TT_AT_ONCE (TT_CUDA_THREADS / TT_COLUMNS / TT_SLOTS)
#define TT_OWN (TT_LANES / TT_SLOTS)
#define TT_BATCH (8 / TT_OWN > 1 ? 8 / TT_OWN : 1)

template <bool whole>
static TT_DEVICE void add_rows(sums (&a)[TT_OWN], const stored *g, const stored *x, int64_t step, number mean, int n) {
    const int slot = threadIdx.x / TT_COLUMNS % TT_SLOTS;
    int64_t at = slot * step;
#pragma unroll 1
    for (int b = 0; b < TT_LANES && b * TT_LANES < n; b += TT_BATCH) {
        stored gs[TT_BATCH][TT_OWN], xs[TT_BATCH][TT_OWN];
#pragma unroll
        for (int e = 0; e < TT_BATCH; e++)
#pragma unroll
            for (int k = 0; k < TT_OWN; k++, at += TT_SLOTS * step)
                if (whole || (b + e) * TT_LANES + k * TT_SLOTS + slot < n) {
                    gs[e][k] = g[at];
                    xs[e][k] = x[at];
                }
#pragma unroll
        for (int e = 0; e < TT_BATCH; e++)
#pragma unroll
            for (int k = 0; k < TT_OWN; k++)
                if (whole || (b + e) * TT_LANES + k * TT_SLOTS + slot < n) a[k].add(gs[e][k], xs[e][k], mean);
    }
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ number shared[2][TT_CUDA_THREADS];
    const int slot = threadIdx.x / TT_COLUMNS % TT_SLOTS;
    const int64_t c = blockIdx.x % p.tiles * TT_COLUMNS + threadIdx.x % TT_COLUMNS;
    const int64_t block = blockIdx.x / p.tiles * TT_AT_ONCE + threadIdx.x / (TT_COLUMNS * TT_SLOTS);
    const int64_t first = block * TT_BLOCK, left = p.n - first;
    const bool live = c < p.channels && block < p.blocks;
    sums a[TT_OWN];
#pragma unroll
    for (int k = 0; k < TT_OWN; k++) a[k] = {-(number)0, -(number)0};
    if (live) {
        const stored *g = (const stored *)p.g + first * p.channels + c,
                     *x = (const stored *)p.x + first * p.channels + c;
        const number mean = ((const number *)p.mean)[c];
        if (left >= TT_BLOCK) add_rows<true>(a, g, x, p.channels, mean, TT_BLOCK);
        else add_rows<false>(a, g, x, p.channels, mean, (int)left);
    }
#pragma unroll
    for (int h = TT_OWN / 2; h > 0; h /= 2)
#pragma unroll
        for (int k = 0; k < h; k++) a[k].join(a[k + h]);
    shared[0][threadIdx.x] = a[0].g;
    shared[1][threadIdx.x] = a[0].products;
#pragma unroll
    for (int h = TT_SLOTS / 2; h > 0; h /= 2) {
        __syncthreads();
        if (slot < h) {
            shared[0][threadIdx.x] += shared[0][threadIdx.x + h * TT_COLUMNS];
            shared[1][threadIdx.x] += shared[1][threadIdx.x + h * TT_COLUMNS];
        }
    }
    if (slot || !live) return;
    number *parts = (number *)p.parts + block * p.channels + c;
    parts[0] = shared[0][threadIdx.x];
    parts[p.blocks * p.channels] = shared[1][threadIdx.x];
}
#endif
