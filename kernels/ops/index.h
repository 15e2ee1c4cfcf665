/* What the files of indexing share: an index applied to a shape, and moves between a table and rows. */
#pragma once
#include "backend/indexing.h"

enum { TT_AT, TT_SLICE, TT_NEW, TT_REST, TT_INDEX, TT_KEEP };

bool tt_resolve_index(tt_indexed *v, const tt_array *a, int n, const int64_t *code);

/* gather.c: moves on whichever device; there `where` says what the offsets would */
bool tt_move_indexed(tt_moves *j, const tt_index_where *where, int dtype, int rows_dtype, int how);
/* `values` as dense rows of a shape and dtype: itself, a copy in *copy, or one element (*step = 0). NULL on failure. */
char *tt_dense_rows(tt_array *values, const tt_array *a, int dtype, int ndim, int64_t *shape, tt_array **copy,
                    int64_t *step);
