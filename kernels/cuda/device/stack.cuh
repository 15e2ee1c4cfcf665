/* What decompositions do to matrices beside the library's work: see stack_args.h. The variant: which of it.
 *
 * Blocks in x share out the elements of a matrix, those in y the matrices; where a matrix is one block's, x has
 * them. */
#pragma once
#include "cuda/device/number.cuh"
#include "cuda/device/stack_args.h"
#define TT_ARGS tt_stack_args

#if TT_VARIANT == TT_STACK_COPY
static TT_DEVICE T element(const TT_ARGS &p, const T *from, int row, int col) {
    const int part = p.part & ~TT_PART_ADJOINT;
    if (part == TT_PART_IDENTITY) return number(row == col ? 1 : 0);
    if ((part == TT_PART_UPPER && row > col) || (part == TT_PART_LOWER && row < col)) return number(0);
    if (p.part & TT_PART_ADJOINT)
        return col < p.from_rows && row < p.from_cols ? conj_of(from[col + (int64_t)row * p.ld_from]) : number(0);
    return row < p.from_rows && col < p.from_cols ? from[row + (int64_t)col * p.ld_from] : number(0);
}
#endif

#if TT_VARIANT == TT_STACK_DIAGONAL || TT_VARIANT == TT_STACK_NAN_DIAGONAL
static TT_DEVICE bool is_wrong(T x) { return TT_VARIANT == TT_STACK_DIAGONAL ? is_zero(x) : is_nan(x); }
#endif

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
#if TT_VARIANT == TT_STACK_COPY
    if (i >= (int64_t)p.rows * p.cols) return;
    const int col = (int)(i / p.rows), row = (int)(i - (int64_t)col * p.rows);
    for (int64_t k = blockIdx.y; k < p.count; k += gridDim.y)
        ((T *)(p.to + k * p.step_to))[row + (int64_t)col * p.ld_to] =
            element(p, (const T *)(p.from + k * p.step_from), row, col);
#elif TT_VARIANT == TT_STACK_FINITE
    T *const a = (T *)(p.from + blockIdx.x * p.step_from);
    const int64_t numel = (int64_t)p.rows * p.cols;
    bool wrong = false;
    for (int64_t e = threadIdx.x; e < numel; e += TT_CUDA_THREADS) {
        const int col = (int)(e / p.rows), row = (int)(e - (int64_t)col * p.rows);
        const bool counts = p.part == TT_PART_UPPER ? row <= col : p.part == TT_PART_LOWER ? row >= col : true;
        wrong |= counts && !is_finite(a[e]);
    }
    const bool found = __syncthreads_or(wrong);
    for (int64_t e = threadIdx.x; found && e < numel; e += TT_CUDA_THREADS) a[e] = number(0);
    if (threadIdx.x == 0) p.found[blockIdx.x] = found;
#elif TT_VARIANT == TT_STACK_SETTLE
    if (i < p.count && p.found[i]) p.info[i] = -1;
#elif TT_VARIANT == TT_STACK_DIAGONAL || TT_VARIANT == TT_STACK_NAN_DIAGONAL
    __shared__ int first;
    const T *const a = (const T *)(p.from + blockIdx.x * p.step_from);
    if (threadIdx.x == 0) first = p.rows;
    __syncthreads();
    for (int k = threadIdx.x; k < p.rows; k += TT_CUDA_THREADS)
        if (is_wrong(a[k * ((int64_t)p.ld_from + 1)])) atomicMin(&first, k);
    __syncthreads();
    if (threadIdx.x == 0 && !p.info[blockIdx.x]) p.info[blockIdx.x] = first < p.rows ? first + 1 : 0;
#elif TT_VARIANT == TT_STACK_PIVOTS
    if (i >= p.count) return;
    int pivot = p.pivots[i];
    if (pivot < 1 || pivot > p.rows) {
        tt_report(p.fault, TT_FAULT_PIVOT, pivot, p.rows, 0);
        pivot = 1;
    }
    p.places[i] = pivot;
#elif TT_VARIANT == TT_STACK_IN_ORDER
    if (i < p.count) p.places[i] = (int)(i % p.num_pivots) + 1;
#elif TT_VARIANT == TT_STACK_PLACES
    TT_DYNAMIC_SHARED(room);
    const int m = p.rows;
    int32_t *const from = (int32_t *)room, *const other = from + m;
    for (int k = threadIdx.x; k < m; k += TT_CUDA_THREADS) from[k] = k;
    for (int k = threadIdx.x; k < p.num_pivots; k += TT_CUDA_THREADS) {
        const int pivot = p.pivots[(int64_t)blockIdx.x * p.num_pivots + k];
        const bool valid = pivot >= 1 && pivot <= m;
        if (!valid) tt_report(p.fault, TT_FAULT_PIVOT, pivot, m, 0);
        other[k] = valid ? pivot - 1 : k;
    }
    __syncthreads();
    for (int k = 0; threadIdx.x == 0 && k < p.num_pivots; k++) {
        const int row = from[k];
        from[k] = from[other[k]];
        from[other[k]] = row;
    }
    __syncthreads();
    for (int k = threadIdx.x; k < m; k += TT_CUDA_THREADS) p.places[(int64_t)blockIdx.x * m + k] = from[k];
#elif TT_VARIANT == TT_STACK_PERMUTATION || TT_VARIANT == TT_STACK_GATHER
    if (i >= (int64_t)p.rows * p.cols) return;
    const int col = (int)(i / p.rows), row = (int)(i - (int64_t)col * p.rows);
    for (int64_t k = blockIdx.y; k < p.count; k += gridDim.y) {
        const int place = p.places[k * p.rows + row];
        ((T *)(p.to + k * p.step_to))[i] = TT_VARIANT == TT_STACK_PERMUTATION
                                               ? number(place == col ? 1 : 0)
                                               : ((const T *)(p.from + k * p.step_from))[place + (int64_t)col * p.rows];
    }
#elif TT_VARIANT == TT_STACK_EIGENVECTORS
    struct pair {
        R re, im;
    };
    if (i >= (int64_t)p.rows * p.rows) return;
    const int n = p.rows, col = (int)(i / n), row = (int)(i - (int64_t)col * n);
    for (int64_t k = blockIdx.y; k < p.count; k += gridDim.y) {
        const R *const v = (const R *)(p.from + k * p.step_from);
        const R im = ((const pair *)(p.values + k * p.step_values))[col].im;
        const int first = im < 0 && col > 0 ? col - 1 : col; /* of two conjugate ones the first has the positive part */
        const bool alone = im == 0 || first + 1 == n;
        const R other = alone ? 0 : v[row + (int64_t)(first + 1) * n];
        pair z;
        z.re = v[row + (int64_t)first * n];
        z.im = im < 0 ? -other : other;
        ((pair *)(p.to + k * p.step_to))[i] = z;
    }
#endif
}
