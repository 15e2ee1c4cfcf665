/* Products with sparse matrices, as every backend does them: api/sparse.h. Arrays are contiguous. */
#pragma once
#include "core/tt.h"

typedef struct {
    const int64_t *rows, *cols;
    int64_t count; /* places */
    tt_array *values;
    tt_array *a, *b; /* (rows, k) and (cols, k), of the dtype of `values` */
} tt_sparse_work;
