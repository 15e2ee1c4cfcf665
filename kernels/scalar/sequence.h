/* linspace's number k steps from one of its ends, in the arithmetic of the result's dtype: PyTorch's bits. */
#pragma once
#include "half.h"

TT_FN double tt_along_f64(double end, double step, int64_t k) { return tt_fma_f64(step, (double)k, end); }
TT_FN float tt_along_f32(float end, float step, int64_t k) { return tt_fma_f32(step, (float)k, end); }
TT_FN float tt_along_f16(float end, float step, int64_t k) {
    return tt_round_f16_f32(end + tt_round_f16_f32(step * tt_round_f16_f32((float)k)));
}
TT_FN float tt_along_bf16(float end, float step, int64_t k) {
    return tt_round_bf16_f32(end + tt_round_bf16_f32(step * tt_round_bf16_f32((float)k)));
}

/* logspace's exponents, from both ends to the middle; two roundings, again as PyTorch's. */
TT_FN double tt_exponent_f64(double start, double end, double step, int64_t n, int64_t k) {
    return k < n / 2 || n == 1 ? start + (double)k * step : end - (double)(n - 1 - k) * step;
}
