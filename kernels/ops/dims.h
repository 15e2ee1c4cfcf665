/* Dimensions as users name them, and those that matrices are stacked along. */
#pragma once
#include "core/tt.h"

/* Brings *dim, which may count from the end, into 0 ... ndim - 1; false and an error where it is out of range. */
bool tt_good_dim(const char *op, const tt_array *a, int64_t *dim);

/* The shape that the dimensions before the last two broadcast to (b: or NULL), and how many matrices that is; -1 and an
 * error where they do not. */
int64_t tt_broadcast_batch(const tt_array *a, const tt_array *b, int64_t *batch, int *nbatch);
