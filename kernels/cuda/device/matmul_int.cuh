/* Products of integer matrices, modulo 2^bits: a block computes a tile of the result, from tiles of the operands. */
#pragma once
#include "cuda/device/prelude.cuh"

#define TT_ARGS tt_matmul_args
#define TILE TT_MATMUL_TILE

typedef TT_TYPE(TT_D0) element;

extern "C" __global__ void __launch_bounds__(TILE *TILE) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ element left[TILE][TILE], right[TILE][TILE + 1];
    const int x = threadIdx.x % TILE, y = threadIdx.x / TILE;
    const int64_t row = blockIdx.x / p.tiles_n * TILE + y, col = blockIdx.x % p.tiles_n * TILE + x;
    const element *a = (const element *)p.a + blockIdx.y * p.step_a + row * p.lda;
    const element *b = (const element *)p.b + blockIdx.y * p.step_b + col;
    element *c = (element *)p.c + (blockIdx.y * p.m + row) * p.n + col;
    const bool inside = row < p.m && col < p.n;
    uint64_t sum = p.add && inside ? (uint64_t)*c : 0;
    for (int64_t at = 0; at < p.k; at += TILE) {
        left[y][x] = row < p.m && at + x < p.k ? a[at + x] : (element)0;
        right[y][x] = col < p.n && at + y < p.k ? b[(at + y) * p.ldb] : (element)0;
        __syncthreads();
#pragma unroll
        for (int l = 0; l < TILE; l++) sum += (uint64_t)left[y][l] * (uint64_t)right[l][x];
        __syncthreads();
    }
    if (inside) *c = (element)sum;
}
