/* What reductions share with each instruction set's reducers, and with the fused-program interpreter. Not seen by
 * Python.
 *
 * Note [The tree of a reduction]
 * The N elements that make one result are numbered 0 ... N-1 (in the order of memory, dimensions sorted by stride) and
 * cut into blocks of TT_BLOCK. Within a block, element i is added to lane i % TT_LANES; the lanes are joined pairwise,
 * lane l with lane l + h for h = TT_LANES/2 ... 1; the blocks' results are joined by a binary tree over their numbers.
 * That depends on N alone: not on the instruction set, the number of threads or the strides, nor on which of the two
 * loops below did it. So a strided tensor's sum has the bits of its contiguous copy's. */
#pragma once
#include "core/tt.h"
#include "scalar/reducers.h"

#define TT_LANES 32

#define TT_REDUCER_ENUM(name, ...) TT_RED_##name,
enum { TT_REDUCERS(TT_REDUCER_ENUM) TT_NUM_REDUCERS };

/* Where the elements of one result lie together (fold), and where those of neighbouring results do (the others, which
 * run over n results at once). `param`: what the reducer needs to know of each result, or NULL. */
typedef struct {
    void (*fold)(void *acc, const void *x, int64_t n, const void *param); /* 1 <= n <= TT_BLOCK elements to one */
    void (*first)(void *acc, const void *x, int64_t n, const void *param);
    void (*next)(void *acc, const void *x, int64_t n, const void *param);
    void (*join)(void *acc, const void *other, int64_t n);
    /* n rows of w elements, `step` bytes apart, to TT_LANES rows of accumulators; only where no param is needed */
    void (*rows)(void *acc, const char *x, int64_t step, int64_t n, int64_t w);
} tt_reducer;

typedef struct {
    tt_reducer of[TT_NUM_REDUCERS][TT_NUM_DTYPES]; /* by the dtype read; fold is NULL where there is none */
    /* the first i with x[i] equal to *value, or both NaN; n if there is none */
    int64_t (*find[TT_NUM_DTYPES])(const void *x, int64_t n, const void *value);
    /* where x[i] equals value[i], or both are NaN: index[i] = row */
    void (*mark[TT_NUM_DTYPES])(int64_t *index, const void *x, const void *value, int64_t n, int64_t row);
} tt_reduce_table;

int tt_reducer_of(int op, int *then); /* of tt_reduce's; then: TT_RED_ALONE ... of cuda/device/reduce_args.h */
const tt_reducer *tt_get_reducer(int reducer, int dtype); /* NULL where there is none */
const tt_reduce_table *tt_get_reduce_table(void);

/* nn_record.c: in fused mode; the result keeps its dimensions. NULL: not recorded. */
/* Are there elements, and is it this recording that has yet to compute them? */
bool tt_worth_recording(const tt_array *a);
tt_array *tt_record_var(tt_array *a, int64_t mask, double correction, bool root);
tt_array *tt_record_logsumexp(tt_array *a, int64_t mask);

/* Dimensions to walk, outermost first; steps in bytes. */
typedef struct {
    int n;
    int64_t size[TT_MAX_NDIM], step[TT_MAX_NDIM];
} tt_dims;
int64_t tt_dims_offset(const tt_dims *d, int64_t i); /* of the i-th element */
/* n elements from the i-th on, to contiguous memory */
void tt_dims_gather(void *to, const char *base, const tt_dims *d, int64_t i, int64_t n, int size);

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
/* The tree over the results of blocks, n each that are `bytes` in all: into the first. */
void tt_join_blocks(const tt_reducer *r, char *parts, int64_t blocks, int64_t bytes, int64_t n);
/* Reduces into `results`, one accumulator each in the order of the plan; `params` likewise, or NULL. With `partials`,
 * every block's result is left there: kept * blocks accumulators, only without `rows`. False: out of memory. */
bool tt_reduction_run(const tt_reduction *g, const tt_reducer *r, const void *params, char *results, char *partials);
