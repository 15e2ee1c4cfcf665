/* Resampling: the sums of kernels/cpu/simd/resample_loops.h, in their order, one within the other. TT_D0: the dtype of
 * elements, TT_D1: that computed in. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/resample_args.h"
#define TT_ARGS tt_resample_args
#define HAS(bit) ((TT_VARIANT & (bit)) != 0)
#define ROOM (1 << (TT_VARIANT >> TT_RESAMPLE_ROOM & 3))
#define DIMS (TT_VARIANT >> TT_RESAMPLE_DIMS)

typedef TT_TYPE(TT_D0) stored;
typedef TT_TYPE(TT_D1) number;
#if TT_VARIANT & TT_RESAMPLE_WIDE
typedef int64_t place;
#define TT_SPLIT(x, size, d) ((x) / (size))
#else
typedef int32_t place;
#define TT_SPLIT(x, size, d) ((place)tt_quotient((uint32_t)(x), d))
#endif

/* What one axis adds up for an element: `count` neighbours from `first` on. */
template <int room> struct taps {
    place first, count;
    number w[room];
};

static TT_DEVICE number weight(const tt_resample_axis &a, int64_t i, int64_t first, int64_t k) {
    if (!TT_OP) return ((const number *)a.weights)[i * a.room + k];
    const int64_t row = first + k, tap = i - a.start[row];
    return tap < a.count[row] ? ((const number *)a.weights)[row * a.room + tap] : (number)0;
}

template <int room> static TT_DEVICE taps<room> taps_of(const tt_resample_axis &a, place i) {
    taps<room> t;
    t.first = (place)(TT_OP ? a.first : a.start)[i];
    t.count = (place)(TT_OP ? a.times : a.count)[i];
#pragma unroll
    for (int k = 0; k < room; k++)
        if (k < t.count) t.w[k] = weight(a, i, t.first, k);
    return t;
}

template <int room, typename F> static TT_DEVICE number weighted(const taps<room> &t, F value) {
    number sum = 0;
#pragma unroll
    for (int k = 0; k < room; k++) {
        if (k >= t.count) break;
        const number part = t.w[k] * value(t.first + k);
        sum = k ? sum + part : part;
    }
    return sum;
}

/* The same where there are more than a thread holds. */
template <typename F> static TT_DEVICE number weighted_far(const tt_resample_axis &a, place i, F value) {
    const place first = (place)(TT_OP ? a.first : a.start)[i], count = (place)(TT_OP ? a.times : a.count)[i];
    number sum = 0;
    for (place k = 0; k < count; k++) {
        const number part = weight(a, i, first, k) * value(first + k);
        sum = k ? sum + part : part;
    }
    return sum;
}

#define ROOM_OF(k) ((k) >= 3 - DIMS ? ROOM : 1)
#define OUTER (HAS(TT_RESAMPLE_GROWS) ? 0 : 2)
#define INNER (HAS(TT_RESAMPLE_GROWS) ? 2 : 0)

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (i >= p.places) return;
    const place inner = HAS(TT_RESAMPLE_LAST) ? (place)p.inner : 1;
    place rest = (place)i, channel = 0, at[3];
    if (HAS(TT_RESAMPLE_LAST)) {
        const place outer = TT_SPLIT(rest, p.inner, p.by_inner);
        channel = rest - outer * inner;
        rest = outer;
    }
#pragma unroll
    for (int k = 2; k >= 0; k--) {
        const place outer = TT_SPLIT(rest, p.to_size[k], p.by_size[k]);
        at[k] = rest - outer * (place)p.to_size[k];
        rest = outer;
    }
    const taps<ROOM_OF(OUTER)> last = taps_of<ROOM_OF(OUTER)>(p.axes[OUTER], at[OUTER]);
    const taps<ROOM_OF(1)> middle = taps_of<ROOM_OF(1)>(p.axes[1], at[1]);
    const taps<ROOM_OF(INNER)> first = taps_of<ROOM_OF(INNER)>(p.axes[INNER], at[INNER]);
    const bool near = last.count <= ROOM_OF(OUTER) && middle.count <= ROOM_OF(1) && first.count <= ROOM_OF(INNER);
    const place down = (place)p.from_size[1], across = (place)p.from_size[2];
    for (int64_t plane = blockIdx.y; plane < p.planes; plane += gridDim.y) {
        const stored *x = (const stored *)p.from + plane * p.in + channel;
        const auto element = [&](place z, place y, place w) {
            const place row = HAS(TT_RESAMPLE_GROWS) ? (z * down + y) * across + w : (w * down + y) * across + z;
            return TT_CONVERT(TT_D0, TT_D1, x[row * inner]);
        };
        number sum;
        if (near)
            sum = weighted(last, [&](place z) {
                return weighted(middle,
                                [&](place y) { return weighted(first, [&](place w) { return element(z, y, w); }); });
            });
        else
            sum = weighted_far(p.axes[OUTER], at[OUTER], [&](place z) {
                return weighted_far(p.axes[1], at[1], [&](place y) {
                    return weighted_far(p.axes[INNER], at[INNER], [&](place w) { return element(z, y, w); });
                });
            });
        ((stored *)p.to)[plane * p.out + i] = TT_CONVERT(TT_D1, TT_D0, sum);
    }
}
