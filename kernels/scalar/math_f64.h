/* float64 scalar functions.  Where C and CUDA both have the function this is a call of it (the
   same name in both); the others are composed, each to a few ulp. */
#ifndef TT_SCALAR_MATH_F64_H
#define TT_SCALAR_MATH_F64_H

#include "bits.h"

TT_FN double tt_exp_f64(double x) { return exp(x); }
TT_FN double tt_exp2_f64(double x) { return exp2(x); }
TT_FN double tt_expm1_f64(double x) { return expm1(x); }
TT_FN double tt_log_f64(double x) { return log(x); }
TT_FN double tt_log2_f64(double x) { return log2(x); }
TT_FN double tt_log10_f64(double x) { return log10(x); }
TT_FN double tt_log1p_f64(double x) { return log1p(x); }
TT_FN double tt_sin_f64(double x) { return sin(x); }
TT_FN double tt_cos_f64(double x) { return cos(x); }
TT_FN double tt_tan_f64(double x) { return tan(x); }
TT_FN double tt_asin_f64(double x) { return asin(x); }
TT_FN double tt_acos_f64(double x) { return acos(x); }
TT_FN double tt_atan_f64(double x) { return atan(x); }
TT_FN double tt_sinh_f64(double x) { return sinh(x); }
TT_FN double tt_cosh_f64(double x) { return cosh(x); }
TT_FN double tt_tanh_f64(double x) { return tanh(x); }
TT_FN double tt_asinh_f64(double x) { return asinh(x); }
TT_FN double tt_acosh_f64(double x) { return acosh(x); }
TT_FN double tt_atanh_f64(double x) { return atanh(x); }
TT_FN double tt_erf_f64(double x) { return erf(x); }
TT_FN double tt_erfc_f64(double x) { return erfc(x); }
TT_FN double tt_lgamma_f64(double x) { return lgamma(x); }
TT_FN double tt_cbrt_f64(double x) { return cbrt(x); }
TT_FN double tt_reciprocal_f64(double x) { return 1.0 / x; }
TT_FN double tt_rsqrt_f64(double x) { return 1.0 / tt_sqrt_f64(x); }
TT_FN double tt_pow_f64(double x, double y) { return pow(x, y); }
TT_FN double tt_atan2_f64(double y, double x) { return atan2(y, x); }
TT_FN double tt_hypot_f64(double x, double y) { return hypot(x, y); }
TT_FN double tt_fmod_f64(double x, double y) { return fmod(x, y); }
TT_FN double tt_nextafter_f64(double x, double y) { return nextafter(x, y); }

/* The exponential only ever sees -|x|, so nothing overflows and the small side keeps its
   relative accuracy. */
TT_FN double tt_sigmoid_f64(double x) {
    double e = exp(-tt_abs_f64(x));
    return (x < 0.0 ? e : 1.0) / (1.0 + e);
}

TT_FN double tt_silu_f64(double x) { return x * tt_sigmoid_f64(x); }

TT_FN double tt_softplus_f64(double x) { return (x < 0.0 ? 0.0 : x) + log1p(exp(-tt_abs_f64(x))); }

TT_FN double tt_logsigmoid_f64(double x) { return -tt_softplus_f64(-x); }

/* 2 Phi(x) = erfc(-x/sqrt2), of the normal distribution.  erfc magnifies the rounding of its
   argument z by 2z^2, up to 1400 in the left tail, so the rounding error dz is recovered by an fma
   and put back through the derivative -2/sqrt(pi) exp(-z^2). */
TT_FN double tt_twice_ndtr_f64(double x) {
    const double c = 0.70710678118654757, c_low = -4.8336466567264567e-17;
    double z = -x * c;
    double dz = tt_fma_f64(-x, c, -z) - x * c_low;
    double d = 1.1283791670955126 * exp(-z * z) * dz;
    d = tt_abs_f64(x) < 64.0 ? d : 0.0;
    return erfc(z) - d;
}

TT_FN double tt_ndtr_f64(double x) { return 0.5 * tt_twice_ndtr_f64(x); }

/* x Phi(x) */
TT_FN double tt_gelu_f64(double x) { return 0.5 * x * tt_twice_ndtr_f64(x); }

/* Phi(x) + x phi(x) */
TT_FN double tt_gelu_slope_f64(double x) {
    return 0.5 * (1.0 + erf(x * 0.70710678118654752440)) + x * (0.39894228040143267794 * exp(-0.5 * x * x));
}

/* x sigmoid(z), z = x (A + B x^2), A = 2 sqrt(2/pi), B = 0.044715 A, which is the usual
   x/2 (1 + tanh(z/2)) without its cancellation on the left.  z is carried in two doubles
   because exp(z) turns its absolute error into a relative one. */
TT_FN double tt_gelu_tanh_f64(double x) {
    const double a = 1.5957691216057308, a_low = -9.9693093088109197e-17;
    const double b = 0.071354816272600252, b_low = -6.1751499181553155e-19;
    double s = x * x, s_low = tt_fma_f64(x, x, -s);
    double t = b * s, t_low = tt_fma_f64(b, s, -t) + (b * s_low + b_low * s);
    double w = a + t, v = w - a;
    double w_low = ((a - (w - v)) + (t - v)) + (t_low + a_low);
    double z = x * w, z_low = tt_fma_f64(x, w, -z) + x * w_low;
    z_low = tt_abs_f64(x) < 64.0 ? z_low : 0.0;
    return x * (tt_sigmoid_f64(z) * (1.0 + z_low * tt_sigmoid_f64(-z)));
}

/* Start: Winitzki's elementary approximation (two digits).  Then Halley's iteration on
   erf(y) = x, on the complement erfc(|y|) = 1 - |x|, which is exact for |x| >= 1/2. */
TT_FN double tt_erfinv_f64(double x) {
    double a = tt_abs_f64(x);
    double w = log((1.0 - a) * (1.0 + a));
    double u = 4.3307467508 + 0.5 * w;
    double y = tt_sqrt_f64(tt_sqrt_f64(u * u - w * 6.8027210884) - u);
    int i;
    for (i = 0; i < 3; i++) {
        double residual = a < 0.5 ? erf(y) - a : (1.0 - a) - erfc(y);
        double step = residual / (1.1283791670955126 * exp(-y * y));
        y = y - step / (1.0 + y * step);
    }
    y = a < 1e-8 ? a * 0.88622692545275801 : y;
    y = a == 1.0 ? TT_INF_F64 : y;
    return tt_copysign_f64(y, x);
}

/* Recurrence up to x >= 10 (gathered into one fraction p/q = sum 1/(x+k)), then the asymptotic
   series in Bernoulli numbers; reflection psi(1-x) - pi/tan(pi x) on the left.
   Poles: psi(+-0) = -+inf and nan at the negative integers. */
TT_FN double tt_digamma_f64(double x) {
    double z = x < 0.0 ? 1.0 - x : x;
    double p = 0.0, q = 1.0, t, i2, series, psi, frac;
    int k;
    for (k = 0; k < 10; k++) {
        int up = z < 10.0;
        p = up ? p * z + q : p;
        q = up ? q * z : q;
        z = up ? z + 1.0 : z;
    }
    t = 1.0 / z;
    i2 = t * t;
    series =
        i2 *
        (1.0 / 12 -
         i2 * (1.0 / 120 -
               i2 * (1.0 / 252 - i2 * (1.0 / 240 - i2 * (1.0 / 132 - i2 * (691.0 / 32760 -
                                                                           i2 * (1.0 / 12 - i2 * (3617.0 / 8160))))))));
    psi = (log(z) - 0.5 * t - series) - p / q;
    frac = x - floor(x + 0.5);
    psi = x < 0.0 ? psi - 3.1415926535897931 / tan(3.1415926535897931 * frac) : psi;
    psi = x < 0.0 && frac == 0.0 ? TT_NAN_F64 : psi;
    return x == 0.0 ? tt_copysign_f64(TT_INF_F64, -x) : psi;
}

/* |x| = n + f, |f| <= 1/2: f, exactly, and (-1)^n. */
TT_FN double tt_nearest_integer_f64(double x, double *sign) {
    double a = tt_abs_f64(x), n = rint(a), half = 0.5 * n;
    *sign = half == floor(half) ? 1.0 : -1.0;
    return a - n;
}

/* sin(pi x) / (pi x), where sin(pi x) = (-1)^n sin(pi f); 0 for an integer, not -0. */
TT_FN double tt_sinc_f64(double x) {
    double sign, f = tt_nearest_integer_f64(x, &sign);
    return x == 0.0 ? 1.0 : (sign * sin(3.1415926535897931 * f) + 0.0) / (3.1415926535897931 * tt_abs_f64(x));
}

/* sinc's derivative (cos(pi x) - sinc(x)) / x; near 0, where the difference cancels, its series, the sum over k of
   (-1)^k 2k (pi x)^2k / (2k+1)! / x. */
TT_FN double tt_sinc_slope_f64(double x) {
    const double pi = 3.1415926535897931;
    double sign, f = tt_nearest_integer_f64(x, &sign), z = pi * pi * x * x,
                 y = (sign * cos(pi * f) - tt_sinc_f64(x)) / x;
    z = -1.0 / 3 +
        z * (1.0 / 30 -
             z * (1.0 / 840 -
                  z * (1.0 / 45360 -
                       z * (1.0 / 3991680 - z * (1.0 / 518918400 -
                                                 z * (1.0 / 93405312000.0 - z * (1.0 / 22230464256000.0 -
                                                                                 z * (1.0 / 6758061133824000.0))))))));
    return tt_abs_f64(x) < 0.25 ? pi * pi * x * z : y;
}

/* max + log1p(exp(min - max)); two equal infinities are their own result. */
TT_FN double tt_logaddexp_f64(double x, double y) {
    double m = x > y ? x : y;
    double r = m + log1p(exp(-tt_abs_f64(x - y)));
    r = x == y && x - x != 0.0 ? x : r;
    return x != x || y != y ? x + y : r;
}

/* Likewise of powers of 2; log2(1 + t) is log1p(t) / log(2). */
TT_FN double tt_logaddexp2_f64(double x, double y) {
    double m = x > y ? x : y;
    double r = m + log1p(exp2(-tt_abs_f64(x - y))) * 1.44269504088896340736;
    r = x == y && x - x != 0.0 ? x : r;
    return x != x || y != y ? x + y : r;
}

/* x 2^y; of an integer y no intermediate result overflows. */
TT_FN double tt_ldexp_f64(double x, double y) {
    double most = y > 3000.0 ? 3000.0 : y < -3000.0 ? -3000.0 : y;
    return (y == rint(y) || y != most) && y - y == 0.0 ? ldexp(x, (int)most) : x * exp2(y);
}

/* Python's %: the result has the sign of the divisor. */
TT_FN double tt_remainder_f64(double x, double y) {
    double r = fmod(x, y);
    return r != 0.0 && (y < 0.0) != (r < 0.0) ? r + y : r;
}

/* Python's // for floats: the exact remainder is taken off first, so that the quotient is
   within rounding of an integer; it is then snapped to it. */
TT_FN double tt_floor_divide_f64(double x, double y) {
    double r = fmod(x, y);
    double q = (x - r) / y, f;
    q = r != 0.0 && (y < 0.0) != (r < 0.0) ? q - 1.0 : q;
    f = floor(q);
    f = q - f > 0.5 ? f + 1.0 : f;
    f = q == 0.0 ? tt_copysign_f64(0.0, x / y) : f;
    return y == 0.0 ? x / y : f;
}

#endif
