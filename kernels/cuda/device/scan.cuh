/* Scans: Note [The order of a scan] in backend/scan.h, the variants in scan_args.h. TT_D0: the elements' dtype,
 * TT_D1: that accumulated in, TT_D2: what is made of an element before that, and of a result after it. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/scan_args.h"
#include "scalar/scans.h"
#define TT_ARGS tt_scan_args
#define TT_STEP (TT_VARIANT & 3)
#define TT_BLOCK 1024
#include "cuda/device/scan_join.cuh"

static TT_DEVICE accumulator carried(const TT_ARGS &p, int64_t k) { return loaded(p.carries, p.carried_index, k); }
static TT_DEVICE void carry(const TT_ARGS &p, int64_t k, const accumulator &a) {
    store(p.carries, p.carried_index, k, a);
}

static TT_DEVICE void put(const TT_ARGS &p, int64_t at, const accumulator &a) {
    ((element_type *)p.out)[at] = result_of(a);
#if TT_INDEXED
    p.index[at] = a.at;
#endif
}

/* Totals of blocks, one after the other, as sums of 1, 32 and 1024 of them: Note [The order of a scan]. */
struct levels {
    accumulator sums[TT_LEVELS];
#if TT_GOES_ON
    growing grown[TT_LEVELS];
#endif
    int64_t blocks;
    TT_DEVICE accumulator all() const {
        accumulator sum;
        bool has = false;
#pragma unroll
        for (int k = TT_LEVELS - 1; k >= 0; k--) {
            const int64_t many = blocks >> TT_LEVEL_LOG * k;
            if (!(k < TT_LEVELS - 1 ? many & TT_LEVEL - 1 : many)) continue;
            sum = has ? join(sum, sums[k]) : sums[k];
            has = true;
        }
        return sum;
    }
    TT_DEVICE void add(accumulator total) {
#pragma unroll
        for (int k = 0; k < TT_LEVELS; k++) {
            const int64_t many = blocks >> TT_LEVEL_LOG * k;
            const bool has = k < TT_LEVELS - 1 ? many & TT_LEVEL - 1 : many;
#if TT_GOES_ON
            if (has) grown[k].add(total.value);
            else grown[k].start(total.value);
            total = sums[k] = grown[k].total();
#else
            total = sums[k] = has ? join(sums[k], total) : total;
#endif
            if ((many & TT_LEVEL - 1) != TT_LEVEL - 1) break;
        }
        blocks++;
    }
};

/* The i-th element in the order of the scan. */
static TT_DEVICE int64_t place(const TT_ARGS &p, int64_t i) { return TT_VARIANT & TT_SCAN_REVERSE ? p.n - 1 - i : i; }

#if TT_STEP == TT_SCAN_CARRIES && TT_VARIANT & TT_SCAN_ALONE
/* A thread block for each scan: one thread adds up, one after the other, what all have brought near. Meanwhile the next
 * totals are on their way. */
#define TT_EACH 4
#define TT_TILE (TT_SCAN_THREADS * TT_EACH)

static TT_DEVICE void bring(const TT_ARGS &p, int64_t from, int64_t first, accumulator (&totals)[TT_EACH]) {
#pragma unroll
    for (int k = 0; k < TT_EACH; k++) {
        const int64_t b = first + k * TT_SCAN_THREADS + threadIdx.x;
        if (b < p.blocks) totals[k] = carried(p, from + b * p.inner);
    }
}

extern "C" __global__ void __launch_bounds__(TT_SCAN_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ accumulator tile[TT_TILE];
    const int64_t from = blockIdx.x / p.inner * p.blocks * p.inner + blockIdx.x % p.inner;
    accumulator totals[TT_EACH];
    levels sums;
    sums.blocks = 0;
    bring(p, from, 0, totals);
    for (int64_t first = 0; first < p.blocks; first += TT_TILE) {
#pragma unroll
        for (int k = 0; k < TT_EACH; k++) tile[k * TT_SCAN_THREADS + threadIdx.x] = totals[k];
        bring(p, from, first + TT_TILE, totals);
        __syncthreads();
        if (threadIdx.x == 0) {
            for (int j = 0; j < TT_TILE; j++) { /* beyond the last there is something, too */
                const accumulator total = tile[j];
                if (sums.blocks) tile[j] = sums.all();
                sums.add(total);
            }
        }
        __syncthreads();
#pragma unroll
        for (int k = 0; k < TT_EACH; k++) {
            const int64_t b = first + k * TT_SCAN_THREADS + threadIdx.x;
            if (b > 0 && b < p.blocks) carry(p, from + b * p.inner, tile[k * TT_SCAN_THREADS + threadIdx.x]);
        }
    }
}

#elif TT_STEP == TT_SCAN_CARRIES
/* A thread for each scan: the totals of its blocks become what came before them. */
extern "C" __global__ void __launch_bounds__(TT_SCAN_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t k = (int64_t)blockIdx.x * TT_SCAN_THREADS + threadIdx.x, outer = k / p.inner;
    if (outer >= p.outer) return;
    int64_t at = outer * p.blocks * p.inner + k % p.inner;
    levels sums;
    sums.blocks = 0;
    sums.add(carried(p, at));
    for (int64_t b = 1; b < p.blocks; b += 8) {
        accumulator totals[8];
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (b + j < p.blocks) totals[j] = carried(p, at + (j + 1) * p.inner);
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (b + j < p.blocks) {
                carry(p, at += p.inner, sums.all());
                sums.add(totals[j]);
            }
    }
}

#elif TT_VARIANT & TT_SCAN_WARP
#include "cuda/device/scan_chunks.cuh"

#if TT_STEP == TT_SCAN_WHOLE
/* A thread block has a row, of up to TT_LEVEL blocks: TT_WARPS of them at a time. */
extern "C" __global__ void __launch_bounds__(TT_SCAN_THREADS, 4) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ accumulator totals[2][TT_WARPS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int64_t row = blockIdx.x;
#if TT_GOES_ON
    growing sum; /* of the blocks before these */
    sum.start(-TT_INF_F64);
#else
    accumulator sum = accumulated(acc_type(), 0);
#endif
    for (int64_t block = 0; block < p.blocks; block += TT_WARPS) {
        accumulator *const given = totals[block / TT_WARPS & 1];
        const int64_t first = (block + warp) * TT_BLOCK, left = p.n - first;
        chunk c;
        if (left >= TT_BLOCK) read_chunks<true>(p, row, first, TT_BLOCK, c);
        else read_chunks<false>(p, row, first, (int)left, c);
        if (lane == 31) given[warp] = c.total;
        __syncthreads();
#if TT_GOES_ON
        accumulator before = c.before;
#pragma unroll 1
        for (int w = 0; w < TT_WARPS; w++) {
            if (w == warp) before = sum.total();
            if (block || w) sum.add(given[w].value);
            else sum.start(given[w].value);
        }
#else
        accumulator before = sum;
#pragma unroll
        for (int w = 0; w < TT_WARPS; w++) {
            if (w == warp) before = sum;
            sum = block || w ? join(sum, given[w]) : given[0];
        }
#endif
        if (left >= TT_BLOCK) write_chunks<true>(p, row, first, TT_BLOCK, c, before);
        else write_chunks<false>(p, row, first, (int)left, c, before);
    }
}
#elif TT_STEP == TT_SCAN_RESULTS
/* A warp has a scan of one block. */
extern "C" __global__ void __launch_bounds__(TT_SCAN_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t row = (int64_t)blockIdx.x * TT_WARPS + threadIdx.x / 32;
    if (row >= p.outer) return; /* a whole warp */
    chunk c;
    read_chunks<false>(p, row, 0, (int)p.n, c);
    write_chunks<false>(p, row, 0, (int)p.n, c, c.total);
}

#else
/* Long scans, read and written once: thread blocks take TT_WARPS blocks at a time, in order, publish their totals, and
 * look back at those of blocks before them, of groups of TT_LEVEL blocks, and of groups of those, which the thread
 * block with the last of a group publishes. So a scan of any length waits for three in a row at most, and always joins
 * the same. */
struct alignas(16) slot {
    acc_type value;
    int64_t tag; /* 0: not yet; else with TT_INDEXED the place + 1 */
};

static TT_DEVICE void publish(slot *to, const accumulator &a) {
    union {
        slot s;
        uint64_t words[2];
    } u;
    u.words[0] = 0;
    u.s.value = a.value;
#if TT_INDEXED
    u.s.tag = a.at + 1;
#else
    u.s.tag = 1;
#endif
#if TT_CUDA
    if (sizeof(slot) == 16) {
        asm volatile("st.relaxed.gpu.global.v2.u64 [%0], {%1, %2};"
                     :
                     : "l"(to), "l"(u.words[0]), "l"(u.words[1])
                     : "memory");
        return;
    }
#endif
    to->value = u.s.value;
    __threadfence();
    *(volatile int64_t *)&to->tag = u.s.tag;
}

static TT_DEVICE accumulator published(slot *from) {
    union {
        slot s;
        uint64_t words[2];
    } u;
#if TT_CUDA
    if (sizeof(slot) == 16) {
        do {
            asm volatile("ld.relaxed.gpu.global.v2.u64 {%0, %1}, [%2];"
                         : "=l"(u.words[0]), "=l"(u.words[1])
                         : "l"(from)
                         : "memory");
        } while (!u.s.tag);
        return accumulated(u.s.value, u.s.tag - 1);
    }
#endif
    do u.s.tag = *(volatile int64_t *)&from->tag;
    while (!u.s.tag);
    __threadfence();
#if TT_CUDA
    for (int k = 0; k < (int)(sizeof(acc_type) / 8); k++)
        ((uint64_t *)&u.s.value)[k] = __ldcg((const unsigned long long *)&from->value + k);
#else
    u.s.value = from->value;
#endif
    return accumulated(u.s.value, u.s.tag - 1);
}

extern "C" __global__ void __launch_bounds__(TT_SCAN_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ accumulator given[TT_WARPS];
#if TT_GOES_ON
    __shared__ growing of_group; /* totals of groups before this one */
    __shared__ accumulator in_group[TT_WARPS + 1], totals[TT_LEVELS];
#else
    __shared__ accumulator found[TT_LEVELS][32], sums[TT_LEVELS];
#endif
    __shared__ uint32_t taken;
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    if (threadIdx.x == 0) taken = atomicAdd(p.ticket, 1u);
    __syncthreads();
    const int64_t row = taken / p.tiles, begin = (taken - row * p.tiles) * TT_WARPS; /* the first block */
    const int64_t first = (begin + warp) * TT_BLOCK, left = p.n - first;
    slot *const slots = (slot *)p.carries;
    slot *const of_blocks = slots + row * p.slots[0], *const of_groups = slots + p.slots[1] + row * p.slots[2],
                *const of_larger = slots + p.slots[3] + row * p.slots[4];
    chunk c;
    if (left >= TT_BLOCK) read_chunks<true>(p, row, first, TT_BLOCK, c);
    else if (left > 0) read_chunks<false>(p, row, first, (int)left, c);
    if (lane == 31 && left >= TT_BLOCK) {
        given[warp] = c.total;
        publish(of_blocks + begin + warp, c.total);
    }
    __syncthreads();
    const int64_t group = begin / TT_LEVEL, ends = begin + TT_WARPS;
    if (warp < TT_LEVELS) { /* of each level, those of the group that this is in */
        const int64_t at = begin >> TT_LEVEL_LOG * warp, many = warp < TT_LEVELS - 1 ? at & TT_LEVEL - 1 : at;
        slot *const from_here = warp == 0 ? of_blocks : warp == 1 ? of_groups : of_larger;
#if TT_GOES_ON
        growing sum;
        sum.start(-TT_INF_F64);
        if (warp == 0) { /* what each warp's block has before it in the group, and the group's total */
            const int w = lane - (int)many;
            const acc_type x = w < 0 ? published(of_blocks + begin + w).value : w < TT_WARPS ? given[w].value : 0;
            const accumulator up_to = add_lanes(sum, true, x, (int)many + TT_WARPS).up_to_lane.total();
            if (w >= -1 && w < TT_WARPS) in_group[w + 1] = up_to;
            if (w == TT_WARPS - 1 && ends % TT_LEVEL == 0 && ends * TT_BLOCK < p.n) publish(of_groups + group, up_to);
        } else {
            for (int64_t from = 0; from < many; from += 32) {
                const int here = many - from < 32 ? (int)(many - from) : 32;
                acc_type x = 0;
                if (lane < here) x = published(from_here + at - many + from + lane).value;
                sum = add_lanes(sum, from == 0, x, here).all;
            }
            if (lane == 0) totals[warp] = sum.total();
            if (lane == 0 && warp == 1) of_group = sum;
        }
    }
#else
        accumulator sum = accumulated(acc_type(), 0);
        for (int64_t from = 0; from < many; from += 32) {
            if (from + lane < many) found[warp][lane] = published(from_here + at - many + from + lane);
            __syncwarp();
#pragma unroll TT_COPIES(8)
            for (int k = 0; k < 32; k++)
                if (from + k < many) sum = from + k ? join(sum, found[warp][k]) : found[warp][0];
            __syncwarp();
        }
        if (lane == 0) {
            sums[warp] = sum;
            if (warp == 0 && ends % TT_LEVEL == 0 && ends * TT_BLOCK < p.n) {
#pragma unroll TT_COPIES(TT_WARPS)
                for (int w = 0; w < TT_WARPS; w++) sum = join(sum, given[w]);
                publish(of_groups + group, sum);
            }
        }
    }
#endif
    __syncthreads();
    accumulator before = accumulated(acc_type(), 0);
    bool has = false;
#if TT_GOES_ON
    if (begin >= TT_LEVEL * TT_LEVEL) before = totals[2], has = true;
    if (group & TT_LEVEL - 1) before = has ? join(before, totals[1]) : totals[1], has = true;
    if (begin % TT_LEVEL || warp) before = has ? join(before, in_group[warp]) : in_group[warp];
    if (threadIdx.x == 0 && ends % (TT_LEVEL * TT_LEVEL) == 0 && ends * TT_BLOCK < p.n) {
        growing larger = of_group;
        larger.add(in_group[TT_WARPS].value);
        publish(of_larger + group / TT_LEVEL, larger.total());
    }
#else
    accumulator sum = sums[0];
    if (begin >= TT_LEVEL * TT_LEVEL) before = sums[2], has = true;
    if (group & TT_LEVEL - 1) before = has ? join(before, sums[1]) : sums[1], has = true;
#pragma unroll TT_COPIES(TT_WARPS)
    for (int w = 0; w < TT_WARPS; w++) {
        const bool any = begin % TT_LEVEL || w;
        if (w == warp && any) before = has ? join(before, sum) : sum;
        if (w < TT_WARPS - 1 || threadIdx.x == 0) sum = any ? join(sum, given[w]) : given[0];
    }
    if (threadIdx.x == 0 && ends % (TT_LEVEL * TT_LEVEL) == 0 && ends * TT_BLOCK < p.n)
        publish(of_larger + group / TT_LEVEL, join(sums[1], sum));
#endif
    if (left >= TT_BLOCK) write_chunks<true>(p, row, first, TT_BLOCK, c, before);
    else if (left > 0) write_chunks<false>(p, row, first, (int)left, c, before);
}
#endif

#else
/* A thread for each block of a column; p.per is all of it where the scan has no blocks. */
extern "C" __global__ void __launch_bounds__(TT_SCAN_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t unit = (int64_t)blockIdx.x * TT_SCAN_THREADS + threadIdx.x, column = unit % p.inner;
    const int64_t outer = unit / p.inner / p.blocks, first = unit / p.inner % p.blocks * p.per;
    if (outer >= p.outer) return;
    const int64_t base = outer * p.n * p.inner + column, stop = first + p.per < p.n ? first + p.per : p.n;
    const element_type *x = (const element_type *)p.a + base;
#if TT_OP == TT_SCAN_RECUR
    const element_type *y = (const element_type *)p.b + base;
    element_type last{};
    for (int64_t i = 0; i < p.n; i++) {
        const int64_t at = place(p, i) * p.inner;
        last = i ? y[at] + x[at] * last : y[at];
        ((element_type *)p.out)[base + at] = last;
    }
#elif TT_OP == TT_SCAN_LOGSUMEXP && TT_IS_COMPLEX(TT_D1)
    accumulator a = first_of(x[place(p, 0) * p.inner], 0);
    put(p, base + place(p, 0) * p.inner, a);
    for (int64_t i = 1; i < p.n; i++) {
        const int64_t at = place(p, i) * p.inner;
        a = join(a, first_of(x[at], i));
        put(p, base + at, a);
    }
#else
    const bool carries = TT_STEP == TT_SCAN_RESULTS && first > 0;
    accumulator sum, chunks, before, a;
#if TT_GOES_ON
    growing all;
#endif
    if (carries) sum = carried(p, unit);
    for (int64_t i0 = first; i0 < stop; i0 += TT_CHUNK) {
        const int many = stop - i0 < TT_CHUNK ? (int)(stop - i0) : TT_CHUNK;
        element_type v[TT_CHUNK];
#pragma unroll
        for (int j = 0; j < TT_CHUNK; j++)
            if (j < many) v[j] = x[place(p, i0 + j) * p.inner];
        const bool has = carries || i0 > first;
        if (has) before = !carries ? chunks : i0 > first ? join(sum, chunks) : sum;
#if TT_GOES_ON
        if (TT_STEP == TT_SCAN_RESULTS) {
            growing results;
            results.start(has ? before.value : -TT_INF_F64);
#pragma unroll TT_FEW
            for (int j = 0; j < TT_CHUNK; j++)
                if (j < many) {
                    results.add(first_of(v[j], i0 + j).value);
                    put(p, base + place(p, i0 + j) * p.inner, results.total());
                }
        }
        if (TT_STEP == TT_SCAN_TOTALS || i0 + many < stop) {
            a = total_of<false>(many, i0, [&](int j) { return v[j]; }, [](int, acc_type, acc_type) {});
            if (i0 > first) all.add(a.value);
            else all.start(a.value);
            chunks = all.total();
        }
#else
#pragma unroll
        for (int j = 0; j < TT_CHUNK; j++)
            if (j < many) {
                const accumulator next = first_of(v[j], i0 + j);
                a = j ? join(a, next) : next;
                if (TT_STEP == TT_SCAN_RESULTS) put(p, base + place(p, i0 + j) * p.inner, has ? join(before, a) : a);
            }
        chunks = i0 > first ? join(chunks, a) : a;
#endif
    }
    if (TT_STEP == TT_SCAN_TOTALS) carry(p, unit, chunks);
#endif
}
#endif
