/* Images sampled at places of a grid: api/grid_sample.h. */
#pragma once
#include "core/tt.h"

typedef struct {
    enum { TT_GRID_RESULT, TT_GRID_OF_INPUT, TT_GRID_OF_GRID } what;
    tt_array *input, *grid; /* (batch, channels, *size), (batch, *places, dims) */
    tt_array *g, *out; /* g: the gradient of (batch, channels, *places), or NULL; out: a fresh contiguous array */
    int64_t batch, channels, size[3], places; /* of size the last `dims` */
    int dims, mode, padding;
    bool align;
} tt_grid_work;
