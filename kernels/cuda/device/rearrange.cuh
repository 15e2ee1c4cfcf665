/* The same elements in other places: flip and roll. The variant: bits 0-2 the logarithm of a unit's bytes, 3 of 64-bit
 * arithmetic. */
#pragma once
#include "cuda/device/unit.cuh"
#include "cuda/device/arrange_args.h"
#define TT_ARGS tt_rearrange_args
typedef tt_unit_of<1 << (TT_VARIANT & 7)>::type unit;
#if TT_VARIANT & 8
typedef int64_t place;
#define TT_SPLIT(x, d) ((x) / p.size[d])
#else
typedef uint32_t place;
#define TT_SPLIT(x, d) tt_quotient(x, p.by[d])
#endif

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (i >= p.numel) return;
    place rest = (place)i;
    int64_t at = 0;
    for (int d = 0; d < p.ndim; d++) {
        const place outer = d < p.ndim - 1 ? TT_SPLIT(rest, d) : 0;
        int64_t x = (int64_t)(rest - outer * (place)p.size[d]) - p.shift[d];
        rest = outer;
        if (x < 0) x += p.size[d];
        at += x * p.step[d];
    }
    ((unit *)p.out)[i] = *(const unit *)(p.in + at);
}
