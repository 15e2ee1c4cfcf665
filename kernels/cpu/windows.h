/* What the loops of simd/windows.c look like to windows.c. */
#pragma once
#include "backend/windows.h"

#define TT_POOL_CHUNK 128 /* elements of the inner dimension that are worked on together */

/* A plane's work, of operands that are contiguous and of the loops' dtype. */
typedef struct {
    const tt_pool_work *w;
    const char *from;
    char *to;
    int64_t *index;         /* NULL: nobody asks; read by the derivative of max_pool */
    const tt_window *rows;  /* of all axes, one after the other; of each plane where windows are its own */
    int64_t rows_of_plane;  /* 0: planes share them */
} tt_pool_job;
typedef void tt_pool_fn(const tt_pool_job *j, int64_t outer, int64_t column, int64_t width);

/* by TT_POOL_...; of float, double, int64 */
typedef struct {
    tt_pool_fn *f32[4], *f64[4], *i64[4];
} tt_pool_table;
