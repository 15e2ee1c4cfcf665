/* Ranges, computed in float64 or int64, and indices of triangles. TT_OP: which; TT_D0: the dtype of the result. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/random_args.h"
#include "scalar/arith.h"
#include "scalar/sequence.h"

#define TT_ARGS tt_range_args

typedef TT_TYPE(TT_D0) element;

/* From both ends to the middle, so that the last value is the end exactly. */
#define TT_BETWEEN(along)                                                                                              \
    (k < p.numel / 2 || p.numel == 1 ? along(p.start, p.step, k) : along(p.end, -p.step, p.numel - 1 - k))
#if TT_IS(TT_D0, f32)
#define TT_ALONG tt_along_f32
#elif TT_IS(TT_D0, f16)
#define TT_ALONG tt_along_f16
#elif TT_IS(TT_D0, bf16)
#define TT_ALONG tt_along_bf16
#else
#define TT_ALONG tt_along_f64
#endif

/* The sum over the rows q before r of q + from, cut to [0, cols]. */
static TT_DEVICE int64_t before_row(int64_t r, int64_t from, int64_t cols) {
    int64_t begin = from < 0 ? -from : 0, full = cols - from;
    begin = begin < r ? begin : r;
    full = full < begin ? begin : full < r ? full : r;
    return (full - begin) * (begin + full - 1 + 2 * from) / 2 + (r - full) * cols;
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t k = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (k >= p.numel) return;
    element *out = (element *)p.out;
#if TT_OP == 0
    out[k] = TT_CONVERT(i64, TT_D0, (int64_t)((uint64_t)p.first + (uint64_t)k * (uint64_t)p.by));
#elif TT_OP == 1
    out[k] = TT_CONVERT(f64, TT_D0, p.start + (double)k * p.step);
#elif TT_OP == 2
    out[k] = TT_CONVERT(f64, TT_D0, (double)TT_BETWEEN(TT_ALONG));
#elif TT_OP == 3
    out[k] = TT_CONVERT(f64, TT_D0, tt_pow_f64(p.base, tt_exponent_f64(p.start, p.end, p.step, p.numel, k)));
#else
    /* Row r of the lower triangle has the columns before r + offset + 1, of the upper one those from r + offset on. */
    const bool upper = TT_OP == TT_RANGE_TRIU;
    const int64_t from = upper ? p.offset : p.offset + 1;
    int64_t low = 0, high = p.rows - 1; /* the last row that begins at element k or before */
    while (low < high) {
        const int64_t middle = (low + high + 1) / 2;
        const int64_t start =
            upper ? middle * p.cols - before_row(middle, from, p.cols) : before_row(middle, from, p.cols);
        if (start <= k) low = middle;
        else high = middle - 1;
    }
    int64_t col = k - (upper ? low * p.cols - before_row(low, from, p.cols) : before_row(low, from, p.cols));
    if (upper && low + from > 0) col += low + from;
    out[k] = TT_CONVERT(i64, TT_D0, low);
    out[p.numel + k] = TT_CONVERT(i64, TT_D0, col);
#endif
}
