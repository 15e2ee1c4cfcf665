/* The parts of the tree of a reduction, for the kernels that build it: Note [The tree of a reduction] in
 * backend/reduction.h. TT_NAME: the reducer; TT_D0: the elements as stored, TT_D1: as read, TT_D2: accumulators, TT_D3:
 * results; of the variant only what reduce_args.h says of TT_RED_INDEXED and TT_RED_THEN. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/reduce_args.h"
#include "scalar/reducers.h"

#define TT_THEN (TT_VARIANT >> TT_RED_THEN & 7)
#define TT_INDEXED (TT_VARIANT & TT_RED_INDEXED)
#define TT_BLOCK 1024
#define TT_LANES 32

typedef TT_TYPE(TT_D0) stored_type;
typedef TT_TYPE(TT_D1) value_type;
typedef TT_TYPE(TT_D2) acc_type;
typedef TT_TYPE(TT_D3) result_type;

#include "cuda/device/accumulator.cuh" /* with TT_RED_INDEXED of the first place of its value */

static TT_DEVICE accumulator nothing() { return accumulated((acc_type)TT_JOIN2(TT_NONE_, TT_NAME)(TT_D1), INT64_MAX); }

/* Of accumulators, and of those that count places within a warp's elements. */
template <typename A> static TT_DEVICE A join(const A &a, const A &b) {
    A r;
    r.value = (acc_type)TT_JOIN2(TT_JOIN_, TT_NAME)(TT_D1, a.value, b.value);
#if TT_INDEXED
    const bool same = a.value == b.value || (a.value != a.value && b.value != b.value);
    r.at = same ? (a.at < b.at ? a.at : b.at) : a.value != a.value || a.value == r.value ? a.at : b.at;
#endif
    return r;
}

static TT_DEVICE acc_type contributed(stored_type x, acc_type param) {
    const value_type v = (value_type)TT_CONVERT(TT_D0, TT_D1, x);
    return (acc_type)TT_JOIN2(TT_MAP_, TT_NAME)(TT_D1, v, param);
}

/* Of a lane while its elements come in their order: instead of the place the number of elements before it in the
 * lane. */
struct near {
    acc_type value;
#if TT_INDEXED
    int at;
#endif
};

static TT_DEVICE near nothing_near() {
    near r;
    r.value = nothing().value;
#if TT_INDEXED
    r.at = 0;
#endif
    return r;
}

/* ... and the next element. */
static TT_DEVICE near with(const near &a, acc_type x, int at) {
    near r;
    r.value = (acc_type)TT_JOIN2(TT_JOIN_, TT_NAME)(TT_D1, a.value, x);
#if TT_INDEXED
    r.at = r.value != a.value && a.value == a.value ? at : a.at;
#endif
    return r;
}

/* With its place: that of the lane's first element, TT_LANES to the next. Was there any? */
static TT_DEVICE accumulator placed(const near &a, int64_t first, bool any) {
#if TT_INDEXED
    return accumulated(a.value, any ? first + (int64_t)a.at * TT_LANES : INT64_MAX);
#else
    return accumulated(a.value, 0);
#endif
}

template <typename A> static TT_DEVICE A lane_below(const A &a, int by) {
    A r;
    r.value = (acc_type)__shfl_down_sync(0xffffffffu, a.value, by);
#if TT_INDEXED
    r.at = __shfl_down_sync(0xffffffffu, a.at, by);
#endif
    return r;
}

#if TT_IS(TT_D2, f32) || TT_IS(TT_D2, f64)
#define TT_OF(f, x) TT_JOIN4(tt_, f, _, TT_D2)(x)
static TT_DEVICE acc_type finish(acc_type a, double by, acc_type param) {
    if (TT_THEN == TT_RED_DIVIDE || TT_THEN == TT_RED_DIVIDE_ROOT) a = a / (acc_type)by;
    if (TT_THEN == TT_RED_ROOT || TT_THEN == TT_RED_DIVIDE_ROOT) a = TT_OF(sqrt, a);
    if (TT_THEN == TT_RED_FINITE) a = a - a == 0 || a != a ? a : acc_type();
    if (TT_THEN == TT_RED_LOG_ADD) a = TT_OF(log, a) + param;
    return a;
}
#elif TT_IS_COMPLEX(TT_D2)
static TT_DEVICE acc_type finish(acc_type a, double by, acc_type) {
    if (TT_THEN == TT_RED_DIVIDE) a.re /= (decltype(a.re))by, a.im /= (decltype(a.re))by;
    return a;
}
#else
static TT_DEVICE acc_type finish(acc_type a, double, acc_type) { return a; }
#endif

/* The binary tree over fewer than 4096 successive results of a thread: at[k], of 1 << k of them, waits for as many to
 * its right. */
struct levels {
    accumulator at[12];
    uint32_t n;
    TT_DEVICE void add(accumulator a) {
#pragma unroll
        for (int k = 0; k < 12; k++) {
            if (!(n >> k & 1)) {
                at[k] = a;
                break;
            }
            a = join(at[k], a);
        }
        n++;
    }
    TT_DEVICE accumulator all() const {
        accumulator a = nothing();
#pragma unroll
        for (int k = 0; k < 12; k++)
            if (n >> k & 1) a = join(at[k], a);
        return a;
    }
};

#define TT_PARTS TT_RED_PARTS /* that a thread joins at a time */

/* Of the parts that lie `step` apart from `from` on, TT_PARTS successive ones from `begin` on, as far as `end`. */
static TT_DEVICE accumulator joined_few(const char *parts, const int64_t *index, int64_t from, int64_t step,
                                        int64_t begin, int64_t end) {
    accumulator a[TT_PARTS];
#pragma unroll
    for (int k = 0; k < TT_PARTS; k++)
        a[k] = begin + k < end ? loaded_anew(parts, index, from + (begin + k) * step) : nothing();
#pragma unroll
    for (int h = 1; h < TT_PARTS; h *= 2)
#pragma unroll
        for (int k = 0; k < TT_PARTS; k += 2 * h) a[k] = join(a[k], a[k + h]);
    return a[0];
}

/* ... `per` of them, a power of 2, as far as `end`: those of a thread. All lanes go through the loop as often, whatever
 * their ends are: where some left it before the others, ptxas (of CUDA 13.0, for sm_90) had them not wait for these,
 * and the warp met the next barrier twice. */
static TT_DEVICE accumulator joined_parts(const char *parts, const int64_t *index, int64_t from, int64_t step,
                                          int64_t begin, int64_t per, int64_t end) {
    const int64_t last = begin + per < end ? begin + per : end;
    levels tree;
    tree.n = 0;
    for (int64_t i = 0; i < per; i += TT_PARTS) tree.add(joined_few(parts, index, from, step, begin + i, last));
    return tree.all();
}

/* The tree over the threads of a block, of which those of a column are `columns` apart: the first of them gets it.
 * Within a warp it needs no memory. */
template <int columns, int threads> static TT_DEVICE accumulator joined_threads(accumulator a) {
    __shared__ accumulator shared[threads];
#pragma unroll
    for (int h = columns; h < 32; h *= 2) a = join(a, lane_below(a, h));
    shared[threadIdx.x] = a;
#pragma unroll
    for (int h = columns < 32 ? 32 : columns; h < threads; h *= 2) {
        __syncthreads();
        if (threadIdx.x % (2 * h) < columns) shared[threadIdx.x] = join(shared[threadIdx.x], shared[threadIdx.x + h]);
    }
    return shared[threadIdx.x];
}

/* The tree over `n` successive accumulators of a warp's lanes, from each n-th lane on: that gets it. */
template <int n> static TT_DEVICE accumulator joined_neighbours(accumulator a) {
#pragma unroll
    for (int h = 1; h < n; h *= 2) a = join(a, lane_below(a, h));
    return a;
}

/* The tree over `count` successive parts, at most TT_PARTS for each thread of the block: thread 0 gets it. Not inlined,
 * or the rest of the kernel would have more registers. */
static __device__ __noinline__ accumulator joined_by_block(const char *parts, const int64_t *index, int64_t from,
                                                           int count) {
    constexpr int warps = TT_CUDA_THREADS / 32;
    __shared__ accumulator shared[TT_PARTS * warps];
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31;
    accumulator a[TT_PARTS];
#pragma unroll
    for (int k = 0; k < TT_PARTS; k++) {
        const int i = k * TT_CUDA_THREADS + threadIdx.x;
        a[k] = i < count ? loaded_anew(parts, index, from + i) : nothing();
    }
#pragma unroll
    for (int k = 0; k < TT_PARTS; k++) {
        if (k * TT_CUDA_THREADS < count) a[k] = joined_neighbours<32>(a[k]);
        if (lane == 0) shared[k * warps + warp] = a[k];
    }
    __syncthreads();
    if (warp) return a[0];
    return join(joined_neighbours<32>(shared[lane]), joined_neighbours<32>(shared[32 + lane]));
}
