/* Inverse trigonometric, hyperbolic and inverse hyperbolic functions and cbrt in float32, through
   double. */
#ifndef TT_SCALAR_HYPER_F32_H
#define TT_SCALAR_HYPER_F32_H

#include "bits.h"
#include "wide_f32.h"

/* asin(a) = pi/2 - 2 asin(sqrt((1-a)/2)) past 1/2.  *beyond says that this was done: the
   result is then the last asin, half of acos(a).  Outside [-1, 1] the root is nan. */
TT_FN double tt_asin_split_f32(double a, int *beyond) {
    double h = 0.5 * (1.0 - a), x, z;
    *beyond = !(a <= 0.5);
    x = tt_sqrt_f64(h);
    z = *beyond ? h : a * a;
    return tt_asin_wide(*beyond ? x : a, z);
}

TT_FN float tt_asin_f32(float x) {
    int beyond;
    double r = tt_asin_split_f32((double)tt_abs_f32(x), &beyond);
    return tt_copysign_f32((float)(beyond ? 0.5 * TT_PI_F64 - 2.0 * r : r), x);
}

TT_FN float tt_acos_f32(float x) {
    int beyond;
    double r = tt_asin_split_f32((double)tt_abs_f32(x), &beyond);
    double left = beyond ? TT_PI_F64 - 2.0 * r : 0.5 * TT_PI_F64 + r;
    double right = beyond ? 2.0 * r : 0.5 * TT_PI_F64 - r;
    return (float)(x < 0.0f ? left : right);
}

/* Beyond 1, pi/2 - atan(1/a). */
TT_FN float tt_atan_f32(float x) {
    double a = (double)tt_abs_f32(x);
    int inverse = a > 1.0;
    double r = tt_atan_wide(inverse ? 1.0 / a : a, 1.0);
    return tt_copysign_f32((float)(inverse ? 0.5 * TT_PI_F64 - r : r), x);
}

/* Below 1 an odd polynomial, as the exponentials cancel there.  Beyond 90 both overflow. */
TT_FN float tt_sinh_f32(float x) {
    double a = (double)tt_abs_f32(x), z = a * a, e, q;
    e = tt_exp_wide(a > 90.0 ? 90.0 : a);
    q = 2.8174394413162056e-06;
    q = q * z + 1.9836066295431551e-04;
    q = q * z + 8.3333505977184440e-03;
    q = q * z + 1.6666666488725221e-01;
    return tt_copysign_f32((float)(a < 1.0 ? q * z * a + a : 0.5 * (e - 1.0 / e)), x);
}

TT_FN float tt_cosh_f32(float x) {
    double a = (double)tt_abs_f32(x), e = tt_exp_wide(a > 90.0 ? 90.0 : a);
    return (float)(0.5 * (e + 1.0 / e));
}

/* log(a + sqrt(a^2 + 1)) = log1p(a + a^2/(1 + sqrt(a^2 + 1))). */
TT_FN float tt_asinh_f32(float x) {
    double a = (double)tt_abs_f32(x), z = a * a;
    float y = (float)tt_log1p_wide(a + z / (1.0 + tt_sqrt_f64(z + 1.0)));
    return a < TT_INF_F64 ? tt_copysign_f32(y, x) : x;
}

/* log(x + sqrt(x^2 - 1)) = log1p(t + sqrt(t (t+2))), t = x - 1. */
TT_FN float tt_acosh_f32(float x) {
    double t = (double)x - 1.0;
    float y = (float)tt_log1p_wide(t + tt_sqrt_f64(t * (t + 2.0)));
    y = x < 1.0f ? TT_NAN_F32 : y;
    return x < TT_INF_F32 ? y : x;
}

/* log((1+a)/(1-a))/2 = log1p(2a/(1-a))/2. */
TT_FN float tt_atanh_f32(float x) {
    double a = (double)tt_abs_f32(x);
    float y = (float)(0.5 * tt_log1p_wide(2.0 * a / (1.0 - a)));
    y = a == 1.0 ? TT_INF_F32 : y;
    y = a <= 1.0 ? y : TT_NAN_F32;
    return tt_copysign_f32(y, x);
}

/* A third of the exponent word gives four bits, each step of Halley's iteration triples them. */
TT_FN float tt_cbrt_f32(float x) {
    double a = (double)tt_abs_f32(x), y, c;
    y = tt_double_bits((tt_u64)((tt_u32)(tt_bits_f64(a) >> 32) / 3u + 0x2a9f7893u) << 32);
    c = y * y * y;
    y = y * (c + 2.0 * a) / (2.0 * c + a);
    c = y * y * y;
    y = y * (c + 2.0 * a) / (2.0 * c + a);
    return a > 0.0 && a < TT_INF_F64 ? tt_copysign_f32((float)y, x) : x;
}

#endif
