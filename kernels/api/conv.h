/* Convolutions along one dimension, of input (N, C, length) with weight (O, C / groups, taps) into a result
 * (N, O, places): result[n, o, i] is the sum over channels c of o's group, and taps k, of
 * input[n, c, i stride - padding + k dilation] weight[o, c, k], where input is 0 outside. Any size of the result goes. */
#pragma once
#include "api/core.h"

tt_array *tt_conv1d(tt_array *input, tt_array *weight, int64_t places, int64_t stride, int64_t padding,
                    int64_t dilation, int64_t groups);
/* the gradients of input and weight for g, the result's */
tt_array *tt_conv1d_input(tt_array *g, tt_array *weight, int64_t length, int64_t stride, int64_t padding,
                          int64_t dilation, int64_t groups);
tt_array *tt_conv1d_weight(tt_array *g, tt_array *input, int64_t taps, int64_t stride, int64_t padding,
                           int64_t dilation, int64_t groups);
