/* Images sampled at places of a grid, with the operations of tinytorch/ops/grid_sample.py. TT_D0: the dtype of images
 * and grid, TT_D1: that computed in. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/grid_sample_args.h"
#define TT_ARGS tt_sample_args
#define DIMS (TT_VARIANT & 1 ? 3 : 2)
#define MODE (TT_VARIANT >> TT_SAMPLE_MODE & 3)
#define PADDING (TT_VARIANT >> TT_SAMPLE_PADDING & 3)
#define ALIGN ((TT_VARIANT & TT_SAMPLE_ALIGN) != 0)
#define TAPS (MODE == TT_GRID_NEAREST ? 1 : MODE == TT_GRID_BILINEAR ? 2 : 4) /* of each dimension */
#define NEIGHBOURS (DIMS == 3 ? TAPS * TAPS * TAPS : TAPS * TAPS)
#define OF(f, x) TT_JOIN4(tt_, f, _, TT_D1)(x)
typedef TT_TYPE(TT_D0) stored;
typedef TT_TYPE(TT_D1) number;
#if TT_VARIANT & TT_SAMPLE_WIDE
typedef uint64_t sort_key;
#else
typedef uint32_t sort_key;
#endif

/* Along one dimension: which elements (-1: outside), their weights, and the derivatives of these by the grid's
 * number. */
struct axis {
    int64_t at[TAPS];
    number w[TAPS], d[TAPS];
};

/* Within [0, n - 1]. The slope is multiplied by the derivative. */
static TT_DEVICE number limited(number x, number last, number &slope) {
    if (x > 0 && x < last) return x;
    slope = 0;
    return x < 0 ? 0 : x > last ? last : x;
}

/* Mirrored at `low` and `high`. */
static TT_DEVICE number reflected(number x, number low, number high, number &slope) {
    const number span = high - low, from = x - low, away = from < 0 ? -from : from;
    if (span <= 0) {
        slope = 0;
        return x * 0;
    }
    const number rounds = OF(floor, away / span), rest = away - rounds * span;
    const bool even = rounds - 2 * OF(floor, rounds / 2) == 0;
    slope = from == 0 ? 0 : (from < 0) == even ? -slope : slope;
    return even ? rest + low : (span - rest) + low;
}

static TT_DEVICE number padded(number x, number n, number &slope) {
    if (PADDING == TT_GRID_REFLECTION)
        x = ALIGN ? reflected(x, 0, n - 1, slope) : reflected(x, (number)-0.5, n - (number)0.5, slope);
    return PADDING == TT_GRID_ZEROS ? x : limited(x, n - 1, slope);
}

/* Keys' weights (1981) of neighbours nearer than 1, and between 1 and 2. */
static TT_DEVICE number near(number x) { return ((number)1.25 * x - (number)2.25) * x * x + 1; }
static TT_DEVICE number far(number x) { return (((number)-0.75 * x + (number)3.75) * x - 6) * x + 3; }
static TT_DEVICE number near_slope(number x) { return ((number)3.75 * x - (number)4.5) * x; }
static TT_DEVICE number far_slope(number x) { return ((number)-2.25 * x + (number)7.5) * x - 6; }

static TT_DEVICE axis axis_of(number value, int64_t size) {
    const number n = (number)size;
    number slope = ALIGN ? (n - 1) / 2 : n / 2, p = ALIGN ? (value + 1) * ((n - 1) / 2) : ((value + 1) * n - 1) / 2;
    number place[TAPS];
    axis a;
    if (MODE == TT_GRID_NEAREST) {
        place[0] = OF(round, padded(p, n, slope));
        a.w[0] = 1;
        a.d[0] = 0;
    } else if (MODE == TT_GRID_BILINEAR) {
        p = padded(p, n, slope);
        const number whole = OF(floor, p);
        place[0] = whole;
        a.w[0] = whole + 1 - p;
        a.d[0] = -slope;
        place[TAPS - 1] = whole + 1;
        a.w[TAPS - 1] = p - whole;
        a.d[TAPS - 1] = slope;
    } else {
        const number whole = OF(floor, p), t = p - whole;
#pragma unroll
        for (int k = 0; k < TAPS; k++) {
            number ignored = 1;
            const number x = k < 2 ? t + (1 - k) : (k - 1) - t, to = k < 2 ? slope : -slope;
            place[k] = OF(round, padded(whole + (k - 1), n, ignored));
            a.w[k] = k == 1 || k == 2 ? near(x) : far(x);
            a.d[k] = (k == 1 || k == 2 ? near_slope(x) : far_slope(x)) * to;
        }
    }
#pragma unroll
    for (int k = 0; k < TAPS; k++) a.at[k] = place[k] >= 0 && place[k] <= n - 1 ? (int64_t)place[k] : -1;
    return a;
}

/* The dimensions of one place, the first of them first. */
struct neighbours {
    axis a[DIMS];
    TT_DEVICE neighbours(const TT_ARGS &p, int64_t i) {
        const stored *grid = (const stored *)p.grid + i * DIMS;
#pragma unroll
        for (int k = 0; k < DIMS; k++)
            a[k] = axis_of(TT_CONVERT(TT_D0, TT_D1, grid[DIMS - 1 - k]), p.size[3 - DIMS + k]);
    }
    static TT_DEVICE int tap(int neighbour, int k) { /* the last dimension's goes fastest */
        for (int d = DIMS - 1; d > k; d--) neighbour /= TAPS;
        return neighbour % TAPS;
    }
    /* The element in its image, -1 outside. */
    TT_DEVICE int64_t at(const TT_ARGS &p, int neighbour) const {
        int64_t place = 0;
#pragma unroll
        for (int k = 0; k < DIMS; k++) {
            const int64_t x = a[k].at[tap(neighbour, k)];
            place = x < 0 || place < 0 ? -1 : place * p.size[3 - DIMS + k] + x;
        }
        return place;
    }
    TT_DEVICE number weight(int neighbour) const {
        number w = a[0].w[tap(neighbour, 0)];
#pragma unroll
        for (int k = 1; k < DIMS; k++) w = w * a[k].w[tap(neighbour, k)];
        return w;
    }
    /* Its derivative by the number of dimension `by`. */
    TT_DEVICE number slope(int neighbour, int by) const {
        number w = 1;
#pragma unroll
        for (int k = 0; k < DIMS; k++) w = w * (k == by ? a[k].d : a[k].w)[tap(neighbour, k)];
        return w;
    }
};

static TT_DEVICE number element(const stored *x, int64_t at) {
    return at < 0 ? (number)0 : (number)TT_CONVERT(TT_D0, TT_D1, x[at]);
}

#if TT_OP == TT_SAMPLE_SUMS
/* Whoever has an element's first term goes through its terms; g lies as (places, channels), out as (elements,
 * channels). */
static TT_DEVICE void work(const TT_ARGS &p, int64_t i) {
    const sort_key *keys = (const sort_key *)p.keys;
    const int64_t first = i >> p.lanes_log, all = p.batch * p.places;
    if (first >= p.terms) return;
    const sort_key key = keys[first];
    if ((int64_t)key >= p.elements || (first && keys[first - 1] == key)) return;
    const int lanes = 1 << p.lanes_log;
    for (int64_t c = (int64_t)blockIdx.y * lanes + (threadIdx.x & (lanes - 1)); c < p.channels;
         c += (int64_t)gridDim.y * lanes) {
        number sum = 0;
#pragma unroll 4
        for (int64_t k = first; k < p.terms && keys[k] == key; k++) {
            const uint32_t term = p.order[k];
            const stored g = ((const stored *)p.g)[term % all * p.channels + c];
            sum += (number)TT_CONVERT(TT_D0, TT_D1, g) * ((const number *)p.weights)[term];
        }
        ((stored *)p.out)[(int64_t)key * p.channels + c] = (stored)TT_CONVERT(TT_D1, TT_D0, sum);
    }
}
#else
static TT_DEVICE void work(const TT_ARGS &p, int64_t i) {
    const int64_t all = p.batch * p.places, image = i / p.places, place = i - image * p.places;
    if (i >= all) return;
    const int64_t inside = p.elements / p.batch;
    const neighbours near_by(p, i);
#if TT_OP == TT_SAMPLE_TERMS
#pragma unroll
    for (int k = 0; k < NEIGHBOURS; k++) {
        const int64_t at = near_by.at(p, k);
        ((sort_key *)p.keys)[k * all + i] = (sort_key)(at < 0 ? p.elements : image * inside + at);
        ((number *)p.weights)[k * all + i] = near_by.weight(k);
    }
#elif TT_OP == TT_SAMPLE_RESULT
    for (int64_t c = blockIdx.y; c < p.channels; c += gridDim.y) {
        const stored *x = (const stored *)p.input + (image * p.channels + c) * inside;
        number sum = 0;
#pragma unroll
        for (int k = 0; k < NEIGHBOURS; k++) {
            const number term = element(x, near_by.at(p, k)) * near_by.weight(k);
            sum = k ? sum + term : term;
        }
        ((stored *)p.out)[(image * p.channels + c) * p.places + place] = (stored)TT_CONVERT(TT_D1, TT_D0, sum);
    }
#else
    number sums[DIMS];
#pragma unroll
    for (int d = 0; d < DIMS; d++) sums[d] = 0;
    for (int64_t c = 0; c < p.channels; c++) {
        const stored *x = (const stored *)p.input + (image * p.channels + c) * inside;
        const number g = TT_CONVERT(TT_D0, TT_D1, ((const stored *)p.g)[(image * p.channels + c) * p.places + place]);
#pragma unroll
        for (int k = 0; k < NEIGHBOURS; k++) {
            const number v = element(x, near_by.at(p, k)) * g;
#pragma unroll
            for (int d = 0; d < DIMS; d++) sums[d] += v * near_by.slope(k, d);
        }
    }
#pragma unroll
    for (int d = 0; d < DIMS; d++)
        ((stored *)p.out)[i * DIMS + DIMS - 1 - d] = (stored)TT_CONVERT(TT_D1, TT_D0, sums[d]);
#endif
}
#endif

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    work(p, (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x);
}
