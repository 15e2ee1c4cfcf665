/* The step counts of tensors that optim updates next, and what follows from them. TT_OP: the rule; TT_D0: the counts'
 * dtype. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/optim_args.h"
#include "scalar/optim.h"

#define TT_ARGS tt_optim_count_args

extern "C" __global__ void tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int k = threadIdx.x;
    if (k >= p.n || (p.skip && *p.skip != 0)) return;
    TT_TYPE(TT_D0) *count = (TT_TYPE(TT_D0) *)p.count[k];
    const double step = TT_CONVERT(TT_D0, f64, *count) + 1;
    *count = TT_CONVERT(f64, TT_D0, step);
    p.rates[2 * k] = tt_rate_of(TT_OP, p.lr, p.beta1, p.lr_decay, step);
    p.rates[2 * k + 1] = tt_root_of(TT_OP, p.root, p.beta2, step);
}
