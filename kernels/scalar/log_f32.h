/* Logarithms in float32: log, log2, log10, log1p, softplus and logsigmoid.

   x = 2^k (1+f) with 1+f in [sqrt(1/2), sqrt(2)), by integer arithmetic on the bits; then
   log(x) = k ln2 + log(1+f).  The polynomial is our own minimax fit. */
#ifndef TT_SCALAR_LOG_F32_H
#define TT_SCALAR_LOG_F32_H

#include "bits.h"
#include "exp_f32.h"

/* Bits of sqrt(1/2): subtracting them makes the exponent field count from there. */
#define TT_SQRT_HALF_BITS 0x3f3504f3u

/* 2^23 k and f. */
TT_FN float tt_log_split_f32(tt_u32 bits, float *k) {
    tt_u32 exponent = (bits - TT_SQRT_HALF_BITS) & 0xff800000u;
    *k = (float)(tt_i32)exponent;
    return tt_float_bits(bits - exponent) - 1.0f;
}

/* Bits of a positive number, a denormal being given the exponent, zero or below, which it would
   have if it were normal. */
TT_FN tt_u32 tt_log_bits_f32(float x) {
    return x < 0x1p-126f ? tt_bits_f32(x * 0x1p23f) - (23u << 23) : tt_bits_f32(x);
}

/* (log(1+f) - f) / f^2, to 2^-27.3 of log(1+f).  Of the polynomials that good this is one whose
   rounding errors in tt_log_f32 come out small. */
TT_FN float tt_log_tail_f32(float f) {
    float q = -7.63469264e-2f;
    q = tt_fma_f32(q, f, 1.27646029e-1f);
    q = tt_fma_f32(q, f, -1.31612644e-1f);
    q = tt_fma_f32(q, f, 1.42013371e-1f);
    q = tt_fma_f32(q, f, -1.66231826e-1f);
    q = tt_fma_f32(q, f, 2.00012669e-1f);
    q = tt_fma_f32(q, f, -2.50008464e-1f);
    q = tt_fma_f32(q, f, 3.33333343e-1f);
    return tt_fma_f32(q, f, -0.5f);
}

/* What the logarithm of x is where the formula does not hold: -inf at 0, nan below, and x
   itself if infinite or nan. */
TT_FN float tt_log_special_f32(float x, float y) {
    y = x == 0.0f ? -TT_INF_F32 : y;
    y = x < 0.0f ? TT_NAN_F32 : y;
    return x < TT_INF_F32 ? y : x;
}

/* One constant for ln2 does: its error, 2^-29, is below the roundings of the sum. */
TT_FN float tt_log_of_parts_f32(float k, float f) {
    return tt_fma_f32(k, TT_LN2_HIGH_F32 * 0x1p-23f, tt_fma_f32(f * f, tt_log_tail_f32(f), f));
}

TT_FN float tt_log_f32(float x) {
    float k, f = tt_log_split_f32(tt_log_bits_f32(x), &k);
    return tt_log_special_f32(x, tt_log_of_parts_f32(k, f));
}

/* Other bases: k log_b(2) + log(1+f) log_b(e), the second constant in two floats because for
   k = 0 the whole result is that product. */
TT_FN float tt_log2_f32(float x) {
    const float high = 1.44269502f, low = 1.92596303e-8f;
    float k, f = tt_log_split_f32(tt_log_bits_f32(x), &k);
    float y = tt_fma_f32(f, low, high * (f * f * tt_log_tail_f32(f)));
    return tt_log_special_f32(x, tt_fma_f32(k, 0x1p-23f, tt_fma_f32(f, high, y)));
}

TT_FN float tt_log10_f32(float x) {
    const float high = 0.434294492f, low = -1.01030549e-8f;
    const float high2 = 0.30103001f * 0x1p-23f, low2 = -1.43209888e-8f * 0x1p-23f;
    float k, f = tt_log_split_f32(tt_log_bits_f32(x), &k);
    float y = tt_fma_f32(f, low, high * (f * f * tt_log_tail_f32(f)));
    y = tt_fma_f32(f, high, tt_fma_f32(k, low2, y));
    return tt_log_special_f32(x, tt_fma_f32(k, high2, y));
}

/* log(u) for u = 1 + x rounded, with the rounding error c = x - (u - 1), scaled like u by 2^-k,
   put back into f.  For k = 0 that makes f = x exactly.  From 2^24 on c does not matter, and
   its scale might overflow. */
TT_FN float tt_log1p_f32(float x) {
    float u = 1.0f + x, c = x - (u - 1.0f), k, g, y;
    tt_u32 bits = tt_bits_f32(u);
    float f = tt_log_split_f32(bits, &k);
    g = f + c * tt_float_bits((127u << 23) - ((bits - TT_SQRT_HALF_BITS) & 0xff800000u));
    y = tt_log_of_parts_f32(k, x < 0x1p24f ? g : f);
    y = x == 0.0f ? x : y;
    y = x == -1.0f ? -TT_INF_F32 : y;
    y = x < -1.0f ? TT_NAN_F32 : y;
    return x < TT_INF_F32 ? y : x;
}

/* log(1 + exp(x)) = max(x, 0) + log(1 + e), e = exp(-|x|) <= 1.  1 + e is (1+f)/h, with h = 1/2 and f = (e-1)/2 if it
   is above sqrt(2), else h = 1 and f = e, so nothing is rounded.  (Of a choice between floats gcc would make two
   polynomials.)  w is f 2^32, as in tt_times_sigmoid_f32, for a denormal result to be rounded only once.  To the right
   of 20, where e is below half a unit in the last place of x, it stays away from denormals. */
TT_FN float tt_softplus_f32(float x) {
    float a = -tt_abs_f32(x), least = x > 0.0f ? -20.0f : TT_EXP_ZERO_F32, p, s, t, e, h, f, w, y;
    tt_u32 shift;
    p = tt_exp_split_f32(a < least ? least : a, &shift);
    s = tt_float_bits(shift + ((127u + 32u) << 23));
    t = s * 0x1p-32f;
    e = tt_fma_f32(t, p, t);
    h = tt_float_bits(tt_bits_f32(e) > 0x3ed413cdu ? 0x3f000000u : 0x3f800000u);
    f = tt_fma_f32(h, e, h - 1.0f);
    w = tt_fma_f32(h, tt_fma_f32(s, p, s), (h - 1.0f) * 0x1p32f);
    y = tt_fma_f32(w, f * tt_log_tail_f32(f), w);
    y = tt_fma_f32(h - 1.0f, -0x1p33f * TT_LN2_HIGH_F32, y);
    return tt_fma_f32(y, 0x1p-32f, x < 0.0f ? 0.0f : x);
}

TT_FN float tt_logsigmoid_f32(float x) { return -tt_softplus_f32(-x); }

#endif
