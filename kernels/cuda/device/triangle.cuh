/* Zeroes a triangle of every matrix, in place. The variant: the logarithm of an element's bytes. */
#pragma once
#include "cuda/device/unit.cuh"
#include "cuda/device/arrange_args.h"
#define TT_ARGS tt_triangle_args
typedef tt_unit_of<1 << (TT_VARIANT & 7)>::type unit;

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (i >= p.numel) return;
    int64_t rest = i / p.size[0];
    const int64_t column = i - rest * p.size[0], row = rest % p.size[1];
    if (p.below ? column >= row + p.edge : column < row + p.edge) return;
    int64_t at = column * p.step[0];
    for (int d = 1; d < p.ndim; d++) {
        const int64_t outer = rest / p.size[d];
        at += (rest - outer * p.size[d]) * p.step[d];
        rest = outer;
    }
    *(unit *)(p.data + at) = unit{};
}
