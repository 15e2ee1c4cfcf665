/* Ranges and indices. */
#pragma once
tt_array *tt_linspace(int dtype, int64_t n, double start, double end);
tt_array *tt_logspace(int dtype, int64_t n, double start, double end, double base);
tt_array *tt_triangle(int dtype, int64_t rows, int64_t cols, int64_t offset, int upper);
