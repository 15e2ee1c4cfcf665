/* Reductions as every backend does them: which reducers there are, and how an operand's dimensions fall into those
 * kept and those reduced.
 *
 * Note [The tree of a reduction]
 * The N elements that make one result are numbered 0 ... N-1 (in the order of memory, dimensions sorted by stride) and
 * cut into blocks of TT_BLOCK. Within a block, element i is added to lane i % TT_LANES; the lanes are joined pairwise,
 * lane l with lane l + h for h = TT_LANES/2 ... 1; the blocks' results are joined by a binary tree over their numbers.
 * That depends on N alone: not on the instruction set, the number of threads or the strides, nor on which of the two
 * loops below did it. So a strided tensor's sum has the bits of its contiguous copy's. */
#pragma once
#include "core/tt.h"
#include "scalar/codes.h"
#include "scalar/reducers.h"

#define TT_LANES 32
#define TT_LANE_BYTES 1024 /* of one lane when rows are run over: 32 lanes fill half of L1 or more */

#define TT_REDUCER_ENUM(name, ...) TT_RED_##name,
enum { TT_REDUCERS(TT_REDUCER_ENUM) TT_NUM_REDUCERS };

/* Dimensions of iteration, outermost first; steps in bytes. */
typedef struct {
    int n;
    int64_t size[TT_MAX_NDIM], step[TT_MAX_NDIM];
} tt_dims;
int64_t tt_dims_offset(const tt_dims *d, int64_t i); /* of the i-th element */

/* An operand's dimensions, split in those kept and those reduced. */
typedef struct tt_reduction {
    const tt_array *a;
    int read, stored, read_size; /* the dtype the reducer reads; bytes of an element as stored and as read */
    int acc_size;
    int64_t kept, reduced;       /* how many results, and how many elements make one */
    tt_dims outer, run;          /* kept, but for the innermost of them when `rows`; reduced */
    bool rows;                   /* the innermost kept dimension is run over, not the reduced one */
    int64_t inner, inner_step;   /* that dimension; 1 without rows */
    int64_t blocks, width, tiles;
    bool in_order;               /* results come row-major */
    int64_t result_strides[TT_MAX_NDIM]; /* of each of the operand's dimensions in the results, in elements */
} tt_reduction;

/* `mask` has a bit for each reduced dimension; `logical`: elements are numbered row-major, not as they lie. */
void tt_reduction_plan(tt_reduction *g, const tt_array *a, int64_t mask, int read, int acc_size, bool logical);
/* Results in the plan's order as an array of the shape that `out` has: ndim, numel and shape of `from`, and what its
 * strides point to. */
void tt_reduction_layout(const tt_reduction *g, tt_array *from, const tt_array *out, int64_t mask);
