/* Convolutions along one dimension, as every backend does them: api/conv.h. */
#pragma once
#include "core/tt.h"

/* One of the three arrays is computed from the other two: the result, or the gradient of input or weight. */
typedef struct {
    tt_array *input, *weight,
        *result; /* (batch, groups in, length), (groups out, in, taps), (batch, groups out, places) */
    tt_array *computed;                /* that of the three */
    int compute;                       /* the dtype that elements have on the way */
    int64_t batch, groups, in, out;    /* in, out: channels of a group */
    int64_t length, taps, places;
    int64_t stride, padding, dilation;
} tt_conv_work;
