/* Joining arrays. */
#pragma once
#include "api/core.h"

/* The n arrays one after the other along dimension `dim`; with `stack`, along a new dimension put there. */
tt_array *tt_join(int n, tt_array **in, int dim, int dtype, int stack);
/* The same, of the dtype that theirs promote to. It declines what is unusual: a dimension out of range, empty vectors,
 * which are skipped, arrays without dimensions. */
tt_array *tt_join_plain(int n, tt_array **in, int dim, int stack);
