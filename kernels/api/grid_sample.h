/* Images (batch, channels, *) sampled at places (batch, *, 2 or 3), on devices that have kernels for it. */
#pragma once
#include "api/core.h"

/* Is there a kernel for such images? */
int tt_grid_sample_fits(tt_array *input, tt_array *grid);
/* mode: 0 nearest, 1 bilinear, 2 bicubic; padding: 0 zeros, 1 border, 2 reflection */
tt_array *tt_grid_sample(tt_array *input, tt_array *grid, int mode, int padding, int align);
tt_array *tt_grid_sample_of_input(tt_array *g, tt_array *input, tt_array *grid, int mode, int padding, int align);
tt_array *tt_grid_sample_of_grid(tt_array *g, tt_array *input, tt_array *grid, int mode, int padding, int align);
