/* Sorting and selection along a dimension; equal elements keep their order, NaN is larger than all. */
#pragma once
#include "api/core.h"

/* values, and where they were in *indices */
tt_array *tt_sort(tt_array *a, int64_t dim, int descending, tt_array **indices);
tt_array *tt_topk(tt_array *a, int64_t k, int64_t dim, int largest, tt_array **indices);
/* one of each row: `what` 0 the k-th smallest (from 1), 1 the median, 2 the median of what is not NaN, 3 the mode */
tt_array *tt_pick(int what, tt_array *a, int64_t k, int64_t dim, int keepdim, tt_array **indices);
/* the different elements of the flattened array; more: which of them each element is, and how many are each */
tt_array *tt_unique(tt_array *a, int consecutive, tt_array **more);
tt_array *tt_distinct(tt_array *a, int consecutive); /* ... those alone */
/* the same of the rows of a matrix; gives the number of the first row of each kind */
tt_array *tt_unique_rows(tt_array *a, int consecutive, tt_array **more);
tt_array *tt_bincount(tt_array *a, tt_array *weights, int64_t min_length);
tt_array *tt_histc(tt_array *a, int64_t bins, double lo, double hi);
