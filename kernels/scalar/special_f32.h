/* erfc, erfinv, lgamma, digamma and sinc in float32, through double. */
#ifndef TT_SCALAR_SPECIAL_F32_H
#define TT_SCALAR_SPECIAL_F32_H

#include "bits.h"
#include "wide_f32.h"

/* Vectors compute what any of their elements needs; of a GPU's threads those go on together that need it. */
#if TT_CUDA
#define TT_WHERE(needed) if (needed)
#else
#define TT_WHERE(needed)
#endif

/* erfc(a) = 2 exp(-a^2) M(sqrt2 a), M(b) = exp(b^2/2) Phi(-b) = t Q(t), t = 1/(b+4): the same form
   as in gelu, to 2^-35.  From a = 10.06 on it is below half the smallest denormal. */
TT_FN float tt_erfc_f32(float x) {
    double a = (double)tt_abs_f32(x), t, q;
    a = a > 10.06 ? 26.63 : a; /* where the exponential is 0 */
    t = 1.0 / (1.4142135623730951 * a + 4.0);
    q = 503578.88134736597;
    q = q * t - 1040726.8211580409;
    q = q * t + 902488.90387033881;
    q = q * t - 418918.41203869384;
    q = q * t + 113532.45901084403;
    q = q * t - 21157.384112697244;
    q = q * t + 3286.9126563238738;
    q = q * t - 103.33784521704736;
    q = q * t + 84.420921978350052;
    q = q * t + 19.808220058942737;
    q = q * t + 6.0141375949366163;
    q = q * t + 1.5951972344591951;
    q = q * t + 0.39894718442048371;
    q = 2.0 * t * q * tt_exp_wide(-a * a);
    return (float)(x < 0.0f ? 2.0 - q : q);
}

/* x times a polynomial in w = -log(1 - x^2) up to w = 6, in sqrt(w) beyond. */
TT_FN float tt_erfinv_f32(float x) {
    double a = (double)tt_abs_f32(x), w, s, centre, tail;
    float y;
    w = -tt_log_wide((1.0 - a) * (1.0 + a));
    s = tt_sqrt_f64(w);
    centre = 3.5312157737816824e-11;
    centre = centre * w - 4.8568689056286271e-10;
    centre = centre * w - 9.2128548525416071e-09;
    centre = centre * w + 2.6860828267751877e-07;
    centre = centre * w - 2.3764827141730812e-06;
    centre = centre * w + 5.6420712672390172e-06;
    centre = centre * w + 4.0603015791392551e-05;
    centre = centre * w - 1.2191040996395947e-04;
    centre = centre * w - 2.3387205022127096e-03;
    centre = centre * w + 1.1550426832510520e-02;
    centre = centre * w + 2.3201354125293222e-01;
    centre = centre * w + 8.8622692778985113e-01;
    tail = 8.0982534553277434e-05;
    tail = tail * s - 2.4161438639057607e-03;
    tail = tail * s + 3.1664766012921591e-02;
    tail = tail * s - 2.3832370632964844e-01;
    tail = tail * s + 1.1283182733539594;
    tail = tail * s - 3.4485690529888879;
    tail = tail * s + 6.6715698197460149;
    tail = tail * s - 7.5374747393353889;
    tail = tail * s + 4.9522738045579500;
    tail = tail * s - 4.2072491019936425e-01;
    y = (float)(a * (w < 6.0 ? centre : tail));
    y = a == 1.0 ? TT_INF_F32 : y;
    y = a <= 1.0 ? y : TT_NAN_F32;
    return tt_copysign_f32(y, x);
}

/* log|Gamma(x)|.  For a = |x| the recurrence Gamma(a+1) = a Gamma(a) moves the argument
   - below 2.5 to z in [1.5, 2.5], where a polynomial has the factor z - 2: so the zeros at 1 and 2
     keep their relative accuracy;
   - from there to 8 by eight steps, into the domain of Stirling's series.
   q gathers the factors.  On the left, reflection: Gamma(-a) Gamma(a) = -pi/(a sin(pi a)); all
   factors share one logarithm.  Its zeros there are crossed with an absolute error of 1e-13. */
TT_FN float tt_lgamma_f32(float x) {
    double a = (double)tt_abs_f32(x), t, w, i, i2, sum = 0.0, near_sum = 0.0, far_sum = 0.0, q, f = 1.0, y;
    int low = a < 2.5, k;
    TT_WHERE(low) {
        t = (a < 0.5 ? a : a < 1.5 ? a - 1.0 : a - 2.0);
        sum = -1.2211758079955510e-05;
        sum = sum * t + 2.4466741375831293e-05;
        sum = sum * t - 4.3638319846340309e-05;
        sum = sum * t + 9.8182677737582055e-05;
        sum = sum * t - 2.2343955556950923e-04;
        sum = sum * t + 5.0986263860035362e-04;
        sum = sum * t - 1.1927221402246325e-03;
        sum = sum * t + 2.8904962459501958e-03;
        sum = sum * t - 7.3855527064215819e-03;
        sum = sum * t + 2.0580808864985024e-02;
        sum = sum * t - 6.7352301019901473e-02;
        sum = sum * t + 3.2246703342026461e-01;
        near_sum = (sum * t + 4.2278433509835828e-01) * t;
    }
    q = 1.0;
    TT_WHERE(!low && a < 8.0) {
        for (k = 0; k < 8; k++) q *= a + (double)k;
    }
    q = a < 8.0 ? q : 1.0;
    q = low ? (a < 0.5 ? a * (a + 1.0) : a < 1.5 ? a : 1.0) : q;
    TT_WHERE(!low) {
        w = a < 8.0 ? a + 8.0 : a;
        i = 1.0 / w;
        i2 = i * i;
        sum = 1.0 / 156;
        sum = sum * i2 - 691.0 / 360360;
        sum = sum * i2 + 1.0 / 1188;
        sum = sum * i2 - 1.0 / 1680;
        sum = sum * i2 + 1.0 / 1260;
        sum = sum * i2 - 1.0 / 360;
        sum = sum * i2 + 1.0 / 12;
        far_sum = sum * i + 0.91893853320467278 + ((w - 0.5) * tt_log_wide(w) - w);
    }
    TT_WHERE(x < 0.0f) {
        f = a < 0x1p52 ? a - ((a + TT_ROUND_F64) - TT_ROUND_F64) : 0.0; /* beyond, all are integers */
        f = tt_abs_f64(tt_sinpi_wide(f));
        f = TT_PI_F64 / (a * f);
    }
    y = low ? near_sum : far_sum;
    t = x < 0.0f ? q * f : q;
    TT_WHERE(t != 1.0) y -= tt_log_wide(t);
    y = x < 0.0f ? -y : y;
    y = x < 0.0f && f == TT_INF_F64 ? TT_INF_F64 : y;
    y = a == 0.0 || a == TT_INF_F64 ? TT_INF_F64 : y;
  /* The one float so near to a zero that this error counts: 7 ulp. Its value by mpmath. */
    y = x == -0x1.3a7fcap1f ? -1.1287842529645816e-7 : y;
    return x == x ? (float)y : x;
}

/* As tt_digamma_f64, with a fixed number of steps: recurrence by eight below 8, gathered into the
   fraction p/q; the asymptotic series; reflection psi(1-x) - pi/tan(pi x) on the left, where
   cos(pi f) = sin(pi (1/2 - |f|)).  Zeros are crossed with an absolute error of 1e-15. */
TT_FN float tt_digamma_f32(float x) {
    double v = (double)x, z = v < 0.0 ? 1.0 - v : v;
    double p = 0.0, q = 1.0, w, i, i2, y, f;
    int k;
    TT_WHERE(z < 8.0) for (k = 0; k < 8; k++) {
        p = p * (z + (double)k) + q;
        q = q * (z + (double)k);
    }
    w = z < 8.0 ? z + 8.0 : z;
    i = 1.0 / w;
    i2 = i * i;
    y = -1.0 / 12;
    y = y * i2 + 691.0 / 32760;
    y = y * i2 - 1.0 / 132;
    y = y * i2 + 1.0 / 240;
    y = y * i2 - 1.0 / 252;
    y = y * i2 + 1.0 / 120;
    y = y * i2 - 1.0 / 12;
    f = z < 8.0 ? p / q : 0.0;
    y = tt_log_wide(w) - 0.5 * i + y * i2 - f;
    TT_WHERE(v < 0.0) {
        f = v > -0x1p52 ? v - ((v + TT_ROUND_F64) - TT_ROUND_F64) : 0.0;
        w = TT_PI_F64 * tt_sinpi_wide(0.5 - tt_abs_f64(f)) / tt_sinpi_wide(f);
        y = v < 0.0 ? (f == 0.0 ? TT_NAN_F64 : y - w) : y;
    }
    y = v == 0.0 ? -tt_copysign_f64(TT_INF_F64, v) : y;
  /* The one float so near to a zero that this error counts: 2.04 ulp. Its value by mpmath. */
    y = x == -0x1.0b2f02p6f ? -6.6815477437689715e-09 : y;
    return v < TT_INF_F64 ? (float)y : x;
}

/* a = |x| as n + f, |f| <= 1/2: f, and (-1)^n as a sign bit.  From 2^24 on floats are even integers. */
TT_FN double tt_nearest_integer_wide(double a, tt_u64 *sign) {
    double small = a < 0x1p24 ? a : 0.0, n = small + TT_ROUND_F64;
    *sign = tt_bits_f64(n) << 63;
    return small - (n - TT_ROUND_F64);
}

/* sin(pi x) / (pi x), where sin(pi x) = (-1)^n sin(pi f); 0 for an integer, not -0. */
TT_FN float tt_sinc_f32(float x) {
    double a = (double)tt_abs_f32(x), y;
    tt_u64 sign;
    y = tt_sinpi_wide(tt_nearest_integer_wide(a, &sign));
    y = a == 0.0 ? 1.0 : (tt_double_bits(tt_bits_f64(y) ^ sign) + 0.0) / (TT_PI_F64 * a);
    return a < TT_INF_F64 ? (float)y : TT_NAN_F32;
}

/* sinc's derivative (cos(pi x) - sinc(x)) / x; near 0, where the difference cancels, its series. */
TT_FN float tt_sinc_slope_f32(float x) {
    double a = (double)tt_abs_f32(x), z = TT_PI_F64 * TT_PI_F64 * a * a, f, s, c, y;
    tt_u64 sign;
    f = tt_nearest_integer_wide(a, &sign);
    s = tt_sinpi_wide(f) / (TT_PI_F64 * a);
    c = tt_sinpi_wide(0.5 - tt_abs_f64(f));
    y = tt_double_bits(tt_bits_f64(c - s) ^ sign) / a;
    z = ((z * (1.0 / 45360) - 1.0 / 840) * z + 1.0 / 30) * z - 1.0 / 3;
    y = a < 0.0625 ? TT_PI_F64 * TT_PI_F64 * a * z : y;
    y = a < TT_INF_F64 ? y : TT_NAN_F64;
    return tt_float_bits(tt_bits_f32((float)y) ^ (tt_bits_f32(x) & 0x80000000u));
}

#endif
