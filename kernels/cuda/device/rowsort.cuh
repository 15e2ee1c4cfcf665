/* Rows of up to 4096 elements, each sorted by a block, and what is wanted of it written.
 *
 * TT_OP: of sort_args.h. The variant: bit 0 descending, 1 by digits of eight bits, from the lowest on, with TT_ITEMS
 * elements of each thread, else by exchanges; 2 blocks of 64 threads. */
#pragma once
#define TT_DESCENDING (TT_VARIANT & 1)
#include "cuda/device/block_sums.cuh"
#include "cuda/device/keys.cuh"
#define TT_ARGS tt_sort_args

#if TT_VARIANT & 2
#define TT_ITEMS 16
#define TT_THREADS (TT_VARIANT & 4 ? 64 : 256)
#define TT_WARPS (TT_THREADS / 32)
#define TT_DIGITS (256 / TT_THREADS) /* of a thread */
#define TT_SIZE (TT_THREADS * TT_ITEMS)
#define TT_BLOCKS (768 / TT_THREADS) /* of a processor at least, to which registers are held down */

struct tt_sorted {
    const sort_key *keys;
    const uint16_t *numbers;
    TT_DEVICE sort_key key(int i) const { return keys[i]; }
    TT_DEVICE int64_t index(int i) const { return numbers[i]; }
};

/* All threads; stable. */
static TT_DEVICE tt_sorted tt_sort_row(const tt_sort_args &p, int64_t in) {
    __shared__ __align__(16) unsigned char room[TT_SIZE * sizeof(sort_key)];
    __shared__ uint16_t numbers[TT_SIZE];
    uint32_t *const seen = (uint32_t *)room; /* [TT_WARPS][256]: of a digit by a warp; then the first place of those */
    sort_key *const keys = (sort_key *)room;
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5, mine = warp * (32 * TT_ITEMS) + lane;
    sort_key key[TT_ITEMS];
    uint32_t number[TT_ITEMS];
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) {
        const int i = mine + u * 32;
        number[u] = i;
        key[u] = i < p.n ? tt_key_of(*(const stored *)(p.in + in + i * p.step)) : ~(sort_key)0;
    }
#pragma unroll 1
    for (int shift = 0; shift < TT_KEY_BITS; shift += 8) {
        __syncthreads();
        for (int i = threadIdx.x; i < TT_WARPS * 256; i += TT_THREADS) seen[i] = 0;
        __syncthreads();
        uint32_t at[TT_ITEMS];
#pragma unroll
        for (int u = 0; u < TT_ITEMS; u++) {
            const uint32_t digit = (uint32_t)(key[u] >> shift) & 255;
            at[u] = tt_number_of_digit(seen + warp * 256, digit, lane);
        }
        __syncthreads();
        uint32_t many[TT_DIGITS], own = 0, all;
#pragma unroll
        for (int d = 0; d < TT_DIGITS; d++) {
            many[d] = 0;
            for (int w = 0; w < TT_WARPS; w++) many[d] += seen[w * 256 + threadIdx.x * TT_DIGITS + d];
            own += many[d];
        }
        uint32_t place = tt_block_scan<uint32_t, TT_WARPS>(own, &all);
#pragma unroll
        for (int d = 0; d < TT_DIGITS; d++)
            for (int w = 0; w < TT_WARPS; w++) {
                uint32_t &first = seen[w * 256 + threadIdx.x * TT_DIGITS + d];
                const uint32_t here = first;
                first = place;
                place += here;
            }
        __syncthreads();
#pragma unroll
        for (int u = 0; u < TT_ITEMS; u++) at[u] += seen[warp * 256 + ((uint32_t)(key[u] >> shift) & 255)];
        __syncthreads();
#pragma unroll
        for (int u = 0; u < TT_ITEMS; u++) {
            keys[at[u]] = key[u];
            numbers[at[u]] = (uint16_t)number[u];
        }
        __syncthreads();
        if (shift + 8 == TT_KEY_BITS) break;
#pragma unroll
        for (int u = 0; u < TT_ITEMS; u++) {
            key[u] = keys[mine + u * 32];
            number[u] = numbers[mine + u * 32];
        }
    }
    const tt_sorted sorted = {keys, numbers};
    return sorted;
}

#else
#define TT_THREADS 1024 /* at most */
#define TT_BLOCKS 1
typedef tt_bitonic tt_sorted;

static TT_DEVICE tt_sorted tt_sort_row(const tt_sort_args &p, int64_t in) {
    TT_DYNAMIC_SHARED(room);
    tt_bitonic x = tt_bitonic_in(room, p.padded);
    for (int i = threadIdx.x; i < p.padded; i += blockDim.x) {
        if (i < p.n) x.set(i, tt_key_of(*(const stored *)(p.in + in + i * p.step)), (uint32_t)i);
        else x.pad(i);
    }
    tt_bitonic_sort(x, p.padded);
    return x;
}
#endif

struct tt_shared_keys {
    const tt_sorted &x;
    TT_DEVICE sort_key operator()(int64_t i) const { return x.key((int)i); }
};

extern "C" __global__ void __launch_bounds__(TT_THREADS, TT_BLOCKS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ uint64_t best;
    int64_t in, out;
    tt_row(p, blockIdx.x, &in, &out);
    if (threadIdx.x == 0) best = 0;
    tt_sorted x = tt_sort_row(p, in);
    const tt_shared_keys keys{x};
    if (TT_OP == TT_SORT || TT_OP == TT_TOPK) {
        for (int64_t i = threadIdx.x; i < p.out_n; i += blockDim.x) {
            const sort_key key = keys(i);
            const int64_t index = x.index((int)i), at = out + i * p.out_step;
            ((stored *)p.values)[at] =
                tt_shares_key(key) ? *(const stored *)(p.in + in + index * p.step) : tt_element_of(key);
            p.indices[at] = index;
        }
        return;
    }
    if (TT_OP == TT_MODE) {
        for (int64_t i = threadIdx.x; i < p.n; i += blockDim.x) {
            const uint64_t run = tt_run(keys, p.n, i);
            if (run) atomicMax(&best, run);
        }
        __syncthreads();
        if (threadIdx.x == 0) tt_write_out(p, in, out, 0, x.index((int)tt_run_end(best)));
        return;
    }
    if (threadIdx.x) return;
    const int64_t nans = TT_FLOATING && TT_OP != TT_KTH ? p.n - tt_bound(keys, p.n, TT_KEY_ONES) : 0;
    tt_write_out(p, in, out, 0, x.index((int)tt_rank(p, nans)));
}
