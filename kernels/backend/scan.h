/* Scans along one dimension, as every backend does them. */
#pragma once
#include "core/tt.h"
#include "scalar/codes.h"

/* Note [The order of a scan]
 * Sums and products are taken so that a device need not do it one element after another: in chunks of TT_SCAN_CHUNK
 * elements, each on its own from its first element on, and blocks of TT_BLOCK, groups of 32 blocks, and groups of 32 of
 * those. What came before a chunk is, joined from the largest to the smallest: the totals of the largest groups before
 * its own; of the groups before its own in that; of the blocks before its own in its group; of the chunks before it in
 * its block; each joined in order. That is joined with each of the chunk's own results. Of logcumsumexp, whose joins
 * cost much, a chunk's total is found from its largest element; the totals of a level, and from what came before on the
 * results of a chunk, are added up as tt_log_sum of scalar/scans.h has it: so no logarithm waits for another. A device
 * so finds what came before a block in few steps, from totals that others find at the same time. */
#define TT_SCAN_CHUNK 32

typedef struct {
    int op;                 /* TT_SCAN_SUM ... of scalar/codes.h */
    int compute; /* the dtype that elements have on the way; kernels of halves may convert them themselves */
    int64_t dim;
    bool reverse;
    tt_array *a, *b; /* b: of TT_SCAN_RECUR, else NULL */
    tt_array *out, *index; /* of a's shape; index: of extremes, where they are, else NULL */
} tt_scan_work;
