/* The arguments of the kernels over rows (softmax, normalisation, losses), and what their hosts and they agree on. */
#pragma once
#include "cuda/device/args.h"
#include "cuda/device/fault.h"

/* The variant's lowest bits: who has a row. */
#define TT_ROW_WARP 0  /* a warp or, of a short row, some of its lanes, which keep it in registers */
#define TT_ROW_HELD 1  /* a thread block: each warp keeps TT_BLOCK elements in registers */
#define TT_ROW_LONG 2  /* a thread block, which reads it several times */
#define TT_ROW_VAST 3  /* the same, and what its blocks of elements gave does not fit in shared memory */
#define TT_ROW_FORM 3
#define TT_ROW_EACH 2  /* 3 bits from here: log of a lane's elements, of TT_ROW_WARP */
#define TT_ROW_CACHED 4 /* TT_ROW_LONG: shared memory holds the row of the first input */
#define TT_ROW_WHOLE 32 /* every thread of a row has all of its elements */
#define TT_ROW_LANES 6 /* 3 bits from here: log of a row's lanes, and then */
#define TT_ROW_ROWS 9  /* 2 bits: log of a thread's rows, both of TT_ROW_WARP */
#define TT_ROW_OWN 11  /* from here on what the kernel wants to know */
#define TT_ROW_MOST (1 << 22) /* elements of the longest row that is not VAST */
#define TT_ROW_PARTS(n) ((((n) + 1023) / 1024 + 3) & ~3) /* TT_ROW_LONG: numbers in shared memory, before a row's */
#define TT_ROW_LIMIT (0x7fffffff - (1 << 20))

typedef struct {
    int64_t rows;
    int32_t n, unused;
    char *out;
    const char *x, *y;   /* y: of derivatives the result, and x its gradient */
} tt_softmax_args;

typedef struct {
    int64_t rows;
    int32_t n, unused;
    char *out;
    const char *x;
    double by;           /* degrees of freedom */
} tt_statistics_args;

#define TT_COLUMN_CHUNK 64 /* TT_NN_CHUNK of kernels/cpu/nn.h */

/* softmax down columns: [outer][n][inner]. The variant: log of a thread block's columns. */
typedef struct {
    int64_t n, inner, tiles;
    int32_t log_per, unused; /* log of a thread's chunks */
    char *out;
    const char *x, *y;
} tt_columns_args;

#define TT_NORM_RMS 1    /* from TT_ROW_OWN on */
#define TT_NORM_WEIGHT 2
#define TT_NORM_BIAS 4

typedef struct {
    int64_t rows;
    int32_t n, unused;
    char *out;
    const char *x, *g, *weight, *bias;
    char *mean, *rstd;       /* of each row */
    double eps;
    char *parts;             /* VAST: eight bytes for each block of elements */
} tt_norm_args;

#define TT_NORM_TWO 2
#define TT_NORM_COLUMNS 2
/* The gradient of a normalisation's weight. The variant: TT_NORM_RMS; TT_NORM_TWO: a thread has two neighbouring
 * columns; from bit TT_NORM_COLUMNS on the log of the threads that share a row. */
typedef struct {
    int64_t rows, n, blocks, tiles;
    char *out, *parts; /* parts: of each block of rows, where there are several */
    const char *g, *x, *mean, *rstd;
} tt_norm_weight_args;

/* Classification losses: what TT_OP says is done. */
#define TT_CLASS_SMOOTHED 8

typedef struct {
    int64_t rows;
    int32_t n, each_row; /* has g a gradient for each row? */
    char *out; /* a gradient, targets, or the losses of rows where they are wanted */
    const char *x, *weight;
    const int64_t *target;
    char *top, *log_sum; /* of each row */
    double *losses; /* ... its loss, and from `rows` on its weight */
    const char *g; /* a gradient for each row, or of the loss */
    const char *divisor; /* of the mean, or NULL */
    const double *weight_sum;
    int64_t ignore;
    double smoothing;
    tt_fault *fault;
    char *parts; /* VAST: eight bytes for each block of elements */
} tt_class_args;

typedef struct {
    const double *sums; /* of losses and of weights */
    char *out, *divisor;
    int64_t mean; /* else their sum */
} tt_class_total_args;
