/* Ranges and indices; the value of a one-element array that is ready, of its dtype's kind. */
#include "api/core.h"

#pragma once
tt_array *tt_linspace(int dtype, int64_t n, double start, double end);
tt_array *tt_logspace(int dtype, int64_t n, double start, double end, double base);
tt_array *tt_triangle(int dtype, int64_t rows, int64_t cols, int64_t offset, int upper);
int64_t tt_read_int(tt_array *a);
double tt_read_float(tt_array *a);
