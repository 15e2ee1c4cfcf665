/* A dimension as users name it. */
#pragma once
#include "core/tt.h"

/* Brings *dim, which may count from the end, into 0 ... ndim - 1; false and an error where it is out of range. */
bool tt_good_dim(const char *op, const tt_array *a, int64_t *dim);
