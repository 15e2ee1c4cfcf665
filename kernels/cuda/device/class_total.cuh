/* The mean or the sum of losses, from the sums of losses and of weights. TT_D0: its dtype, TT_D1: that computed in. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/rows_args.h"
#define TT_ARGS tt_class_total_args
typedef TT_TYPE(TT_D1) number;
typedef TT_TYPE(TT_D0) stored_type;

extern "C" __global__ void tt_kernel(const __grid_constant__ TT_ARGS p) {
    if (threadIdx.x) return;
    const number total = (number)(p.mean ? p.sums[0] / p.sums[1] : p.sums[0]);
    *(stored_type *)p.out = (stored_type)TT_CONVERT(TT_D1, TT_D0, total);
    *(number *)p.divisor = (number)p.sums[1];
}
