/* The arguments of the kernels that reduce, and what their hosts and they have to agree on. */
#pragma once
#include "cuda/device/args.h"

/* The variant of family reduce. Bits 0-1: the form; 2-3: how the elements of one result lie; 4: indices of the extremes
 * come with the values; 5-7: what is left to do with an accumulator; from 8 on what the form needs. */
#define TT_RED_INNER 0
#define TT_RED_OUTER 1
#define TT_RED_JOIN 2
enum { TT_RED_FLAT, TT_RED_STEP, TT_RED_DIMS, TT_RED_FAR }; /* one after another; evenly; by dimensions; far apart */
#define TT_RED_INDEXED 16
#define TT_RED_THEN 5
#define TT_RED_OWN 8
/* INNER: 3 bits: log of the lanes that a result of one block has; 3 bits: log of a lane's elements; 3 bits: log of the
 * blocks that a warp has at a time. OUTER: 4 bits: log of the threads that share a row; 2 bits: log of
 * the columns of each. JOIN: 4 bits: log of the columns of a thread block; 1 bit: it has TT_RED_MANY threads */
#define TT_RED_MANY 1024
/* INNER and OUTER: of the thread blocks that share results the last joins their parts, no more than TT_RED_PARTS for
 * each of its threads */
#define TT_RED_LAST (1 << 17)
#define TT_RED_PARTS 8

typedef struct {
    int32_t n;
    int32_t narrow; /* there are fewer than 2^31 elements: sizes are in `by` */
    union {
        int64_t size[TT_CUDA_DIMS]; /* innermost first */
        tt_divider by[TT_CUDA_DIMS];
    };
    int64_t step[TT_CUDA_DIMS]; /* in bytes */
} tt_reduce_dims;

typedef struct {
    const char *in;
    char *out; /* results, in the order of the plan */
    int64_t *index; /* ... and of extremes, where they are */
    char *parts; /* not NULL: accumulators of blocks instead of results, [outer][count][inner] */
    int64_t *part_index;
    uint32_t *counters; /* with TT_RED_LAST: 0, one for the thread blocks of each result or tile */
    const char *param; /* of each result */
    int64_t kept, reduced, blocks;
    int64_t count; /* of the parts that make one result */
    int64_t inner, inner_step, tiles;
    double by; /* what to divide by */
    /* logs; INNER, several blocks: of the warps that share a result, of a warp's blocks (or of those that it has at a
     * time; `blocks` then counts these); JOIN, and OUTER with TT_RED_LAST: of a thread's parts */
    int32_t log_warps, log_per;
    tt_reduce_dims outer, run;
} tt_reduce_args;
