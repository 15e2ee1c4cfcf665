/* Extremes, histograms and one-hot rows, of int64 or float64 (TT_D0). TT_OP: of the numbers below. */
#pragma once
#define TT_DESCENDING 0
#include "cuda/device/keys.cuh"
#include "cuda/device/counting_args.h"
#define TT_ARGS tt_count_args

enum { TT_EXTREMES, TT_HISTOGRAM, TT_FLOATS, TT_ONE_HOT };
#define TT_LOCAL_BINS 2048 /* of a block; larger histograms are counted in global memory alone */

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t first = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x,
                  step = (int64_t)gridDim.x * TT_CUDA_THREADS;
#if TT_OP == 0
    __shared__ uint64_t least, most;
    if (threadIdx.x == 0) least = ~(uint64_t)0, most = 0;
    __syncthreads();
    uint64_t low = ~(uint64_t)0, high = 0;
    for (int64_t i = first; i < p.n; i += step) {
        const uint64_t key = tt_key_of(((const stored *)p.in)[i]);
        if (key < low) low = key;
        if (key > high) high = key;
    }
    atomicMin(&least, low);
    atomicMax(&most, high);
    __syncthreads();
    if (threadIdx.x) return;
    atomicMin(&p.extremes[0], least);
    atomicMax(&p.extremes[1], most);
#elif TT_OP == 1
    __shared__ uint32_t counts[TT_LOCAL_BINS];
    const bool local = p.bins <= TT_LOCAL_BINS;
    for (int b = threadIdx.x; local && b < p.bins; b += TT_CUDA_THREADS) counts[b] = 0;
    __syncthreads();
    for (int64_t i = first; i < p.n; i += step) {
#if TT_FLOATING
        const double v = ((const double *)p.in)[i];
        if (!(v >= p.lo && v <= p.hi)) continue;
        int64_t bin = (int64_t)((v - p.lo) / (p.hi - p.lo) * (double)p.bins);
        if (bin >= p.bins) bin = p.bins - 1;
#else
        const int64_t bin = ((const int64_t *)p.in)[i];
#endif
        if (local) atomicAdd(&counts[bin], 1u);
        else atomicAdd((uint64_t *)&p.counts[bin], (uint64_t)1);
    }
    __syncthreads();
    for (int b = threadIdx.x; local && b < p.bins; b += TT_CUDA_THREADS)
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
