/* A stable radix sort of keys with a number each, from the least digit of eight bits: for each digit a kernel counts it in
 * every tile, one sums the counts of a digit over the tiles, and one puts the elements in their places. See radix.c.
 *
 * TT_OP: of the numbers below. The variant: bit 0 keys of 64 bits, 1 the numbers are 0, 1, 2, ..., 2 the digits are those
 * of number / row. */
#pragma once
#include "cuda/device/block_sums.cuh"
#include "cuda/device/index_args.h"
#define TT_ARGS tt_radix_args

enum { TT_COUNT, TT_SUM, TT_PLACE, TT_SMALL };
#if TT_VARIANT & 1
typedef uint64_t sort_key;
#define TT_ITEMS 8
#else
typedef uint32_t sort_key;
#define TT_ITEMS 16 /* of a thread; TILE in radix.c */
#endif
#define TT_TILE (TT_CUDA_THREADS * TT_ITEMS)
#define TT_WARPS (TT_CUDA_THREADS / 32)

static TT_DEVICE uint32_t digit_of(const TT_ARGS &p, sort_key key, uint32_t number) {
#if TT_VARIANT & 4
    return tt_quotient(number, p.row) >> p.shift & 255;
#else
    return (uint32_t)(key >> p.shift) & 255;
#endif
}
static TT_DEVICE uint32_t number_of(const TT_ARGS &p, int64_t i) { return TT_VARIANT & 2 ? (uint32_t)i : p.order[i]; }

#if TT_OP == 0
extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ uint32_t counts[256];
    counts[threadIdx.x] = 0;
    __syncthreads();
    const int64_t begin = (int64_t)blockIdx.x * TT_TILE + threadIdx.x;
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) {
        const int64_t i = begin + u * TT_CUDA_THREADS;
        if (i >= p.n) break;
        atomicAdd(&counts[digit_of(p, ((const sort_key *)p.keys)[i], number_of(p, i))], 1u);
    }
    __syncthreads();
    p.counts[threadIdx.x * p.blocks + blockIdx.x] = counts[threadIdx.x];
}

#elif TT_OP == 1
extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    uint32_t *counts = p.counts + blockIdx.x * p.blocks, before = 0;
    for (int64_t begin = 0; begin < p.blocks; begin += TT_CUDA_THREADS) {
        const int64_t i = begin + threadIdx.x;
        uint32_t total;
        const uint32_t at = tt_block_scan<uint32_t, TT_WARPS>(i < p.blocks ? counts[i] : 0, &total);
        if (i < p.blocks) counts[i] = before + at;
        before += total;
    }
    if (threadIdx.x == 0) p.totals[blockIdx.x] = before;
}

#elif TT_OP == 2
extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ uint32_t seen[TT_WARPS][256]; /* of each digit by each warp; then by the warps before */
    __shared__ uint32_t start[256], target[256];
    __shared__ sort_key keys[TT_TILE];
    __shared__ uint32_t numbers[TT_TILE];
    const int lane = threadIdx.x & 31, warp = threadIdx.x >> 5;
    const int64_t tile = (int64_t)blockIdx.x * TT_TILE;
    for (int w = 0; w < TT_WARPS; w++) seen[w][threadIdx.x] = 0;
    __syncthreads();
    sort_key key[TT_ITEMS];
    uint32_t number[TT_ITEMS], rank[TT_ITEMS];
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) { /* a warp's elements lie together, and are taken in order */
        const int64_t i = tile + warp * (32 * TT_ITEMS) + u * 32 + lane;
        const bool valid = i < p.n;
        key[u] = valid ? ((const sort_key *)p.keys)[i] : 0;
        number[u] = valid ? number_of(p, i) : 0;
        const uint32_t digit = digit_of(p, key[u], number[u]);
        uint32_t peers = __ballot_sync(~0u, valid);
#pragma unroll
        for (int b = 0; b < 8; b++) {
            const bool set = digit >> b & 1;
            const uint32_t with = __ballot_sync(~0u, set);
            peers &= set ? with : ~with;
        }
        const uint32_t below = peers & ((1u << lane) - 1), already = seen[warp][digit];
        rank[u] = already + __popc(below);
        __syncwarp();
        if (valid && !below) seen[warp][digit] = already + __popc(peers);
        __syncwarp();
    }
    __syncthreads();
    uint32_t many = 0, all;
    for (int w = 0; w < TT_WARPS; w++) {
        const uint32_t own = seen[w][threadIdx.x];
        seen[w][threadIdx.x] = many;
        many += own;
    }
    const uint32_t here = tt_block_scan<uint32_t, TT_WARPS>(many, &all);
    const uint32_t there = tt_block_scan<uint32_t, TT_WARPS>(p.totals[threadIdx.x], &all);
    start[threadIdx.x] = here;
    target[threadIdx.x] = there + p.counts[threadIdx.x * p.blocks + blockIdx.x] - here;
    __syncthreads();
#pragma unroll
    for (int u = 0; u < TT_ITEMS; u++) {
        if (tile + warp * (32 * TT_ITEMS) + u * 32 + lane >= p.n) continue;
        const uint32_t digit = digit_of(p, key[u], number[u]), at = start[digit] + seen[warp][digit] + rank[u];
        keys[at] = key[u];
        numbers[at] = number[u];
    }
    __syncthreads();
    for (int64_t t = threadIdx.x; t < TT_TILE && tile + t < p.n; t += TT_CUDA_THREADS) {
        const uint32_t at = target[digit_of(p, keys[t], numbers[t])] + (uint32_t)t;
        ((sort_key *)p.keys_out)[at] = keys[t];
        p.order_out[at] = numbers[t];
    }
}

#else
/* Up to 4096 narrow keys: one block exchanges them (Batcher's bitonic sort) with their numbers below them. */
extern "C" __global__ void __launch_bounds__(1024) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ uint64_t x[4096];
    int size = 32;
    while (size < p.n) size *= 2;
    for (int i = threadIdx.x; i < size; i += blockDim.x)
        x[i] = i < p.n ? (uint64_t)((const uint32_t *)p.keys)[i] << 32 | (uint32_t)i : ~(uint64_t)0;
    for (int length = 2; length <= size; length *= 2)
        for (int step = length / 2; step; step /= 2) {
            __syncthreads();
            for (int t = threadIdx.x; t < size / 2; t += blockDim.x) {
                const int i = 2 * t - (t & (step - 1)), j = i + step;
                const uint64_t a = x[i], b = x[j];
                if ((a > b) == !(i & length)) x[i] = b, x[j] = a;
            }
        }
    __syncthreads();
    for (int i = threadIdx.x; i < p.n; i += blockDim.x) {
        ((uint32_t *)p.keys_out)[i] = (uint32_t)(x[i] >> 32);
        p.order_out[i] = (uint32_t)x[i];
    }
}
#endif
