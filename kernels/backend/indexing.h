/* Moves between a table of elements, which index tensors pick from, and dense rows. */
#pragma once
#include "core/tt.h"

/* An index applied as far as it makes a view; what is left are its TT_INDEX parts. */
typedef struct tt_indexed {
    int ndim, n;
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM];
    int64_t start;                                      /* in elements, from the first of the array */
    int dim[TT_MAX_NDIM], span[TT_MAX_NDIM];            /* of each TT_INDEX part, in the view */
    int source[TT_MAX_NDIM];                            /* and its first dimension in the array, for messages */
} tt_indexed;

/* How elements move: a run between strided table elements and rows, and a hop from offset to offset. */
typedef struct {
    void (*run)(char *table, int64_t table_step, char *rows, int64_t row_step, int64_t n);
    void (*hop)(char *table, const int64_t *offsets, char *rows, int64_t row_step, int64_t n);
} tt_mover;
enum { TT_MOVE_PUT, TT_MOVE_ADD, TT_MOVE_MUL, TT_MOVE_MAX, TT_MOVE_MIN, TT_MOVE_GET, TT_NUM_MOVES };

/* For each leading position p (a dimension before the indexed ones), each of m offsets and each trailing position q,
 * one element moves between table[p, offset, q] and rows[p, m, q]. */
typedef struct tt_moves {
    char *table, *rows;
    const int64_t *offsets; /* m of them, in bytes */
    int64_t m, npre, npost;
    int64_t row_step;       /* bytes; 0: one element for all */
    int pre, post;          /* dimensions, merged where they are one stretch */
    int64_t pre_shape[TT_MAX_NDIM], pre_strides[TT_MAX_NDIM], post_shape[TT_MAX_NDIM], post_strides[TT_MAX_NDIM];
    tt_mover mover;
    int64_t first, part;    /* the least offset, and the bytes of a part of the table, where parts are shared out */
} tt_moves;
void tt_moves_begin(tt_moves *j, char *table, int64_t m); /* no dimensions yet, and no rows */
/* One TT_INDEX part: along one dimension, whose number in the array is `source`. */
void tt_index_along(tt_indexed *v, int source, int64_t size, int64_t stride);
/* One more dimension, inside of those there are; merged with the last where both are one stretch. */
void tt_merge_dim(int *n, int64_t *shapes, int64_t *strides, int64_t shape, int64_t stride);

/* Which integers are valid. */
enum tt_index_rule {
    TT_INDEX_SUBSCRIPT, /* negative from the end; IndexError */
    TT_INDEX_SELF,      /* not negative; "index out of range in self" */
    TT_INDEX_STRICT,    /* not negative; IndexError that names the dimension */
    TT_INDEX_FLAT,      /* negative from the end; "out of range: tried to access index" */
};

/* Where in the table: n index tensors, on tt_device or on the CPU, whose values count through the dimensions of the
 * TT_INDEX parts of `view`; their common shape, of as many positions as there are moves; `steps` (or NULL): of the
 * table along that shape, in elements. */
typedef struct {
    int rule, n, ndim;
    const int64_t *shape, *steps;
    tt_array *const *indices;
    const tt_indexed *view;
} tt_index_where;
