/* Pooling, with the sums and choices of kernels/cpu/simd/windows_loops.h, in their order. A derivative is gathered: a
 * thread goes through the windows that its element is in. TT_D0: the dtype of elements, TT_D1: that computed in. */
#pragma once
#include "cuda/device/windows.cuh"
#define TT_ARGS tt_pool_args
#define HAS(bit) ((TT_VARIANT & (bit)) != 0)
#define MAXIMA (TT_OP % 2 == 0)
#define BACKWARD (TT_OP >= 2)
#define TAPS (TT_VARIANT >> TT_POOL_TAPS)
#define V (1 << (TT_VARIANT >> TT_POOL_VECTOR & 3))
#define IS_NONE(k) ((k) < 3 - (TT_VARIANT >> TT_POOL_DIMS & 3)) /* an axis of one element */

#if TT_IS(TT_D1, i64)
#define LOWEST INT64_MIN
#else
#define LOWEST ((number) - __builtin_inff())
#endif

/* `taps` places from `start` on, which may lie outside of the input */
struct window {
    place start, taps;
};

static TT_DEVICE window window_of(const TT_ARGS &p, int k, place i, int64_t plane) {
    const tt_window_axis &a = p.axes[k];
    if (IS_NONE(k)) return {0, 1};
    if (HAS(TT_POOL_ADAPTIVE)) {
        const place in = (place)a.in, out = (place)a.out, first = TT_SPLIT(i * in, out, p.by_step[k]);
        return {first, TT_SPLIT((i + 1) * in + out - 1, out, p.by_step[k]) - first};
    }
    if (HAS(TT_POOL_STARTS) && k >= p.first_axis) {
        int64_t all = 0, before = 0;
        for (int axis = p.first_axis; axis < 3; axis++) {
            all += p.axes[axis].out;
            if (axis < k) before += p.axes[axis].out;
        }
        return {(place)p.starts[plane * all + before + i], (place)a.taps};
    }
    return {i * (place)a.stride - (place)a.padding, TAPS ? (k ? TAPS : 1) : (place)a.taps};
}

/* Of the windows of an axis, first to last, which element `at` may be in; all windows that it is in are among them. */
struct range {
    place first, last;
};

static TT_DEVICE range windows_with(const TT_ARGS &p, int k, place at) {
    const tt_window_axis &a = p.axes[k];
    if (IS_NONE(k)) return {0, 0};
    const place in = (place)a.in, out = (place)a.out;
    if (HAS(TT_POOL_ADAPTIVE))
        return {TT_SPLIT(at * out, in, p.by_size[k]), TT_SPLIT((at + 1) * out + in - 1, in, p.by_size[k]) - 1};
    if (HAS(TT_POOL_STARTS)) return {0, out - 1};
    const place stride = (place)a.stride, reach = (TAPS ? (k ? TAPS : 1) - 1 : (place)a.taps - 1) * (place)a.step;
    const place x = at + (place)a.padding, last = TT_SPLIT(x, stride, p.by_step[k]);
    return {x > reach ? TT_SPLIT(x - reach + stride - 1, stride, p.by_step[k]) : 0, last < out ? last : out - 1};
}

static TT_DEVICE place span(const TT_ARGS &p, int k, window w) {
    if (HAS(TT_POOL_ADAPTIVE) || IS_NONE(k)) return w.taps;
    const place end = w.start + w.taps, in = (place)p.axes[k].in, reach = in + (place)p.axes[k].padding;
    if (p.padding) return (end < reach ? end : reach) - w.start;
    return (end < in ? end : in) - (w.start > 0 ? w.start : 0);
}

static TT_DEVICE number share(const TT_ARGS &p, window a, window b, window c) {
    if (p.divisor) return (number)p.divisor;
    return (number)((int64_t)span(p, 0, a) * span(p, 1, b) * span(p, 2, c));
}

/* The coordinates of a thread's element, and where its plane begins. */
struct element {
    int64_t plane;
    place at[3], channel;
};

static TT_DEVICE element element_of(const TT_ARGS &p, int64_t i) {
    element e;
    place rest = (place)i;
    e.channel = 0;
    if (HAS(TT_POOL_LAST)) {
        const place outer = TT_SPLIT(rest, p.inner, p.by_inner);
        e.channel = rest - outer * (place)p.inner;
        rest = outer;
    }
#pragma unroll
    for (int k = 2; k >= 0; k--) {
        e.at[k] = 0;
        if (IS_NONE(k)) continue;
        const place size = (place)(BACKWARD ? p.axes[k].in : p.axes[k].out), outer = TT_SPLIT(rest, size, p.by_size[k]);
        e.at[k] = rest - outer * size;
        rest = outer;
    }
    e.plane = rest;
    return e;
}

/* V channels of one place. */
typedef tt_pack<stored, V> pack;
typedef tt_pack<int64_t, V> pack_of_places;

#if !BACKWARD
static TT_DEVICE void work(const TT_ARGS &p, int64_t i, const element &e) {
    const stored *x = (const stored *)p.from + e.plane * p.in + e.channel;
    const place inner = HAS(TT_POOL_LAST) ? (place)p.inner : 1;
    const window w[3] = {window_of(p, 0, e.at[0], e.plane), window_of(p, 1, e.at[1], e.plane),
                         window_of(p, 2, e.at[2], e.plane)};
    number best[V];
    place found[V];
#pragma unroll
    for (int v = 0; v < V; v++) {
        best[v] = MAXIMA ? LOWEST : 0;
        found[v] = -1;
    }
    for (place d = 0; d < w[0].taps; d++) {
        const place z = IS_NONE(0) ? 0 : w[0].start + d * (place)p.axes[0].step;
        if (!IS_NONE(0) && (z < 0 || z >= (place)p.axes[0].in)) continue;
#pragma unroll
        for (place h = 0; h < w[1].taps; h++) {
            const place y = IS_NONE(1) ? 0 : w[1].start + h * (place)p.axes[1].step;
            if (!IS_NONE(1) && (y < 0 || y >= (place)p.axes[1].in)) continue;
            const place row = (z * (place)p.axes[1].in + y) * (place)p.axes[2].in;
#pragma unroll
            for (place k = 0; k < w[2].taps; k++) {
                const place column = w[2].start + k * (place)p.axes[2].step;
                if (column < 0 || column >= (place)p.axes[2].in) continue;
                const pack at = *(const pack *)(x + (row + column) * inner);
#pragma unroll
                for (int v = 0; v < V; v++) {
                    const number value = TT_CONVERT(TT_D0, TT_D1, at.at[v]);
                    if (!MAXIMA) best[v] += value;
                    else if (value > best[v] || value != value || found[v] < 0) {
                        best[v] = value;
                        found[v] = row + column;
                    }
                }
            }
        }
    }
    if (!MAXIMA) {
        const number by = share(p, w[0], w[1], w[2]);
#pragma unroll
        for (int v = 0; v < V; v++) best[v] = best[v] / by;
    } else if (HAS(TT_POOL_PLACES)) {
        pack_of_places places;
#pragma unroll
        for (int v = 0; v < V; v++) places.at[v] = found[v];
        if (found[0] < 0) { /* a window of padding alone */
            tt_window none[3];
#pragma unroll
            for (int k = 0; k < 3; k++) none[k] = tt_window_from(&p.axes[k], w[k].start);
#pragma unroll
            for (int v = 0; v < V; v++)
                places.at[v] = (none[0].first * p.axes[1].in + none[1].first) * p.axes[2].in + none[2].first;
        }
        *(pack_of_places *)(p.places + i) = places;
    }
    pack to;
#pragma unroll
    for (int v = 0; v < V; v++) to.at[v] = (stored)TT_CONVERT(TT_D1, TT_D0, best[v]);
    *(pack *)((stored *)p.to + i) = to;
}
#else
static TT_DEVICE void work(const TT_ARGS &p, int64_t i, const element &e) {
    const int64_t base = e.plane * p.out + e.channel;
    const stored *g = (const stored *)p.from + base;
    const int64_t *places = p.places + base;
    const place inner = HAS(TT_POOL_LAST) ? (place)p.inner : 1;
    const place here = (e.at[0] * (place)p.axes[1].in + e.at[1]) * (place)p.axes[2].in + e.at[2];
    const range r[3] = {windows_with(p, 0, e.at[0]), windows_with(p, 1, e.at[1]), windows_with(p, 2, e.at[2])};
    number sum[V];
#pragma unroll
    for (int v = 0; v < V; v++) sum[v] = 0;
    for (place d = r[0].first; d <= r[0].last; d++)
        for (place h = r[1].first; h <= r[1].last; h++)
            for (place k = r[2].first; k <= r[2].last; k++) {
                const place at = ((d * (place)p.axes[1].out + h) * (place)p.axes[2].out + k) * inner;
                const pack part = *(const pack *)(g + at);
                if (!MAXIMA) {
                    const number by =
                        share(p, window_of(p, 0, d, e.plane), window_of(p, 1, h, e.plane), window_of(p, 2, k, e.plane));
#pragma unroll
                    for (int v = 0; v < V; v++) sum[v] += TT_CONVERT(TT_D0, TT_D1, part.at[v]) / by;
                } else {
                    const pack_of_places from = *(const pack_of_places *)(places + at);
#pragma unroll
                    for (int v = 0; v < V; v++)
                        if (from.at[v] == here) sum[v] += TT_CONVERT(TT_D0, TT_D1, part.at[v]);
                }
            }
    pack to;
#pragma unroll
    for (int v = 0; v < V; v++) to.at[v] = (stored)TT_CONVERT(TT_D1, TT_D0, sum[v]);
    *(pack *)((stored *)p.to + i) = to;
}
#endif

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = ((int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x) * V;
    if (i < p.numel) work(p, i, element_of(p, i));
}
