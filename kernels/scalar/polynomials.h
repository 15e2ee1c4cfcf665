/* Orthogonal polynomials of a degree n that is an element too: its integer part; below 0 the value is 0. Their
 * recurrences are Abramowitz and Stegun 22.7. */
#pragma once
#include "bits.h"

enum { TT_FIRST_KIND, TT_SECOND_KIND, TT_THIRD_KIND, TT_FOURTH_KIND };

/* Chebyshev's, of four kinds. Up to degree 64 the recurrence. Beyond, with x = cos w, they are cos(n w),
 * sin((n + 1) w) / sin(w), cos((n + 1/2) w) / cos(w/2) and sin((n + 1/2) w) / sin(w/2), and hyperbolic ones for x > 1;
 * for x < 0, those of -x with a sign, the third kind from the fourth. */
TT_LONG_FN double tt_chebyshev_polynomial(int kind, double x, double n) {
    double p = 1, q, a = tt_abs_f64(x), w, m;
    int odd, flat = a < 1;
    if (!(n > -1)) return 0;
    if (n < 1) return 1;
    n = floor(n);
    q = kind == TT_FIRST_KIND ? x : kind == TT_SECOND_KIND ? 2 * x : kind == TT_THIRD_KIND ? 2 * x - 1 : 2 * x + 1;
    if (n <= 64) {
        for (int k = 1; k < n; k++) {
            double next = 2 * x * q - p;
            p = q;
            q = next;
        }
        return q;
    }
    odd = x < 0 && fmod(n, 2) != 0;
    if (x < 0 && kind >= TT_THIRD_KIND) kind = TT_THIRD_KIND + TT_FOURTH_KIND - kind;
    w = flat ? acos(a) : acosh(a);
    m = kind == TT_FIRST_KIND ? n : kind == TT_SECOND_KIND ? n + 1 : n + 0.5;
    if (a == 1) q = kind == TT_SECOND_KIND ? n + 1 : kind == TT_FOURTH_KIND ? 2 * n + 1 : 1;
    else if (kind == TT_FIRST_KIND) q = flat ? cos(m * w) : cosh(m * w);
    else if (kind == TT_SECOND_KIND) q = flat ? sin(m * w) / sin(w) : sinh(m * w) / sinh(w);
    else if (kind == TT_THIRD_KIND) q = flat ? cos(m * w) / cos(0.5 * w) : cosh(m * w) / cosh(0.5 * w);
    else q = flat ? sin(m * w) / sin(0.5 * w) : sinh(m * w) / sinh(0.5 * w);
    return odd ? -q : q;
}
TT_FN double tt_chebyshev_polynomial_t_f64(double x, double n) { return tt_chebyshev_polynomial(TT_FIRST_KIND, x, n); }
TT_FN double tt_chebyshev_polynomial_u_f64(double x, double n) { return tt_chebyshev_polynomial(TT_SECOND_KIND, x, n); }
TT_FN double tt_chebyshev_polynomial_v_f64(double x, double n) { return tt_chebyshev_polynomial(TT_THIRD_KIND, x, n); }
TT_FN double tt_chebyshev_polynomial_w_f64(double x, double n) { return tt_chebyshev_polynomial(TT_FOURTH_KIND, x, n); }
TT_FN double tt_shifted_chebyshev_polynomial_t_f64(double x, double n) {
    return tt_chebyshev_polynomial(TT_FIRST_KIND, 2 * x - 1, n);
}
TT_FN double tt_shifted_chebyshev_polynomial_u_f64(double x, double n) {
    return tt_chebyshev_polynomial(TT_SECOND_KIND, 2 * x - 1, n);
}
TT_FN double tt_shifted_chebyshev_polynomial_v_f64(double x, double n) {
    return tt_chebyshev_polynomial(TT_THIRD_KIND, 2 * x - 1, n);
}
TT_FN double tt_shifted_chebyshev_polynomial_w_f64(double x, double n) {
    return tt_chebyshev_polynomial(TT_FOURTH_KIND, 2 * x - 1, n);
}

/* The degree up to which the other recurrences are followed; beyond, NaN. */
#define TT_MOST_DEGREE 1048576.0

/* Hermite's: step = 2 for H, 1 for He. Beyond degree 512 they overflow, and the recurrence gives NaN. */
TT_LONG_FN double tt_hermite_polynomial(double step, double x, double n) {
    double p = 1, q = step * x;
    if (!(n > -1)) return 0;
    if (n < 1) return 1;
    if (n >= 513) return TT_NAN_F64;
    n = floor(n);
    for (int k = 1; k < n; k++) {
        double next = step * (x * q - k * p);
        p = q;
        q = next;
    }
    return q;
}
TT_FN double tt_hermite_polynomial_h_f64(double x, double n) { return tt_hermite_polynomial(2, x, n); }
TT_FN double tt_hermite_polynomial_he_f64(double x, double n) { return tt_hermite_polynomial(1, x, n); }

TT_LONG_FN double tt_laguerre_polynomial_l_f64(double x, double n) {
    double p = 1, q = 1 - x;
    if (!(n > -1)) return 0;
    if (n < 1 || x == 0) return 1;
    if (n > TT_MOST_DEGREE) return TT_NAN_F64;
    n = floor(n);
    for (int k = 1; k < n && q == q; k++) {
        double next = ((2 * k + 1 - x) * q - k * p) / (k + 1);
        p = q;
        q = next;
    }
    return q;
}

TT_LONG_FN double tt_legendre_polynomial_p_f64(double x, double n) {
    double p = 1, q = x;
    if (!(n > -1)) return 0;
    if (n < 1) return 1;
    n = floor(n);
    if (tt_abs_f64(x) == 1) return x > 0 || fmod(n, 2) == 0 ? 1 : -1;
    if (n > TT_MOST_DEGREE) return TT_NAN_F64;
    for (int k = 1; k < n && q == q; k++) {
        double next = ((2 * k + 1) * x * q - k * p) / (k + 1);
        p = q;
        q = next;
    }
    return q;
}
