/* Scans: Note [The order of a scan] in kernels/ops/scan.c, the variants in scan_args.h. TT_D0: the elements' dtype,
 * TT_D1: that accumulated in, TT_D2: what is made of an element before that, and of a result after it. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/scan_args.h"
#include "scalar/scans.h"
#define TT_ARGS tt_scan_args
#define TT_STEP (TT_VARIANT & 3)
#define TT_CHUNK 32
#define TT_BLOCK 1024
#define TT_INDEXED (TT_OP >= TT_SCAN_MIN)
typedef TT_TYPE(TT_D0) element_type;
typedef TT_TYPE(TT_D1) acc_type;
typedef TT_TYPE(TT_D2) number;

#include "cuda/device/accumulator.cuh"

static TT_DEVICE accumulator first_of(element_type x, int64_t at) {
    return accumulated(TT_CONVERT(TT_D2, TT_D1, (number)TT_CONVERT(TT_D0, TT_D2, x)), at);
}

static TT_DEVICE element_type result_of(const accumulator &a) {
    return (element_type)TT_CONVERT(TT_D2, TT_D0, (number)TT_CONVERT(TT_D1, TT_D2, a.value));
}

static TT_DEVICE double log_add(double a, double b) { return tt_log_add_f64(a, b); }
#if TT_IS_COMPLEX(TT_D1)
static TT_DEVICE tt_complex128 log_add(tt_complex128 a, tt_complex128 b) { return tt_logaddexp_c128(b, a); }
#endif

/* a, and after it b */
static TT_DEVICE accumulator join(const accumulator &a, const accumulator &b) {
    accumulator r;
#if TT_INDEXED
    const bool wins = TT_OP == TT_SCAN_MAX ? TT_AT_LEAST(b.value, a.value) : TT_AT_MOST(b.value, a.value);
    r.value = wins ? b.value : a.value;
    r.at = wins ? b.at : a.at;
#elif TT_OP == TT_SCAN_SUM
    r.value = a.value + b.value;
#elif TT_OP == TT_SCAN_PROD
    r.value = a.value * b.value;
#elif TT_OP == TT_SCAN_LOGSUMEXP
    r.value = log_add(a.value, b.value);
#else
    r = b;
#endif
    return r;
}

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
    accumulator totals[TT_EACH], sum;
    bring(p, from, 0, totals);
    for (int64_t first = 0; first < p.blocks; first += TT_TILE) {
#pragma unroll
        for (int k = 0; k < TT_EACH; k++) tile[k * TT_SCAN_THREADS + threadIdx.x] = totals[k];
        bring(p, from, first + TT_TILE, totals);
        __syncthreads();
        if (threadIdx.x == 0) {
            if (first == 0) sum = tile[0];
#pragma unroll 8
            for (int j = first == 0; j < TT_TILE; j++) { /* beyond the last there is something, too */
                const accumulator total = tile[j];
                tile[j] = sum;
                sum = join(sum, total);
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
    accumulator sum = carried(p, at);
    for (int64_t b = 1; b < p.blocks; b += 8) {
        accumulator totals[8];
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (b + j < p.blocks) totals[j] = carried(p, at + (j + 1) * p.inner);
#pragma unroll
        for (int j = 0; j < 8; j++)
            if (b + j < p.blocks) {
                carry(p, at += p.inner, sum);
                sum = join(sum, totals[j]);
            }
    }
}

#elif TT_VARIANT & TT_SCAN_WARP
#define TT_WARPS (TT_SCAN_THREADS / 32)

/* What the threads of a warp have of its block: a chunk for each lane. */
struct chunk {
    acc_type sums[TT_INDEXED ? 1 : TT_CHUNK]; /* up to each element */
    accumulator before;                       /* what the chunks before it in the block give */
    accumulator total;                        /* ... and with its own */
};

static TT_DEVICE element_type *warp_tile() {
    __shared__ __align__(8) unsigned char tiles[TT_WARPS][32 * 33 * (TT_INDEXED ? 8 : sizeof(element_type))];
    return (element_type *)tiles[threadIdx.x / 32];
}

static TT_DEVICE int of_chunk(int n) {
    const int many = n - (int)(threadIdx.x & 31) * TT_CHUNK;
    return many < TT_CHUNK ? many : TT_CHUNK;
}

template <bool whole> static TT_DEVICE void read_chunks(const TT_ARGS &p, int64_t row, int64_t first, int n, chunk &c) {
    __shared__ accumulator chunks[TT_WARPS][32], sums[TT_WARPS][32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, many = of_chunk(n);
    const element_type *x = (const element_type *)p.a + row * p.n;
    element_type *const tile = warp_tile(), *const own = tile + lane * 33;
    const int64_t start = first + lane * TT_CHUNK;
    element_type raw[32];
#pragma unroll
    for (int k = 0; k < 32; k++)
        if (whole || k * 32 + lane < n) raw[k] = x[place(p, first + k * 32 + lane)];
#pragma unroll
    for (int k = 0; k < 32; k++)
        if (whole || k * 32 + lane < n) tile[k * 33 + lane] = raw[k];
    __syncwarp();
    accumulator total = first_of(own[0], start);
    if (!TT_INDEXED) c.sums[0] = total.value;
#pragma unroll
    for (int j = 1; j < TT_CHUNK; j++)
        if (whole || j < many) {
            total = join(total, first_of(own[j], start + j));
            if (!TT_INDEXED) c.sums[j] = total.value;
        }
    chunks[warp][lane] = total;
    __syncwarp();
    accumulator sum = chunks[warp][0];
#pragma unroll
    for (int s = 1; s < 32; s++) { /* all lanes write the same */
        sums[warp][s] = sum;
        if (s < 31) sum = join(sum, chunks[warp][s]);
    }
    __syncwarp();
    c.before = sums[warp][lane ? lane : 1];
    c.total = join(c.before, total);
}

template <bool whole>
static TT_DEVICE void write_chunks(const TT_ARGS &p, int64_t row, int64_t first, int n, const chunk &c,
                                   const accumulator &sum) {
    const int lane = threadIdx.x & 31, many = of_chunk(n);
    element_type *const tile = warp_tile(), *const own = tile + lane * 33;
    accumulator before = c.before;
    if (first > 0) before = lane > 0 ? join(sum, before) : sum;
    else if (lane == 0)
        before.value = TT_CONVERT(f64, TT_D1, TT_OP == TT_SCAN_PROD ? 1.0 : -0.0); /* which leaves all as it is */
#if TT_INDEXED
    const int64_t start = first + lane * TT_CHUNK;
    int64_t places[TT_CHUNK];
    accumulator a = before;
#endif
#pragma unroll
    for (int j = 0; j < TT_CHUNK; j++)
        if (whole || j < many) {
#if TT_INDEXED
            const accumulator next = first_of(own[j], start + j);
            a = j ? join(a, next) : next;
#else
            const accumulator a = accumulated(c.sums[j], 0);
#endif
            const accumulator all = TT_INDEXED && first == 0 && lane == 0 ? a : join(before, a);
            own[j] = result_of(all);
#if TT_INDEXED
            places[j] = all.at;
#endif
        }
    __syncwarp();
    element_type *out = (element_type *)p.out + row * p.n;
#pragma unroll
    for (int k = 0; k < 32; k++)
        if (whole || k * 32 + lane < n) out[place(p, first + k * 32 + lane)] = tile[k * 33 + lane];
    __syncwarp();
#if TT_INDEXED
    int64_t *const found = (int64_t *)tile;
#pragma unroll
    for (int j = 0; j < TT_CHUNK; j++)
        if (whole || j < many) found[lane * 33 + j] = places[j];
    __syncwarp();
    for (int k = 0; k < 32; k++)
        if (whole || k * 32 + lane < n) p.index[row * p.n + place(p, first + k * 32 + lane)] = found[k * 33 + lane];
#endif
}

#if TT_STEP == TT_SCAN_WHOLE
/* A thread block has a row: TT_WARPS blocks at a time. */
extern "C" __global__ void __launch_bounds__(TT_SCAN_THREADS, 4) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ accumulator totals[2][TT_WARPS];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const int64_t row = blockIdx.x;
    accumulator sum = accumulated(acc_type(), 0); /* of the blocks before these */
    for (int64_t block = 0; block < p.blocks; block += TT_WARPS) {
        accumulator *const given = totals[block / TT_WARPS & 1];
        const int64_t first = (block + warp) * TT_BLOCK, left = p.n - first;
        chunk c;
        if (left >= TT_BLOCK) read_chunks<true>(p, row, first, TT_BLOCK, c);
        else read_chunks<false>(p, row, first, (int)left, c);
        if (lane == 31) given[warp] = c.total;
        __syncthreads();
        accumulator before = sum;
#pragma unroll
        for (int w = 0; w < TT_WARPS; w++) {
            if (w == warp) before = sum;
            sum = block || w ? join(sum, given[w]) : given[0];
        }
        if (left >= TT_BLOCK) write_chunks<true>(p, row, first, TT_BLOCK, c, before);
        else write_chunks<false>(p, row, first, (int)left, c, before);
    }
}
#else
extern "C" __global__ void __launch_bounds__(TT_SCAN_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t unit = (int64_t)blockIdx.x * TT_WARPS + threadIdx.x / 32;
    const int64_t row = unit / p.blocks, first = unit % p.blocks * TT_BLOCK;
    if (row >= p.outer) return; /* a whole warp */
    const int n = p.n - first < TT_BLOCK ? (int)(p.n - first) : TT_BLOCK;
    chunk c;
    read_chunks<false>(p, row, first, n, c);
    if (TT_STEP == TT_SCAN_RESULTS) write_chunks<false>(p, row, first, n, c, first > 0 ? carried(p, unit) : c.total);
    else if ((threadIdx.x & 31) == 31) carry(p, unit, c.total);
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
#elif TT_OP == TT_SCAN_LOGSUMEXP
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
    if (carries) sum = carried(p, unit);
    for (int64_t i0 = first; i0 < stop; i0 += TT_CHUNK) {
        const int many = stop - i0 < TT_CHUNK ? (int)(stop - i0) : TT_CHUNK;
        element_type v[TT_CHUNK];
#pragma unroll
        for (int j = 0; j < TT_CHUNK; j++)
            if (j < many) v[j] = x[place(p, i0 + j) * p.inner];
        const bool has = carries || i0 > first;
        if (has) before = !carries ? chunks : i0 > first ? join(sum, chunks) : sum;
#pragma unroll
        for (int j = 0; j < TT_CHUNK; j++)
            if (j < many) {
                const accumulator next = first_of(v[j], i0 + j);
                a = j ? join(a, next) : next;
                if (TT_STEP == TT_SCAN_RESULTS) put(p, base + place(p, i0 + j) * p.inner, has ? join(before, a) : a);
            }
        chunks = i0 > first ? join(chunks, a) : a;
    }
    if (TT_STEP == TT_SCAN_TOTALS) carry(p, unit, chunks);
#endif
}
#endif
