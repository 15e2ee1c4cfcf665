/* The least elements of rows, or one of a rank, without sorting them: the digits of the last key wanted are found from
 * the highest on, by counting those of keys that agree so far; among equal keys, then, the digits of the last place
 * wanted. It ends as soon as all that agree are wanted.
 *
 * TT_OP: of sort_args.h. The variant: bit 0 descending; 1-2 what is done; 3 blocks of 64 threads. */
#pragma once
#define TT_DESCENDING (TT_VARIANT & 1)
#include "cuda/device/block_sums.cuh"
#include "cuda/device/keys.cuh"
#include "cuda/device/last_block.cuh"
#define TT_ARGS tt_select_args
#define TT_STEP (TT_VARIANT >> 1 & 3)
#define TT_SELECT_WHOLE 0 /* all of it, of rows that fit into a block's registers */
#define TT_SELECT_COUNT 1 /* one digit, of parts of rows */
#define TT_SELECT_GATHER 2 /* what is wanted, of parts of rows */
#define TT_SELECT_FINISH 3 /* puts it in order */
#define TT_THREADS (TT_VARIANT & 8 ? 64 : 256)
#define TT_WARPS (TT_THREADS / 32)
#define TT_KEY_PASSES (TT_KEY_BITS / 8)
#define TT_PASSES (TT_KEY_PASSES + 4)
#define TT_ITEMS 16 /* of a thread; SELECT_ITEMS in sort.c */
#define TT_COUNTS (256 / TT_THREADS)

/* Does an element agree with the last one wanted, as far as that is known, or come before it? */
static TT_DEVICE bool agrees(const tt_select_state &s, sort_key key, uint32_t i) {
    return (key & (sort_key)s.known) == (sort_key)s.last && (i & s.known_place) == s.last_place;
}
static TT_DEVICE bool wanted(const tt_select_state &s, sort_key key, uint32_t i) {
    const sort_key high = key & (sort_key)s.known;
    return high < (sort_key)s.last || (high == (sort_key)s.last && (i & s.known_place) <= s.last_place);
}

static TT_DEVICE int shift_of(int pass) {
    return 8 * (pass < TT_KEY_PASSES ? TT_KEY_PASSES - 1 - pass : TT_PASSES - 1 - pass);
}
static TT_DEVICE uint32_t digit_of(int pass, sort_key key, uint32_t i) {
    return (pass < TT_KEY_PASSES ? (uint32_t)(key >> shift_of(pass)) : i >> shift_of(pass)) & 255;
}

/* All threads: the digit in which the last wanted is, from this thread's part of the counts. Gives it to *s. */
static TT_DEVICE void find_digit(const TT_ARGS &p, tt_select_state *s, int pass, const uint32_t (&counts)[TT_COUNTS]) {
    uint32_t all, own = 0;
#pragma unroll
    for (int k = 0; k < TT_COUNTS; k++) own += counts[k];
    uint32_t before = tt_block_scan<uint32_t, TT_WARPS>(own, &all), want = s->want;
    if (pass == 0) want = TT_OP == TT_TOPK ? (uint32_t)p.sort.k : (uint32_t)tt_rank(p.sort, s->nans) + 1;
    __syncthreads();
#pragma unroll
    for (int k = 0; k < TT_COUNTS; k++) {
        if (before < want && want <= before + counts[k]) {
            const uint32_t digit = threadIdx.x * TT_COUNTS + k;
            if (pass < TT_KEY_PASSES) {
                s->last |= (uint64_t)digit << shift_of(pass);
                s->known |= (uint64_t)255 << shift_of(pass);
            } else {
                s->last_place |= digit << shift_of(pass);
                s->known_place |= 255u << shift_of(pass);
            }
            s->want = want - before;
            s->done = counts[k] == (TT_OP == TT_TOPK ? want - before : 1);
        }
        before += counts[k];
    }
}

#if TT_STEP == TT_SELECT_WHOLE
extern "C" __global__ void __launch_bounds__(TT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(room);
    __shared__ uint32_t counts[256];
    __shared__ tt_select_state s;
    tt_bitonic x = tt_bitonic_in(room, p.sort.padded);
    int64_t in, out;
    tt_row(p.sort, blockIdx.x, &in, &out);
    const char *row = p.sort.in + in;
    const uint32_t n = (uint32_t)p.sort.n;
    sort_key key[TT_ITEMS];
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) {
        const uint32_t i = u * TT_THREADS + threadIdx.x;
        key[u] = i < n ? tt_key_of(*(const stored *)(row + i * p.sort.step)) : 0;
    }
    if (threadIdx.x == 0) s = tt_select_state();
    __syncthreads();
    if (TT_FLOATING && (TT_OP == TT_MEDIAN || TT_OP == TT_NANMEDIAN)) {
        uint32_t nans = 0;
#pragma unroll
        for (int u = 0; u < TT_ITEMS; u++) nans += u * TT_THREADS + threadIdx.x < n && key[u] == TT_KEY_ONES;
        if (nans) atomicAdd(&s.nans, nans);
    }
    for (int pass = 0; pass < TT_PASSES; pass++) {
#pragma unroll
        for (int k = 0; k < TT_COUNTS; k++) counts[threadIdx.x * TT_COUNTS + k] = 0;
        __syncthreads();
        const tt_select_state known = s;
        if (known.done) break;
#pragma unroll
        for (int u = 0; u < TT_ITEMS; u++) {
            const uint32_t i = u * TT_THREADS + threadIdx.x;
            if (i < n && agrees(known, key[u], i)) atomicAdd(&counts[digit_of(pass, key[u], i)], 1u);
        }
        __syncthreads();
        uint32_t own[TT_COUNTS];
#pragma unroll
        for (int k = 0; k < TT_COUNTS; k++) own[k] = counts[threadIdx.x * TT_COUNTS + k];
        find_digit(p, &s, pass, own);
        __syncthreads();
    }
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) {
        const uint32_t i = u * TT_THREADS + threadIdx.x;
        if (i >= n) continue;
        if (TT_OP != TT_TOPK && agrees(s, key[u], i)) tt_write_out(p.sort, in, out, 0, i);
        if (TT_OP == TT_TOPK && wanted(s, key[u], i)) x.set((int)atomicAdd(&s.gathered, 1u), key[u], i);
    }
    if (TT_OP != TT_TOPK) return;
    for (int i = (int)p.sort.k + threadIdx.x; i < p.sort.padded; i += TT_THREADS) x.pad(i);
    tt_bitonic_sort(x, p.sort.padded);
    for (int64_t i = threadIdx.x; i < p.sort.out_n; i += TT_THREADS) tt_write_out(p.sort, in, out, i, x.index((int)i));
}

#elif TT_STEP == TT_SELECT_FINISH
extern "C" __global__ void __launch_bounds__(TT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(room);
    tt_bitonic x = tt_bitonic_in(room, p.sort.padded);
    int64_t in, out;
    tt_row(p.sort, blockIdx.x, &in, &out);
    const uint32_t *found = p.found + blockIdx.x * p.sort.k;
    for (int i = threadIdx.x; i < p.sort.padded; i += TT_THREADS) {
        if (i >= p.sort.k) x.pad(i);
        else x.set(i, tt_key_of(*(const stored *)(p.sort.in + in + found[i] * p.sort.step)), found[i]);
    }
    tt_bitonic_sort(x, p.sort.padded);
    for (int64_t i = threadIdx.x; i < p.sort.out_n; i += TT_THREADS) tt_write_out(p.sort, in, out, i, x.index((int)i));
}

#else
#define TT_AT_ONCE 8 /* loads that a thread waits for together */

extern "C" __global__ void __launch_bounds__(TT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const uint32_t at = blockIdx.x / p.parts, part = blockIdx.x - at * p.parts;
    tt_select_state *const state = p.states + at;
    const tt_select_state s = *state;
    int64_t in, out;
    tt_row(p.sort, at, &in, &out);
    const char *row = p.sort.in + in;
    const uint32_t n = (uint32_t)p.sort.n, first = part * p.part, stop = n - first < p.part ? n : first + p.part;
#if TT_STEP == TT_SELECT_COUNT
    __shared__ uint32_t counts[256];
    uint32_t nans = 0;
    if (s.done) return;
    counts[threadIdx.x] = 0;
    __syncthreads();
#endif
    for (uint32_t begin = first; begin < stop; begin += TT_AT_ONCE * TT_THREADS) {
        stored x[TT_AT_ONCE];
#pragma unroll
        for (int u = 0; u < TT_AT_ONCE; u++) {
            const uint32_t i = begin + u * TT_THREADS + threadIdx.x;
            if (i < stop) x[u] = *(const stored *)(row + i * p.sort.step);
        }
#pragma unroll
        for (int u = 0; u < TT_AT_ONCE; u++) {
            const uint32_t i = begin + u * TT_THREADS + threadIdx.x;
            if (i >= stop) continue;
            const sort_key key = tt_key_of(x[u]);
#if TT_STEP == TT_SELECT_COUNT
            nans += key == TT_KEY_ONES;
            if (agrees(s, key, i)) atomicAdd(&counts[digit_of(p.pass, key, i)], 1u);
#else
            if (TT_OP != TT_TOPK && agrees(s, key, i)) tt_write_out(p.sort, in, out, 0, i);
            if (TT_OP == TT_TOPK && wanted(s, key, i)) p.found[at * p.sort.k + atomicAdd(&state->gathered, 1u)] = i;
#endif
        }
    }
#if TT_STEP == TT_SELECT_COUNT
    const bool asks = TT_FLOATING && (TT_OP == TT_MEDIAN || TT_OP == TT_NANMEDIAN) && p.pass == 0;
    if (asks && nans) atomicAdd(&state->nans, nans);
    __syncthreads();
    uint32_t *const sums = p.counts + at * 256;
    if (counts[threadIdx.x]) atomicAdd(&sums[threadIdx.x], counts[threadIdx.x]);
    __threadfence();
    if (!comes_last(&state->blocks, p.parts)) return;
    const uint32_t all[1] = {__ldcg(sums + threadIdx.x)};
    sums[threadIdx.x] = 0;
    __shared__ tt_select_state found;
    if (threadIdx.x == 0) {
        found = s;
        found.nans = __ldcg(&state->nans);
        found.blocks = 0;
    }
    __syncthreads();
    find_digit(p, &found, p.pass, all);
    __syncthreads();
    if (threadIdx.x == 0) *state = found;
#endif
}
#endif
