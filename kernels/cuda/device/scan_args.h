/* The arguments of the kernels that scan, and what their host and they agree on. */
#pragma once
#include "cuda/device/args.h"

/* The variant: bits 0-1: what is done; 2: a warp has TT_BLOCK elements that follow each other in memory, and not a
 * thread those of a column; 3: from the end */
#define TT_SCAN_TOTALS 0
#define TT_SCAN_CARRIES 1
#define TT_SCAN_RESULTS 2
#define TT_SCAN_WHOLE 3   /* all of it: a thread block has all blocks of a scan */
#define TT_SCAN_LOOKS 0   /* with TT_SCAN_WARP: all of it: thread blocks look back at others' totals */
#define TT_SCAN_WARP 4
#define TT_SCAN_ALONE 4   /* of TT_SCAN_CARRIES: a thread block has a scan, of which one thread adds up */
#define TT_SCAN_REVERSE 8
#define TT_SCAN_THREADS 128

typedef struct {
    int64_t outer, n, inner, blocks; /* operands are [outer][n][inner] */
    int64_t per;                     /* elements of a block */
    const char *a, *b;
    char *out;
    int64_t *index;
    char *carries;                   /* [outer][blocks][inner]: totals, then what came before; or NULL */
    int64_t *carried_index;
    uint32_t *ticket;
    int64_t tiles, slots[5]; /* of TT_SCAN_LOOKS: of a row; slots for each row, where the next level's begin, ... */
} tt_scan_args;
