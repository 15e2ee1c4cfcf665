/* The matrices of resampling: taps and weights of each row. TT_D0: the weights' dtype. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/resample_args.h"
#define TT_ARGS tt_resample_taps_args
typedef TT_TYPE(TT_D0) number;

static TT_DEVICE tt_taps taps_of(const tt_resampling &r, int64_t i) {
    double w[TT_FEW_TAPS];
    return r.antialias ? tt_smooth_taps(&r, i) : tt_few_taps(&r, i, w);
}

static TT_DEVICE void make_row(const tt_resample_axis &a, int64_t i) {
    number *to = (number *)a.weights + i * a.room;
    tt_taps taps;
    if (a.rule.antialias) {
        double total = 0;
        taps = tt_smooth_taps(&a.rule, i);
        for (int64_t k = 0; k < taps.count; k++) total += tt_smooth_weight(&a.rule, i, taps, k);
        for (int64_t k = 0; k < taps.count; k++) {
            const double w = tt_smooth_weight(&a.rule, i, taps, k);
            to[k] = (number)(total != 0 ? w / total : w);
        }
    } else {
        double w[TT_FEW_TAPS];
        taps = tt_few_taps(&a.rule, i, w);
#pragma unroll
        for (int k = 0; k < TT_FEW_TAPS; k++)
            if (k < taps.count) to[k] = (number)w[k];
    }
    a.start[i] = taps.start;
    a.count[i] = taps.count;
}

/* The first row that begins behind element i, or (ends) the first that does not end before it: both only grow. */
static TT_DEVICE int64_t search(const tt_resampling &r, int64_t i, bool ends) {
    int64_t low = 0, high = r.out;
    while (low < high) {
        const int64_t middle = (low + high) / 2;
        const tt_taps taps = taps_of(r, middle);
        if (taps.start + (ends ? taps.count : 0) <= i) low = middle + 1;
        else high = middle;
    }
    return low;
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    const tt_resample_axis &a = p.axes[blockIdx.y];
    if (i < a.rule.out) make_row(a, i);
    if (TT_OP && i < a.rule.in) {
        const int64_t first = search(a.rule, i, true), end = search(a.rule, i, false);
        a.first[i] = first;
        a.times[i] = end > first ? end - first : 0;
    }
}
