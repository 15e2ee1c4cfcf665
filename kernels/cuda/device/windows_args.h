/* What the host hands to the kernels over windows of images: pooling, and blocks as columns. */
#pragma once
#include "cuda/device/args.h"
#include "scalar/windows.h"

/* pool: a thread to an element of what is computed. The operator is one of TT_POOL_...; the variant: */
#define TT_POOL_WIDE 1     /* 64-bit arithmetic */
#define TT_POOL_LAST 2     /* channels lie closest together */
#define TT_POOL_PLACES 4   /* maxima: their places are asked for */
#define TT_POOL_ADAPTIVE 8
#define TT_POOL_STARTS 16  /* where windows begin is read */
#define TT_POOL_VECTOR 5    /* two bits: log of the channels of a thread, where these lie closest together */
#define TT_POOL_DIMS 7      /* two bits: the axes of more than one element, the last ones */
/* from this bit on: the taps of the last two axes, if they are 2 or 3 and the first has one; or 0 */
#define TT_POOL_TAPS 9
typedef struct {
    const char *from;
    char *to;
    int64_t *places;       /* where maxima are */
    const int64_t *starts; /* of each plane, those of all axes from `first_axis` on */
    int64_t numel;         /* of `to` */
    int64_t inner, in, out; /* elements of a plane: in times inner, out times inner */
    int64_t divisor;
    tt_window_axis axes[3];
    int32_t first_axis, padding;
    tt_divider by_inner, by_size[3]; /* of `to` */
    tt_divider by_step[3]; /* by the stride; adaptive: by `out` */
} tt_pool_args;

/* unfold: a thread to an element of the columns; fold (the operator is 1): of the image, the sum over the taps in
 * order. The variant: 64-bit arithmetic (TT_POOL_WIDE). */
typedef struct {
    char *image, *columns;
    int64_t numel; /* of what is computed */
    int64_t size[2], taps[2], dilation[2], padding[2], stride[2], blocks[2];
    tt_divider by_size[2], by_taps[2], by_stride[2], by_blocks[2];
} tt_unfold_args;
