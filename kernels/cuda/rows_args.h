/* The arguments of the kernels over rows (softmax, normalisation, losses), and what their hosts and they agree on. */
#pragma once
#include "args.h"

/* The variant's lowest bits: who has a row. */
#define TT_ROW_WARP 0  /* a warp, which keeps it in registers */
#define TT_ROW_HELD 1  /* a thread block: each warp keeps TT_BLOCK elements in registers */
#define TT_ROW_LONG 2  /* a thread block, which reads it several times */
#define TT_ROW_FORM 3
#define TT_ROW_EACH 2  /* 3 bits from here: log of a lane's elements, of TT_ROW_WARP */
#define TT_ROW_OWN 5   /* from here on what the kernel wants to know */
#define TT_ROW_MOST (1 << 20) /* elements of the longest row */

typedef struct {
    int64_t rows;
    int32_t n;
    int32_t cached;      /* TT_ROW_LONG: is there shared memory for the first input's row? */
    char *out;
    const char *x, *y;   /* y: of derivatives the result, and x its gradient */
} tt_softmax_args;

#define TT_COLUMN_CHUNK 64 /* TT_NN_CHUNK of kernels/cpu/nn.h */

/* softmax down columns: [outer][n][inner]. The variant: log of a thread block's columns. */
typedef struct {
    int64_t n, inner, tiles;
    int32_t log_per, unused; /* log of a thread's chunks */
    char *out;
    const char *x, *y;
} tt_columns_args;
