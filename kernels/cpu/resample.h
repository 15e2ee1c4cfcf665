/* What the loops of simd/resample.c look like to resample.c. */
#pragma once
#include "backend/resample.h"

#define TT_RESAMPLE_CHUNK 64 /* elements of the inner dimension that are worked on together */

/* Along one dimension, element j of the result is the sum of `count[j]` neighbours from `start[j]` on, with weights
 * from `first[j]` on. The transposed matrix, for the derivative, has the same form. */
typedef struct {
    int64_t in, out;
    const int64_t *start, *count, *first;
    const double *weights;
} tt_resample_matrix;

/* One dimension, of arrays (pre, m->in or m->out, post, stride), of whose last dimension `width` are meant. weights:
 * m's, of the loops' dtype. */
typedef void tt_resample_fn(void *out, int64_t out_stride, const void *in, int64_t in_stride, int64_t width,
                            int64_t pre, int64_t post, const tt_resample_matrix *m, const void *weights);
typedef struct {
    tt_resample_fn *f32, *f64;
} tt_resample_table;
