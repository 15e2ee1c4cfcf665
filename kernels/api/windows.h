/* Pooling over the last `dims` (1 to 3) dimensions of (channels, *) or (batch, channels, *). Of each dimension `spec`
 * holds (taps, stride, padding, step, size of the result); a stride of 0 makes windows adaptive. */
#pragma once
#include "api/core.h"

/* *index: int64, where in the last dimensions, taken as one, each maximum is; not made where index is NULL. starts:
 * int64 (planes, the results' sizes one after the other), where windows begin; or NULL. */
tt_array *tt_max_pool(tt_array *x, int dims, int64_t *spec, tt_array *starts, tt_array **index);
tt_array *tt_max_pool_backward(tt_array *g, tt_array *index, int dims, int64_t *sizes, int64_t *spec, tt_array *starts);
/* padding: does it count? divisor: 0 for the number of elements */
tt_array *tt_avg_pool(tt_array *x, int dims, int64_t *spec, int padding, int64_t divisor);
tt_array *tt_avg_pool_backward(tt_array *g, int dims, int64_t *sizes, int64_t *spec, int padding, int64_t divisor);
