/* The CPU's reducers, of each instruction set, and the walks over them: Note [The tree of a reduction] in
 * backend/reduction.h. */
#pragma once
#include "backend/reduction.h"
#include "cpu/iterate.h"

/* Where the elements of one result lie together (reduce_block), and where those of neighbouring results do (the others,
 * which run over n results at once). `param`: what the reducer needs to know of each result, or NULL. */
typedef struct {
    void (*reduce_block)(void *acc, const void *x, int64_t n,
                         const void *param); /* 1 <= n <= TT_BLOCK elements to one */
    void (*first)(void *acc, const void *x, int64_t n, const void *param);
    void (*next)(void *acc, const void *x, int64_t n, const void *param);
    void (*join)(void *acc, const void *other, int64_t n);
    /* n rows of w elements, `step` bytes apart, to TT_LANES rows of w accumulators, of up to TT_LANE_BYTES. `cast`:
     * what makes the dtype read of elements, or NULL */
    void (*rows)(void *acc, const char *x, int64_t step, int64_t n, int64_t w, const void *param, tt_cast_loop cast);
} tt_reducer;

typedef struct {
    tt_reducer of[TT_NUM_REDUCERS][TT_NUM_DTYPES]; /* by the dtype read; reduce_block is NULL where there is none */
    /* the first i with x[i] equal to *value, or both NaN; n if there is none */
    int64_t (*find[TT_NUM_DTYPES])(const void *x, int64_t n, const void *value);
    /* where x[i] equals value[i], or both are NaN: index[i] = row */
    void (*mark[TT_NUM_DTYPES])(int64_t *index, const void *x, const void *value, int64_t n, int64_t row);
} tt_reduce_table;

const tt_reducer *tt_get_reducer(int reducer, int dtype); /* NULL where there is none */
const tt_reduce_table *tt_get_reduce_table(void);

/* How many columns are summed together, at most `limit`. Of `columns`, each of TT_BLOCK rows, every thread gets about
 * as many. 1024 x 256 floats, on two threads: 38 -> 27 us. */
int64_t tt_columns_together(int64_t columns, int64_t limit);

/* n elements from the i-th on, to contiguous memory */
void tt_dims_gather(void *to, const char *base, const tt_dims *d, int64_t i, int64_t n, int size);
/* The tree over the results of blocks, n each that are `bytes` in all: into the first. */
void tt_join_blocks(const tt_reducer *r, char *parts, int64_t blocks, int64_t bytes, int64_t n);
/* Reduces into `results`, one accumulator each in the order of the plan; `params` likewise, or NULL. With `partials`,
 * every block's result is left there: kept * blocks accumulators, only without `rows`. False: out of memory. */
bool tt_reduction_run(const tt_reduction *g, const tt_reducer *r, const void *params, char *results, char *partials);
