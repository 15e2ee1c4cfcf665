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
   M(a) = t Q(t) with t = 1/(a+4), Q our own minimax polynomial for 0 <= a <= 14.51, to 2^-26.7.
   From 14.5 on Phi(-a) is zero.

   The main steps have their rounding errors put back, each found exactly by an fma: that of a^2
   and the low part of n ln2 correct the reduced argument r of exp; err, the relative error of t,
   counts by the logarithmic slope of M, 0.7 + 9.8 t (rough, as err is tiny); q_low are those of
   the last two steps of Q, whose constants have few enough bits for q1 - c1 and q0 - c0 to be
   exact. */
typedef struct {
  float a, t, q, q_low; /* M(a) = t (q + q_low) */
  float e, r, low;      /* exp(-a^2/2) = 2^n (1 + r + low), e for r + low */
  tt_u32 shift;         /* n in exponent position */
} tt_normal_f32;

TT_FN tt_normal_f32 tt_normal_tail_f32(float x) {
  const float c1 = 1.59235573f, c0 = 0.398985147f;
  tt_normal_f32 p;
  float a = tt_abs_f32(x), s, k, low, tail, u, t, err, q2, q1;
  p.a = a = a > 14.5f ? 14.5f : a;
  s = a * a;
  k = tt_fma_f32(s, -0.5f * TT_LOG2E_F32, TT_ROUND_F32);
  p.shift = tt_bits_f32(k) << 23;
  k = k - TT_ROUND_F32;
  p.r = tt_fma_f32(k, -TT_LN2_HIGH_F32, -0.5f * s);
  low = tt_fma_f32(k, -TT_LN2_LOW_F32, -0.5f * tt_fma_f32(a, a, -s));
  u = a + 4.0f;
  p.t = t = tt_inverse_f32(u);
  err = tt_fma_f32(-t, u, 1.0f) - t * (a - (u - 4.0f));
  low = tt_fma_f32(err, tt_fma_f32(t, 9.8f, 0.7f), low);
  tail = p.r * p.r * tt_exp_tail_f32(p.r);
  p.e = p.r + tail;
  p.low = tail + tt_fma_f32(low, p.e, low);
  q2 = 17721.6465f;
  q2 = tt_fma_f32(q2, t, -16930.0254f);
  q2 = tt_fma_f32(q2, t, 3669.34106f);
  q2 = tt_fma_f32(q2, t, 367.973785f);
  q2 = tt_fma_f32(q2, t, 73.177124f);
  q2 = tt_fma_f32(q2, t, 85.7885895f);
  q2 = tt_fma_f32(q2, t, 18.6980972f);
  q2 = tt_fma_f32(q2, t, 6.09803629f);
  q1 = tt_fma_f32(q2, t, c1);
  p.q = tt_fma_f32(q1, t, c0);
  p.q_low = tt_fma_f32(q1, t, c0 - p.q) + t * tt_fma_f32(q2, t, c1 - q1);
  return p;
}

/* h 2^n, rounded once: see tt_scale_f32. */
TT_FN float tt_normal_scale_f32(float h, tt_u32 shift) {
  return h * tt_float_bits(shift + ((127u + 32u) << 23)) * 0x1p-32f;
}

/* x Phi(x): x - x Phi(-x) on the right, -a Phi(-a) on the left with the relative accuracy that
   erf would lose there.  h_low are the errors of the products w = a t and h = w q, and q_low.
   As a product, gelu(-inf) is nan. */
TT_FN float tt_gelu_f32(float x) {
  tt_normal_f32 p = tt_normal_tail_f32(x);
  float w = p.a * p.t, h = w * p.q, h_low;
  h_low = tt_fma_f32(tt_fma_f32(p.a, p.t, -w), p.q, tt_fma_f32(w, p.q_low, tt_fma_f32(w, p.q, -h)));
  h_low = tt_fma_f32(h_low, p.e, h_low);
  h = h + tt_fma_f32(h, p.r, tt_fma_f32(h, p.low, h_low));
  h = tt_normal_scale_f32(h, p.shift);
  return (x > 0.0f ? x : 0.0f * x) - h;
}

/* Its derivative, Phi(x) + x phi(x): v = Phi(-a) - a phi(a) on the left, 1 - v on the right.  There
   is no relative accuracy to be had near its zero at -0.75.  As a product, it is nan at infinity. */
TT_FN float tt_gelu_slope_f32(float x) {
  tt_normal_f32 p = tt_normal_tail_f32(x);
  float v = tt_fma_f32(p.q, p.t, -0.398942280f * p.a);
  v = tt_normal_scale_f32(tt_fma_f32(v, p.r + p.low, v), p.shift);
  v = tt_fma_f32(x, 0.0f, v);
  return x > 0.0f ? 1.0f - v : v;
}

#endif
