/* Copies by way of tiles in shared memory, so that reads and writes both go along what lies one after the other: see
 * tt_transpose_args. TT_D0: the dtype written, TT_D1: that read. */
#pragma once
#include "cuda/device/prelude.cuh"
#define TT_ARGS tt_transpose_args
#define TT_SIDE (1 << TT_VARIANT)
#define TT_WARPS (TT_CUDA_THREADS / 32)
typedef TT_TYPE(TT_D0) out_type;
typedef TT_TYPE(TT_D1) in_type;

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ in_type tile[TT_SIDE][TT_SIDE + 1]; /* a column's elements are in different banks */
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    uint32_t rest = blockIdx.x;
    const int64_t a = (int64_t)(rest % p.tiles_across) * TT_SIDE;
    rest /= p.tiles_across;
    const int64_t b = (int64_t)(rest % p.tiles_along) * TT_SIDE;
    rest /= p.tiles_along;
    const char *in = p.in + a * p.in_step + b * (int)sizeof(in_type);
    char *out = p.out + b * p.out_step + a * (int)sizeof(out_type);
    for (int d = 0; d < p.ndim; d++) {
        const uint32_t x = rest % p.size[d];
        rest /= p.size[d];
        in += x * p.in_steps[d];
        out += x * p.out_steps[d];
    }
#pragma unroll
    for (int k = warp; k < TT_SIDE; k += TT_WARPS)
#pragma unroll
        for (int l = lane; l < TT_SIDE; l += 32)
            if (a + k < p.across && b + l < p.along)
                tile[k][l] = *(const in_type *)(in + k * p.in_step + l * (int)sizeof(in_type));
    __syncthreads();
#pragma unroll
    for (int k = warp; k < TT_SIDE; k += TT_WARPS)
#pragma unroll
        for (int l = lane; l < TT_SIDE; l += 32)
            if (a + l < p.across && b + k < p.along)
                *(out_type *)(out + k * p.out_step + l * (int)sizeof(out_type)) =
                    (out_type)TT_CONVERT(TT_D1, TT_D0, tile[l][k]);
}
