/* Scans along one dimension, as every backend does them. */
#pragma once
#include "core/tt.h"
#include "scalar/codes.h"

/* Note [The order of a scan]
 * Sums and products are taken so that a device need not do it one element after another: in chunks of TT_SCAN_CHUNK
 * elements, each on its own from its first element on, and blocks of TT_BLOCK. What came before a chunk is the totals
 * of the blocks before its own, joined in order, and then the totals of the chunks before it in its block, joined in
 * order; that is joined with each of the chunk's own results. A device finds the blocks' totals first. */
#define TT_SCAN_CHUNK 32

typedef struct {
    int op;                 /* TT_SCAN_SUM ... of scalar/codes.h */
    int compute; /* the dtype that elements have on the way; kernels of halves may convert them themselves */
    int64_t dim;
    bool reverse;
    tt_array *a, *b; /* b: of TT_SCAN_RECUR, else NULL */
    tt_array *out, *index; /* of a's shape; index: of extremes, where they are, else NULL */
} tt_scan_work;
