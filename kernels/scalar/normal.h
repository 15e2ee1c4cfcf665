/* The scaled complement of the error function, and the normal distribution, in float64. */
#pragma once
#include "chebyshev.h"

/* exp(x^2) erfc(x). (1 + 2x) times it is a smooth function of t = (x - 3.75) / (x + 3.75) (Shepherd and Laframboise,
 * "Chebyshev approximation of (1 + 2x) exp(x^2) erfc x in 0 <= x < infinity", 1981); the coefficients are our own. On
 * the left 2 exp(x^2) less that, where the exponential's argument keeps what rounding took from the square. */
TT_LONG_FN double tt_erfcx_f64(double x) {
    static const double c[] = {
        1.1775789345674017,     -0.004590054580646478,   -0.08424913336651792,    0.05920993999819189,
        -0.026658668435305753,  0.009074997670705265,    -0.002413163540417608,   0.0004907758365258086,
        -6.916973302501207e-05, 4.13902798607301e-06,    7.74038306619849e-07,    -2.1886401049234397e-07,
        1.076499946567091e-08,  4.521959811218287e-09,   -7.754400208831351e-10,  -6.318088340886684e-11,
        2.86879501093067e-11,   1.9455868545777347e-13,  -9.65469674843344e-13,   3.25254814814874e-14,
        3.3478119482868056e-14, -1.864562880419313e-15,  -1.2507950530688648e-15, 7.418235256624044e-17,
        5.068148904796111e-17,  -2.2370566594359995e-18, -2.187342944303018e-18};
    double a = tt_abs_f64(x), s, y = TT_CHEBYSHEV_SUM(c, 1 - 7.5 / (a + 3.75)) / (1 + 2 * a);
    if (!(x < 0)) return y;
    if (x < -26.7) return TT_INF_F64;
    s = x * x;
    return 2 * exp(s) * (1 + tt_fma_f64(x, x, -s)) - y;
}

TT_LONG_FN double tt_log_ndtr_f64(double x) {
    return x < -1 ? log(0.5 * tt_erfcx_f64(x * -0.70710678118654752440)) - 0.5 * x * x : log1p(-tt_ndtr_f64(-x));
}

/* In the middle by erfinv. In the tails, Halley's iteration on log Phi(-z) = log q, whose start is Abramowitz and
 * Stegun 26.2.23, to 4.5e-4; with Mills' ratio r, the derivative of the left side is -1 / r, and r' = z r - 1. */
TT_LONG_FN double tt_ndtri_f64(double p) {
    double q = p < 0.5 ? p : 1 - p, log_q, t, z, r, miss;
    if (!(p >= 0 && p <= 1)) return TT_NAN_F64;
    if (q >= 0.125) return 1.41421356237309504880 * tt_erfinv_f64(2 * (p - 0.5));
    if (q == 0) return p == 0 ? -TT_INF_F64 : TT_INF_F64;
    log_q = log(q);
    t = tt_sqrt_f64(-2 * log_q);
    z = t - (2.515517 + t * (0.802853 + t * 0.010328)) / (1 + t * (1.432788 + t * (0.189269 + t * 0.001308)));
    for (int k = 0; k < 2; k++) {
        r = 1.25331413731550025121 * tt_erfcx_f64(z * 0.70710678118654752440);
        miss = log(r) - 0.5 * z * z - 0.91893853320467274178 - log_q;
        z += miss * r / (1 - 0.5 * miss * (z * r - 1));
    }
    return p < 0.5 ? -z : z;
}
