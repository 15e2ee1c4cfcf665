/* gelu whose result is stored as a half type. The special function unit's, of float32, has an error that is known;
 * where all that gelu may be within it rounds to one half number, that is the result, and only elsewhere gelu itself is
 * computed. So the bits are the CPU's. (A fused kernel computes gelu itself.) */
#pragma once
#ifdef TT_APPROXIMATE
#define tt_rounded_gelu_f32 tt_gelu_f32
#else
#include "cuda/device/approximate.cuh"

/* gelu is right - tail (1 + d), |d| < 2^-19 + 2^-23 a^2, if the tail is no denormal number; float32 rounds that. */
static TT_DEVICE float tt_rounded_gelu_f32(float x) {
    float a, e;
    const float m = tt_approximate_normal_f32(x, &a, &e), tail = a * e * m, right = x > 0.0f ? x : 0.0f * x;
    const float most = tt_fma_f32(tail, tt_fma_f32(a * a, 0x1p-23f, 0x1p-19f), right * 0x1p-22f), y = right - tail;
    const auto low = TT_CONVERT(TT_D0, TT_D1, y - most), high = TT_CONVERT(TT_D0, TT_D1, y + most);
    return x > -12.0f && low == high ? y : tt_gelu_f32(x);
}
#endif
