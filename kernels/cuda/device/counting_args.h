/* What the host hands to the kernels that count, number and look up: see counting.c. */
#pragma once
#include "cuda/device/args.h"
#include "cuda/device/fault.h"

/* compact: numbers from sums over what comes before; tiles of TT_COUNT_TILE elements */
#define TT_COUNT_TILE 4096
typedef struct {
    const void *in;        /* bools, or int64 */
    int64_t n, blocks;
    int64_t *sums; /* of each tile; then of those before it, and of all; after that the first negative position */
    int64_t *out;
    int64_t ndim, size[TT_CUDA_MOST_DIMS]; /* of nonzero's positions; 0: flat */
} tt_compact_args;

/* groups: of equal rows, in the order of `order` */
typedef struct {
    const void *keys; /* of what is compared, row by row */
    void *keys_out;
    const uint32_t *order; /* NULL: as they lie */
    int64_t n, width, column;
    uint64_t nan; /* the key that differs from itself, */
    int64_t has_nan; /* if there is one */
    uint8_t *heads; /* is it the first of its group? */
    int64_t *before; /* how many heads come before */
    int64_t *first, *begin, *inverse, *counts;
    int64_t groups;
} tt_group_args;

/* distinct: tiles of TT_COUNT_TILE elements */
typedef struct {
    const void *in, *keys; /* the elements; their sorted keys */
    int64_t n;
    int64_t *sums; /* as of compact */
    uint32_t *zero; /* the first element that is 0 or -0 */
    void *out;
} tt_distinct_args;

/* search: in int64 or float64 */
typedef struct {
    tt_fault *fault;
    const void *sorted, *values;
    const int64_t *order;
    void *out;
    int64_t n, numel, per_row; /* as in kernels/ops/nonzero.c */
    int32_t right, narrow; /* narrow: int32 results; of isin: invert */
} tt_search_args;

/* counting: extremes, histograms, one-hot rows; of int64 or float64 */
typedef struct {
    tt_fault *fault;
    const void *in;
    int64_t n, bins;
    uint64_t *extremes; /* the least key and the largest */
    int64_t *counts;
    void *out;
    double lo, hi;
    int64_t local; /* a histogram: do blocks have room for their own counts? */
} tt_count_args;
