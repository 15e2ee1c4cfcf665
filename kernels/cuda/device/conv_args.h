/* conv: what its kernels are handed. Operators: which of the three arrays is computed. */
#pragma once
#include "cuda/device/args.h"

enum { TT_CONV_RESULT, TT_CONV_INPUT, TT_CONV_WEIGHT };

/* backend/conv.h says what the sizes are; steps in elements, of image or channel and of the three dimensions */
typedef struct {
    const char *input, *weight, *result; /* one of them is written */
    int64_t count; /* of its elements */
    int64_t batch, groups, in, out;
    int64_t size[3], taps[3], places[3], stride[3], padding[3], dilation[3];
    int64_t of_input[5], of_weight[5], of_result[5];
} tt_conv_args;
