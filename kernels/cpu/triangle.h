/* Triangular systems of a few rows and many right-hand sides, which lie in rows: the loops of simd/triangle.c.
 *
 * Note [Substitution in rows]
 * OpenBLAS solves the blocks on the diagonal element by element: of a system of 512 x 512 floats with as many
 * right-hand sides that took half of the time (5.9 ms of lu_solve on one core of an EPYC; 3.1 now). Where right-hand
 * sides lie in rows, a step of the substitution is the same for neighbours, so it is vectors that are multiplied and
 * subtracted. All that is not on the diagonal are products of the library. */
#pragma once
#include "core/tt.h"

#define TT_TRIANGLE_ROWS 32
#define TT_TRIANGLE_COLUMNS 16 /* a multiple of so many right-hand sides, each row on a line of the cache, is fastest */

typedef struct {
    int n; /* at most TT_TRIANGLE_ROWS */
    bool upper, unit; /* its diagonal is taken to be ones */
    int64_t row, col; /* element (i, k) lies at i * row + k * col */
    int64_t step; /* from one row of the right-hand sides to the next */
    int64_t count; /* of right-hand sides */
} tt_triangle;

typedef struct {
    void (*solve_f32)(const tt_triangle *, const float *a, float *b);
    void (*solve_f64)(const tt_triangle *, const double *a, double *b);
} tt_triangle_table;
