/* Losses of classifications, as every backend computes them. */
#pragma once
#include "core/tt.h"
#include "scalar/codes.h"

/* One row of x for each target. Contiguous arrays: x of any floating dtype, target of int64, weight (of the classes,
 * or NULL) of the dtype computed in, which `stats` has: for each row its maximum, for each the logarithm of its sum of
 * exponentials, and the sum of the targets' weights. */
typedef struct {
    tt_array *x, *target, *weight, *stats;
    int64_t rows, classes, ignore;
    double smoothing;
    int logits;         /* else log-probabilities */
    int reduction;      /* 0: none, 1: mean, 2: sum */
} tt_class_work;
