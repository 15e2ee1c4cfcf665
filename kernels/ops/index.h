/* What the files of indexing share: an index applied to a shape, and moves between a table and rows. */
#pragma once
#include "core/tt.h"
#include "cuda/host/cuda.h"

enum { TT_AT, TT_SLICE, TT_NEW, TT_REST, TT_INDEX, TT_KEEP };

/* An index applied as far as it makes a view; what is left are its TT_INDEX parts. */
typedef struct tt_indexed {
    int ndim, n;
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM];
    int64_t start;                                      /* in elements, from the first of the array */
    int dim[TT_MAX_NDIM], span[TT_MAX_NDIM];            /* of each TT_INDEX part, in the view */
    int source[TT_MAX_NDIM];                            /* and its first dimension in the array, for messages */
} tt_indexed;
bool tt_resolve_index(tt_indexed *v, const tt_array *a, int n, const int64_t *code);

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
void tt_merge_dim(int *n, int64_t *shapes, int64_t *strides, int64_t shape, int64_t stride);
void tt_run_moves(tt_moves *j, int dtype, int how);

/* gather.c: moves on whichever device; there `where` says what the offsets would */
bool tt_move_indexed(tt_moves *j, const tt_index_where *where, int dtype, int rows_dtype, int how);
/* `values` as dense rows of a shape and dtype: itself, a copy in *copy, or one element (*step = 0). NULL on failure. */
char *tt_dense_rows(tt_array *values, const tt_array *a, int dtype, int ndim, int64_t *shape, tt_array **copy,
                    int64_t *step);
