/* Scalar functions of complex numbers.
 *
 * Arithmetic is done in the dtype itself (arith_complex.h); all else in float64, of which complex64 gets the rounded
 * result. Values at infinities, NaN and zeros of either sign are those of C99, annex G, but that a product is the
 * textbook's, as in NumPy and PyTorch. Branch cuts follow the sign of zero. The inverse functions are Kahan's ("Branch
 * cuts for complex elementary functions", 1987). */
#pragma once
#include "arith.h"

TT_FN int tt_isinf_part(double x) { return tt_abs_f64(x) == TT_INF_F64; }
TT_FN int tt_isfinite_part(double x) { return tt_abs_f64(x) < TT_INF_F64; }
/* The number with its parts exchanged: i conj(z). sin, tan and their inverses are sinh, tanh, ... of it, exchanged. */
TT_FN tt_complex128 tt_swapped(tt_complex128 z) { return tt_complex_f64(z.im, z.re); }

#define T tt_complex64
#define R float
#define OF(name) name##_c64
#define REAL(name) name##_f32
#include "arith_complex.h"
#define T tt_complex128
#define R double
#define OF(name) name##_c128
#define REAL(name) name##_f64
#include "arith_complex.h"

/* |z|; of the squares of floats nothing is lost in float64. */
TT_FN double tt_abs_c128(tt_complex128 z) { return tt_hypot_f64(z.re, z.im); }
TT_FN float tt_abs_c64(tt_complex64 z) {
    double x = (double)z.re, y = (double)z.im, r = tt_sqrt_f64(x * x + y * y);
    return tt_isinf_part(x) | tt_isinf_part(y) ? TT_INF_F32 : (float)r;
}
TT_FN tt_complex64 tt_sgn_c64(tt_complex64 z) {
    double x = (double)z.re, y = (double)z.im, r = tt_sqrt_f64(x * x + y * y);
    int of_0 = (x == 0) & (y == 0);
    r = tt_isinf_part(x) | tt_isinf_part(y) ? TT_INF_F64 : r;
    return tt_complex_f32(of_0 ? 0 : (float)(x / r), of_0 ? 0 : (float)(y / r));
}
TT_FN double tt_angle_c128(tt_complex128 z) { return tt_atan2_f64(z.im, z.re); }
TT_FN float tt_angle_c64(tt_complex64 z) { return (float)tt_atan2_f64((double)z.im, (double)z.re); }

/* By the larger part of the divisor (Smith, "Algorithm 116", 1962): without branches, so that loops do several at
 * once. */
TT_FN tt_complex128 tt_div_c128(tt_complex128 a, tt_complex128 b) {
    double c = tt_abs_f64(b.re), d = tt_abs_f64(b.im);
    int of_re = c >= d, of_0 = (c == 0) & (d == 0);
    double large = of_re ? b.re : b.im, small = of_re ? b.im : b.re, ratio = small / large, by = large + small * ratio;
    double near = of_re ? a.re : a.im, far = of_re ? a.im : a.re, far_part = far * ratio, near_part = near * ratio;
    double re = near + far_part, im = (of_re ? far : near_part) + tt_opposite_f64(of_re ? near_part : far);
    by = of_0 ? c : by;
    return tt_complex_f64((of_0 ? a.re : re) / by, (of_0 ? a.im : im) / by);
}
TT_FN tt_complex128 tt_reciprocal_c128(tt_complex128 z) {
    int infinite = tt_isinf_part(z.re) | tt_isinf_part(z.im);
    tt_complex128 r = tt_div_c128(tt_complex_f64(1, 0), z);
    return tt_complex_f64(infinite ? tt_copysign_f64(0, z.re) : r.re, infinite ? -tt_copysign_f64(0, z.im) : r.im);
}
TT_LONG_FN tt_complex128 tt_sgn_c128(tt_complex128 z) {
    double r = tt_abs_c128(z);
    if (r == 0) return tt_complex_f64(0, 0);
    return tt_complex_f64(z.re / r, z.im / r);
}

/* e^x (cos y + i sin y), where e^x alone may be too large: in two factors then. */
TT_FN tt_complex128 tt_scaled_direction(double x, double cosine, double sine) {
    const double most = 709.0;
    if (x > most) {
        double small = tt_exp_f64(x - most), large = tt_exp_f64(most);
        return tt_complex_f64(cosine * small * large, sine * small * large);
    }
    double e = tt_exp_f64(x);
    return tt_complex_f64(e * cosine, e * sine);
}
TT_LONG_FN tt_complex128 tt_exp_c128(tt_complex128 z) {
    if (z.im == 0) return tt_complex_f64(tt_exp_f64(z.re), z.im);
    if (!tt_isfinite_part(z.im)) {
        if (z.re == -TT_INF_F64) return tt_complex_f64(0, 0);
        if (z.re == TT_INF_F64) return tt_complex_f64(z.re, z.im - z.im);
        return tt_complex_f64(z.im - z.im, z.im - z.im);
    }
    return tt_scaled_direction(z.re, tt_cos_f64(z.im), tt_sin_f64(z.im));
}
TT_LONG_FN tt_complex128 tt_exp2_c128(tt_complex128 z) {
    const double ln2 = 0.69314718055994530942;
    if (z.im == 0 || !tt_isfinite_part(z.re) || !tt_isfinite_part(z.im))
        return tt_exp_c128(tt_complex_f64(z.re * ln2, z.im * ln2));
    double size = tt_exp2_f64(z.re), y = z.im * ln2;
    return tt_complex_f64(size * tt_cos_f64(y), size * tt_sin_f64(y));
}
/* e^x cos y - 1 = (e^x - 1) cos y - 2 sin^2(y/2) */
TT_LONG_FN tt_complex128 tt_expm1_c128(tt_complex128 z) {
    if (!tt_isfinite_part(z.re) || !tt_isfinite_part(z.im) || z.re > 700.0) {
        tt_complex128 e = tt_exp_c128(z);
        return tt_complex_f64(e.re - 1, e.im);
    }
    double half = tt_sin_f64(0.5 * z.im);
    return tt_complex_f64(tt_expm1_f64(z.re) * tt_cos_f64(z.im) - 2 * half * half,
                          z.im == 0 ? z.im : tt_exp_f64(z.re) * tt_sin_f64(z.im));
}

/* a + b, and what rounding took from it. */
TT_FN double tt_two_sum(double a, double b, double *lost) {
    double sum = a + b, part = sum - a;
    *lost = (a - (sum - part)) + (b - part);
    return sum;
}
/* x^2 + y^2 - 1 near the unit circle, from the exact squares */
TT_FN double tt_square_minus_one(double x, double y) {
    double xx = x * x, yy = y * y, lost, lost_too;
    double low = tt_fma_f64(x, x, -xx) + tt_fma_f64(y, y, -yy);
    double sum = tt_two_sum(tt_two_sum(xx, -1.0, &lost), yy, &lost_too);
    return sum + (low + lost + lost_too);
}
/* log |z| */
TT_FN double tt_log_size(double x, double y) {
    double a = tt_abs_f64(x), b = tt_abs_f64(y), large = a > b ? a : b, small = a > b ? b : a;
    double size = large * large + small * small;
    if (large > 0.5 && large < 2.0 && size > 0.5 && size < 3.0)
        return 0.5 * tt_log1p_f64(tt_square_minus_one(large, small));
    if (large < 1e-290 && large > 0) /* denormal numbers have too few digits */
        return tt_log_f64(tt_hypot_f64(x * 0x1p200, y * 0x1p200)) - 138.62943611198906188;
    if (large > 1e300 && large < TT_INF_F64)
        return tt_log_f64(tt_hypot_f64(x * 0x1p-200, y * 0x1p-200)) + 138.62943611198906188;
    return tt_log_f64(tt_hypot_f64(x, y));
}
TT_LONG_FN tt_complex128 tt_log_c128(tt_complex128 z) {
    return tt_complex_f64(tt_log_size(z.re, z.im), tt_atan2_f64(z.im, z.re));
}
TT_LONG_FN tt_complex128 tt_log2_c128(tt_complex128 z) {
    tt_complex128 l = tt_log_c128(z);
    return tt_complex_f64(l.re * 1.4426950408889634074, l.im * 1.4426950408889634074);
}
TT_LONG_FN tt_complex128 tt_log10_c128(tt_complex128 z) {
    tt_complex128 l = tt_log_c128(z);
    return tt_complex_f64(l.re * 0.43429448190325182765, l.im * 0.43429448190325182765);
}
/* |1 + z|^2 - 1 = x^2 + y^2 + 2 x */
TT_LONG_FN tt_complex128 tt_log1p_c128(tt_complex128 z) {
    double re, x = z.re, y = z.im;
    if (tt_abs_f64(x) < 1.0 && tt_abs_f64(y) < 1.0 && 1.0 + x > 0.5) {
        double xx = x * x, yy = y * y, lost, lost_too;
        double low = tt_fma_f64(x, x, -xx) + tt_fma_f64(y, y, -yy);
        double sum = tt_two_sum(2 * x, yy, &lost);
        sum = tt_two_sum(sum, xx, &lost_too);
        re = 0.5 * tt_log1p_f64(sum + (low + lost + lost_too));
    } else re = tt_log_size(1.0 + x, y);
    return tt_complex_f64(re, tt_atan2_f64(y, 1.0 + x));
}

TT_LONG_FN tt_complex128 tt_sqrt_c128(tt_complex128 z) {
    double x = z.re, y = z.im, scale = 1, t;
    if (x == 0 && y == 0) return tt_complex_f64(0, y);
    if (tt_isinf_part(y)) return tt_complex_f64(TT_INF_F64, y);
    if (x != x) return tt_complex_f64(x, x);
    if (x == TT_INF_F64) return tt_complex_f64(x, tt_copysign_f64(y - y, y));
    if (x == -TT_INF_F64) return tt_complex_f64(tt_abs_f64(y - y), tt_copysign_f64(x, y));
    if (tt_abs_f64(x) > 4e307 || tt_abs_f64(y) > 4e307) x *= 0.25, y *= 0.25, scale = 2;
    else if (tt_abs_f64(x) < 1e-290 && tt_abs_f64(y) < 1e-290) x *= 0x1p54, y *= 0x1p54, scale = 0x1p-27;
    t = tt_sqrt_f64(0.5 * (tt_abs_f64(x) + tt_hypot_f64(x, y)));
    if (x >= 0) return tt_complex_f64(t * scale, y / (2 * t) * scale);
    return tt_complex_f64(tt_abs_f64(y) / (2 * t) * scale, tt_copysign_f64(t, y) * scale);
}
TT_LONG_FN tt_complex128 tt_rsqrt_c128(tt_complex128 z) { return tt_reciprocal_c128(tt_sqrt_c128(z)); }

/* sinh z = sinh x cos y + i cosh x sin y, cosh z = cosh x cos y + i sinh x sin y */
TT_LONG_FN tt_complex128 tt_sinh_c128(tt_complex128 z) {
    double x = z.re, y = z.im;
    if (tt_isfinite_part(x) && tt_isfinite_part(y)) {
        if (y == 0) return tt_complex_f64(tt_sinh_f64(x), y);
        double cosine = tt_cos_f64(y), sine = tt_sin_f64(y);
        if (tt_abs_f64(x) < 22) return tt_complex_f64(tt_sinh_f64(x) * cosine, tt_cosh_f64(x) * sine);
        tt_complex128 e = tt_scaled_direction(tt_abs_f64(x), 0.5 * cosine, 0.5 * sine);
        return tt_complex_f64(x < 0 ? -e.re : e.re, e.im);
    }
    if (x == 0) return tt_complex_f64(x, y - y);
    if (y == 0) return z;
    if (tt_isinf_part(x)) {
        if (tt_isfinite_part(y)) return tt_complex_f64(x * tt_cos_f64(y), TT_INF_F64 * tt_sin_f64(y));
        return tt_complex_f64(x, y - y);
    }
    return tt_complex_f64(TT_NAN_F64, TT_NAN_F64);
}
TT_LONG_FN tt_complex128 tt_cosh_c128(tt_complex128 z) {
    double x = z.re, y = z.im;
    if (tt_isfinite_part(x) && tt_isfinite_part(y)) {
        if (y == 0) return tt_complex_f64(tt_cosh_f64(x), x * y);
        double cosine = tt_cos_f64(y), sine = tt_sin_f64(y);
        if (tt_abs_f64(x) < 22) return tt_complex_f64(tt_cosh_f64(x) * cosine, tt_sinh_f64(x) * sine);
        tt_complex128 e = tt_scaled_direction(tt_abs_f64(x), 0.5 * cosine, 0.5 * sine);
        return tt_complex_f64(e.re, x < 0 ? -e.im : e.im);
    }
    if (x == 0) return tt_complex_f64(y - y, x);
    if (y == 0) return tt_complex_f64(x * x, tt_copysign_f64(0, x) * y);
    if (tt_isinf_part(x)) {
        if (tt_isfinite_part(y)) return tt_complex_f64(TT_INF_F64 * tt_cos_f64(y), x * tt_sin_f64(y));
        return tt_complex_f64(TT_INF_F64, y - y);
    }
    return tt_complex_f64(TT_NAN_F64, TT_NAN_F64);
}
/* Kahan's, with the tangent of y */
TT_LONG_FN tt_complex128 tt_tanh_c128(tt_complex128 z) {
    double x = z.re, y = z.im;
    if (!tt_isfinite_part(x)) {
        if (x != x) return tt_complex_f64(x, y == 0 ? y : x * y);
        return tt_complex_f64(tt_copysign_f64(1, x),
                              tt_copysign_f64(0, tt_isfinite_part(y) ? tt_sin_f64(y) * tt_cos_f64(y) : y));
    }
    if (!tt_isfinite_part(y)) return tt_complex_f64(x == 0 ? x : y - y, y - y);
    if (tt_abs_f64(x) >= 22) {
        double e = tt_exp_f64(-tt_abs_f64(x));
        return tt_complex_f64(tt_copysign_f64(1, x), 4 * tt_sin_f64(y) * tt_cos_f64(y) * e * e);
    }
    double t = tt_tan_f64(y), beta = 1 + t * t, s = tt_sinh_f64(x), rho = tt_sqrt_f64(1 + s * s);
    double by = 1 + beta * s * s;
    return tt_complex_f64(beta * rho * s / by, t / by);
}
TT_FN tt_complex128 tt_sin_c128(tt_complex128 z) { return tt_swapped(tt_sinh_c128(tt_swapped(z))); }
TT_FN tt_complex128 tt_tan_c128(tt_complex128 z) { return tt_swapped(tt_tanh_c128(tt_swapped(z))); }
TT_FN tt_complex128 tt_cos_c128(tt_complex128 z) { return tt_cosh_c128(tt_complex_f64(-z.im, z.re)); }

/* With p = sqrt(1 - z) and q = sqrt(1 + z), no difference of near numbers is taken. */
TT_LONG_FN tt_complex128 tt_asin_c128(tt_complex128 z) {
    double x = z.re, y = z.im;
    if (tt_isinf_part(x) || tt_isinf_part(y))
        return tt_complex_f64(tt_atan2_f64(x, tt_abs_f64(y)), tt_copysign_f64(TT_INF_F64, y));
    if (x == 0 && y != y) return z;
    tt_complex128 p = tt_sqrt_c128(tt_complex_f64(1 - x, -y)), q = tt_sqrt_c128(tt_complex_f64(1 + x, y));
    return tt_complex_f64(tt_atan2_f64(x, p.re * q.re - p.im * q.im),
                          tt_copysign_f64(tt_asinh_f64(p.re * q.im - p.im * q.re), y));
}
TT_LONG_FN tt_complex128 tt_acos_c128(tt_complex128 z) {
    double x = z.re, y = z.im;
    if (tt_isinf_part(x) || tt_isinf_part(y))
        return tt_complex_f64(tt_atan2_f64(tt_abs_f64(y), x), -tt_copysign_f64(TT_INF_F64, y));
    if (x == 0 && y != y) return tt_complex_f64(1.5707963267948966192, y);
    tt_complex128 p = tt_sqrt_c128(tt_complex_f64(1 - x, -y)), q = tt_sqrt_c128(tt_complex_f64(1 + x, y));
    return tt_complex_f64(2 * tt_atan2_f64(p.re, q.re), -tt_copysign_f64(tt_asinh_f64(p.re * q.im - p.im * q.re), y));
}
TT_FN tt_complex128 tt_asinh_c128(tt_complex128 z) { return tt_swapped(tt_asin_c128(tt_swapped(z))); }
TT_LONG_FN tt_complex128 tt_acosh_c128(tt_complex128 z) {
    tt_complex128 c = tt_acos_c128(z); /* times i or -i, so that the real part is not negative */
    if (c.re != c.re && c.im != c.im) return c;
    if (c.re != c.re) return tt_complex_f64(tt_abs_f64(c.im), c.re);
    if (c.im != c.im) return tt_complex_f64(c.im, c.re);
    return tt_complex_f64(tt_abs_f64(c.im), tt_copysign_f64(c.re, z.im));
}
TT_LONG_FN tt_complex128 tt_atanh_c128(tt_complex128 z) {
    double a = tt_abs_f64(z.re), y = z.im, b = tt_abs_f64(y), re, im;
    const double half_pi = 1.5707963267948966192;
    if (tt_isinf_part(a) || tt_isinf_part(y))
        return tt_complex_f64(tt_copysign_f64(0, z.re), y != y ? y : tt_copysign_f64(half_pi, y));
    if (a == 0 && y != y) return z;
    if (a > 1e150 || b > 1e150) { /* the real part of 1 / z */
        re = a > b ? 1 / a / (1 + y / a * (y / a)) : a / b / b / (1 + a / b * (a / b));
        im = tt_copysign_f64(half_pi, y);
    } else {
        double distance = (1 - a) * (1 - a) + y * y;
        re = distance < 1e-290 ? 0.5 * tt_log_f64(2 / tt_hypot_f64(1 - a, y)) : 0.25 * tt_log1p_f64(4 * a / distance);
        im = 0.5 * tt_atan2_f64(2 * y, (1 - a) * (1 + a) - y * y);
    }
    return tt_complex_f64(tt_copysign_f64(re, z.re), im);
}
TT_FN tt_complex128 tt_atan_c128(tt_complex128 z) { return tt_swapped(tt_atanh_c128(tt_swapped(z))); }

/* exp(b log a) */
TT_LONG_FN tt_complex128 tt_pow_c128(tt_complex128 a, tt_complex128 b) {
    if (b.re == 0 && b.im == 0) return tt_complex_f64(1, 0);
    if (a.re == 0 && a.im == 0 && b.re > 0) return tt_complex_f64(0, 0);
    return tt_exp_c128(tt_mul_c128(b, tt_log_c128(a)));
}
/* log(exp(a) + exp(b)) = large + log(1 + exp(small - large)), the larger by its real part. Infinities as in PyTorch. */
TT_LONG_FN tt_complex128 tt_logaddexp_c128(tt_complex128 a, tt_complex128 b) {
    tt_complex128 small = a.re < b.re ? a : b, large = a.re >= b.re ? a : b, rest;
    if (a.re != a.re || b.re != b.re) return tt_complex_f64(TT_NAN_F64, TT_NAN_F64);
    if (small.re == large.re && !tt_isfinite_part(small.re)) {
        if (small.re < 0) return small;
        a = tt_exp_c128(a);
        b = tt_exp_c128(b);
        return tt_log_c128(tt_complex_f64(a.re + b.re, a.im + b.im));
    }
    rest = tt_log1p_c128(tt_exp_c128(tt_complex_f64(small.re - large.re, small.im - large.im)));
    return tt_complex_f64(large.re + rest.re, large.im + rest.im);
}
/* The exponential only ever sees a number without positive real part. */
TT_LONG_FN tt_complex128 tt_sigmoid_c128(tt_complex128 z) {
    int left = z.re < 0;
    tt_complex128 e = tt_exp_c128(left ? z : tt_neg_c128(z)), one = tt_complex_f64(1, 0);
    return tt_div_c128(left ? e : one, tt_complex_f64(1 + e.re, e.im));
}
/* A kernel of a derivative: g (s + z s (1 - s)) with s = sigmoid(z) */
TT_LONG_FN tt_complex128 tt_silu_backward_c128(tt_complex128 g, tt_complex128 z) {
    tt_complex128 s = tt_sigmoid_c128(z), t = tt_mul_c128(z, tt_complex_f64(1 - s.re, -s.im));
    return tt_mul_c128(g, tt_mul_c128(s, tt_complex_f64(1 + t.re, t.im)));
}
TT_FN tt_complex128 tt_silu_c128(tt_complex128 z) { return tt_mul_c128(z, tt_sigmoid_c128(z)); }
TT_LONG_FN tt_complex128 tt_sinc_c128(tt_complex128 z) {
    const double pi = 3.1415926535897931;
    if (z.re == 0 && z.im == 0) return tt_complex_f64(1, 0);
    tt_complex128 t = tt_complex_f64(pi * z.re, pi * z.im);
    return tt_div_c128(tt_sin_c128(t), t);
}

TT_LONG_FN tt_complex128 tt_ldexp_c128(tt_complex128 a, tt_complex128 b) { return tt_mul_c128(a, tt_exp2_c128(b)); }

#define TT_WIDE(z) tt_complex_f64((double)(z).re, (double)(z).im)
#define TT_NARROW_1(name)                                                                                              \
    TT_FN tt_complex64 tt_##name##_c64(tt_complex64 a) {                                                               \
        tt_complex128 z = tt_##name##_c128(TT_WIDE(a));                                                                \
        return tt_complex_f32((float)z.re, (float)z.im);                                                               \
    }
#define TT_NARROW_2(name)                                                                                              \
    TT_FN tt_complex64 tt_##name##_c64(tt_complex64 a, tt_complex64 b) {                                               \
        tt_complex128 z = tt_##name##_c128(TT_WIDE(a), TT_WIDE(b));                                                    \
        return tt_complex_f32((float)z.re, (float)z.im);                                                               \
    }
/* clang-format off */
TT_NARROW_1(exp) TT_NARROW_1(exp2) TT_NARROW_1(expm1) TT_NARROW_1(log) TT_NARROW_1(log2) TT_NARROW_1(log10)
TT_NARROW_1(log1p) TT_NARROW_1(sqrt) TT_NARROW_1(rsqrt) TT_NARROW_1(reciprocal) TT_NARROW_1(sin)
TT_NARROW_1(cos) TT_NARROW_1(tan) TT_NARROW_1(asin) TT_NARROW_1(acos) TT_NARROW_1(atan) TT_NARROW_1(sinh)
TT_NARROW_1(cosh) TT_NARROW_1(tanh) TT_NARROW_1(asinh) TT_NARROW_1(acosh) TT_NARROW_1(atanh) TT_NARROW_1(sigmoid)
TT_NARROW_1(silu) TT_NARROW_1(sinc) TT_NARROW_2(div) TT_NARROW_2(pow) TT_NARROW_2(ldexp)
TT_NARROW_2(logaddexp) TT_NARROW_2(silu_backward)
    /* clang-format on */

    TT_FN tt_complex64 tt_addcdiv_c64(tt_complex64 a, tt_complex64 b, tt_complex64 c) {
    return tt_add_c64(a, tt_div_c64(b, c));
}
TT_FN tt_complex128 tt_addcdiv_c128(tt_complex128 a, tt_complex128 b, tt_complex128 c) {
    return tt_add_c128(a, tt_div_c128(b, c));
}
