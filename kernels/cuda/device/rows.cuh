/* What the kernels over rows share. Sums are taken in the tree of Note [The tree of a reduction]: a block of elements
 * is a warp's, and a warp that has one in registers has lane l's elements in its lane l.
 *
 * A kernel defines TT_ARGS, TT_INPUTS (how many it has in registers), the types `number` that it computes in and
 * `stored_type` of the rows, and then
 *   struct values    what of TT_E elements it keeps in registers
 *   fetch(p, r, v, first)   reads them: those of the row r from `first` on, a lane's being TT_LANES apart
 *   work(p, r, held)        what it does with a row
 * and ends with rows_kernel.cuh. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/rows_args.h"

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
#define TT_P (TT_FORM == TT_ROW_WARP ? 1 << (TT_VARIANT >> TT_ROW_LANES & 7) : 32)   /* lanes of a row */
#define TT_U (TT_FORM == TT_ROW_WARP ? 1 << (TT_VARIANT >> TT_ROW_ROWS & 3) : 1)     /* rows of a thread */

/* Is the row's i-th element there? */
#define TT_INSIDE(r, i) (TT_VARIANT & TT_ROW_WHOLE || (r).whole || (i) < (r).n)

/* The part of a row that a thread has. */
struct row {
    int64_t at;      /* which row */
    int n, start, warp, warps;
    bool whole;      /* a constant: nothing that is asked for lies beyond its end */
};

/* The u-th of a thread's rows. Instead of one beyond the last it is the last, which several then compute alike. */
static TT_DEVICE row row_of(int64_t rows, int n, int u) {
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    row r;
    r.n = n;
    r.whole = false;
#if TT_FORM == TT_ROW_WARP
    r.at = ((int64_t)blockIdx.x * TT_U + u) * (TT_CUDA_THREADS / TT_P) + threadIdx.x / TT_P;
    r.at = r.at < rows ? r.at : rows - 1;
    r.warp = 0;
    r.warps = 1;
    r.start = lane & (TT_P - 1);
#else
    r.at = blockIdx.x;
    r.warp = warp;
    r.warps = blockDim.x / 32;
    r.start = warp * TT_BLOCK + lane;
#endif
    return r;
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

#define TT_CHANGEABLE                                                                                                  \
    (TT_CACHED && sizeof(stored_type) == sizeof(number)) /* may numbers take the place of the row's? */

#if TT_CACHED
/* The row p.x in shared memory, as it is stored and as far from a multiple of 16 bytes. */
static TT_DEVICE stored_type *cache_of(const TT_ARGS &p, const row &r) {
    TT_DYNAMIC_SHARED(shared);
    const int64_t from = (int64_t)((const stored_type *)p.x + r.at * r.n);
    return (stored_type *)((number *)shared + TT_ROW_PARTS(r.n)) + (int)(from & 15) / (int)sizeof(stored_type);
}

/* How it is accessed: `head` elements before the first multiple of 16 bytes, packs of that size, and the rest. */
#define TT_WIDTH (16 / (int)sizeof(stored_type))
typedef tt_pack<stored_type, TT_WIDTH> pack;
typedef tt_pack<unsigned, 4> words; /* a pack that a compiler does not take apart */
struct span {
    int head, packs, edge; /* edge: the element before or behind the packs that is this thread's, if it is in the row */
};

static TT_DEVICE span span_of(const TT_ARGS &p, const row &r) {
    const int thread = threadIdx.x;
    span s;
    s.head = (int)(-(int64_t)((const stored_type *)p.x + r.at * r.n) & 15) / (int)sizeof(stored_type);
    s.packs = (r.n - s.head) / TT_WIDTH;
    s.edge = thread < s.head ? thread : thread < s.head + TT_WIDTH ? s.packs * TT_WIDTH + thread : r.n;
    return s;
}

/* Brings it there, telling f of each element, in any order. The thread block is to wait before it reads. */
template <typename F> static TT_DEVICE void bring_row(const TT_ARGS &p, const row &r, F f) {
    const span s = span_of(p, r);
    const int at_once = 4, threads = blockDim.x;
    const stored_type *const from = (const stored_type *)p.x + r.at * r.n;
    stored_type *const to = cache_of(p, r);
    const auto move = [&](int k, const words &raw) {
        ((words *)(to + s.head))[k] = raw;
        const pack in = *(const pack *)&raw;
#pragma unroll
        for (int i = 0; i < TT_WIDTH; i++) f(in.at[i]);
    };
    const words *const words_from = (const words *)(from + s.head);
    int k = threadIdx.x;
    for (; k + (at_once - 1) * threads < s.packs; k += at_once * threads) {
        words raw[at_once];
#pragma unroll
        for (int u = 0; u < at_once; u++) raw[u] = words_from[k + u * threads];
#pragma unroll
        for (int u = 0; u < at_once; u++) move(k + u * threads, raw[u]);
    }
    for (; k < s.packs; k += threads) move(k, words_from[k]);
    if (s.edge < r.n) f(to[s.edge] = from[s.edge]);
}

/* out's elements are f of those that wait there, those of a pack f(pack): also of what other threads have brought or
 * changed. */
template <typename F> static TT_DEVICE void write_row(const TT_ARGS &p, const row &r, stored_type *out, F f) {
    const span s = span_of(p, r);
    const int threads = blockDim.x;
    const stored_type *const from = cache_of(p, r);
    if ((((int64_t)out ^ (int64_t)from) & 15) == 0) {
        for (int k = threadIdx.x; k < s.packs; k += threads) {
            const words raw = ((const words *)(from + s.head))[k];
            const pack y = f(*(const pack *)&raw);
            ((words *)(out + s.head))[k] = *(const words *)&y;
        }
        if (s.edge < r.n) out[s.edge] = f(from[s.edge]);
    } else
        for (int i = threadIdx.x; i < r.n; i += threads) out[i] = f(from[i]);
}

static TT_DEVICE void keep(const TT_ARGS &p, const row &r, const number (&x)[TT_E], int first) {
    stored_type *const to = cache_of(p, r) + first;
#pragma unroll
    for (int e = 0; e < TT_E; e++)
        if (TT_INSIDE(r, first + e * TT_LANES)) to[e * TT_LANES] = (stored_type)x[e];
}
#endif

/* Of the row p.x. */
static TT_DEVICE void fetch_x(const TT_ARGS &p, const row &r, number (&to)[TT_E], int first) {
    stored_type raw[TT_E];
#if TT_CACHED
    fetch_row(cache_of(p, r), r, raw, to, first);
#else
    fetch_row((const stored_type *)p.x + r.at * r.n, r, raw, to, first);
#endif
}

struct plus {
    template <typename T> TT_DEVICE T operator()(T a, T b) const { return a + b; }
    template <typename T> static TT_DEVICE T none() { return -(T)0; }
};
struct larger { /* of numbers: a NaN is passed over. Of two zeros either: no kernel's result shows which */
    TT_DEVICE float operator()(float a, float b) const { return fmaxf(a, b); }
    TT_DEVICE double operator()(double a, double b) const { return b > a ? b : a; }
    template <typename T> static TT_DEVICE T none() { return -(T)TT_INF_F32; }
};

/* Of a row's lanes; each of them gets it. */
template <typename J, typename T> static TT_DEVICE T over_lanes(J join, T a) {
#pragma unroll
    for (int h = TT_P / 2; h > 0; h /= 2) a = join(a, __shfl_xor_sync(0xffffffffu, a, h));
    return a;
}

/* Every warp's into the row's, for all of its threads, which have waited for each other then. `which`: another for each
 * of a kernel's uses between which nobody waits for all. */
template <int which, typename J, typename T> static TT_DEVICE T over_row(const row &r, J join, T a) {
#if TT_FORM != TT_ROW_WARP
    __shared__ T parts[32];
    const int lane = threadIdx.x & 31;
    if (lane == 0) parts[r.warp] = a;
    __syncthreads();
    a = lane < r.warps ? parts[lane] : J::template none<T>();
#pragma unroll
    for (int h = 1; h < 32; h *= 2) a = join(a, __shfl_xor_sync(0xffffffffu, a, h));
#endif
    return a;
}

#if TT_FORM == TT_ROW_LONG
/* f(r, first) of each of the warp's blocks of elements, of which only a row's last has to ask where it ends. */
template <typename F> static TT_DEVICE void over_own_blocks(const row &r, F f) {
    for (int first = r.start; first - (int)(threadIdx.x & 31) < r.n; first += r.warps * TT_BLOCK) {
        if (first - (int)(threadIdx.x & 31) + TT_BLOCK <= r.n) {
            row within = r;
            within.whole = true;
            f(within, first);
        } else f(r, first);
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

/* A binary tree over what the blocks left. Of up to 128 each warp computes it by itself. */
template <typename J, typename T> static TT_DEVICE T over_blocks(const row &r, J join, T *parts) {
    const int blocks = (r.n + TT_BLOCK - 1) / TT_BLOCK, threads = blockDim.x, first = 4 * (threadIdx.x & 31);
    T all;
    if (blocks <= 4 * TT_LANES) {
        __syncthreads();
        T of[4];
#pragma unroll
        for (int k = 0; k < 4; k++) of[k] = first + k < blocks ? parts[first + k] : J::template none<T>();
        all = join(join(of[0], of[1]), join(of[2], of[3]));
#pragma unroll
        for (int h = 1; h < 32; h *= 2) all = join(all, __shfl_xor_sync(0xffffffffu, all, h));
    } else {
        for (int h = 1; h < blocks; h *= 2) {
            __syncthreads();
            for (int64_t k = (int64_t)threadIdx.x * 2 * h; k + h < blocks; k += (int64_t)threads * 2 * h)
                parts[k] = join(parts[k], parts[k + h]);
        }
        __syncthreads();
        all = parts[0];
    }
    __syncthreads(); /* before the next use */
    return all;
}
#endif

/* f(v, e, i) for a thread's elements: v's e-th, the row's i-th. */
template <typename V, typename F> static TT_DEVICE void over_elements(const TT_ARGS &p, const row &r, V &held, F f) {
#if TT_FORM == TT_ROW_LONG
    over_own_blocks(r, [&](const row &r, int first) {
        V v;
        fetch(p, r, v, first);
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

/* f(v, e, i) of all elements of the row, joined; f also gets zeros beyond the row's end, which takes less than to
 * branch. With `changes` v.x as f leaves it is there from then on, where it can be. */
template <int which, typename T, bool changes = false, typename J, typename V, typename F>
static TT_DEVICE T reduced(const TT_ARGS &p, const row &r, V &held, J join, F f) {
#if TT_FORM == TT_ROW_LONG
    T *const parts = block_parts<T>(p, r);
    over_own_blocks(r, [&](const row &r, int first) {
        V v;
        fetch(p, r, v, first);
        T a = J::template none<T>();
#pragma unroll
        for (int e = 0; e < TT_E; e++) {
            const T value = f(v, e, first + e * TT_LANES);
            if (TT_INSIDE(r, first + e * TT_LANES)) a = join(a, value);
        }
#if TT_CACHED
        if (changes && TT_CHANGEABLE) keep(p, r, v.x, first);
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

/* The largest number of the row, which has not been read so far. */
template <typename V> static TT_DEVICE number top_of(const TT_ARGS &p, const row &r, V &held) {
#if TT_CACHED
    number top = larger::none<number>();
    bring_row(p, r, [&](stored_type x) { top = larger()(top, TT_CONVERT(TT_D0, TT_D1, x)); });
    return over_row<0>(r, larger(), over_lanes(larger(), top));
#else
    return reduced<0, number>(p, r, held, larger(), [](V &v, int e, int) { return v.x[e]; });
#endif
}

/* Brings the row where it is to wait, without a look at it. */
static TT_DEVICE void bring(const TT_ARGS &p, const row &r) {
#if TT_CACHED
    bring_row(p, r, [](stored_type) {});
    __syncthreads();
#endif
}
