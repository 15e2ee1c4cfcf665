/* Sine, cosine and tangent in float32, for every argument.

   |x| = n pi/2 + r with |r| <= pi/4.  Two reductions give n and r:
   - small, |x| <= TT_TRIG_SMALL_F32: Cody-Waite with pi/2 in three floats; the first fma is
     exact, so r is right to its last place;
   - large: Payne-Hanek, the 96 bits of 2/pi that matter for the exponent of x times its
     mantissa.
   The full functions choose between them, which makes every lane pay for both; tt_sin_small_f32
   and tt_cos_small_f32 do the first only, with the same bits inside the bound.  A nan stays a
   nan in all of them.

   The polynomials are our own minimax fits. */
#ifndef TT_SCALAR_TRIG_F32_H
#define TT_SCALAR_TRIG_F32_H

#include "bits.h"
#include "exp_f32.h"

#define TT_TRIG_SMALL_F32 100000.0f
#define TT_TWO_OVER_PI_F32 0.636619747f

TT_FN float tt_trig_reduce_small_f32(float a, tt_u32 *n) {
    float t = tt_fma_f32(a, TT_TWO_OVER_PI_F32, TT_ROUND_F32);
    float k = t - TT_ROUND_F32;
    float r = tt_fma_f32(k, -1.57079637f, a);
    r = tt_fma_f32(k, 4.37113883e-8f, r);
    *n = tt_bits_f32(t);
    return tt_fma_f32(k, 1.71512451e-15f, r);
}

/* a = m 2^e, m of 24 bits.  The bits of 2^e 2/pi with weight 4 and above only add multiples of
   four to the quotient; of those below, the first 96 are w0 w1 w2, and m (w0 w1 w2), modulo 4
   and in units of 2^-62, is the sum p.  The nearest float to a multiple of pi/2 is 2^-31 from
   it, which leaves 30 good bits.

   The words t0 to t3 around those bits are taken, at index i = 0 to 4, from a word of zeros and
   the first 224 bits of 2/pi: by selects on the bits of i, as gathers from a table are slower. */
TT_FN double tt_trig_reduce_large_f32(float a, tt_u32 *n) {
    tt_u32 bits = tt_bits_f32(a), m = (bits & 0x7fffffu) | 0x800000u;
    tt_u32 start = (bits >> 23) - 120u, i = start >> 5, left = start & 31u;
    int i1 = (i & 1u) != 0u, i2 = (i & 2u) != 0u, i4 = (i & 4u) != 0u;
    tt_u32 u0 = i1 ? 0xa2f9836eu : 0x00000000u, u1 = i1 ? 0x4e441529u : 0xa2f9836eu;
    tt_u32 u2 = i1 ? 0xfc2757d1u : 0x4e441529u, u3 = i1 ? 0xf534ddc0u : 0xfc2757d1u;
    tt_u32 u4 = i1 ? 0xdb629599u : 0xf534ddc0u, u5 = i1 ? 0x3c439041u : 0xdb629599u;
    tt_u32 v0 = i2 ? u2 : u0, v1 = i2 ? u3 : u1, v2 = i2 ? u4 : u2, v3 = i2 ? u5 : u3;
    tt_u32 t0 = i4 ? 0xf534ddc0u : v0, t1 = i4 ? 0xdb629599u : v1;
    tt_u32 t2 = i4 ? 0x3c439041u : v2, t3 = i4 ? 0xfe5163abu : v3;
    tt_u32 w0 = t0 << left | t1 >> 1 >> (31u - left);
    tt_u32 w1 = t1 << left | t2 >> 1 >> (31u - left);
    tt_u32 w2 = t2 << left | t3 >> 1 >> (31u - left);
    tt_u64 p = ((tt_u64)(m * w0) << 32) + (tt_u64)m * w1 + ((tt_u64)m * w2 >> 32);
    tt_u64 rounded = p + (1ull << 61);
    tt_u64 rest = rounded - (rounded >> 62 << 62) - (1ull << 61);
    double high = (double)(tt_i32)(tt_u32)(rest >> 32);
    double low = (double)(tt_i32)((tt_u32)rest >> 1);
    *n = (tt_u32)(rounded >> 62);
    return (high * 0x1p-30 + low * 0x1p-61) * 1.5707963267948966;
}

TT_FN float tt_trig_reduce_f32(float a, tt_u32 *n) {
    tt_u32 n_small, n_large;
    float small = tt_trig_reduce_small_f32(a, &n_small);
    float large = (float)tt_trig_reduce_large_f32(a, &n_large);
    large = a < TT_INF_F32 ? large : TT_NAN_F32;
    *n = a > TT_TRIG_SMALL_F32 ? n_large : n_small;
    return a > TT_TRIG_SMALL_F32 ? large : small;
}

/* sin(r + n pi/2): sine for even n, cosine for odd n, negative when n has the bit 2. */
TT_FN float tt_trig_quadrant_f32(float r, tt_u32 n) {
    float z = r * r, s, c;
    s = tt_fma_f32(-1.95185989e-4f, z, 8.33219104e-3f);
    s = tt_fma_f32(s, z, -1.66666552e-1f);
    s = tt_fma_f32(s, r * z, r);
    c = tt_fma_f32(2.44323546e-5f, z, -1.38873095e-3f);
    c = tt_fma_f32(c, z, 4.16666456e-2f);
    c = tt_fma_f32(c, z, -0.5f);
    c = tt_fma_f32(c, z, 1.0f);
    return tt_float_bits(tt_bits_f32(n & 1u ? c : s) ^ (n & 2u) << 30);
}

TT_FN float tt_sin_reduced_f32(float x, float r, tt_u32 n) {
    return tt_float_bits(tt_bits_f32(tt_trig_quadrant_f32(r, n)) ^ (tt_bits_f32(x) & 0x80000000u));
}

TT_FN float tt_sin_small_f32(float x) {
    tt_u32 n;
    float r = tt_trig_reduce_small_f32(tt_abs_f32(x), &n);
    return tt_sin_reduced_f32(x, r, n);
}

TT_FN float tt_cos_small_f32(float x) {
    tt_u32 n;
    float r = tt_trig_reduce_small_f32(tt_abs_f32(x), &n);
    return tt_trig_quadrant_f32(r, n + 1u);
}

TT_FN float tt_sin_f32(float x) {
    tt_u32 n;
    float r = tt_trig_reduce_f32(tt_abs_f32(x), &n);
    return tt_sin_reduced_f32(x, r, n);
}

TT_FN float tt_cos_f32(float x) {
    tt_u32 n;
    float r = tt_trig_reduce_f32(tt_abs_f32(x), &n);
    return tt_trig_quadrant_f32(r, n + 1u);
}

/* In double from the reduction on, as the quotient of sine and cosine has three roundings.
   Here pi/2 is split so that k times its first part is exact. */
TT_FN float tt_tan_f32(float x) {
    float a = tt_abs_f32(x), t;
    tt_u32 n;
    double k, r, z, s, c;
    double large = tt_trig_reduce_large_f32(a, &n);
    t = a * TT_TWO_OVER_PI_F32 + TT_ROUND_F32;
    k = (double)(t - TT_ROUND_F32);
    r = ((double)a - k * 1.5707963267341256) - k * 6.0771005065061922e-11;
    r = a > TT_TRIG_SMALL_F32 ? large : r;
    n = a > TT_TRIG_SMALL_F32 ? n : tt_bits_f32(t);
    z = r * r;
    s = 2.7182745909639788e-06;
    s = s * z - 1.9839331011809274e-04;
    s = s * z + 8.3333293741764507e-03;
    s = s * z - 0.16666666641527403;
    s = s * z * r + r;
    c = 2.4432784388034152e-05;
    c = c * z - 1.3887313055913994e-03;
    c = c * z + 4.1666645618642965e-02;
    c = (c * z - 0.5) * z + 1.0;
    t = (float)((n & 1u ? -c : s) / (n & 1u ? s : c));
    t = a < TT_INF_F32 ? t : TT_NAN_F32;
    return tt_float_bits(tt_bits_f32(t) ^ (tt_bits_f32(x) & 0x80000000u));
}

#endif
