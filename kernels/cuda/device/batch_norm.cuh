/* Normalisation of channels, and its gradient: the operations of tinytorch/ops/batch_norm.py. TT_D0: the dtype of
 * arrays, TT_D1: that computed in, TT_D2: the weight's, TT_D3: the bias's. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/batch_norm_args.h"
#define TT_ARGS tt_batch_norm_args
#define HAS(bit) ((TT_VARIANT & (bit)) != 0)
#define TT_V (1 << (TT_VARIANT & 7))

typedef TT_TYPE(TT_D0) stored;
typedef TT_TYPE(TT_D1) number;
typedef TT_TYPE(TT_D2) weight_type;
typedef TT_TYPE(TT_D3) bias_type;
#if TT_VARIANT & TT_BATCH_WIDE
typedef int64_t place;
#define TT_SPLIT(x, size, d) ((x) / (size))
#else
typedef uint32_t place;
#define TT_SPLIT(x, size, d) tt_quotient(x, d)
#endif

/* A channel's numbers: the result is shift + x scale, the gradient of x is rest + (x - mean) slope + g scale. */
struct channel {
    number scale, shift, mean, slope;
};

static TT_DEVICE channel channel_of(const TT_ARGS &p, place c) {
    const number mean = ((const number *)p.mean)[c], rstd = ((const number *)p.rstd)[c];
    channel r;
    r.mean = mean;
    r.scale = HAS(TT_BATCH_WEIGHT) ? rstd * (number)TT_CONVERT(TT_D2, TT_D1, ((const weight_type *)p.weight)[c]) : rstd;
    if (TT_OP == 0) {
        if (HAS(TT_BATCH_BIAS))
            r.shift = (number)TT_CONVERT(TT_D3, TT_D1, ((const bias_type *)p.bias)[c]) - mean * r.scale;
        else r.shift = -mean * r.scale;
    }
    if (TT_OP == 1) {
        const number total = ((const number *)p.sums)[c], products = ((const number *)p.sums)[p.channels + c] * rstd;
        const number by = -(number)p.n;
        r.shift = r.scale * total / by;
        r.slope = r.scale * rstd * products / by;
    }
    return r;
}

/* By one thread for each channel. */
static TT_DEVICE void leave_gradients(const TT_ARGS &p, place c) {
    ((number *)p.of_bias)[c] = ((const number *)p.sums)[c];
    ((number *)p.of_weight)[c] = ((const number *)p.sums)[p.channels + c] * ((const number *)p.rstd)[c];
}

static TT_DEVICE stored result(const channel &c, stored x, stored g) {
    const number d = (number)TT_CONVERT(TT_D0, TT_D1, TT_OP ? g : x);
    if (TT_OP == 0) return (stored)TT_CONVERT(TT_D1, TT_D0, (c.shift + d * c.scale));
    if (TT_OP == 2) return (stored)TT_CONVERT(TT_D1, TT_D0, (d * c.scale));
    const number rest = c.shift + ((number)TT_CONVERT(TT_D0, TT_D1, x) - c.mean) * c.slope;
    return (stored)TT_CONVERT(TT_D1, TT_D0, (rest + d * c.scale));
}

#define TT_ROUNDS (HAS(TT_BATCH_ROUNDS) ? TT_BATCH_MOST_ROUNDS : 1)

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    typedef tt_pack<stored, TT_V> pack;
    /* backwards after sums of the same arrays, what was read last of which may still be in the cache */
    const int64_t block = TT_OP == 1 ? gridDim.x - 1 - blockIdx.x : blockIdx.x;
    const int64_t tile = TT_CUDA_THREADS * TT_V, begin = block * TT_ROUNDS * tile + threadIdx.x * TT_V;
    if (begin >= p.numel) return;
    pack x[TT_ROUNDS], g[TT_ROUNDS];
#pragma unroll
    for (int k = 0; k < TT_ROUNDS; k++) {
        const int64_t at = begin + k * tile;
        if (k && at >= p.numel) break;
        if (TT_OP != 2) x[k] = *(const pack *)((const stored *)p.x + at);
        if (TT_OP) g[k] = *(const pack *)((const stored *)p.g + at);
    }
    const place row = HAS(TT_BATCH_LAST) ? (place)begin : (place)TT_SPLIT((place)begin, (place)p.inner, p.by_inner);
    const place first = row - (place)TT_SPLIT(row, (place)p.channels, p.by_channels) * (place)p.channels;
    channel c[HAS(TT_BATCH_LAST) ? TT_V : 1];
#pragma unroll
    for (int v = 0; v < (HAS(TT_BATCH_LAST) ? TT_V : 1); v++) {
        c[v] = channel_of(p, first + v);
        if (TT_OP == 1 && begin == (HAS(TT_BATCH_LAST) ? first : (int64_t)first * p.inner))
            leave_gradients(p, first + v);
    }
#pragma unroll
    for (int k = 0; k < TT_ROUNDS; k++) {
        const int64_t at = begin + k * tile;
        if (k && at >= p.numel) break;
        pack out;
#pragma unroll
        for (int v = 0; v < TT_V; v++) out.at[v] = result(c[HAS(TT_BATCH_LAST) ? v : 0], x[k].at[v], g[k].at[v]);
        *(pack *)((stored *)p.out + at) = out;
    }
}
