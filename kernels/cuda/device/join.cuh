/* Contiguous arrays into their places in a joined one: blockIdx.y is the input. The variant: bits 0-2 the logarithm of
 * a unit's bytes, 3 of 64-bit arithmetic, 4 there is one row. */
#pragma once
#include "cuda/device/unit.cuh"
#include "cuda/device/arrange_args.h"
#define TT_ARGS tt_join_args
#define TT_UNROLL 4 /* UNROLL in arrange.c */
typedef tt_unit_of<1 << (TT_VARIANT & 7)>::type unit;

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const tt_joined &in = p.in[blockIdx.y];
    const int64_t numel = p.rows * in.chunk, begin = (int64_t)blockIdx.x * (TT_CUDA_THREADS * TT_UNROLL) + threadIdx.x;
    unit *out = (unit *)p.out + in.start;
#pragma unroll
    for (int u = 0; u < TT_UNROLL; u++) {
        const int64_t i = begin + u * TT_CUDA_THREADS;
        if (i >= numel) return;
        int64_t row = 0;
        if (!(TT_VARIANT & 16)) row = TT_VARIANT & 8 ? i / in.chunk : (int64_t)tt_quotient((uint32_t)i, in.by);
        out[row * (p.pitch - in.chunk) + i] = ((const unit *)in.data)[i];
    }
}
