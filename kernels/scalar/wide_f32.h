/* Cores in double for the float32 functions that are composed of several steps: with about 50
   good bits in each step, only the final conversion to float rounds noticeably.  They use
   products and sums but no fma, so that they vectorise on the baseline instruction set too, and
   conversions only from 32-bit integers, for the same reason.

   Arguments are in range (no overflow inside); a nan gives a nan except from the two that take a
   logarithm's argument apart, tt_log_wide and tt_log1p_wide, whose callers test for it.  The
   polynomials are our own minimax fits. */
#ifndef TT_SCALAR_WIDE_F32_H
#define TT_SCALAR_WIDE_F32_H

#include "bits.h"

#define TT_LN2_F64 0.69314718055994531
#define TT_PI_F64 3.1415926535897931

/* 1.5 * 2^52: adding it rounds to an integer, left in the low bits. */
#define TT_ROUND_F64 6755399441055744.0

/* exp(x) for |x| <= 700, and 0 at TT_EXP_ZERO_F64, where n is -1023. What rounds to the float 0, as
   does exp(x) below TT_EXP_NONE_F64, takes that for its argument: turned into a float, a number
   that underflows costs an Intel CPU a hundred cycles.  Cody-Waite, ln2 in two parts, the first of 40 bits,
   so that its product with n is exact. */
#define TT_EXP_ZERO_F64 (-709.1)
#define TT_EXP_NONE_F64 (-104.0) /* its exponential is below 2^-150, half of the smallest float */
TT_FN double tt_exp_wide(double x) {
    double t = x * 1.4426950408889634 + TT_ROUND_F64, n = t - TT_ROUND_F64;
    double r = (x - n * 0.69314718055920821) - n * 7.3710025651677989e-13;
    double q = 2.7476818622209326e-07;
    q = q * r + 2.7635006779309008e-06;
    q = q * r + 2.4801931764023819e-05;
    q = q * r + 1.9841185201386412e-04;
    q = q * r + 1.3888888516077691e-03;
    q = q * r + 8.3333333708931843e-03;
    q = q * r + 4.1666666668137384e-02;
    q = q * r + 1.6666666666611510e-01;
    q = q * r + 4.9999999999998324e-01;
    return (1.0 + (r + r * r * q)) * tt_double_bits((tt_bits_f64(t) << 52) + (1023ull << 52));
}

/* log(x) for positive normal x: x = 2^k (1+f) with 1+f in [sqrt(1/2), sqrt(2)) up to a few units
   of the exponent word, and log(1+f) = 2 atanh(s), s = f/(2+f). */
#define TT_LOG_WIDE(name, divide)                                                                                      \
    TT_FN double name(double x) {                                                                                      \
        tt_u64 bits = tt_bits_f64(x);                                                                                  \
        tt_u32 high = (tt_u32)(bits >> 32) - 0x3fe6a09eu;                                                              \
        double k = (double)((tt_i32)high >> 20);                                                                       \
        double f = tt_double_bits(bits - ((tt_u64)(high & 0xfff00000u) << 32)) - 1.0;                                  \
        double s = divide(f, 2.0 + f), z = s * s;                                                                      \
        double q = 0.14796101694643823;                                                                                \
        q = q * z + 0.15314035929646477;                                                                               \
        q = q * z + 0.18183564876711081;                                                                               \
        q = q * z + 0.22222198562952702;                                                                               \
        q = q * z + 0.28571428742484556;                                                                               \
        q = q * z + 0.39999999999414249;                                                                               \
        q = q * z + 0.66666666666667340;                                                                               \
        return k * TT_LN2_F64 + (2.0 * s + s * z * q);                                                                 \
    }
#define TT_DIVIDE(a, b) ((a) / (b))
TT_LOG_WIDE(tt_log_wide, TT_DIVIDE)
TT_LOG_WIDE(tt_log_straight_wide, tt_ratio_f64) /* the same bits; without a branch on a GPU */

/* log(1+t), t > -1, relative: the rounding error of u = 1+t comes back as (t - (u-1))/u. */
TT_FN double tt_log1p_wide(double t) {
    double u = 1.0 + t;
    return tt_log_wide(u) + (t - (u - 1.0)) / u;
}

/* log(1+t) for 0 <= t <= 1, again as 2 atanh(s), s = t/(2+t) <= 1/3.  A nan gives a nan. */
TT_FN double tt_log1p_unit_wide(double t) {
    double s = t / (2.0 + t), z = s * s;
    double q = 0.17748957936467055;
    q = q * z + 0.098982547979166793;
    q = q * z + 0.13587256667712069;
    q = q * z + 0.15364190960273277;
    q = q * z + 0.18182820801248625;
    q = q * z + 0.22222192652408729;
    q = q * z + 0.28571429063225462;
    q = q * z + 0.39999999995997371;
    q = q * z + 0.66666666666677876;
    return 2.0 * s + s * z * q;
}

/* asin(x) for 0 <= x <= 1/2, given z = x^2. */
TT_FN double tt_asin_wide(double x, double z) {
    double q = 0.032942201963344998;
    q = q * z + 0.0019480214292861829;
    q = q * z + 0.020659207791952617;
    q = q * z + 0.021862974229258175;
    q = q * z + 0.030426845664171774;
    q = q * z + 0.044640687538071024;
    q = q * z + 0.075000050424969947;
    q = q * z + 0.1666666662672269;
    return q * z * x + x;
}

/* atan(y/x) for 0 <= y <= x, from atan((y-x)/(y+x)) + pi/4 past tan(pi/8). */
TT_FN double tt_atan_wide(double y, double x) {
    int beyond = y > 0.41421356237309503 * x;
    double t = (beyond ? y - x : y) / (beyond ? y + x : x), z = t * t;
    double q = -0.037957224745408767;
    q = q * z + 0.069931744260892575;
    q = q * z - 0.089972951466589637;
    q = q * z + 0.11104055914305755;
    q = q * z - 0.14285426631614309;
    q = q * z + 0.19999994406376556;
    q = q * z - 0.33333333296434975;
    return q * z * t + t + (beyond ? 0.25 * TT_PI_F64 : 0.0);
}

/* sin(pi f) for |f| <= 1/2. */
TT_FN double tt_sinpi_wide(double f) {
    double z = f * f, q = -2.1133801443873955e-05;
    q = q * z + 0.00046598716815103808;
    q = q * z - 0.0073703643789204817;
    q = q * z + 0.082145878825248389;
    q = q * z - 0.59926452882600734;
    q = q * z + 2.5501640398619005;
    q = q * z - 5.1677127800497864;
    q = q * z + 3.1415926535897927;
    return q * f;
}

#endif
