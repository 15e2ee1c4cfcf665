/* Resampling of images, one dimension after the other: api/resample.h. */
#pragma once
#include "core/tt.h"
#include "scalar/resample.h"

/* Arrays lie as (outer, *spatial, inner): inner is 1, or the channels where these lie closest together. Axes of as many
 * elements before are done last; where the result is the larger, those behind are done first. */
typedef struct {
    tt_array *from, *to;
    int64_t outer, inner;
    bool backward; /* `from` has the sizes `out`, and the matrices are transposed */
    tt_resampling axes[3]; /* the first ones may be of one element */
} tt_resample_work;
