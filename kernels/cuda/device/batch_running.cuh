/* What follows from the sums of each channel: mean, 1 / standard deviation, and running statistics, rounded where
 * tinytorch/ops/batch_norm.py rounds. TT_D0: the dtype of running statistics, TT_D1: that computed in. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/batch_norm_args.h"
#include "scalar/arith.h"
#define TT_ARGS tt_batch_running_args
typedef TT_TYPE(TT_D0) stored;
typedef TT_TYPE(TT_D1) number;

static TT_DEVICE void mix(const TT_ARGS &p, char *running, int64_t c, number value) {
    stored *to = (stored *)running + c;
    const number old = (number)TT_CONVERT(TT_D0, TT_D1, *to) * (number)p.kept;
    const stored kept = (stored)TT_CONVERT(TT_D1, TT_D0, old);
    *to = (stored)TT_CONVERT(TT_D1, TT_D0, ((number)TT_CONVERT(TT_D0, TT_D1, kept) + (number)p.momentum * value));
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t c = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (c >= p.channels) return;
    number *stats = (number *)p.stats;
    const number mean = stats[c] / (number)p.n, variance = stats[p.channels + c] / (number)p.n;
    stats[c] = mean;
    stats[p.channels + c] = TT_JOIN2(tt_rsqrt_, TT_D1)(variance + (number)p.eps);
    if (!TT_VARIANT) return;
    if (p.running_mean) mix(p, p.running_mean, c, mean);
    if (p.running_var) mix(p, p.running_var, c, variance * (number)p.freedom);
}
