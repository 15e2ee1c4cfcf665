/* What the host hands to the kernels of normalisation of channels. Arrays lie as (outer, channels, inner). */
#pragma once
#include "cuda/device/args.h"

/* batch_norm: a thread to some elements. The operator: 0 the result, 1 its gradient where statistics are the array's
 * own,
 * 2 where they are given. The variant: bits 0-2 the logarithm of a thread's elements; */
#define TT_BATCH_WIDE 8 /* 64-bit arithmetic */
#define TT_BATCH_LAST 16 /* inner is 1 */
#define TT_BATCH_WEIGHT 32
#define TT_BATCH_BIAS 64
#define TT_BATCH_ROUNDS                                                                                                \
    128 /* a thread takes elements of as many tiles: of the same channels, whose numbers it reads once */
#define TT_BATCH_MOST_ROUNDS 4
typedef struct {
    const char *x, *g;
    char *out, *of_weight, *of_bias; /* of_...: the gradients of weight and bias, of operator 1 */
    const char *weight, *bias, *mean, *rstd, *sums;
    int64_t numel, channels, inner, n; /* n: elements of a channel */
    tt_divider by_inner, by_channels;
} tt_batch_norm_args;

/* batch_sums: by the tree of a reduction, of x, (x - mean)^2, or g and g (x - mean). The variant: TT_BATCH_LAST, and
 * from TT_BATCH_COLUMNS on three bits: the log of the threads that share a row then; TT_BATCH_JOINS: the last thread
 * block of a tile joins its parts. parts: [channels][blocks] or [blocks][channels], of two sums one after the other.
 * mean: for deviations n of them. */
#define TT_BATCH_SUM 0
#define TT_BATCH_DEVSQ 1
#define TT_BATCH_GRADIENT 2
#define TT_BATCH_COLUMNS 5
#define TT_BATCH_JOINS (1 << 8)
#define TT_BATCH_MOST_PARTS 32 /* that a thread joins then */
typedef struct {
    const char *g, *x, *mean;
    char *parts, *out; /* out, counters: with TT_BATCH_JOINS; a counter for each tile */
    uint32_t *counters;
    int64_t channels, inner, n, blocks, tiles;
    int64_t log_per; /* of a thread's parts */
} tt_batch_sums_args;

/* batch_running: what follows from the sums of x and (x - mean)^2, which become mean and 1 / standard deviation; a
 * thread to a channel. Variant: 1, there are running statistics. */
typedef struct {
    char *stats; /* [2][channels] */
    char *running_mean, *running_var;
    int64_t channels, n;
    double kept, momentum, eps, freedom; /* kept: 1 - momentum; freedom: n / (n - 1) */
} tt_batch_running_args;
