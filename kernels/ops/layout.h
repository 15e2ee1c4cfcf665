/* Images whose channels lie closest together. */
#pragma once
#include "core/tt.h"

/* Is (batch, channels, *spatial), of `dims` >= 2 spatial dimensions, of PyTorch's format channels_last? */
bool tt_channels_are_last(const tt_array *a, int dims);
/* A view of (batch, channels, *spatial) as (batch, *spatial, channels). */
tt_array *tt_channels_last(tt_array *a);
/* An array with the leading dimensions of `like` and these last ones, in that format if `last`, else contiguous. */
tt_array *tt_spatial(const tt_array *like, int dtype, int dims, const int64_t *sizes, bool last);
