/* Products with sparse matrices: the sums of kernels/cpu/sparse_loops.h, in their order. TT_D0: the dtype. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/sparse_args.h"
#define TT_ARGS tt_sparse_args
typedef TT_TYPE(TT_D0) number;

/* Does place e lie within the matrix? Else that is reported: Note [Faults]. */
static TT_DEVICE bool lies_within(const TT_ARGS &p, int64_t e) {
    const int64_t row = p.rows[e], col = p.cols[e];
    const bool good = (uint64_t)row < (uint64_t)p.num_rows && (uint64_t)col < (uint64_t)p.num_cols;
    if (!good && (uint64_t)row >= (uint64_t)p.num_rows) tt_report(p.fault, TT_FAULT_SUBSCRIPT, row, p.num_rows, 0);
    else if (!good) tt_report(p.fault, TT_FAULT_SUBSCRIPT, col, p.num_cols, 1);
    return good;
}

#if TT_OP == 0
#if TT_VARIANT & 1
typedef uint64_t sort_key;
#else
typedef uint32_t sort_key;
#endif

/* Whoever has the first of a row's places goes through them; rows without places were zeroed before. */
extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const sort_key *keys = (const sort_key *)p.keys;
    const int64_t first = ((int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x) >> p.lanes_log;
    if (first >= p.count) return;
    const sort_key row = keys[first];
    if (first && keys[first - 1] == row) return;
    const int lanes = 1 << p.lanes_log;
    const number *values = (const number *)p.values, *b = (const number *)p.b;
    for (int64_t j = (int64_t)blockIdx.y * lanes + (threadIdx.x & (lanes - 1)); j < p.k;
         j += (int64_t)gridDim.y * lanes) {
        number sum = 0;
#pragma unroll 4
        for (int64_t i = first; i < p.count && keys[i] == row; i++) {
            const uint32_t e = p.order[i];
            if (lies_within(p, e)) sum += values[e] * b[p.cols[e] * p.k + j];
        }
        if ((int64_t)row < p.num_rows) ((number *)p.a)[(int64_t)row * p.k + j] = sum;
    }
}
#else
extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t e = ((int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x) / TT_SPARSE_LANES;
    const int lane = threadIdx.x % TT_SPARSE_LANES;
    number sum = 0;
    if (e < p.count && lies_within(p, e)) {
        const number *a = (const number *)p.a + p.rows[e] * p.k, *b = (const number *)p.b + p.cols[e] * p.k;
        for (int64_t j = lane; j < p.k; j += TT_SPARSE_LANES) sum += a[j] * b[j];
    }
#pragma unroll
    for (int half = TT_SPARSE_LANES / 2; half; half /= 2) sum += __shfl_down_sync(0xffffffffu, sum, half);
    if (e < p.count && lane == 0) ((number *)p.values)[e] = sum;
}
#endif
