/* Products with sparse matrices, of float32 and float64. The values of a sparse matrix are a vector; `rows` and `cols`
 * are vectors of int64, their places, in any order. */
#pragma once
#include "api/core.h"

/* The sparse matrix, of n rows, times a dense one: values[e] times row cols[e] of `dense` is added to row rows[e], for
 * each e in turn. */
tt_array *tt_sparse_product(tt_array *rows, tt_array *cols, tt_array *values, tt_array *dense, int64_t n);
/* For each place the product of row rows[e] of a and row cols[e] of b: that value of a @ b.T. */
tt_array *tt_sparse_dots(tt_array *rows, tt_array *cols, tt_array *a, tt_array *b);
