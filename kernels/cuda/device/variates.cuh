/* Random variates, as in kernels/scalar/variates.h: a thread for each. TT_OP: the kind. */
#pragma once
#include "cuda/device/stream.cuh"
#include "scalar/variates.h"

#define TT_ARGS tt_variates_args

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (i >= p.numel) return;
    const tt_stream from = TT_PLACED(p.from);
    tt_source source = {from.seed, from.draw, (uint64_t)i, 0, 0};
    const double a = p.a[i], b = p.b ? p.b[i] : 0;
#define CASE(kind)                                                                                                     \
    if (TT_OP == TT_VARIATE_##kind) p.out[i] = tt_variate_##kind(a, b, &source);
    TT_VARIATE_KINDS(CASE)
}
