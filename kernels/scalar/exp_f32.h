/* Exponentials in float32: exp, exp2, expm1, tanh, sigmoid, silu and gelu_tanh.

   exp(x) = 2^n exp(r), n the integer nearest to x/ln2 and |r| <= ln2/2 (Cody-Waite: n ln2 is
   taken off in two parts by fma).  The polynomials are our own minimax fits (Remez exchange,
   then each coefficient in turn rounded to float32 and the rest refitted).

   Below half of the smallest number the result must not pass through denormals, which cost an Intel
   CPU a hundred cycles each, to become 0. So such arguments are taken to where n is -159: shifted
   into the exponent of 2^32, that is the number 0.

   Selects keep a NaN operand by testing for what is to be replaced, so that a NaN, for which
   every comparison is false, passes through. */
#ifndef TT_SCALAR_EXP_F32_H
#define TT_SCALAR_EXP_F32_H

#include "bits.h"

#define TT_LOG2E_F32 1.44269502f
#define TT_LN2_HIGH_F32 0.693147182f
#define TT_LN2_LOW_F32 (-1.90465421e-9f)
#define TT_EXP_ZERO_F32 (-110.2f) /* -159 ln2, about */
#define TT_EXP_NONE_F32 (-104.0f) /* its exponential is below 2^-150 */

/* Adding 1.5 * 2^23 rounds |x| < 2^22 to an integer and leaves it in the low bits: the sum's
   bits shifted left by 23 are that integer in the place of an exponent. */
#define TT_ROUND_F32 12582912.0f

/* (exp(r) - 1 - r) / r^2 for |r| <= ln2/2, to 2^-28 of exp(r). */
TT_FN float tt_exp_tail_f32(float r) {
    float q = 1.38189038e-3f;
    q = tt_fma_f32(q, r, 8.36907979e-3f);
    q = tt_fma_f32(q, r, 4.16682474e-2f);
    q = tt_fma_f32(q, r, 1.66665167e-1f);
    return tt_fma_f32(q, r, 4.9999994e-1f);
}

/* *shift is n in exponent position (to be added to bits), the value exp(r) - 1. */
TT_FN float tt_exp_split_f32(float x, tt_u32 *shift) {
    float t = tt_fma_f32(x, TT_LOG2E_F32, TT_ROUND_F32);
    float n = t - TT_ROUND_F32;
    float r = tt_fma_f32(n, -TT_LN2_HIGH_F32, x);
    r = tt_fma_f32(n, -TT_LN2_LOW_F32, r);
    *shift = tt_bits_f32(t) << 23;
    return tt_fma_f32(r * r, tt_exp_tail_f32(r), r);
}

/* y 2^n for y near 1, given n in exponent position and the sign of n.  The exponent is first
   moved 32 towards zero, out of reach of overflow and underflow; the last product then rounds
   once, to a denormal or to infinity where it must. */
TT_FN float tt_scale_f32(float y, tt_u32 shift, int negative) {
    float s = tt_float_bits(shift + (negative ? (127u + 32u) << 23 : (127u - 32u) << 23));
    return y * s * (negative ? 0x1p-32f : 0x1p32f);
}

/* exp(r) for |r| <= ln2/2. */
TT_FN float tt_exp_near_f32(float r) {
    float q = tt_fma_f32(tt_exp_tail_f32(r), r, 1.0f);
    return tt_fma_f32(q, r, 1.0f);
}

TT_FN float tt_exp_f32(float x) {
    float t, r;
    x = x < TT_EXP_NONE_F32 ? TT_EXP_ZERO_F32 : x;
    x = x > 89.0f ? 89.0f : x;
    t = tt_fma_f32(x, TT_LOG2E_F32, TT_ROUND_F32);
    r = tt_fma_f32(t - TT_ROUND_F32, -TT_LN2_HIGH_F32, x);
    r = tt_fma_f32(t - TT_ROUND_F32, -TT_LN2_LOW_F32, r);
    return tt_scale_f32(tt_exp_near_f32(r), tt_bits_f32(t) << 23, x < 0.0f);
}

/* The fraction r = x - n is exact here; 2^r = 1 + r q(r), |r| <= 1/2. */
TT_FN float tt_exp2_f32(float x) {
    float t, r, q;
    x = x < -150.0f ? -159.0f : x;
    x = x > 128.0f ? 128.0f : x;
    t = x + TT_ROUND_F32;
    r = x - (t - TT_ROUND_F32);
    q = 1.33318303e-4f;
    q = tt_fma_f32(q, r, 1.33879262e-3f);
    q = tt_fma_f32(q, r, 9.62544605e-3f);
    q = tt_fma_f32(q, r, 5.55036627e-2f);
    q = tt_fma_f32(q, r, 2.40225941e-1f);
    q = tt_fma_f32(q, r, 6.93147182e-1f);
    return tt_scale_f32(tt_fma_f32(q, r, 1.0f), tt_bits_f32(t) << 23, x < 0.0f);
}

/* expm1(x) / 2 = 2^(n-1) (exp(r) - 1) + (2^(n-1) - 1/2): halved, so that n = 128 fits. */
TT_FN float tt_half_expm1_f32(float x) {
    tt_u32 shift;
    float p = tt_exp_split_f32(x, &shift);
    float s = tt_float_bits(shift + (126u << 23));
    return tt_fma_f32(s, p, s - 0.5f);
}

/* Below 2^-25 the function is x to rounding; this also keeps -0 and denormals, which the
   halves above would round. */
TT_FN float tt_expm1_f32(float x) {
    float c = x < -20.0f ? -20.0f : x;
    c = c > 89.0f ? 89.0f : c;
    c = 2.0f * tt_half_expm1_f32(c);
    return tt_abs_f32(x) < 0x1p-25f ? x : c;
}

/* t(r) = tanh(r) for |r| <= ln2 by an odd minimax polynomial.  Below ln2 that is it; from there on, with n the integer
   nearest to a / (2 ln2) and r = a - 2n ln2,

       exp(-2a) = s (1 - t) / (1 + t),  s = 16^-n,
       tanh(a) = 1 - w,  w = 2 exp(-2a) / (1 + exp(-2a)) = 2s (1 - t) / ((1 + s) + t (1 - s)),

   where the subtraction hides the roundings of w; 1 to rounding from a = 9.02 on.  An exponential beside the polynomial
   takes a tenth longer. */
TT_FN float tt_tanh_f32(float x) {
    float a = tt_abs_f32(x), c, u, r, z, s, t, w;
    c = a > 10.0f ? 10.0f : a;
    u = tt_fma_f32(c, -0.5f * TT_LOG2E_F32, TT_ROUND_F32 + 32.0f); /* 32 - n in the low bits: 2s when shifted by 25 */
    r = tt_fma_f32(u - (TT_ROUND_F32 + 32.0f), 2.0f * TT_LN2_HIGH_F32, c);
    s = tt_float_bits(tt_bits_f32(u) << 25);
    z = r * r;
    t = -5.20554138e-3f;
    t = tt_fma_f32(t, z, 2.01651938e-2f);
    t = tt_fma_f32(t, z, -5.35862222e-2f);
    t = tt_fma_f32(t, z, 1.33295089e-1f);
    t = tt_fma_f32(t, z, -3.33332092e-1f);
    t = tt_fma_f32(t * z, r, r);
    w = tt_ratio_f32(tt_fma_f32(-s, t, s), tt_fma_f32(t, tt_fma_f32(s, -0.5f, 1.0f), tt_fma_f32(s, 0.5f, 1.0f)));
    return tt_float_bits(tt_bits_f32(a < 0.6931f ? t : 1.0f - w) | (tt_bits_f32(x) & 0x80000000u));
}

/* v times the sigmoid of +-a, a <= 0, the sign chosen by negative, from exp(a) = s (1 + p).

   With e = exp(a), d = 1 + e and b = v e on the left, b = v on the right, the result is b/d.
   For e < 0.4 it is rather computed as b - b (e/d), where the roundings of d and of the
   quotient come in damped by e.  s is carried 2^32 times too large, for a denormal result to be
   rounded only once. */
TT_FN float tt_times_sigmoid_f32(float v, int negative, float p, tt_u32 shift) {
    float s = tt_float_bits(shift + ((127u + 32u) << 23));
    float t = s * 0x1p-32f, w = v * s;
    float e = tt_fma_f32(t, p, t), d = tt_fma_f32(t, p, 1.0f + t);
    float b = negative ? tt_fma_f32(w, p, w) : v;
    float q = tt_ratio_f32(e < 0.4f ? e : b, d);
    q = e < 0.4f ? tt_fma_f32(-b, q, b) : q;
    return negative ? q * 0x1p-32f : q;
}

/* The same of x, with its sign where it is zero, and its NaN and infinity. */
TT_FN float tt_as_of_f32(float q, float x) {
    q = tt_copysign_f32(q, x);
    return x < TT_INF_F32 ? q : x;
}

/* Below -109 even -a exp(a) rounds to zero. */
TT_FN float tt_sigmoid_of_f32(float x, float v) {
    tt_u32 shift;
    float a = -tt_abs_f32(x), p;
    p = tt_exp_split_f32(a < TT_EXP_ZERO_F32 ? TT_EXP_ZERO_F32 : a, &shift);
    return tt_times_sigmoid_f32(v, x < 0.0f, p, shift);
}

TT_FN float tt_sigmoid_f32(float x) { return tt_sigmoid_of_f32(x, 1.0f); }

/* As a product, nan for x = -inf. */
TT_FN float tt_silu_f32(float x) { return tt_as_of_f32(tt_sigmoid_of_f32(x, x), x); }

/* x sigmoid(z), z = x (A + B x^2), A = 2 sqrt(2/pi), B = 0.044715 A: the usual
   x/2 (1 + tanh(z/2)) without its cancellation on the left.  exp(z) turns z's absolute error into a
   relative one, so each step's rounding error goes along in a second number, found exactly by an fma
   (in double the function takes 1.6 times as long).  The high part of A has 12 bits: with it A - u
   is exact.  |x| = 10.92 is where n = -159; below 2^-40 the result is x/2, and an error could be a
   denormal. */
TT_FN float tt_gelu_tanh_f32(float x) {
    float a = tt_abs_f32(x), s, s_low, u, u_low, z, z_low, t, n, r;
    a = a > 10.92f ? 10.92f : a;
    a = a < 0x1p-40f ? 0x1p-40f : a;
    s = a * a;
    s_low = tt_fma_f32(a, a, -s);
    u = tt_fma_f32(0.0713548139f, s, 1.595703125f);
    u_low = tt_fma_f32(0.0713548139f, s, 1.595703125f - u);
    u_low = tt_fma_f32(0.0713548139f, s_low, u_low) + tt_fma_f32(2.39883247e-09f, s, 6.59966026e-05f);
    z = -a * u;
    z_low = tt_fma_f32(-a, u_low, tt_fma_f32(-a, u, -z));
    t = tt_fma_f32(z, TT_LOG2E_F32, TT_ROUND_F32);
    n = t - TT_ROUND_F32;
    r = tt_fma_f32(n, -TT_LN2_HIGH_F32, z) + tt_fma_f32(n, -TT_LN2_LOW_F32, z_low);
    r = tt_fma_f32(r * r, tt_exp_tail_f32(r), r);
    return tt_as_of_f32(tt_times_sigmoid_f32(x, x < 0.0f, r, tt_bits_f32(t) << 23), x);
}

#endif
