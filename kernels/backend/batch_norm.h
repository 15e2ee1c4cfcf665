/* Normalisation of channels: api/batch_norm.h. */
#pragma once
#include "core/tt.h"

/* x, g and out lie as (outer, channels, inner); inner is 1 where channels lie closest together. Of each channel the
 * others have one number; mean, rstd and sums of the dtype computed in. */
typedef struct {
    tt_array *x, *g, *out; /* g: NULL, or the gradient of the result; out is then that of x */
    tt_array *weight, *bias, *mean, *rstd; /* weight, bias: may be NULL */
    tt_array *of_weight,
        *of_bias; /* where mean and rstd are those of x and out is its gradient: those of weight and bias */
    tt_array *sums; /* (2, channels): what batch_norm_sums is to write */
    int64_t outer, channels, inner; /* group_norm: channels of all `outer` samples */
} tt_batch_norm_work;

/* What else the statistics need. */
typedef struct {
    tt_array *stats; /* (2, channels) */
    tt_array *running[2]; /* mean and variance; or NULL */
    double momentum, eps;
} tt_batch_statistics_work;
