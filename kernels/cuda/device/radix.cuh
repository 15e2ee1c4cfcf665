/* A stable radix sort of keys with a number each, from the least digit of eight bits. One kernel counts the digits of
 * all passes; then each pass reads and writes the elements once (Adinets and Merrill, "Onesweep", 2022). See radix.c.
 *
 * A pass's thread block takes the next tile, counts its digits, and publishes that. How many elements of each digit are
 * in all tiles before it, it learns by looking back at what those have published: their own counts, or, once they know,
 * the sums up to them. Tiles are numbered as blocks start, so that a tile never waits for one that has not.
 *
 * TT_OP: of the numbers below. TT_D0: the elements' dtype. The variant: bit 0 descending, 1 keys as they are (of i32 or
 * i64), 2 states of 64 bits: of 32 they count up to 2^30; 3 without numbers. */
#pragma once
#define TT_DESCENDING (TT_VARIANT & 1)
#include "cuda/device/block_sums.cuh"
#include "cuda/device/keys.cuh"
#include "cuda/device/last_block.cuh"
#include "cuda/device/index_args.h"
#define TT_ARGS tt_radix_args
#define TT_COUNTS_KEYS 0
#define TT_SWEEPS 1

#define TT_THREADS 384 /* THREADS in radix.c */
#define TT_ITEMS (TT_KEY_BITS == 64 ? 12 : 18)
#define TT_TILE (TT_THREADS * TT_ITEMS)
#define TT_WARPS (TT_THREADS / 32)
#define TT_NUMBERED (!(TT_VARIANT & 8))
#define TT_BACK 8 /* tiles looked at at once */

static TT_DEVICE sort_key key_at(const TT_ARGS &p, int64_t i) {
    const stored x = ((const stored *)p.in)[i];
    return TT_VARIANT & 2 ? (sort_key)x : tt_key_of(x);
}
static TT_DEVICE uint32_t number_at(const TT_ARGS &p, int64_t i) { return p.order ? p.order[i] : (uint32_t)i; }

static TT_DEVICE uint32_t key_digit(sort_key key, int pass) { return (uint32_t)(key >> 8 * pass) & 255; }
static TT_DEVICE uint32_t row_digit(const TT_ARGS &p, uint32_t number, int pass) {
    return tt_quotient(number, p.row) >> 8 * (pass - p.key_passes) & 255;
}

#if TT_OP == TT_COUNTS_KEYS
#define TT_AT_ONCE 4
#define TT_MOST_TOGETHER 4096 /* a warp goes through them: buckets.cuh */
#define TT_KEY_PASSES (TT_KEY_BITS / 8)

/* What each pass does: which digits have been counted says whether it moves anything. A pass reads the input (0) or
 * what an earlier one has made in keys[0] (1) or [1] (2), bits 0-1, and makes keys[0] or [1], likewise bits 2-3; bit 4:
 * it is the last; 5: which states it uses. 0: nothing. */
static TT_DEVICE void plan(const TT_ARGS &p) {
    __shared__ bool moves[TT_RADIX_PASSES];
    __shared__ uint32_t most[TT_RADIX_PASSES];
    if (threadIdx.x < TT_RADIX_PASSES) most[threadIdx.x] = 0;
    for (int pass = 0; pass < p.passes; pass++) {
        uint32_t all, *counts = p.counts + pass * 256;
        const uint32_t own = threadIdx.x < 256 ? __ldcg(counts + threadIdx.x) : 0;
        const uint32_t before = tt_block_scan<uint32_t, TT_WARPS>(own, &all);
        const bool alike = __syncthreads_or(own == p.n);
        if (threadIdx.x < 256) {
            counts[threadIdx.x] = before;
            atomicMax(&most[pass], own);
        }
        if (threadIdx.x == 0) moves[pass] = !alike;
    }
    __syncthreads();
    if (threadIdx.x) return;
    uint32_t *plans = p.counts + p.passes * 257 + 1, left = 0, source = 0, number = 0;
    if (p.leaves) { /* as many keys share their other digits, if these are independent */
        float together = (float)p.n;
        bool others = false;
        for (int pass = 1; pass < p.passes; pass++) {
            together *= (float)most[pass] / (float)p.n;
            others |= moves[pass];
        }
        const bool stays = others && together <= TT_MOST_TOGETHER;
        if (stays) moves[0] = false;
        p.counts[p.passes * 258 + 1] = stays;
    }
    for (int pass = 0; pass < p.passes; pass++) left += moves[pass];
    if (!left) moves[0] = left = 1;
    for (int pass = 0; pass < p.passes; pass++) {
        const uint32_t target = left & 1 ? 1 : 2;
        plans[pass] = moves[pass] ? source | target << 2 | (left == 1) << 4 | (number & 1) << 5 : 0;
        if (moves[pass]) source = target, left--, number++;
    }
}

extern "C" __global__ void __launch_bounds__(TT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ uint32_t counts[TT_RADIX_PASSES][256];
    for (int i = threadIdx.x; i < p.passes * 256; i += TT_THREADS) counts[i >> 8][i & 255] = 0;
    __syncthreads();
    const int64_t first = (int64_t)blockIdx.x * TT_THREADS + threadIdx.x, step = (int64_t)gridDim.x * TT_THREADS;
    for (int64_t begin = first; begin < p.n; begin += TT_AT_ONCE * step) {
        sort_key key[TT_AT_ONCE];
        uint32_t number[TT_AT_ONCE];
#pragma unroll
        for (int u = 0; u < TT_AT_ONCE; u++) {
            const int64_t i = begin + u * step;
            if (i >= p.n) continue;
            key[u] = key_at(p, i);
            number[u] = number_at(p, i);
        }
#pragma unroll
        for (int u = 0; u < TT_AT_ONCE; u++) {
            if (begin + u * step >= p.n) continue;
#pragma unroll
            for (int d = 0; d < TT_KEY_PASSES; d++)
                if (d < p.key_passes) atomicAdd(&counts[d][key_digit(key[u], d)], 1u);
            for (int d = p.key_passes; d < p.passes; d++) atomicAdd(&counts[d][row_digit(p, number[u], d)], 1u);
        }
    }
    const int64_t states = (p.n + TT_TILE - 1) / TT_TILE * 256;
    for (int64_t i = first; i < states; i += step) {
        if (TT_VARIANT & 4) ((uint64_t *)p.states[0])[i] = 0;
        else ((uint32_t *)p.states[0])[i] = 0;
    }
    __syncthreads();
    for (int i = threadIdx.x; i < p.passes * 256; i += TT_THREADS)
        if (counts[i >> 8][i & 255]) atomicAdd(&p.counts[i], counts[i >> 8][i & 255]);
    __threadfence();
    __syncthreads();
    if (comes_last(p.counts + p.passes * 257, gridDim.x)) plan(p);
}

#else
#if TT_VARIANT & 4
typedef uint64_t state;
#else
typedef uint32_t state;
#endif
#define TT_OWN ((state)1 << (8 * sizeof(state) - 2)) /* the tile's own count */
#define TT_SUM ((state)2 << (8 * sizeof(state) - 2)) /* with those of all tiles before it */

extern "C" __global__ void __launch_bounds__(TT_THREADS, 768 / TT_THREADS)
    tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(
        room); /* of the sorted tile; before that [TT_WARPS][256], how many of a digit a warp has seen, then
                              * how many the warps before it */
    uint32_t *const seen = (uint32_t *)room, *const numbers = (uint32_t *)((sort_key *)room + TT_TILE);
    sort_key *const keys = (sort_key *)room;
    __shared__ uint32_t start[256], target[256], taken;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const uint32_t plan = p.counts[p.passes * 257 + 1 + p.pass];
    if (!plan) return;
    state *const states = (state *)p.states[plan >> 5];
    if (threadIdx.x == 0) taken = atomicAdd(&p.counts[p.passes * 256 + p.pass], 1u);
    for (int i = threadIdx.x; i < TT_WARPS * 256; i += TT_THREADS) seen[i] = 0;
    __syncthreads();
    const int64_t tile = taken, begin = tile * TT_TILE, mine = begin + warp * (32 * TT_ITEMS) + lane;
    if (threadIdx.x < 256) ((state *)p.states[~(plan >> 5) & 1])[tile * 256 + threadIdx.x] = 0; /* for the next pass */
    const int many_here = p.n - begin < TT_TILE ? (int)(p.n - begin) : TT_TILE;
    const bool by_key = p.pass < p.key_passes;
    sort_key key[TT_ITEMS];
    uint32_t number[TT_ITEMS], at[TT_ITEMS];
    if (plan & 3) {
        const sort_key *from = (const sort_key *)p.keys[(plan & 3) - 1];
        const uint32_t *of = p.numbers[(plan & 3) - 1];
#pragma unroll
        for (int u = 0; u < TT_ITEMS; u++) key[u] = mine + u * 32 < p.n ? from[mine + u * 32] : ~(sort_key)0;
#pragma unroll
        for (int u = 0; u < TT_ITEMS; u++) number[u] = TT_NUMBERED && mine + u * 32 < p.n ? of[mine + u * 32] : 0;
    } else {
#pragma unroll
        for (int u = 0; u < TT_ITEMS; u++) key[u] = mine + u * 32 < p.n ? key_at(p, mine + u * 32) : ~(sort_key)0;
#pragma unroll
        for (int u = 0; u < TT_ITEMS; u++)
            number[u] = TT_NUMBERED && mine + u * 32 < p.n ? number_at(p, mine + u * 32) : 0;
    }
    /* Those of each digit are numbered, in order. What is beyond the last element has the last digit. */
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) {
        uint32_t digit = by_key ? key_digit(key[u], p.pass) : row_digit(p, number[u], p.pass);
        if (mine + u * 32 >= p.n) digit = 255;
        at[u] = digit << 16 | tt_number_of_digit(seen + warp * 256, digit, lane);
    }
    __syncthreads();
    uint32_t many = 0, all;
    if (threadIdx.x < 256) {
#pragma unroll
        for (int w = 0; w < TT_WARPS; w++) {
            const uint32_t own = seen[w * 256 + threadIdx.x];
            seen[w * 256 + threadIdx.x] = many;
            many += own;
        }
        *(volatile state *)(states + tile * 256 + threadIdx.x) = (tile ? TT_OWN : TT_SUM) | many;
    }
    const uint32_t here = tt_block_scan<uint32_t, TT_WARPS>(many, &all);
    if (threadIdx.x < 256) start[threadIdx.x] = here;
    __syncthreads();
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) {
        const uint32_t digit = at[u] >> 16;
        at[u] = (at[u] & 0xffff) + start[digit] + seen[warp * 256 + digit];
    }
    __syncthreads();
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) {
        keys[at[u]] = key[u];
        if (TT_NUMBERED) numbers[at[u]] = number[u];
    }
    if (threadIdx.x < 256) {
        state before = 0;
        int64_t t = tile - 1;
        for (bool known = tile == 0; !known;) {
            state found[TT_BACK];
#pragma unroll
            for (int k = 0; k < TT_BACK; k++)
                found[k] = t >= k ? *(volatile state *)(states + (t - k) * 256 + threadIdx.x) : TT_SUM;
            bool goes_on = true;
#pragma unroll
            for (int k = 0; k < TT_BACK; k++) {
                goes_on = goes_on && !known && found[k] & (TT_OWN | TT_SUM);
                if (!goes_on) continue;
                before += found[k] & (TT_OWN - 1);
                known = found[k] & TT_SUM;
                t--;
            }
        }
        if (tile) *(volatile state *)(states + tile * 256 + threadIdx.x) = TT_SUM | (before + many);
        target[threadIdx.x] = p.counts[p.pass * 256 + threadIdx.x] + (uint32_t)before - here;
    }
    __syncthreads();
    const bool delivers = p.values && plan & 16;
    sort_key *const out = (sort_key *)p.keys[(plan >> 2) - 1 & 1];
    uint32_t *const out_numbers = p.numbers[(plan >> 2) - 1 & 1];
#pragma unroll 4
    for (int t = threadIdx.x; t < many_here; t += TT_THREADS) {
        const sort_key k = keys[t];
        const uint32_t n = TT_NUMBERED ? numbers[t] : 0,
                       to = target[by_key ? key_digit(k, p.pass) : row_digit(p, n, p.pass)] + (uint32_t)t;
        if (delivers) {
            ((stored *)p.values)[to] = tt_shares_key(k) ? ((const stored *)p.in)[n] : tt_element_of(k);
            p.places[to] = n - (p.row_length ? (int64_t)tt_quotient(n, p.row) * p.row_length : 0);
        } else {
            out[to] = k;
            if (TT_NUMBERED) out_numbers[to] = n;
        }
    }
}
#endif
