/* Convolutions that cuDNN does not do, straight from their definition: result (TT_OP 0) and input's gradient (1), a
 * thread for each element; weight's gradient (2), a block for each. TT_D0: the dtype, TT_D1: that computed in. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/conv_args.h"
#define TT_ARGS tt_conv_args
typedef TT_TYPE(TT_D0) element;
typedef TT_TYPE(TT_D1) number;

struct tt_point {
    int64_t at[5];
};

/* The `i`-th of an array of these sizes. */
static TT_DEVICE tt_point point_of(int64_t i, int64_t second, const int64_t *size) {
    tt_point p;
    for (int d = 2; d >= 0; d--) {
        p.at[2 + d] = i % size[d];
        i /= size[d];
    }
    p.at[1] = i % second;
    p.at[0] = i / second;
    return p;
}

static TT_DEVICE number read(const char *array, const int64_t *step, int64_t first, int64_t second, const int64_t *at) {
    const int64_t where = first * step[0] + second * step[1] + at[0] * step[2] + at[1] * step[3] + at[2] * step[4];
    return TT_CONVERT(TT_D0, TT_D1, ((const element *)array)[where]);
}

static TT_DEVICE void write(const TT_ARGS &p, const char *array, const int64_t *step, const tt_point &at, number x) {
    int64_t where = 0;
    for (int d = 0; d < 5; d++) where += at.at[d] * step[d];
    ((element *)array)[where] = (element)TT_CONVERT(TT_D1, TT_D0, x);
}

/* Where in the input a tap of a place lies; is it inside? */
static TT_DEVICE bool source_of(const TT_ARGS &p, const int64_t *place, const int64_t *tap, int64_t *source) {
    bool inside = true;
    for (int d = 0; d < 3; d++) {
        source[d] = place[d] * p.stride[d] - p.padding[d] + tap[d] * p.dilation[d];
        inside = inside && source[d] >= 0 && source[d] < p.size[d];
    }
    return inside;
}

/* The place whose tap lies there; is there one? */
static TT_DEVICE bool place_of(const TT_ARGS &p, const int64_t *source, const int64_t *tap, int64_t *place) {
    bool inside = true;
    for (int d = 0; d < 3; d++) {
        const int64_t walked = source[d] + p.padding[d] - tap[d] * p.dilation[d];
        place[d] = walked / p.stride[d];
        inside = inside && walked >= 0 && place[d] * p.stride[d] == walked && place[d] < p.places[d];
    }
    return inside;
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    number sum = 0;
    int64_t tap[3], other[3];
#if TT_OP == 2
    __shared__ number sums[TT_CUDA_THREADS];
    const tt_point me = point_of(blockIdx.x, p.in, p.taps);
    const int64_t group = me.at[0] / p.out, places = p.places[0] * p.places[1] * p.places[2];
    for (int64_t i = threadIdx.x; i < p.batch * places; i += TT_CUDA_THREADS) {
        const tt_point place = point_of(i, 1, p.places);
        if (source_of(p, place.at + 2, me.at + 2, other))
            sum += read(p.input, p.of_input, place.at[0], group * p.in + me.at[1], other) *
                   read(p.result, p.of_result, place.at[0], me.at[0], place.at + 2);
    }
    sums[threadIdx.x] = sum;
    for (int half = TT_CUDA_THREADS / 2; half; half /= 2) {
        __syncthreads();
        if (threadIdx.x < half) sums[threadIdx.x] += sums[threadIdx.x + half];
    }
    if (threadIdx.x == 0) write(p, p.weight, p.of_weight, me, sums[0]);
#else
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (i >= p.count) return;
    const int64_t channels = p.groups * (TT_OP ? p.in : p.out);
    const tt_point me = point_of(i, channels, TT_OP ? p.size : p.places);
    const int64_t group = me.at[1] / (TT_OP ? p.in : p.out);
    for (tap[0] = 0; tap[0] < p.taps[0]; tap[0]++)
        for (tap[1] = 0; tap[1] < p.taps[1]; tap[1]++)
            for (tap[2] = 0; tap[2] < p.taps[2]; tap[2]++) {
#if TT_OP == 0
                if (!source_of(p, me.at + 2, tap, other)) continue;
                for (int64_t c = 0; c < p.in; c++)
                    sum += read(p.input, p.of_input, me.at[0], group * p.in + c, other) *
                           read(p.weight, p.of_weight, me.at[1], c, tap);
#else
                if (!place_of(p, me.at + 2, tap, other)) continue;
                for (int64_t o = group * p.out; o < (group + 1) * p.out; o++)
                    sum += read(p.result, p.of_result, me.at[0], o, other) *
                           read(p.weight, p.of_weight, o, me.at[1] - group * p.in, tap);
#endif
            }
    write(p, TT_OP ? p.input : p.result, TT_OP ? p.of_input : p.of_result, me, sum);
#endif
}
