/* Reductions. `how` says what `dims` is: 0 nothing, all are reduced; 1 one dimension, counted from the end when
 * negative; 2 a bit for each. `dtype` -1: the operator's own choice. */
#pragma once
#include "api/core.h"

/* of scalar/reducers.h; NULL: there is none of that number */
typedef struct tt_reducer_info {
    const char *name;
    int flops;
} tt_reducer_info;
typedef struct tt_reduction_info {
    const char *name;
    int reducer;
} tt_reduction_info;
const tt_reducer_info *tt_reducer_facts(int reducer);
const tt_reduction_info *tt_reduction_facts(int op);

int tt_reduce_code(const char *name);
tt_array *tt_reduce(int op, tt_array *a, int how, int64_t dims, int keepdim, int dtype);
/* largest or smallest value and where it is first; *values may be NULL when only the index is wanted */
tt_array *tt_reduce_index(int largest, tt_array *a, int how, int64_t dims, int keepdim, tt_array **values);
/* the variance or, with `root`, the standard deviation; N - correction degrees of freedom */
tt_array *tt_reduce_var(tt_array *a, int how, int64_t dims, double correction, int root, int keepdim);
tt_array *tt_reduce_logsumexp(tt_array *a, int how, int64_t dims, int keepdim);
/* `a` summed over the dimensions that broadcasting `shape` to its shape would have added or stretched */
tt_array *tt_sum_to(tt_array *a, int ndim, int64_t *shape);
/* The view of a reduction's result with the shape of what was reduced: steps of 0 along `dims`. */
tt_array *tt_expand_reduced(tt_array *a, int ndim, int64_t *shape, int how, int64_t dims, int keepdim);
