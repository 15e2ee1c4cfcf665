/* Tracked views in one call. NULL: something is unusual or wrong; the general path of the operator finds out what. */
#pragma once
#include "api/core.h"

tt_array *tt_view_shaped(tt_array *a, int n, int64_t *shape);    /* one size may be -1 */
tt_array *tt_view_expanded(tt_array *a, int n, int64_t *sizes);  /* -1: as it is */
tt_array *tt_view_permuted(tt_array *a, int n, int64_t *dims);
tt_array *tt_view_transposed(tt_array *a, int64_t dim0, int64_t dim1);
tt_array *tt_view_t(tt_array *a);                                /* of a matrix */
tt_array *tt_view_squeezed(tt_array *a, int n, int64_t *dims);   /* n < 0: all dimensions of size 1 */
tt_array *tt_view_unsqueezed(tt_array *a, int64_t dim);
tt_array *tt_view_selected(tt_array *a, int64_t dim, int64_t index);
tt_array *tt_view_narrowed(tt_array *a, int64_t dim, int64_t start, int64_t length);
tt_array *tt_view_diagonal(tt_array *a, int64_t offset, int64_t dim1, int64_t dim2);

/* Several views, outputs of one operator, into `views`. -1: an error, and there are none.
 * n parts along a dimension (0 ... ndim - 1): of one size, the last may be smaller, or of the given sizes. */
int tt_view_parts(tt_array *a, int64_t dim, int64_t size, int64_t *sizes, int n, tt_array **views);
int tt_view_entries(tt_array *a, int64_t dim, int n, tt_array **views); /* the first n */
