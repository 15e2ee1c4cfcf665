/* Padding with a number. */
#pragma once
#include "api/core.h"

/* `a` with elements of that number before and behind it, pads[2 * d] and pads[2 * d + 1] of them in dimension d, or
 * without as many of its own where these are negative. `strides`: the result's; NULL: it is row-major. */
tt_array *tt_pad(tt_array *a, int64_t *pads, int64_t *strides, int kind, double f, int64_t i);
