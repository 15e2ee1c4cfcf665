/* Convolutions, as every backend does them: api/conv.h. */
#pragma once
#include "core/tt.h"

#define TT_CONV_DIMS 3 /* the first are 1 where there are fewer */

/* One of the three arrays is computed from the other two: the result, or the gradient of input or weight. */
typedef struct {
    tt_array *input, *weight,
        *result; /* (batch, groups in, *size), (groups out, in, *taps), (batch, groups out, *places) */
    tt_array *computed;             /* that of the three; its channels lie next to each other if channels_last */
    tt_array *bias;                 /* NULL, or one number for each channel of what is computed; of its dtype */
    int compute;                    /* the dtype that elements have on the way */
    bool channels_last;
    int64_t batch, groups, in, out; /* in, out: channels of a group */
    int64_t size[TT_CONV_DIMS], taps[TT_CONV_DIMS], places[TT_CONV_DIMS];
    int64_t stride[TT_CONV_DIMS], padding[TT_CONV_DIMS], dilation[TT_CONV_DIMS];
} tt_conv_work;

/* Blocks of an image as columns: one of the two arrays is computed from the other. */
typedef struct {
    tt_array *image, *columns; /* (batch, channels, *size), (batch, channels taps, blocks) */
    bool fold;                 /* is it the image that is computed? */
    int64_t batch, channels, size[2], taps[2], dilation[2], padding[2], stride[2], blocks[2];
} tt_unfold_work;
