/* How scans join what came before with what comes next: kernels/cpu/scan.c and kernels/cuda/device/scan.cuh. */
#pragma once
#include "arith.h"
#include "wide_f32.h"

/* Note [The order of a scan] in backend/scan.h: blocks are joined on TT_LEVELS levels, of TT_LEVEL times as many
 * each. */
#define TT_LEVEL_LOG 5
#define TT_LEVEL (1 << TT_LEVEL_LOG)
#define TT_LEVELS 3

/* log(exp(x) + exp(y)) */
TT_FN double tt_log_add_f64(double x, double y) {
    double hi = x > y ? x : y, lo = x > y ? y : x;
    if (x != x || y != y) return x + y;
    return hi == lo && hi - hi != 0 ? hi : hi + tt_log1p_f64(tt_exp_f64(lo - hi));
}

/* ... as the float32 functions have it */
TT_FN double tt_log_add_wide(double x, double y) {
    double hi = x > y ? x : y, lo = x > y ? y : x, d = lo - hi;
    d = d < TT_EXP_ZERO_F64 ? TT_EXP_ZERO_F64 : d;
    d = hi + tt_log1p_unit_wide(tt_exp_wide(d));
    return hi == lo && hi - hi != 0 ? hi : d;
}

/* Of numbers whose largest is top, or NaN: what each adds to a sum, and the logarithm of it all. */
TT_FN double tt_log_top(double top, double x) { return (top != top) | (top > x) ? top : x; }
TT_FN double tt_log_part_f64(double top, double x) { return tt_exp_f64(x - top); }
TT_FN double tt_log_part_wide(double top, double x) {
    double d = x - top;
    return tt_exp_wide(d < TT_EXP_ZERO_F64 ? TT_EXP_ZERO_F64 : d);
}
TT_FN double tt_log_total_f64(double top, double sum) { return top - top == 0 ? top + tt_log_f64(sum) : top; }
TT_FN double tt_log_total_wide(double top, double sum) {
    return top - top == 0 ? top + tt_log_straight_wide(sum) : top;
}

/* Sums of exponentials as they grow: top is the largest so far, sum that of exp(x - top). Of the old sum and of the new
 * part the one that does not have the top shrinks by the share. */
#define TT_LOG_SHARE(name, exp, zero)                                                                                  \
    TT_FN double name(double top, double x) {                                                                          \
        double d = x > top ? top - x : x - top;                                                                        \
        d = x == top ? 0.0 : d; /* infinities, too */                                                                  \
        return exp(d < zero ? zero : d);                                                                               \
    }
TT_LOG_SHARE(tt_log_share_f64, tt_exp_f64, -TT_INF_F64)
TT_LOG_SHARE(tt_log_share_wide, tt_exp_wide, TT_EXP_ZERO_F64)
TT_FN double tt_log_sum(double top, double sum, double x, double share) {
    return x > top ? sum * share + 1.0 : sum + share;
}

/* Does x take the place of the best so far? A NaN, once met, stays; equal values move the index on. */
#define TT_AT_LEAST(x, best) (((x) != (x)) | (((x) >= (best)) & ((best) == (best))))
#define TT_AT_MOST(x, best) (((x) != (x)) | (((x) <= (best)) & ((best) == (best))))
