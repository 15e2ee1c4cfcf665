/* How scans join what came before with what comes next: kernels/cpu/scan.c and kernels/cuda/device/scan.cuh. */
#pragma once
#include "arith.h"

/* Note [The order of a scan] in backend/scan.h: blocks are joined on TT_LEVELS levels, of TT_LEVEL times as many each. */
#define TT_LEVEL_LOG 5
#define TT_LEVEL (1 << TT_LEVEL_LOG)
#define TT_LEVELS 3

/* log(exp(x) + exp(y)) */
TT_FN double tt_log_add_f64(double x, double y) {
    double hi = x > y ? x : y, lo = x > y ? y : x;
    if (x != x || y != y) return x + y;
    return hi == lo && hi - hi != 0 ? hi : hi + tt_log1p_f64(tt_exp_f64(lo - hi));
}

/* Does x take the place of the best so far? A NaN, once met, stays; equal values move the index on. */
#define TT_AT_LEAST(x, best) (((x) != (x)) | (((x) >= (best)) & ((best) == (best))))
#define TT_AT_MOST(x, best) (((x) != (x)) | (((x) <= (best)) & ((best) == (best))))
