/* Sorting and selecting along one dimension, as every backend does it. */
#pragma once
#include "backend/reduction.h"

typedef struct {
    const tt_array *a;
    int what;                /* TT_KTH ... of scalar/codes.h */
    bool descending;
    int64_t k, n, step, dim; /* elements of a row, bytes between them */
    int64_t num_rows;
    tt_dims rows, out_rows;  /* where a row starts in the operand; in the results, in elements */
    int64_t out_step, out_n;
    tt_array *values;
    int64_t *indices;
} tt_sorting;
