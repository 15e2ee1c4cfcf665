/* Special functions that few programs use: in float64, of which float32 gets the rounded result. They are not part of
 * arith.h, since every kernel that is compiled reads that; who runs TT_SPECIAL_OPS of ops.h includes this too. */
#pragma once
#include "arith.h"
#include "bessel.h"
#include "implicit_gradients.h"
#include "incomplete_gamma.h"
#include "normal.h"
#include "ops.h"
#include "polynomials.h"

/* Hurwitz's zeta(s, q), the sum over k of (q + k)^-s, for s > 1: terms up to q + k >= 10 and s, then the
 * Euler-Maclaurin
   formula (Abramowitz and Stegun 23.1.30 and 23.2.9) with twelve Bernoulli numbers, B_2k / (2k)!. Poles at q = 0, -1,
 * ... */
TT_LONG_FN double tt_zeta_f64(double s, double q) {
    const double b[12] = {1.0 / 12,
                          -1.0 / 720,
                          1.0 / 30240,
                          -1.0 / 1209600,
                          1.0 / 47900160,
                          -691.0 / 1307674368000.0,
                          1.0 / 74724249600.0,
                          -3617.0 / 10670622842880000.0,
                          43867.0 / 5109094217170944000.0,
                          -174611.0 / 802857662698291200000.0,
                          77683.0 / 14101100039391805440000.0,
                          -236364091.0 / 1693824136731743669452800000.0};
    double sum = 0, x = q, power, term, factor, most = s > 10 ? s : 10;
    int k;
    if (s == 1) return TT_INF_F64;
    if (!(s > 1) || q != q) return TT_NAN_F64;
    if (q <= 0 && q == floor(q)) return TT_INF_F64;
    if (q < 0 && s != floor(s)) return TT_NAN_F64;
    for (k = 0; k < 1000000 && x < most; k++, x += 1) {
        sum += term = pow(x, -s);
        if (x > 0 && term < 1e-17 * sum) return sum;
    }
    power = pow(x, -s);
    sum += power * x / (s - 1) + 0.5 * power;
    factor = s;
    term = power / x;
    for (k = 0; k < 12; k++) {
        sum += b[k] * factor * term;
        factor *= (s + 2 * k + 1) * (s + 2 * k + 2);
        term /= x * x;
    }
    return sum;
}

#define TT_ROUNDED_1(name)                                                                                             \
    TT_FN float tt_##name##_f32(float x) { return (float)tt_##name##_f64((double)x); }
#define TT_ROUNDED_2(name)                                                                                             \
    TT_FN float tt_##name##_f32(float x, float y) { return (float)tt_##name##_f64((double)x, (double)y); }
#define TT_ROUNDED_3(name)                                                                                             \
    TT_FN float tt_##name##_f32(float x, float y, float z) {                                                           \
        return (float)tt_##name##_f64((double)x, (double)y, (double)z);                                                \
    }
#define TT_ROUNDED(name, arity, ...) TT_ROUNDED_##arity(name)
TT_SPECIAL_OPS(TT_ROUNDED)
