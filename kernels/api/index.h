/* Indexing. The index of a subscript is text of a kind for the C side: four numbers (kind, and three more) a part.
 *
 *   TT_AT        i                  entry i of a dimension
 *   TT_SLICE     start, stop, step  INT64_MIN where left out
 *   TT_NEW                          a new dimension of size 1 (None)
 *   TT_REST                         the dimensions nobody names (Ellipsis)
 *   TT_INDEX     span               the next of `indices`: positions in the next `span` dimensions taken as one
 *                                   (0: in a new dimension of size 1)
 *   TT_KEEP      count              so many dimensions as they are
 *
 * Where the dimensions of several TT_INDEX parts adjoin, theirs in the result is their place; otherwise they come
 * first.
 */
#pragma once
#include "api/core.h"

/* views, without any TT_INDEX; the first two are marked as tracked */
tt_array *tt_index_int(tt_array *a, int64_t i);
tt_array *tt_index_slice(tt_array *a, int64_t start, int64_t stop); /* INT64_MIN: left out */
tt_array *tt_index_view(tt_array *a, int n, int64_t *code);
tt_array *tt_index_view_scatter(tt_array *a, tt_array *src, int n, int64_t *code);
tt_array *tt_index_view_backward(tt_array *g, int ndim, int64_t *shape, int n, int64_t *code);
tt_array *tt_strided_scatter(tt_array *a, tt_array *src, int ndim, int64_t *shape, int64_t *strides, int64_t start);

tt_array *tt_nought(tt_array *a, int ndim, int64_t *shape); /* zeros of a's dtype, where a is */

/* `rule`: which integers are valid, and how a bad one is reported; see enum tt_index_rule in backend/indexing.h.
 * `mode` of a write: 0 replaces, 1 adds, 2 multiplies, 3 takes the larger, 4 the smaller. Writes to one element happen
 * in the order of the index. `writer` < 0: the array is fresh, its version stays. */
tt_array *tt_index_get(tt_array *a, int n, int64_t *code, tt_array **indices, int rule);
int tt_index_put(tt_array *a, int n, int64_t *code, tt_array **indices, tt_array *values, int mode, int rule,
                 int writer);
tt_array *tt_gather(tt_array *a, int dim, tt_array *index);
int tt_scatter(tt_array *a, int dim, tt_array *index, tt_array *src, int mode, int writer);

/* positions */
tt_array *tt_nonzero(tt_array *a, int flat);
tt_array *tt_repeat_positions(tt_array *repeats);
tt_array *tt_searchsorted(tt_array *sorted, tt_array *values, tt_array *order, int right, int dtype);
tt_array *tt_isin(tt_array *a, tt_array *among, int invert);
tt_array *tt_one_hot(tt_array *a, int64_t num_classes);

/* rearrangements */
int tt_zero_triangle(tt_array *a, int64_t diagonal, int below, int writer);
tt_array *tt_flip(tt_array *a, int n, int64_t *dims);
tt_array *tt_roll(tt_array *a, int n, int64_t *shifts, int64_t *dims);
