/* Random variates by rejection: gamma, Poisson, binomial. An element takes as many numbers of the stream as it needs,
 * from blocks of its own: block i + 2^40 k of the draw (Note [Random streams] in philox.h) has the numbers 2k and 2k +
 * 1 of element i. */
#pragma once
#include "arith.h"
#include "philox.h"

/* X(name, what a and b are) */
#define TT_VARIATE_KINDS(X)                                                                                            \
    X(gamma) /* of shape a */                                                                                          \
    X(log_gamma) /* the logarithm of that, which is not too small for a float */                                       \
    X(poisson) /* of mean a */                                                                                         \
    X(binomial) /* of a trials, with probability b */

#define TT_VARIATE_ENUM(name) TT_VARIATE_##name,
enum { TT_VARIATE_KINDS(TT_VARIATE_ENUM) TT_NUM_VARIATE_KINDS };

typedef struct {
    tt_u64 seed, draw, block, rest;
    int has_rest;
} tt_source;

/* Uniform on (0, 1). */
TT_FN double tt_next_uniform(tt_source *s) {
    if (!s->has_rest) {
        tt_philox_block c = tt_philox(s->seed, s->draw, s->block);
        s->block += (tt_u64)1 << 40;
        s->rest = (tt_u64)c.x2 << 32 | c.x3;
        s->has_rest = 1;
        return tt_uniform_open_f64((tt_u64)c.x0 << 32 | c.x1);
    }
    s->has_rest = 0;
    return tt_uniform_open_f64(s->rest);
}

TT_FN double tt_next_normal(tt_source *s) {
    double length = tt_sqrt_f64(-2 * tt_log_f64(tt_next_uniform(s)));
    return length * tt_cos_f64(6.283185307179586 * tt_next_uniform(s));
}

/* Of shape a >= 1: Marsaglia and Tsang, "A simple method for generating gamma variables" (2000). */
TT_LONG_FN double tt_gamma_variate(double a, tt_source *s) {
    double d = a - 1.0 / 3, c = 1 / tt_sqrt_f64(9 * d);
    for (;;) {
        double z = tt_next_normal(s), v = 1 + c * z, u = tt_next_uniform(s);
        if (!(v > 0)) continue;
        v = v * v * v;
        if (tt_log_f64(u) < 0.5 * z * z + d * (1 - v + tt_log_f64(v))) return d * v;
    }
}

/* Below 1 the shape is raised by 1, and the variate multiplied by u^(1/a). */
TT_LONG_FN double tt_variate_log_gamma(double a, double b, tt_source *s) {
    (void)b;
    if (!(a > 0 && a < TT_INF_F64)) return a == 0 ? -TT_INF_F64 : TT_NAN_F64;
    double raised = a < 1 ? tt_log_f64(tt_next_uniform(s)) / a : 0;
    return raised + tt_log_f64(tt_gamma_variate(a < 1 ? a + 1 : a, s));
}
TT_LONG_FN double tt_variate_gamma(double a, double b, tt_source *s) {
    return a >= 1 && a < TT_INF_F64 ? tt_gamma_variate(a, s) : tt_exp_f64(tt_variate_log_gamma(a, b, s));
}

/* So many that the difference to a normal variate is lost in rounding, and rejection would not be exact either. */
#define TT_MANY_COUNTS 1e10
TT_FN double tt_normal_count(double mean, double variance, tt_source *s) {
    double x = mean + tt_sqrt_f64(variance) * tt_next_normal(s);
    return x < 0 ? 0 : rint(x);
}

/* Few: how many uniform numbers are multiplied until the product is below exp(-a). Else the transformed rejection PTRS
 * of Hoermann, "The transformed rejection method for generating Poisson random variables" (1993). */
TT_LONG_FN double tt_variate_poisson(double a, double b, tt_source *s) {
    (void)b;
    if (!(a >= 0 && a < TT_INF_F64)) return TT_NAN_F64;
    if (a > TT_MANY_COUNTS) return tt_normal_count(a, a, s);
    if (a < 10) {
        double least = tt_exp_f64(-a), product = tt_next_uniform(s), count = 0;
        for (; product > least; count++) product *= tt_next_uniform(s);
        return count;
    }
    double slope = 0.931 + 2.53 * tt_sqrt_f64(a), width = -0.059 + 0.02483 * slope, log_mean = tt_log_f64(a);
    double inverse = 1.1239 + 1.1328 / (slope - 3.4), quick = 0.9277 - 3.6224 / (slope - 2);
    for (;;) {
        double u = tt_next_uniform(s) - 0.5, v = tt_next_uniform(s), side = 0.5 - tt_abs_f64(u);
        double k = floor((2 * width / side + slope) * u + a + 0.43);
        if (side >= 0.07 && v <= quick) return k;
        if (k < 0 || (side < 0.013 && v > side)) continue;
        if (tt_log_f64(v * inverse / (width / (side * side) + slope)) <= k * log_mean - a - tt_lgamma_f64(k + 1))
            return k;
    }
}

/* log(k!) less Stirling's (k + 1/2) log(k + 1) - (k + 1) + log(2 pi) / 2. */
TT_LONG_FN double tt_stirling_rest(double k) {
    if (k < 10) return tt_lgamma_f64(k + 1) - ((k + 0.5) * tt_log_f64(k + 1) - (k + 1) + 0.91893853320467274178);
    double square = (k + 1) * (k + 1);
    return (1.0 / 12 - (1.0 / 360 - 1.0 / 1260 / square) / square) / (k + 1);
}

/* For p <= 1/2. Few successes: the lengths of the runs that end with one are geometric. Else the transformed rejection
 * BTRS of Hoermann, "The generation of binomial random variates" (1993). */
TT_LONG_FN double tt_binomial_variate(double n, double p, tt_source *s) {
    double q = 1 - p, count = 0;
    if (n * p * q > TT_MANY_COUNTS) {
        count = tt_normal_count(n * p, n * p * q, s);
        return count > n ? n : count;
    }
    if (n * p < 10) {
        double rate = tt_log1p_f64(-p), tried = ceil(tt_log_f64(tt_next_uniform(s)) / rate);
        for (; tried <= n; count++) {
            double run = ceil(tt_log_f64(tt_next_uniform(s)) / rate);
            tried += run < 1 ? 1 : run;
        }
        return count;
    }
    double root = tt_sqrt_f64(n * p * q), slope = 1.15 + 2.53 * root, width = -0.0873 + 0.0248 * slope + 0.01 * p;
    double quick = 0.92 - 4.2 / slope, odds = p / q, scale = (2.83 + 5.1 / slope) * root;
    double m = floor((n + 1) * p);
    for (;;) {
        double u = tt_next_uniform(s) - 0.5, v = tt_next_uniform(s), side = 0.5 - tt_abs_f64(u);
        double k = floor((2 * width / side + slope) * u + n * p + 0.5);
        if (side >= 0.07 && v <= quick) return k;
        if (k < 0 || k > n) continue;
        double bound = (m + 0.5) * tt_log_f64((m + 1) / (odds * (n - m + 1))) +
                       (n + 1) * tt_log1p_f64((k - m) / (n - k + 1)) +
                       (k + 0.5) * tt_log_f64(odds * (n - k + 1) / (k + 1)) + tt_stirling_rest(m) +
                       tt_stirling_rest(n - m) - tt_stirling_rest(k) - tt_stirling_rest(n - k);
        if (tt_log_f64(v * scale / (width / (side * side) + slope)) <= bound) return k;
    }
}
TT_LONG_FN double tt_variate_binomial(double a, double b, tt_source *s) {
    if (!(a == a && b == b)) return TT_NAN_F64;
    double n = floor(a);
    if (n <= 0 || b <= 0) return 0;
    if (b >= 1) return n;
    return b <= 0.5 ? tt_binomial_variate(n, b, s) : n - tt_binomial_variate(n, 1 - b, s);
}
