/* erf, erfc and gelu in float32. */
#ifndef TT_SCALAR_ERF_F32_H
#define TT_SCALAR_ERF_F32_H

#include "bits.h"
#include "exp_f32.h"

/* Up to 0.9 an odd polynomial; further out 1 - exp(g(a)) with g a polynomial for log(erfc(a)),
   which erfc(a) <= 0.2 forgives much: so one constant for ln2 and a short exponential do.
   1 to rounding from a = 3.92 on.  Our own minimax fits. */
TT_FN float tt_erf_f32(float x) {
    float a = tt_abs_f32(x), z = x * x, c, g, t, r, y, q;
    c = a > 3.95f ? 3.95f : a;
    g = 1.97173009e-4f;
    g = tt_fma_f32(g, c, -3.05553805e-3f);
    g = tt_fma_f32(g, c, 2.22768672e-2f);
    g = tt_fma_f32(g, c, -1.04037009e-1f);
    g = tt_fma_f32(g, c, -6.37060046e-1f);
    g = tt_fma_f32(g, c, -1.12774944f);
    g = tt_fma_f32(g, c, -1.77512338e-4f);
    t = tt_fma_f32(g, TT_LOG2E_F32, TT_ROUND_F32);
    r = tt_fma_f32(t - TT_ROUND_F32, -TT_LN2_HIGH_F32, g);
    y = tt_fma_f32(r * r, tt_exp_tail_f32(r), r);
    t = tt_float_bits((tt_bits_f32(t) << 23) + (127u << 23));
    y = (1.0f - t) - t * y;
    q = -6.10550051e-4f;
    q = tt_fma_f32(q, z, 5.01411315e-3f);
    q = tt_fma_f32(q, z, -2.67794486e-2f);
    q = tt_fma_f32(q, z, 1.1282111e-1f);
    q = tt_fma_f32(q, z, -3.76125127e-1f);
    q = tt_fma_f32(q, z, 1.28379151e-1f);
    q = tt_fma_f32(q, a, a);
    return tt_copysign_f32(a < 0.9f ? q : y, x);
}

/* What gelu and its derivative have in common; in one loop over the same x a compiler computes it
   once.  With Phi the normal distribution's function, Phi(-a) = exp(-a^2/2) M(a), and
   M(a) = t Q(t - 0.114) with t = 1/(a+4), Q our own minimax polynomial for 0 <= a <= 14.52, to
   2^-26.5; about the middle of its range its first steps round little that counts.  From 14.5 on
   Phi(-a) is zero, and at 14.85 scale is (as in exp, which see).  That bound is put on bits, where
   14.85 also takes the place of a nan, which x itself brings back: about a float, gcc would compute each half of a
 * function twice, for the
   constant too.

   exp's reduced argument, times 2, is z = -a^2 - 2 n ln2: the high part of ln2 is so short that the
   fma with the rounded square is exact, and the square's error goes with the low part.  The other
   main steps have their rounding errors put back, each found exactly by an fma: err, the relative
   error of t, counts by the slope of M in log t, of which Q is a linear function (roughly, as err
   is tiny); and those of the last two steps of Q. */
typedef struct {
    float a, m, m_low;    /* M(a) = m + m_low */
    float r, tail, scale; /* exp(-a^2/2) = (1 + r + tail) 2^-32 scale: no part of it is a denormal */
} tt_normal_f32;

TT_FN tt_normal_f32 tt_normal_tail_f32(float x) {
    const float c1 = 4.34108448f, c0 = 0.703629851f;
    tt_normal_f32 p;
    tt_u32 bits = tt_bits_f32(x) & 0x7fffffffu;
    float a, s, k, z, u, t, w, err, y, q2, q1, q, low;
    p.a = a = tt_float_bits(bits < 0x416d999au ? bits : 0x416d999au);
    s = a * a;
    k = tt_fma_f32(s, -0.5f * TT_LOG2E_F32, TT_ROUND_F32);
    p.scale = tt_float_bits((tt_bits_f32(k) << 23) + ((127u + 32u) << 23));
    k = k - TT_ROUND_F32;
    z = tt_fma_f32(k, -2.0f * 0.693145752f, -s) + tt_fma_f32(k, -2.0f * 1.42860677e-6f, tt_fma_f32(-a, a, s));
    y = 1.38189038e-3f / 64;
    y = tt_fma_f32(y, z, 8.36907979e-3f / 32);
    y = tt_fma_f32(y, z, 4.16682474e-2f / 16);
    y = tt_fma_f32(y, z, 1.66665167e-1f / 8);
    y = tt_fma_f32(y, z, 4.9999994e-1f / 4);
    p.r = 0.5f * z;
    p.tail = z * z * y;
    u = a + 4.0f;
    t = tt_inverse_f32(u);
    err = tt_fma_f32(-t, a - (u - 4.0f), tt_fma_f32(-t, u, 1.0f));
    w = t - 0.113761902f;
    q2 = 18262.5312f;
    q2 = tt_fma_f32(q2, w, 1069.67542f);
    q2 = tt_fma_f32(q2, w, -3478.88452f);
    q2 = tt_fma_f32(q2, w, -651.530823f);
    q2 = tt_fma_f32(q2, w, 299.654236f);
    q2 = tt_fma_f32(q2, w, 231.973282f);
    q2 = tt_fma_f32(q2, w, 84.71418f);
    q2 = tt_fma_f32(q2, w, 21.7408333f);
    q1 = tt_fma_f32(q2, w, c1);
    q = tt_fma_f32(q1, w, c0);
    low = tt_fma_f32(w, tt_fma_f32(q2, w, c1 - q1), tt_fma_f32(q1, w, c0 - q));
    low = tt_fma_f32(err, tt_fma_f32(q, 3.68f, -1.31f), low);
    p.m = t * q;
    p.m_low = tt_fma_f32(t, low, tt_fma_f32(t, q, -p.m));
    return p;
}

/* x Phi(x): x - x Phi(-x) on the right, -a Phi(-a) on the left with the relative accuracy that
   erf would lose there.  As a product, gelu(-inf) is nan. */
TT_FN float tt_gelu_f32(float x) {
    tt_normal_f32 p = tt_normal_tail_f32(x);
    float low = tt_fma_f32(p.m_low, p.r + p.tail, p.m_low), s = p.a * p.scale;
    low = tt_fma_f32(p.m, p.r, tt_fma_f32(p.m, p.tail, low));
    float right = x > 0.0f ? x : 0.0f * x;
    return tt_fma_f32(tt_fma_f32(s, p.m, s * low), -0x1p-32f, right);
}

/* Phi(x), 1 - Phi(-x) on the right. */
TT_FN float tt_ndtr_f32(float x) {
    tt_normal_f32 p = tt_normal_tail_f32(x);
    float low = tt_fma_f32(p.m_low, p.r + p.tail, p.m_low), right = x > 0.0f ? 1.0f : 0.0f;
    low = tt_fma_f32(p.m, p.r, tt_fma_f32(p.m, p.tail, low));
    right = tt_fma_f32(tt_fma_f32(p.scale, p.m, p.scale * low), x > 0.0f ? -0x1p-32f : 0x1p-32f, right);
    return x == x ? right : x;
}

/* gelu's derivative, Phi(x) + x phi(x): v = Phi(-a) - a phi(a) on the left, 1 - v on the right.  There
   is no relative accuracy to be had near its zero at -0.75.  As a product, it is nan at infinity. */
TT_FN float tt_gelu_slope_f32(float x) {
    tt_normal_f32 p = tt_normal_tail_f32(x);
    float v = tt_fma_f32(p.a, -0.398942280f, p.m) + p.m_low, right = 0.0f * x;
    v = tt_fma_f32(v, p.r + p.tail, v) * p.scale;
    right = right + (x > 0.0f ? 1.0f : -0.0f);
    return tt_fma_f32(v, x > 0.0f ? -0x1p-32f : 0x1p-32f, right);
}

#endif
