/* What the host hands to the kernels of resampling. */
#pragma once
#include "cuda/device/args.h"
#include "scalar/resample.h"

/* Of an axis: each row of its matrix, and, for the derivative, the rows that each element is in. */
typedef struct {
    tt_i64 *start, *count;
    char *weights; /* `room` for each row, of the dtype computed in */
    tt_i64 *first, *times;
    tt_i64 room;
    tt_resampling rule;
} tt_resample_axis;

/* resample_taps: a block's y is the axis. The operator: 1 for the derivative. */
typedef struct {
    tt_resample_axis axes[3];
} tt_resample_taps_args;

/* resample: a thread to a place of the result, in several planes. The operator: 1 for the derivative. The variant: */
#define TT_RESAMPLE_WIDE 1  /* 64-bit arithmetic */
#define TT_RESAMPLE_LAST 2  /* channels lie closest together */
#define TT_RESAMPLE_GROWS 4 /* the last axis is summed up first, else the first */
#define TT_RESAMPLE_ROOM                                                                                               \
    3  /* two bits: log of the weights of an axis that a thread holds, if there are no more of them */
#define TT_RESAMPLE_DIMS 5  /* from this bit on: the axes of more than one element, the last ones */
typedef struct {
    const char *from;
    char *to;
    int64_t places, planes, in, out; /* places: of the result, times channels; in, out: elements of a plane, likewise */
    int64_t inner;
    int64_t from_size[3], to_size[3];
    tt_divider by_inner, by_size[3]; /* of the result */
    tt_resample_axis axes[3];
} tt_resample_args;
