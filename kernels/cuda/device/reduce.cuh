/* Reductions: Note [The tree of a reduction] in backend/reduction.h, the variants in reduce_args.h.
 *
 * A block of TT_BLOCK elements is the work of a warp, a lane of the tree is a lane of it (INNER). Where results lie
 * next to each other in memory, and not the elements of one, the tree's lanes are shared out among threads whose
 * neighbours work on neighbouring results (OUTER). What the blocks gave is joined within the thread block as far as it
 * has them, and beyond that by the last thread block (Note [The last thread block] in last_block.c) or a second kernel
 * (JOIN). */
#pragma once
#include "cuda/device/last_block.cuh"
#include "cuda/device/tree.cuh"

#define TT_ARGS tt_reduce_args
#define TT_FORM (TT_VARIANT & 3)
#define TT_RUN_LAYOUT (TT_VARIANT >> 2 & 3)
#define TT_WARPS (TT_CUDA_THREADS / 32)
#define TT_LAST (TT_VARIANT & TT_RED_LAST)

/* The i-th element's place. */
static TT_DEVICE int64_t place(const tt_reduce_dims &d, int64_t i) {
    int64_t at = 0;
    if (d.n <= 1) return i * d.step[0];
    if (d.narrow) {
        uint32_t rest = (uint32_t)i;
        for (int k = 0; k < d.n - 1; k++) {
            const uint32_t up = tt_quotient(rest, d.by[k]);
            at += (int64_t)(rest - up * d.by[k].size) * d.step[k];
            rest = up;
        }
        return at + (int64_t)rest * d.step[d.n - 1];
    }
    for (int k = 0; k < d.n - 1; k++) {
        at += i % d.size[k] * d.step[k];
        i /= d.size[k];
    }
    return at + i * d.step[d.n - 1];
}

static TT_DEVICE stored_type element(const TT_ARGS &p, const char *base, int64_t i) {
    if (TT_RUN_LAYOUT == TT_RED_FLAT) return ((const stored_type *)base)[i];
    if (TT_RUN_LAYOUT == TT_RED_STEP) return *(const stored_type *)(base + i * p.run.step[0]);
    return *(const stored_type *)(base + place(p.run, i));
}

/* The thread block's number. With a parameter the elements were read before, and those that were read last may still be
 * in the cache: it counts backwards. */
static TT_DEVICE uint32_t turn(const TT_ARGS &p) { return p.param ? gridDim.x - 1 - blockIdx.x : blockIdx.x; }

static TT_DEVICE void put(const TT_ARGS &p, int64_t which, const accumulator &a) {
    const acc_type param = p.param ? ((const acc_type *)p.param)[which] : acc_type();
    if (p.out) ((result_type *)p.out)[which] = (result_type)TT_CONVERT(TT_D2, TT_D3, finish(a.value, p.by, param));
#if TT_INDEXED
    p.index[which] = a.at;
#endif
}

/* A thread block's columns, the first of them `first`: each thread joins 1 << log_per successive parts of one, then the
 * threads' are joined. */
template <int columns, int threads> static TT_DEVICE void put_columns(const TT_ARGS &p, int64_t outer, int64_t first) {
    const int slot = threadIdx.x / columns;
    const int64_t column = first + threadIdx.x % columns, begin = (int64_t)slot << p.log_per;
    const int64_t per = 1 << p.log_per, end = column < p.inner ? p.count : 0;
    const int64_t last = begin + per < end ? begin + per : end, from = outer * p.count * p.inner + column;
    accumulator a = TT_LAST ? joined_few(p.parts, p.part_index, from, p.inner, begin, last)
                            : joined_parts(p.parts, p.part_index, from, p.inner, begin, per, end);
    a = joined_threads<columns, threads>(a);
    if (slot == 0 && column < p.inner) put(p, outer * p.inner + column, a);
}

#if TT_FORM == TT_RED_INNER
#define TT_LOG_LANES (TT_VARIANT >> TT_RED_OWN & 7)
#define TT_LOG_EACH (TT_VARIANT >> (TT_RED_OWN + 3) & 7)
#define TT_P (1 << TT_LOG_LANES) /* lanes of a result */
#define TT_E (1 << TT_LOG_EACH) /* elements of a lane */
#define TT_U (TT_E < 8 ? 8 / TT_E : 1) /* results that a warp has in flight, by its 32 / TT_P at a time */
#define TT_MOST (sizeof(stored_type) > 4 ? 16 : 32) /* loads in flight: 16 floats left the memory idle at times */
#define TT_BATCH (TT_E < TT_MOST ? TT_E : TT_MOST)
#define TT_LOG_WIDE (TT_VARIANT >> (TT_RED_OWN + 6) & 7)

static TT_DEVICE accumulator joined_lanes(accumulator a) {
#pragma unroll
    for (int h = TT_P / 2; h > 0; h /= 2) a = join(a, lane_below(a, h));
    return a;
}

#if TT_U > 1
extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int lane = threadIdx.x & (TT_P - 1);
    const int64_t first = (int64_t)blockIdx.x * (TT_CUDA_THREADS / TT_P * TT_U) +
                          threadIdx.x / 32 * (32 / TT_P * TT_U) + (threadIdx.x & 31) / TT_P;
    stored_type x[TT_U][TT_E];
#pragma unroll
    for (int u = 0; u < TT_U; u++) {
        const int64_t which = first + u * (32 / TT_P);
        const char *base = p.in + (which < p.kept ? place(p.outer, which) : 0);
#pragma unroll
        for (int e = 0; e < TT_E; e++)
            if (which < p.kept && e * TT_P + lane < p.reduced) x[u][e] = element(p, base, e * TT_P + lane);
    }
#pragma unroll
    for (int u = 0; u < TT_U; u++) {
        const int64_t which = first + u * (32 / TT_P);
        const acc_type param = p.param && which < p.kept ? ((const acc_type *)p.param)[which] : acc_type();
        accumulator a = nothing();
#pragma unroll
        for (int e = 0; e < TT_E; e++)
            if (which < p.kept && e * TT_P + lane < p.reduced)
                a = join(a, accumulated(contributed(x[u][e], param), e * TT_P + lane));
        a = joined_lanes(a);
        if (lane == 0 && which < p.kept) put(p, which, a);
    }
}
#else
#if TT_LOG_WIDE
#include "cuda/device/wide.cuh"
#else
#define TT_RESIDENT 1
template <bool whole>
static TT_DEVICE accumulator block_of(const TT_ARGS &p, const char *base, int64_t first, int n, acc_type param) {
    const int lane = threadIdx.x & 31;
    near a = nothing_near();
#pragma unroll
    for (int b = 0; b < TT_E; b += TT_BATCH) {
        stored_type x[TT_BATCH];
#pragma unroll
        for (int e = 0; e < TT_BATCH; e++)
            if (whole || (b + e) * 32 + lane < n) x[e] = element(p, base, first + (b + e) * 32 + lane);
#pragma unroll
        for (int e = 0; e < TT_BATCH; e++)
            if (whole || (b + e) * 32 + lane < n) a = with(a, contributed(x[e], param), b + e);
    }
    return joined_lanes(placed(a, first + lane, whole || lane < n));
}

/* The warp's blocks from `begin` on. */
static TT_DEVICE accumulator warp_blocks(const TT_ARGS &p, const char *base, int64_t begin, acc_type param) {
    accumulator a = nothing();
    levels tree;
    tree.n = 0;
    for (int64_t b = begin; b < p.blocks && b < begin + (1 << p.log_per); b++) {
        const int64_t first = b * TT_BLOCK, left = p.reduced - first;
        a = left >= TT_E * 32 ? block_of<true>(p, base, first, TT_E * 32, param)
                              : block_of<false>(p, base, first, (int)left, param);
        if (p.log_per) tree.add(a);
    }
    return p.log_per ? tree.all() : a;
}
#endif

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS, TT_RESIDENT)
    tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ accumulator shared[TT_WARPS];
    const int warp = threadIdx.x / 32, lane = threadIdx.x & 31, sharing = 1 << p.log_warps, own = warp & (sharing - 1);
    const uint32_t at = turn(p), results = at / (uint32_t)p.count;
    const uint32_t group = at - results * (uint32_t)p.count;
    int64_t which = ((int64_t)results << (3 - p.log_warps)) + (warp >> p.log_warps);
    const int64_t begin = ((int64_t)group << p.log_warps | own) << p.log_per;
    accumulator a = nothing();
    if (which < p.kept && begin < p.blocks) { /* all of a warp, or none */
        const char *base = p.in + place(p.outer, which);
        a = warp_blocks(p, base, begin, p.param ? ((const acc_type *)p.param)[which] : acc_type());
    }
#if TT_LAST /* all warps have one result */
    if (lane == 0) shared[warp] = a;
    __syncthreads();
    if (warp == 0) {
        a = joined_neighbours<TT_WARPS>(shared[lane % TT_WARPS]);
        if (lane == 0) store(p.parts, p.part_index, which * p.count + group, a);
    }
    if (!comes_last(p.counters + which, (uint32_t)p.count)) return;
    a = joined_by_block(p.parts, p.part_index, which * p.count, (int)p.count);
    if (threadIdx.x == 0) put(p, which, a);
#else
    bool gives = lane == 0;
    if (p.log_warps) {
        if (gives) shared[warp] = a;
        __syncthreads();
        if (warp) return;
        a = shared[lane % TT_WARPS];
        for (int h = 1; h < sharing; h *= 2) a = join(a, lane_below(a, h));
        which += lane >> p.log_warps;
        gives = lane < TT_WARPS && (lane & (sharing - 1)) == 0;
    }
    if (!gives || which >= p.kept) return;
    if (p.parts) store(p.parts, p.part_index, which * p.count + group, a);
    else put(p, which, a);
#endif
}
#endif

#elif TT_FORM == TT_RED_OUTER
#define TT_LOG_COLUMNS (TT_VARIANT >> TT_RED_OWN & 15)
#define TT_COLUMNS (1 << TT_LOG_COLUMNS) /* threads of a row */
#define TT_V (1 << (TT_VARIANT >> (TT_RED_OWN + 4) & 3)) /* columns of a thread, which it reads at once */
/* of a block */
#define TT_SLOTS (TT_CUDA_THREADS / TT_COLUMNS < TT_LANES ? TT_CUDA_THREADS / TT_COLUMNS : TT_LANES)
#define TT_AT_ONCE (TT_CUDA_THREADS / TT_COLUMNS / TT_SLOTS) /* blocks */
#define TT_OWN (TT_LANES / TT_SLOTS) /* lanes of a thread */
#define TT_BATCH (16 / TT_OWN)
/* at least so many thread blocks on a processor, that it has enough loads in flight */
#define TT_RESIDENT (TT_INDEXED || sizeof(acc_type) > 4 ? 2 : TT_V == 4 ? 3 : 5)
typedef tt_pack<stored_type, TT_V> elements;

template <bool whole>
static TT_DEVICE void add_rows(near (&a)[TT_OWN][TT_V], const TT_ARGS &p, const char *base, int64_t row, int n,
                               const acc_type *param) {
    constexpr int batch = whole ? TT_BATCH : (TT_BATCH + 1) / 2; /* testing each row takes registers */
    const int slot = threadIdx.x / TT_COLUMNS % TT_SLOTS;
    const int64_t step = p.run.step[0] * TT_SLOTS;
    const char *next = base + (row + slot) * p.run.step[0];
#pragma unroll 1
    for (int b = 0; b < TT_LANES && b * TT_LANES < n; b += batch) {
        elements x[batch][TT_OWN];
#pragma unroll
        for (int e = 0; e < batch; e++)
#pragma unroll
            for (int k = 0; k < TT_OWN; k++) {
                const int i = (b + e) * TT_LANES + k * TT_SLOTS + slot;
                const char *from = TT_RUN_LAYOUT == TT_RED_STEP ? next : base;
                if (TT_RUN_LAYOUT == TT_RED_STEP) next += step;
                else if (whole || i < n)
                    from += TT_RUN_LAYOUT == TT_RED_FLAT ? (row + i) * (int)sizeof(stored_type) : place(p.run, row + i);
                if (whole || i < n) x[e][k] = *(const elements *)from;
            }
#pragma unroll
        for (int e = 0; e < batch; e++)
#pragma unroll
            for (int k = 0; k < TT_OWN; k++)
#pragma unroll
                for (int v = 0; v < TT_V; v++)
                    if (whole || (b + e) * TT_LANES + k * TT_SLOTS + slot < n)
                        a[k][v] = with(a[k][v], contributed(x[e][k].at[v], param[v]), b + e);
    }
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS, TT_RESIDENT)
    tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ accumulator shared[TT_V][TT_CUDA_THREADS];
    const int slot = threadIdx.x / TT_COLUMNS % TT_SLOTS;
    const uint32_t at = turn(p), rest = at / (uint32_t)p.tiles;
    const uint32_t groups = (uint32_t)((p.blocks + TT_AT_ONCE - 1) / TT_AT_ONCE), outer = rest / groups;
    const int64_t column = ((int64_t)(at - rest * (uint32_t)p.tiles) * TT_COLUMNS + threadIdx.x % TT_COLUMNS) * TT_V;
    const int64_t block = (int64_t)(rest - outer * groups) * TT_AT_ONCE + threadIdx.x / (TT_COLUMNS * TT_SLOTS);
    const int64_t which = outer * p.inner + column, row = block * TT_BLOCK, left = p.reduced - row;
    const bool live = column < p.inner && block < p.blocks;
    near a[TT_OWN][TT_V];
#pragma unroll
    for (int k = 0; k < TT_OWN; k++)
#pragma unroll
        for (int v = 0; v < TT_V; v++) a[k][v] = nothing_near();
    if (live) {
        const char *base = p.in + place(p.outer, outer) + column * p.inner_step;
        acc_type param[TT_V];
#pragma unroll
        for (int v = 0; v < TT_V; v++) param[v] = p.param ? ((const acc_type *)p.param)[which + v] : acc_type();
        if (left >= TT_BLOCK) add_rows<true>(a, p, base, row, TT_BLOCK, param);
        else add_rows<false>(a, p, base, row, (int)left, param);
    }
#pragma unroll
    for (int v = 0; v < TT_V; v++) {
        accumulator own[TT_OWN];
#pragma unroll
        for (int k = 0; k < TT_OWN; k++)
            own[k] = placed(a[k][v], row + k * TT_SLOTS + slot, live && k * TT_SLOTS + slot < left);
#pragma unroll
        for (int h = TT_OWN / 2; h > 0; h /= 2)
#pragma unroll
            for (int k = 0; k < h; k++) own[k] = join(own[k], own[k + h]);
        shared[v][threadIdx.x] = own[0];
    }
#pragma unroll
    for (int h = TT_SLOTS / 2; h > 0; h /= 2) {
        __syncthreads();
#pragma unroll
        for (int v = 0; v < TT_V; v++)
            if (slot < h)
                shared[v][threadIdx.x] = join(shared[v][threadIdx.x], shared[v][threadIdx.x + h * TT_COLUMNS]);
    }
    if (slot == 0 && live) {
#pragma unroll
        for (int v = 0; v < TT_V; v++)
            if (TT_LAST || p.parts)
                store(p.parts, p.part_index, (outer * p.count + block) * p.inner + column + v, shared[v][threadIdx.x]);
            else put(p, which + v, shared[v][threadIdx.x]);
    }
#if TT_LAST
    constexpr int columns = TT_COLUMNS * TT_V;
    const uint32_t tile = at - rest * (uint32_t)p.tiles;
    __syncthreads();
    if (comes_last(p.counters + outer * (uint32_t)p.tiles + tile, groups))
        put_columns<columns, TT_CUDA_THREADS>(p, outer, (int64_t)tile * columns);
#endif
}

#else
#define TT_COLUMNS (1 << (TT_VARIANT >> TT_RED_OWN & 15))
#define TT_JOINING (TT_VARIANT >> (TT_RED_OWN + 4) & 1 ? TT_RED_MANY : TT_CUDA_THREADS)

extern "C" __global__ void __launch_bounds__(TT_JOINING) tt_kernel(const __grid_constant__ TT_ARGS p) {
    put_columns<TT_COLUMNS, TT_JOINING>(p, blockIdx.x / p.tiles, blockIdx.x % p.tiles * TT_COLUMNS);
}
#endif
