/* What the kernels over rows share. Sums are taken in the tree of Note [The tree of a reduction]: a block of elements
 * is a warp's, and a warp that has one in registers has lane l's elements in its lane l.
 *
 * A kernel defines TT_ARGS, the types `number` that it computes in and `stored_type` of the rows, and then
 *   struct values    what of TT_E elements it keeps in registers
 *   fetch(p, r, v, first, again)   reads them: those of the row r from `first` on, a lane's being TT_LANES apart */
#pragma once
#include "cuda/prelude.cuh"
#include "cuda/rows_args.h"

#define TT_LANES 32
#define TT_BLOCK 1024
#define TT_VAST ((TT_VARIANT & TT_ROW_FORM) == TT_ROW_VAST)
#if TT_VAST
#define TT_FORM TT_ROW_LONG
#else
#define TT_FORM (TT_VARIANT & TT_ROW_FORM)
#endif
#define TT_CACHED (TT_FORM == TT_ROW_LONG && !TT_VAST && TT_VARIANT & TT_ROW_CACHED)
#define TT_E (TT_FORM == TT_ROW_WARP ? 1 << (TT_VARIANT >> TT_ROW_EACH & 7) : 32)

/* Of a kernel that has so many inputs in registers: half as many threads where there are two. */
#define TT_ROW_THREADS(inputs) \
    (TT_FORM == TT_ROW_WARP ? TT_CUDA_THREADS : (inputs) > 1 ? 512 : 1024)

/* Is the row's i-th element there? */
#define TT_INSIDE(r, i) (TT_VARIANT & TT_ROW_WHOLE || (r).whole || (i) < (r).n)

/* The part of a row that a thread has. */
struct row {
    int64_t at;      /* which row */
    int n, start, warp, warps;
    bool whole;      /* a constant: nothing that is asked for lies beyond its end */
};

/* False for a warp that has no row. */
static TT_DEVICE bool find_row(row &r, int64_t rows, int n) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    r.n = n;
    r.warp = TT_FORM == TT_ROW_WARP ? 0 : warp;
    r.warps = TT_FORM == TT_ROW_WARP ? 1 : blockDim.x / 32;
    r.at = TT_FORM == TT_ROW_WARP ? (int64_t)blockIdx.x * (TT_CUDA_THREADS / 32) + warp : blockIdx.x;
    r.start = r.warp * TT_BLOCK + lane;
    r.whole = false;
    return r.at < rows;
}

/* TT_E elements of a row of memory, converted: those from `first` on, all loads before the first use. */
static TT_DEVICE void fetch_row(const stored_type *from, const row &r, stored_type (&raw)[TT_E], number (&to)[TT_E],
                                int first) {
#pragma unroll
    for (int e = 0; e < TT_E; e++)
        raw[e] = TT_INSIDE(r, first + e * TT_LANES) ? from[first + e * TT_LANES] : (stored_type)0;
#pragma unroll
    for (int e = 0; e < TT_E; e++) to[e] = TT_CONVERT(TT_D0, TT_D1, raw[e]);
}

#if TT_CACHED
static TT_DEVICE number *cache_of(const row &r) { /* a thread reads there what it has written itself */
    TT_DYNAMIC_SHARED(shared);
    return (number *)shared + TT_ROW_PARTS(r.n);
}

static TT_DEVICE void keep(const row &r, const number (&x)[TT_E], int first) {
    number *const to = cache_of(r) + first;
#pragma unroll
    for (int e = 0; e < TT_E; e++)
        if (TT_INSIDE(r, first + e * TT_LANES)) to[e * TT_LANES] = x[e];
}
#endif

/* Of the row p.x, or what has been kept of it. */
static TT_DEVICE void fetch_x(const TT_ARGS &p, const row &r, number (&to)[TT_E], int first, bool again) {
#if TT_CACHED
    if (again) {
        const number *const from = cache_of(r) + first;
#pragma unroll
        for (int e = 0; e < TT_E; e++) to[e] = TT_INSIDE(r, first + e * TT_LANES) ? from[e * TT_LANES] : (number)0;
        return;
    }
#endif
    stored_type raw[TT_E];
    fetch_row((const stored_type *)p.x + r.at * r.n, r, raw, to, first);
#if TT_CACHED
    keep(r, to, first);
#endif
}

/* A kernel's beginning: its row, and what it has of it in registers. False for a warp that has no row. The kernel says how
 * its values are fetched. */
template <typename V> static TT_DEVICE bool begin_row(const TT_ARGS &p, row &r, V &held) {
    if (!find_row(r, p.rows, p.n)) return false;
#if TT_FORM != TT_ROW_LONG
    fetch(p, r, held, r.start, false);
#endif
    return true;
}

struct plus {
    template <typename T> TT_DEVICE T operator()(T a, T b) const { return a + b; }
    template <typename T> static TT_DEVICE T none() { return -(T)0; }
};
struct larger { /* of numbers: a NaN is passed over */
    template <typename T> TT_DEVICE T operator()(T a, T b) const { return b > a ? b : a; }
    template <typename T> static TT_DEVICE T none() { return -(T)TT_INF_F32; }
};

template <typename J, typename T> static TT_DEVICE T over_lanes(J join, T a) {
#pragma unroll
    for (int h = 16; h > 0; h /= 2) a = join(a, __shfl_down_sync(0xffffffffu, a, h));
    return a;
}

/* Every warp's (or, in long rows, every block's) into the row's, for all of its threads. `which`: another for each of a
 * kernel's uses between which nobody waits for all. */
template <int which, typename J, typename T> static TT_DEVICE T over_row(const row &r, J join, T a) {
#if TT_FORM == TT_ROW_WARP
    return __shfl_sync(0xffffffffu, a, 0);
#elif TT_FORM == TT_ROW_HELD
    __shared__ T parts[32];
    const int lane = threadIdx.x & 31;
    if (lane == 0) parts[r.warp] = a;
    __syncthreads();
    a = lane < r.warps ? parts[lane] : J::template none<T>();
#pragma unroll
    for (int h = 1; h < 32; h *= 2) a = join(a, __shfl_down_sync(0xffffffffu, a, h));
    return __shfl_sync(0xffffffffu, a, 0);
#else
    return a;
#endif
}

#if TT_FORM == TT_ROW_LONG
/* f(r, first) of each of the warp's blocks of elements, of which only a row's last has to ask where it ends. */
template <typename F> static TT_DEVICE void over_own_blocks(const row &r, F f) {
    for (int first = r.start; first - (int)(threadIdx.x & 31) < r.n; first += r.warps * TT_BLOCK) {
        if (first - (int)(threadIdx.x & 31) + TT_BLOCK <= r.n) {
            row within = r;
            within.whole = true;
            f(within, first);
        } else
            f(r, first);
    }
}

/* A place for what each block of elements gives. */
template <typename T> static TT_DEVICE T *block_parts(const TT_ARGS &p, const row &r) {
#if TT_VAST
    return (T *)(p.parts + 8 * r.at * ((r.n + TT_BLOCK - 1) / TT_BLOCK));
#else
    TT_DYNAMIC_SHARED(shared);
    return (T *)shared;
#endif
}

/* A binary tree over what the blocks left. */
template <typename J, typename T> static TT_DEVICE T over_blocks(const row &r, J join, T *parts) {
    const int blocks = (r.n + TT_BLOCK - 1) / TT_BLOCK, threads = blockDim.x;
    for (int h = 1; h < blocks; h *= 2) {
        __syncthreads();
        for (int64_t k = (int64_t)threadIdx.x * 2 * h; k + h < blocks; k += (int64_t)threads * 2 * h)
            parts[k] = join(parts[k], parts[k + h]);
    }
    __syncthreads();
    const T all = parts[0];
    __syncthreads(); /* before the next use */
    return all;
}
#endif

/* f(v, e, i) for a thread's elements: v's e-th, the row's i-th. */
template <typename V, typename F> static TT_DEVICE void over_elements(const TT_ARGS &p, const row &r, V &held, F f) {
#if TT_FORM == TT_ROW_LONG
    over_own_blocks(r, [&](const row &r, int first) {
        V v;
        fetch(p, r, v, first, true);
#pragma unroll
        for (int e = 0; e < TT_E; e++)
            if (TT_INSIDE(r, first + e * TT_LANES)) f(v, e, first + e * TT_LANES);
    });
#else
#pragma unroll
    for (int e = 0; e < TT_E; e++)
        if (TT_INSIDE(r, r.start + e * TT_LANES)) f(held, e, r.start + e * TT_LANES);
#endif
}

/* f(v, e, i) of all elements of the row, joined; f also gets zeros beyond the row's end, which takes less than to branch.
 * `again`: has the row been read before? With `changes` v.x as f leaves it is there from then on, where it can be. */
template <int which, typename T, bool changes = false, typename J, typename V, typename F>
static TT_DEVICE T reduced(const TT_ARGS &p, const row &r, V &held, bool again, J join, F f) {
#if TT_FORM == TT_ROW_LONG
    T *const parts = block_parts<T>(p, r);
    over_own_blocks(r, [&](const row &r, int first) {
        V v;
        fetch(p, r, v, first, again);
        T a = J::template none<T>();
#pragma unroll
        for (int e = 0; e < TT_E; e++) {
            const T value = f(v, e, first + e * TT_LANES);
            if (TT_INSIDE(r, first + e * TT_LANES)) a = join(a, value);
        }
#if TT_CACHED
        if (changes) keep(r, v.x, first);
#endif
        a = over_lanes(join, a);
        if ((threadIdx.x & 31) == 0) parts[first / TT_BLOCK] = a;
    });
    return over_blocks(r, join, parts);
#else
    T a = J::template none<T>();
#pragma unroll
    for (int e = 0; e < TT_E; e++) {
        const T value = f(held, e, r.start + e * TT_LANES);
        if (TT_INSIDE(r, r.start + e * TT_LANES)) a = join(a, value);
    }
    return over_row<which>(r, join, over_lanes(join, a));
#endif
}
