/* Resampling of images, one dimension after the other: api/resample.h. */
#pragma once
#include "core/tt.h"

/* Along one dimension, element j of the result is the sum of `count[j]` neighbours from `start[j]` on, with weights
 * from `first[j]` on. The transposed matrix, for the derivative, has the same form. */
typedef struct {
    int64_t in, out;
    const int64_t *start, *count, *first;
    const double *weights;
} tt_resampling;

/* Arrays lie as (outer, *spatial, inner): inner is 1, or the channels where these lie closest together. */
typedef struct {
    tt_array *from, *to;
    int64_t outer, inner;
    tt_resampling axes[3]; /* the first ones may be of one element */
} tt_resample_work;
