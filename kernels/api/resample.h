/* Resampling of (batch, channels, *) along its last `dims` (1 to 3) dimensions. */
#pragma once
#include "api/core.h"

enum { TT_NEAREST, TT_NEAREST_EXACT, TT_LINEAR, TT_CUBIC };

/* sizes: of the result; scales: by which factors it is larger, 0 where that follows from the sizes. align: do the
 * corners' centres stay where they are? antialias: is what shrinks smoothed? backward: x is the gradient of a result,
 * and `sizes` are those of what it was made from. */
tt_array *tt_resample(tt_array *x, int dims, int64_t *sizes, double *scales, int mode, int align, int antialias,
                      int backward);
