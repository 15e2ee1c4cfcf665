/* Convolutions of input (N, C, *size) with weight (O, C / groups, *taps) into a result (N, O, *places), of one to three
 * dimensions: result[n, o, i] is the sum over channels c of o's group, and taps k, of
 * input[n, c, i stride - padding + k dilation] weight[o, c, k], where input is 0 outside. Any size of the result goes.
 * `geometry` is strides, paddings and dilations, one of each dimension, and groups. */
#pragma once
#include "api/core.h"

/* bias: NULL, or added to each channel of what is computed */
tt_array *tt_conv(tt_array *input, tt_array *weight, tt_array *bias, int64_t *places, int64_t *geometry);
/* the gradients of input and weight for g, the result's; that of input is the transposed convolution */
tt_array *tt_conv_input(tt_array *g, tt_array *weight, tt_array *bias, int64_t *size, int64_t *geometry);
tt_array *tt_conv_weight(tt_array *g, tt_array *input, int64_t *taps, int64_t *geometry);

/* Blocks of an image (N, C, H, W) as columns (N, C taps, blocks), and the sum of columns at their places in an image of
 * `size`. `geometry` is taps, dilations, paddings and strides, two of each. */
tt_array *tt_unfold(tt_array *image, int64_t *geometry);
tt_array *tt_fold(tt_array *columns, int64_t *size, int64_t *geometry);
