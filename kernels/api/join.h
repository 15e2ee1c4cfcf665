/* Joining arrays. */
#pragma once
#include "api/core.h"

/* The n arrays one after the other along dimension `dim`; with `stack`, along a new dimension put there. */
tt_array *tt_join(int n, tt_array **in, int dim, int dtype, int stack);
