/* Of each channel the sum of x, or of (x - mean)^2, or the sums of g and of g (x - mean), by the operator, in the tree
 * of
 * Note [The tree of a reduction]: what each block of it gives. The elements of a block lie in runs, and are a warp's;
 * or (TT_BATCH_LAST) channels lie closest together, and the lanes of a block are shared out among threads whose
 * neighbours work on neighbouring channels. TT_D0: the dtype of g and x, TT_D1: that
 * computed in. */
#pragma once
#include "cuda/device/last_block.cuh"
#include "cuda/device/batch_norm_args.h"
#define TT_ARGS tt_batch_sums_args
#define TT_BLOCK 1024
#define TT_LANES 32
typedef TT_TYPE(TT_D0) stored;
typedef TT_TYPE(TT_D1) number;

#define TWO (TT_OP == TT_BATCH_GRADIENT) /* sums */
#define LAST (TT_VARIANT & TT_BATCH_LAST)

struct sums {
    number first, products;
    TT_DEVICE void add(stored at_g, stored at_x, number mean) {
        const number v = (number)TT_CONVERT(TT_D0, TT_D1, at_x), d = v - mean;
        if (TT_OP == TT_BATCH_SUM) first += v;
        if (TT_OP == TT_BATCH_DEVSQ) first += d * d;
        if (TWO) {
            const number g = (number)TT_CONVERT(TT_D0, TT_D1, at_g);
            first += g;
            products += g * d;
        }
    }
    TT_DEVICE void join(const sums &other) {
        first += other.first;
        if (TWO) products += other.products;
    }
};

/* For deviations what is given is the sum. */
static TT_DEVICE number mean_of(const TT_ARGS &p, int64_t c) {
    if (TT_OP == TT_BATCH_SUM) return 0;
    const number mean = ((const number *)p.mean)[c];
    return TT_OP == TT_BATCH_DEVSQ ? mean / (number)p.n : mean;
}

/* The thread block's number: deviations are taken backwards, since what was read last may still be in the cache. */
static TT_DEVICE int64_t turn() { return TT_OP == TT_BATCH_DEVSQ ? gridDim.x - 1 - blockIdx.x : blockIdx.x; }

#if !LAST
#define TT_BATCH 8 /* elements of a lane that are loaded before the first is used */

static TT_DEVICE void store(const TT_ARGS &p, int64_t c, int64_t block, const sums &s) {
    number *parts = (number *)p.parts + c * p.blocks + block;
    parts[0] = s.first;
    if (TWO) parts[p.channels * p.blocks] = s.products;
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t warp = turn() * (TT_CUDA_THREADS / 32) + threadIdx.x / 32;
    const int lane = threadIdx.x & 31;
    if (warp >= p.blocks * p.channels) return;
    const int64_t c = warp / p.blocks, block = warp - c * p.blocks, first = block * TT_BLOCK;
    const int64_t run = first / p.inner, start = first - run * p.inner, left = p.n - first;
    const int64_t pitch = p.channels * p.inner;
    const number mean = mean_of(p, c);
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
                if (TWO) gs[e] = g[(k + e) * 32];
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
            a.add(TWO ? g[at] : stored(), x[at], mean);
        }
    }
#pragma unroll
    for (int h = 16; h > 0; h /= 2) {
        sums other = a;
        other.first = __shfl_down_sync(0xffffffffu, a.first, h);
        if (TWO) other.products = __shfl_down_sync(0xffffffffu, a.products, h);
        a.join(other);
    }
    if (lane == 0) store(p, c, block, a);
}
#else
#define TT_COLUMNS (1 << (TT_VARIANT >> TT_BATCH_COLUMNS & 7)) /* threads of a row */
#define TT_SLOTS (TT_CUDA_THREADS / TT_COLUMNS < TT_LANES ? TT_CUDA_THREADS / TT_COLUMNS : TT_LANES)
#define TT_AT_ONCE (TT_CUDA_THREADS / TT_COLUMNS / TT_SLOTS)
#define TT_OWN (TT_LANES / TT_SLOTS)
#define TT_BATCH (16 / TT_OWN)

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
                    if (TWO) gs[e][k] = g[at];
                    xs[e][k] = x[at];
                }
#pragma unroll
        for (int e = 0; e < TT_BATCH; e++)
#pragma unroll
            for (int k = 0; k < TT_OWN; k++)
                if (whole || (b + e) * TT_LANES + k * TT_SLOTS + slot < n) a[k].add(gs[e][k], xs[e][k], mean);
    }
}

#if TT_VARIANT & TT_BATCH_JOINS
#define TT_FEW 8 /* parts under way */

/* The tree over successive parts, 1 << log_per of them, as far as `left`. All threads go through the loop as often. */
static TT_DEVICE number joined_parts(const number *parts, int64_t step, int64_t log_per, int64_t left) {
    number waiting[3], all = -(number)0; /* waiting: of 1, 2, 4 times TT_FEW parts */
    for (int i = 0; i < 1 << log_per; i += TT_FEW) {
        number a[TT_FEW];
#pragma unroll
        for (int k = 0; k < TT_FEW; k++)
            a[k] = k < 1 << log_per && i + k < left ? __ldcg(parts + (i + k) * step) : -(number)0;
#pragma unroll
        for (int h = 1; h < TT_FEW; h *= 2)
#pragma unroll
            for (int k = 0; k < TT_FEW; k += 2 * h) a[k] += a[k + h];
        all = a[0];
        bool goes_on = true;
#pragma unroll
        for (int k = 0; k < 3; k++) {
            if (goes_on && !(i / TT_FEW >> k & 1)) {
                waiting[k] = all;
                goes_on = false;
            }
            if (goes_on) all = waiting[k] + all;
        }
    }
    return all;
}

/* A tile's parts, once they are all there. */
static TT_DEVICE void join_tile(const TT_ARGS &p, number *shared) {
    const int slot = threadIdx.x / TT_COLUMNS;
    const int64_t c = turn() % p.tiles * TT_COLUMNS + threadIdx.x % TT_COLUMNS, first = (int64_t)slot << p.log_per;
    for (int s = 0; s < 1 + TWO; s++) {
        const number *parts = (const number *)p.parts + (s * p.blocks + first) * p.channels + c;
        __syncthreads();
        shared[threadIdx.x] = joined_parts(parts, p.channels, p.log_per, c < p.channels ? p.blocks - first : 0);
#pragma unroll
        for (int h = TT_COLUMNS; h < TT_CUDA_THREADS; h *= 2) {
            __syncthreads();
            if (threadIdx.x % (2 * h) < TT_COLUMNS) shared[threadIdx.x] += shared[threadIdx.x + h];
        }
        if (slot == 0 && c < p.channels) ((number *)p.out)[s * p.channels + c] = shared[threadIdx.x];
    }
}
#endif

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ number shared[2][TT_CUDA_THREADS];
    const int slot = threadIdx.x / TT_COLUMNS % TT_SLOTS;
    const int64_t c = turn() % p.tiles * TT_COLUMNS + threadIdx.x % TT_COLUMNS;
    const int64_t block = turn() / p.tiles * TT_AT_ONCE + threadIdx.x / (TT_COLUMNS * TT_SLOTS);
    const int64_t first = block * TT_BLOCK, left = p.n - first;
    const bool live = c < p.channels && block < p.blocks;
    sums a[TT_OWN];
#pragma unroll
    for (int k = 0; k < TT_OWN; k++) a[k] = {-(number)0, -(number)0};
    if (live) {
        const stored *g = (const stored *)p.g + first * p.channels + c,
                     *x = (const stored *)p.x + first * p.channels + c;
        const number mean = mean_of(p, c);
        if (left >= TT_BLOCK) add_rows<true>(a, g, x, p.channels, mean, TT_BLOCK);
        else add_rows<false>(a, g, x, p.channels, mean, (int)left);
    }
#pragma unroll
    for (int h = TT_OWN / 2; h > 0; h /= 2)
#pragma unroll
        for (int k = 0; k < h; k++) a[k].join(a[k + h]);
    shared[0][threadIdx.x] = a[0].first;
    if (TWO) shared[1][threadIdx.x] = a[0].products;
#pragma unroll
    for (int h = TT_SLOTS / 2; h > 0; h /= 2) {
        __syncthreads();
        if (slot < h) {
            shared[0][threadIdx.x] += shared[0][threadIdx.x + h * TT_COLUMNS];
            if (TWO) shared[1][threadIdx.x] += shared[1][threadIdx.x + h * TT_COLUMNS];
        }
    }
    if (!slot && live) {
        number *parts = (number *)p.parts + block * p.channels + c;
        parts[0] = shared[0][threadIdx.x];
        if (TWO) parts[p.blocks * p.channels] = shared[1][threadIdx.x];
    }
#if TT_VARIANT & TT_BATCH_JOINS
    __syncthreads();
    if (comes_last(p.counters + turn() % p.tiles, gridDim.x / (uint32_t)p.tiles)) join_tile(p, shared[0]);
#endif
}
#endif
