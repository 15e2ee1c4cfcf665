/* Decompositions of matrices and systems of equations, through LAPACK: float32, float64 and their complex numbers. */
#pragma once
#include "core.h"

/* What tt_decompose computes of each matrix of the stack `a`; -1: there is none of that name. */
int tt_decomposition(const char *name);
/* Runs it on every matrix. `b`: right-hand sides, `pivots`: of the factors in `a`, where it takes any (else NULL).
 * `option`: which variant; see backend/decompose.h. `rcond`: of least squares, the share of the largest
 * singular value below which others are zero. The results go to results[0], results[1] ..., column-major matrices;
 * the last one is LAPACK's `info` for each matrix, int32: 0 for success. `check`: a failure is an error,
 * TT_LINALG_ERROR. Gives the number of results. */
int tt_decompose(int decomposition, tt_array *a, tt_array *b, tt_array *pivots, int option, double rcond, int check,
                 tt_array **results);
