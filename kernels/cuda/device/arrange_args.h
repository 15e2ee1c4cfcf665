/* What the host hands to the kernels that join and rearrange. */
#pragma once
#include "cuda/device/args.h"

#define TT_JOIN_INPUTS 88 /* of one launch */

/* join: of each input `chunk` units after one another go to every row of the output, `start` units from its begin */
typedef struct {
    const char *data;
    int64_t chunk, start;
    tt_divider by;
    int32_t unused;
} tt_joined;
typedef struct {
    char *out;
    int64_t rows, pitch;
    tt_joined in[TT_JOIN_INPUTS];
} tt_join_args;

/* rearrange: units of the output in the order of memory; the coordinate along each dimension, innermost first, is moved
 * down by `shift`, round the end, before the step (bytes, of any sign) counts */
typedef struct {
    char *out;
    const char *in;
    int64_t numel;
    int32_t ndim, unused;
    int64_t size[TT_CUDA_DIMS], shift[TT_CUDA_DIMS], step[TT_CUDA_DIMS];
    tt_divider by[TT_CUDA_DIMS];
} tt_rearrange_args;

/* triangle: zeroes the columns of each row before (`below`) or from row + edge on; dimensions innermost first */
typedef struct {
    char *data;
    int64_t numel, edge;
    int32_t ndim, below;
    int64_t size[TT_CUDA_DIMS], step[TT_CUDA_DIMS];
} tt_triangle_args;
