/* Extremes, histograms and one-hot rows, of int64 or float64 (TT_D0). TT_OP: of the numbers below. */
#pragma once
#define TT_DESCENDING 0
#include "cuda/device/keys.cuh"
#include "cuda/device/counting_args.h"
#define TT_ARGS tt_count_args

enum { TT_EXTREMES, TT_HISTOGRAM, TT_FLOATS, TT_ONE_HOT };
#define TT_AT_ONCE 4 /* loads that a thread waits for together */

/* f of all elements, shared out among the threads. */
template <typename F> static TT_DEVICE void each(const TT_ARGS &p, int64_t first, int64_t step, const F &f) {
    int64_t i = first;
    for (; i + (TT_AT_ONCE - 1) * step < p.n; i += TT_AT_ONCE * step) {
        stored x[TT_AT_ONCE];
#pragma unroll
        for (int u = 0; u < TT_AT_ONCE; u++) x[u] = ((const stored *)p.in)[i + u * step];
#pragma unroll
        for (int u = 0; u < TT_AT_ONCE; u++) f(x[u]);
    }
    for (; i < p.n; i += step) f(((const stored *)p.in)[i]);
}

extern "C" __global__ void __launch_bounds__(1024) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t first = (int64_t)blockIdx.x * blockDim.x + threadIdx.x, step = (int64_t)gridDim.x * blockDim.x;
#if TT_OP == 0
    __shared__ uint64_t least, most;
    if (threadIdx.x == 0) least = ~(uint64_t)0, most = 0;
    __syncthreads();
    uint64_t low = ~(uint64_t)0, high = 0;
    each(p, first, step, [&](stored x) {
        const uint64_t key = tt_key_of(x);
        if (key < low) low = key;
        if (key > high) high = key;
    });
    atomicMin(&least, low);
    atomicMax(&most, high);
    __syncthreads();
    if (threadIdx.x) return;
    atomicMin(&p.extremes[0], least);
    atomicMax(&p.extremes[1], most);
#elif TT_OP == 1
    TT_DYNAMIC_SHARED(room); /* for a block's own counts, if there is as much */
    uint32_t *const counts = (uint32_t *)room;
    for (int b = threadIdx.x; p.local && b < p.bins; b += blockDim.x) counts[b] = 0;
    __syncthreads();
    each(p, first, step, [&](stored x) {
#if TT_FLOATING
        const double v = tt_double_bits(x);
        if (!(v >= p.lo && v <= p.hi)) return;
        int64_t bin = (int64_t)((v - p.lo) / (p.hi - p.lo) * (double)p.bins);
        if (bin >= p.bins) bin = p.bins - 1;
#else
        const int64_t bin = (int64_t)x;
#endif
        if (p.local) atomicAdd(&counts[bin], 1u);
        else atomicAdd((uint64_t *)&p.counts[bin], (uint64_t)1);
    });
    __syncthreads();
    for (int b = threadIdx.x; p.local && b < p.bins; b += blockDim.x)
        if (counts[b]) atomicAdd((uint64_t *)&p.counts[b], (uint64_t)counts[b]);
#elif TT_OP == 2
    for (int64_t i = first; i < p.bins; i += step) { /* a float32 that only ever grows by one stops at 2^24 */
        const int64_t count = p.counts[i];
        ((float *)p.out)[i] = count < (1 << 24) ? (float)count : 16777216.0f;
    }
#else
    for (int64_t o = first; o < p.n * p.bins; o += step) {
        const int64_t i = o / p.bins, bin = o - i * p.bins, value = ((const int64_t *)p.in)[i];
        if (bin == 0 && value < 0) tt_report(p.fault, TT_FAULT_NEGATIVE_CLASS, value, p.bins, 0);
        if (bin == 0 && value >= p.bins) tt_report(p.fault, TT_FAULT_CLASS, value, p.bins, 0);
        ((int64_t *)p.out)[o] = bin == value;
    }
#endif
}
