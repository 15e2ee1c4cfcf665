/* Random variates, as in kernels/scalar/variates.h: a thread for each. TT_OP: the kind, TT_D0: the dtype. */
#pragma once
#include "cuda/device/stream.cuh"
#include "scalar/variates.h"

#define TT_ARGS tt_variates_args

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (i >= p.numel) return;
    const tt_stream from = TT_PLACED(p.from);
    tt_source source = {from.seed, from.draw, (uint64_t)i, 0, 0};
    typedef TT_TYPE(TT_D0) stored;
    const double a = TT_CONVERT(TT_D0, f64, ((const stored *)p.a)[i]);
    const double b = p.b ? TT_CONVERT(TT_D0, f64, ((const stored *)p.b)[i]) : 0;
    double x = 0;
#define CASE(kind)                                                                                                     \
    if (TT_OP == TT_VARIATE_##kind) x = tt_variate_##kind(a, b, &source);
    TT_VARIATE_KINDS(CASE)
    ((stored *)p.out)[i] = TT_CONVERT(f64, TT_D0, x < p.least ? p.least : x);
}
