/* Derivatives of samples by the parameters of their distributions, in float64: of a sample x with the distribution
 * function F(x, a) and the density f(x) it is dx/da = -dF/da / f(x), whatever drew it (Figurnov, Mohamed and Mnih,
 * "Implicit reparameterization gradients", 2018). F / f is a series or a continued fraction, derived term by term. */
#pragma once
#include "bits.h"

/* Legendre's continued fraction of Q(a, x), front to back (the modified algorithm of Lentz), and its derivative by a.
 * Q(a, x) / f(x) = x h. */
TT_LONG_FN double tt_gamma_upper_slope(double a, double x) {
    double b = x + 1 - a, c = 1e300, d = 1 / b, h = d, step = 0, slope = 1;
    double c1 = 0, d1 = d * d, h1 = d1; /* derivatives by a */
    for (int k = 1; k < 20000 && (tt_abs_f64(step - 1) > 1e-16 || tt_abs_f64(slope) > 1e-16); k++) {
        double n = -k * (k - a);
        b += 2;
        d1 = k * d + n * d1 - 1;
        d = n * d + b;
        d = 1 / (d == 0 ? 1e-300 : d);
        d1 = -d * d * d1;
        c1 = k / c - n / c * (c1 / c) - 1;
        c = b + n / c;
        c = c == 0 ? 1e-300 : c;
        step = c * d;
        slope = c1 * d + c * d1;
        h1 = h1 * step + h * slope;
        h *= step;
    }
    return x * (h1 + h * (log(x) - tt_digamma_f64(a)));
}

/* P(a, x) / f(x) = x / a sum over k of x^k / ((a + 1) ... (a + k)). */
TT_LONG_FN double tt_gamma_lower_slope(double a, double x) {
    double term = 1, by = log(x) - tt_digamma_f64(a + 1), sum = by;
    for (int k = 1; k < 20000 && term * (1 + tt_abs_f64(by)) > 1e-17 * tt_abs_f64(sum); k++) {
        term *= x / (a + k);
        by -= 1 / (a + k);
        sum += term * by;
    }
    return -x / a * sum;
}

/* By the expansion of Cornish and Fisher: x = a + z sqrt(a) + (z^2 - 1) / 3 + ... of a normal number z. */
TT_LONG_FN double tt_gamma_normal_slope(double a, double x) {
    double root = tt_sqrt_f64(a), z = (x - a) / root;
    for (int k = 0; k < 4; k++) {
        double z2 = z * z;
        double there =
            a + z * root + (z2 - 1) / 3 + z * (z2 - 7) / (36 * root) - (3 * z2 * z2 + 7 * z2 - 16) / (810 * a);
        z -= (there - x) / (root + 2 * z / 3);
    }
    return 1 + z / (2 * root) - z * (z * z - 7) / (72 * a * root) +
           (3 * z * z * z * z + 7 * z * z - 16) / (810 * a * a);
}

/* Of a sample of the gamma distribution of shape a and rate 1, by a. */
TT_LONG_FN double tt_standard_gamma_grad_f64(double a, double x) {
    if (!(a > 0 && x >= 0 && a < TT_INF_F64 && x < TT_INF_F64)) return TT_NAN_F64;
    if (x == 0) return 0;
    if (a > 1e5 && tt_abs_f64(x - a) < 20 * tt_sqrt_f64(a)) return tt_gamma_normal_slope(a, x);
    return x > a + 1 ? tt_gamma_upper_slope(a, x) : tt_gamma_lower_slope(a, x);
}

/* The continued fraction of the incomplete beta function, I(x; a, b) = x^a (1 - x)^b / (a B(a, b)) h (Abramowitz and
 * Stegun 26.5.8), and its derivative by a, or by b. It converges fast for x < (a + 1) / (a + b + 2). */
TT_LONG_FN double tt_beta_fraction(double a, double b, double x, int by_b, double *derivative) {
    double c = 1, c1 = 0, d = 1 / (1 - (a + b) * x / (a + 1)), d1, h, h1, step = 0, slope = 1;
    d1 = d * d * x * (by_b ? 1 / (a + 1) : (1 - b) / ((a + 1) * (a + 1)));
    h = d;
    h1 = d1;
    for (int m = 1; m < 20000 && (tt_abs_f64(step - 1) > 1e-16 || tt_abs_f64(slope) > 1e-16); m++)
        for (int odd = 0; odd < 2; odd++) {
            double t = a + 2 * m, n, n1; /* the numerator and its derivative */
            if (odd) {
                n = -(a + m) * (a + b + m) * x / (t * (t + 1));
                n1 = by_b ? -(a + m) * x / (t * (t + 1)) : n * (1 / (a + m) + 1 / (a + b + m) - 1 / t - 1 / (t + 1));
            } else {
                n = m * (b - m) * x / ((t - 1) * t);
                n1 = by_b ? m * x / ((t - 1) * t) : -n * (1 / (t - 1) + 1 / t);
            }
            d1 = n1 * d + n * d1;
            d = 1 + n * d;
            d = 1 / (d == 0 ? 1e-300 : d);
            d1 = -d * d * d1;
            c1 = n1 / c - n / c * (c1 / c);
            c = 1 + n / c;
            c = c == 0 ? 1e-300 : c;
            step = c * d;
            slope = c1 * d + c * d1;
            h1 = h1 * step + h * slope;
            h *= step;
        }
    *derivative = h1;
    return h;
}

/* Of x of Beta(a, total - a), by a; over 1 - x. So it is the part of a gradient of Dirichlet's distribution. */
TT_LONG_FN double tt_dirichlet_grad_f64(double x, double a, double total) {
    double b = total - a, h, h1;
    if (!(a > 0 && b > 0 && total < TT_INF_F64 && x >= 0 && x <= 1)) return TT_NAN_F64;
    if (x == 0) return 0;
    if (x < (a + 1) / (total + 2)) {
        h = tt_beta_fraction(a, b, x, 0, &h1);
        return -x / a * (h * (log(x) - tt_digamma_f64(a + 1) + tt_digamma_f64(total)) + h1);
    }
    h = tt_beta_fraction(b, a, 1 - x, 1, &h1);
    return x / b * (h * (log(x) - tt_digamma_f64(a) + tt_digamma_f64(total)) + h1);
}
