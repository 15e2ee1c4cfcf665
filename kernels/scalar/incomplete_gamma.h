/* The regularised incomplete gamma functions P(a, x) and Q(a, x) = 1 - P in float64.
 *
 * For large a and x near it Temme's uniform expansion; else a series for P or for Q, or a continued fraction for Q
 * (Gil, Segura and Temme, "Efficient and accurate algorithms for the computation and inversion of the incomplete gamma
 * function ratios", 2012; Abramowitz and Stegun 6.5). */
#pragma once
#include "bits.h"

/* x^a exp(-x) / Gamma(a + 1). With x = a (1 + m) and Stirling's series it is exp(-a (m - log(1 + m))) / sqrt(2 pi a) /
 * ... */
TT_LONG_FN double tt_gamma_weight(double a, double x) {
    if (a < 12) return x < 200 ? pow(x, a) * exp(-x) / tgamma(a + 1) : exp(a * log(x) - x - lgamma(a + 1));
    double m = (x - a) / a, i = 1 / a, i2 = i * i;
    double stirling =
        i * (1.0 / 12 -
             i2 * (1.0 / 360 -
                   i2 * (1.0 / 1260 - i2 * (1.0 / 1680 - i2 * (1.0 / 1188 - i2 * (691.0 / 360360 - i2 / 156))))));
    double exponent = tt_abs_f64(m) < 0.5 ? -a * (m - log1p(m)) : a * log(x / a) - (x - a);
    return exp(exponent - stirling) / tt_sqrt_f64(6.28318530717958647693 * a);
}

/* log Gamma(1 + a) for 0 <= a <= 1/2, without losing small a: Abramowitz and Stegun 6.1.33, zeta(n) - 1. */
TT_LONG_FN double tt_lgamma_next(double a) {
    static const double zeta[] = {
        0.6449340668482264,     0.2020569031595943,     0.08232323371113819,   0.03692775514336993,
        0.01734306198444914,    0.008349277381922827,   0.00407735619794434,   0.0020083928260822143,
        0.0009945751278180853,  0.0004941886041194645,  0.0002460865533080483, 0.00012271334757848915,
        6.124813505870483e-05,  3.058823630702049e-05,  1.528225940865187e-05, 7.637197637899763e-06,
        3.81729326499984e-06,   1.908212716553939e-06,  9.539620338727962e-07, 4.769329867878064e-07,
        2.38450502727733e-07,   1.1921992596531106e-07, 5.960818905125948e-08, 2.980350351465228e-08,
        1.4901554828365043e-08, 7.45071178983543e-09,   3.725334024788457e-09, 1.862659723513049e-09};
    double sum = 0;
    for (int k = sizeof zeta / sizeof *zeta - 1; k >= 0; k--) sum = zeta[k] / (k + 2) - a * sum;
    return -log1p(a) + a * (0.42278433509846713939 + a * sum);
}

/* P, a sum of terms of one sign. */
TT_LONG_FN double tt_gamma_series(double a, double x) {
    double sum = 1, term = 1;
    for (int k = 1; k < 2000 && term > 1e-17 * sum; k++) sum += term *= x / (a + k);
    return sum * tt_gamma_weight(a, x);
}

/* Q for small x, where 1 - P would cancel. */
TT_LONG_FN double tt_gamma_complement(double a, double x) {
    double sum = 0, power = 1, size = a * log(x) - (a < 0.5 ? tt_lgamma_next(a) : lgamma(a + 1)), term = 1;
    for (int k = 1; k < 200 && tt_abs_f64(term) > 1e-17 * tt_abs_f64(sum); k++) {
        power *= -x / k;
        sum += term = power / (a + k);
    }
    return -expm1(size) - exp(size) * a * sum;
}

/* Q by Legendre's continued fraction, from its front (the modified algorithm of Lentz). */
TT_LONG_FN double tt_gamma_fraction(double a, double x) {
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d, step = 0;
    for (int k = 1; k < 2000 && tt_abs_f64(step - 1) > 1e-16; k++) {
        double n = -k * (k - a);
        b += 2;
        d = n * d + b;
        d = 1 / (d == 0 ? 1e-300 : d);
        c = b + n / c;
        c = c == 0 ? 1e-300 : c;
        h *= step = c * d;
    }
    return h * a * tt_gamma_weight(a, x);
}

/* P or Q = erfc(-+ eta sqrt(a/2)) / 2 -+ R, eta^2 / 2 = m - log(1 + m), x = a (1 + m). R's series has the coefficients
 * of eta / m in powers of eta. */
TT_LONG_FN double tt_gamma_uniform(double a, double x, int upper) {
    static const double eta[] = {1.0,
                                 -0.3333333333333333,
                                 0.08333333333333333,
                                 -0.014814814814814815,
                                 0.0011574074074074073,
                                 0.0003527336860670194,
                                 -0.0001787551440329218,
                                 3.919263178522438e-05,
                                 -2.185448510679992e-06,
                                 -1.85406221071516e-06,
                                 8.296711340953087e-07,
                                 -1.7665952736826078e-07,
                                 6.707853543401498e-09,
                                 1.0261809784240309e-08,
                                 -4.382036018453353e-09,
                                 9.14769958223679e-10,
                                 -2.5514193994946248e-11,
                                 -5.830772132550426e-11,
                                 2.4361948020667415e-11,
                                 -5.0276692801141755e-12,
                                 1.1004392031956135e-13,
                                 3.371763262400985e-13,
                                 -1.392388722418162e-13,
                                 2.8534893807047445e-14,
                                 -5.139111834242572e-16,
                                 -1.9752288294349442e-15,
                                 8.099521156704561e-16,
                                 -1.6522531216398162e-16,
                                 2.5305430097478883e-18,
                                 1.1686939738559576e-17};
    enum { LAST = sizeof eta / sizeof *eta - 1 };
    double m = (x - a) / a, e, root, sum, next = eta[LAST], after = 0, b;
    /* m - log(1 + m) cancels where m is small: its series. */
    if (tt_abs_f64(m) < 0.03) {
        double s = 0;
        for (int k = 12; k >= 2; k--) s = 1.0 / k - m * s;
        e = m * m * s;
    } else e = m - log1p(m);
    root = tt_copysign_f64(tt_sqrt_f64(2 * e), m);
    sum = next;
    /* b[k] = eta[k+1] + (k+2)/a b[k+2], and the sum of b[k] root^k */
    after = 0;
    for (int k = LAST - 2; k >= 0; k--) {
        b = eta[k + 1] + (k + 2) / a * after;
        after = next;
        next = b;
        sum = b + root * sum;
    }
    sum /= 1 + after / a;
    b = exp(-a * e) / tt_sqrt_f64(6.28318530717958647693 * a) * sum;
    return upper ? 0.5 * erfc(root * tt_sqrt_f64(0.5 * a)) + b : 0.5 * erfc(-root * tt_sqrt_f64(0.5 * a)) - b;
}

TT_LONG_FN double tt_gamma_ratio(double a, double x, int upper) {
    double y;
    int other; /* is y the other of the two? */
    if (!(a >= 0 && x >= 0)) return TT_NAN_F64;
    if (a == 0) return x > 0 ? !upper : TT_NAN_F64;
    if (x == 0) return upper;
    if (a == TT_INF_F64) return x == TT_INF_F64 ? TT_NAN_F64 : upper;
    if (x == TT_INF_F64) return !upper;
    if (a >= 12 && tt_abs_f64(x - a) < 0.5 * a) return tt_gamma_uniform(a, x, upper);
    if (upper && (x <= 0.5 ? a * log(x) > -0.4 : x <= 1.1 && a < 1.1 * x)) return tt_gamma_complement(a, x);
    other = x > 1.1 && x > a ? !upper : upper;
    y = x > 1.1 && x > a ? tt_gamma_fraction(a, x) : tt_gamma_series(a, x);
    return other ? 1 - y : y;
}
TT_FN double tt_igamma_f64(double a, double x) { return tt_gamma_ratio(a, x, 0); }
TT_FN double tt_igammac_f64(double a, double x) { return tt_gamma_ratio(a, x, 1); }
