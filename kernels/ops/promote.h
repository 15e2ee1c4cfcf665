#pragma once
#include "core/array.h"

/* The dtype that `n` operands have together, PyTorch's promotion; -1 and an error where they have none. */
int tt_common_type(int n, tt_array *const *args);

/* The error of two dtypes that have none in common: -1. */
int tt_no_promotion(int a, int b);

/* Does the dtype have the Python number `number`? Integers must be within an integer dtype's range, finite numbers not
 * become infinite in a floating one. */
bool tt_number_fits(const tt_array *number, int dtype);
