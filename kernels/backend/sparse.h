/* Products with sparse matrices, as every backend does them: api/sparse.h. Arrays are contiguous. */
#pragma once
#include "core/tt.h"

typedef struct {
    tt_array *rows, *cols; /* int64, of each place; within the matrices on a host, else looked at by kernels */
    int64_t count;         /* places */
    tt_array *values;
    tt_array *a, *b; /* (rows, k) and (cols, k), of the dtype of `values` */
} tt_sparse_work;
