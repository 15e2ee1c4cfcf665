/* softmax down columns: [outer][n][inner] along n. TT_OP, TT_D0 and TT_D1 as in softmax.cuh; the steps of
 * softmax_columns in kernels/cpu/simd/nn.c. The threads of a column take successive chunks of its rows. */
#pragma once
#include "cuda/device/common_case.cuh"
#include "cuda/device/rows_args.h"
#define TT_ARGS tt_columns_args
#define TT_LOG (TT_OP & 1)
#define TT_BACKWARD (TT_OP & 2)
#define TT_COLUMNS (1 << TT_VARIANT)
#define TT_SLOTS (TT_CUDA_THREADS / TT_COLUMNS)
#define TT_OF(f, x) TT_JOIN4(tt_, f, _, TT_D1)(x)
typedef TT_TYPE(TT_D1) number;
typedef TT_TYPE(TT_D0) stored_type;

static TT_DEVICE number load(const stored_type *x) { return TT_CONVERT(TT_D0, TT_D1, *x); }

template <typename F> static TT_DEVICE number over_slots(number *shared, number mine, F join) {
    const int slot = threadIdx.x / TT_COLUMNS;
    __syncthreads();
    shared[threadIdx.x] = mine;
    for (int h = 1; h < TT_SLOTS; h *= 2) {
        __syncthreads();
        if (slot % (2 * h) == 0) shared[threadIdx.x] = join(shared[threadIdx.x], shared[threadIdx.x + h * TT_COLUMNS]);
    }
    __syncthreads();
    return shared[threadIdx.x % TT_COLUMNS];
}

/* The terms of a thread's rows, by chunks. */
template <typename F> static TT_DEVICE number sum_of(int64_t begin, int64_t end, F term) {
    number waiting[24];
    uint32_t n = 0;
    for (int64_t first = begin; first < end; first += TT_COLUMN_CHUNK, n++) {
        const int rows = end - first < TT_COLUMN_CHUNK ? (int)(end - first) : TT_COLUMN_CHUNK;
        number sum = 0;
#pragma unroll 8
        for (int k = 0; k < rows; k++) sum += term(first + k);
#pragma unroll
        for (int k = 0; k < 24; k++) {
            if (!(n >> k & 1)) {
                waiting[k] = sum;
                break;
            }
            sum = waiting[k] + sum;
        }
    }
    number sum = -(number)0;
#pragma unroll
    for (int k = 0; k < 24; k++)
        if (n >> k & 1) sum = waiting[k] + sum;
    return sum;
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ number shared[TT_CUDA_THREADS];
    const int64_t column = blockIdx.x % p.tiles * TT_COLUMNS + threadIdx.x % TT_COLUMNS;
    const int64_t at = blockIdx.x / p.tiles * p.n * p.inner + (column < p.inner ? column : 0);
    const int64_t each = (int64_t)TT_COLUMN_CHUNK << p.log_per, from = threadIdx.x / TT_COLUMNS * each;
    const int64_t begin = column < p.inner ? from : p.n, end = from + each < p.n ? from + each : p.n;
    const stored_type *x = (const stored_type *)p.x + at;
    stored_type *out = (stored_type *)p.out + at;
    const auto plus = [](number a, number b) { return a + b; };
#if TT_BACKWARD
    const stored_type *y = (const stored_type *)p.y + at;
    const number sum =
        over_slots(shared,
                   sum_of(begin, end,
                          [&](int64_t i) {
                              return TT_LOG ? load(x + i * p.inner) : load(x + i * p.inner) * load(y + i * p.inner);
                          }),
                   plus);
#pragma unroll 8
    for (int64_t i = begin; i < end; i++) {
        const number g = load(x + i * p.inner), v = load(y + i * p.inner);
        const number r = TT_LOG ? g - TT_OF(exp_down, v) * sum : v * (g - sum);
        out[i * p.inner] = (stored_type)TT_CONVERT(TT_D1, TT_D0, r);
    }
#else
    const auto larger = [](number a, number b) { return b > a ? b : a; };
    number top = -(number)TT_INF_F32;
#pragma unroll 8
    for (int64_t i = begin; i < end; i++) top = larger(top, load(x + i * p.inner));
    top = over_slots(shared, top, larger);
    number last = over_slots(
        shared, sum_of(begin, end, [&](int64_t i) { return TT_OF(exp_down, load(x + i * p.inner) - top); }), plus);
    last = TT_LOG ? TT_OF(log, last) : 1 / last;
#pragma unroll 8
    for (int64_t i = begin; i < end; i++) {
        const number d = load(x + i * p.inner) - top;
        out[i * p.inner] = (stored_type)TT_CONVERT(TT_D1, TT_D0, TT_LOG ? d - last : TT_OF(exp_down, d) * last);
    }
#endif
}
