/* Scans along a dimension. */
#pragma once
#include "api/core.h"

/* op 0 sums, 1 products, 2 log of sums of exponentials; `reverse` from the end; `dtype` as in tt_reduce */
tt_array *tt_scan(int op, tt_array *a, int64_t dim, int reverse, int dtype);
/* the largest or smallest so far and where the last such was */
tt_array *tt_scan_extreme(int largest, tt_array *a, int64_t dim, tt_array **indices);
/* r[i] = b[i] + a[i] r[i-1], or with `reverse` r[i] = b[i] + a[i] r[i+1]; same shapes, one floating dtype */
tt_array *tt_recur(tt_array *a, tt_array *b, int64_t dim, int reverse);
