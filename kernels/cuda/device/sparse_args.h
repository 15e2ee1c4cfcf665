/* What the host hands to the kernels of products with sparse matrices. */
#pragma once
#include "cuda/device/args.h"

/* sparse: the operator is 0 for a product, whose places come sorted by row (variant 1: keys of 64 bits), 1 for the
 * values in places of a product */
#define TT_SPARSE_LANES 8 /* partial sums of a value */
typedef struct {
    const void *keys; /* the places' rows, sorted, and the places' numbers */
    const uint32_t *order;
    const int64_t *rows, *cols;
    char *values, *a;
    const char *b;
    int64_t count, k, num_rows, num_cols;
    tt_fault *fault;
    int32_t lanes_log, unused; /* of the threads that have a row */
} tt_sparse_args;
