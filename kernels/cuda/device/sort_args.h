/* What the host hands to the kernels that sort and select along a dimension: see sort.c. */
#pragma once
#include "cuda/device/args.h"

typedef struct {
    const char *in;
    char *values;
    int64_t *indices;
    void *keys; /* of the rows from `first` on, one after the other; sorted, where `order` says of which */
    const uint32_t *order;
    int64_t first, rows, n; /* n: elements of a row */
    int64_t k, out_n;
    int64_t step, out_step; /* between elements: bytes; elements */
    int32_t dims, padded; /* padded: a power of two from n (or k) on */
    int64_t size[TT_CUDA_DIMS], row_step[TT_CUDA_DIMS],
        out_row_step[TT_CUDA_DIMS]; /* innermost first; bytes, elements */
} tt_sort_args;

/* select: what is known of the last element wanted of a row */
typedef struct {
    uint64_t last, known; /* digits of its key, and which */
    uint32_t last_place, known_place;
    uint32_t want; /* it is so manyth of those that agree */
    uint32_t done; /* all that agree are wanted */
    uint32_t nans, gathered, blocks, unused;
} tt_select_state;
typedef struct {
    tt_sort_args sort;
    tt_select_state *states; /* of each row */
    uint32_t *counts;        /* [rows][256] */
    uint32_t *found;         /* [rows][k] */
    uint32_t parts, part;    /* of each row; elements of one */
    int32_t pass, unused;
} tt_select_args;
