/* Decompositions of stacks of matrices: what the front end (decompose.c) and a backend share. */
#pragma once
#include "core/tt.h"

#define TT_MOST_RESULTS 3
#define TT_OWN_MEMORY (-1)

/* X(name, A is square, the result that takes the copy of A, the same for B (TT_OWN_MEMORY: none),
 *   the results' shapes, the message for an `info` above 0)
 * Shapes in letters: m, n and k as in tt_matrix; M and N: m and n for option 1, else k; r and c: B's rows and columns.
 * Options: cholesky, eigh: 1 for the upper triangle; qr: 1 for a square Q, svd: for square U and V; solve_triangular: the
 * sum of 1 for an upper triangle, 2 for X A = B, 4 for a diagonal of ones. */
#define TT_DECOMPOSITIONS(X)                                                                        \
    X(cholesky, true, 0, 0, ("nn"),                                                                 \
      "The factorization could not be completed because the input is not positive-definite (the leading minor of " \
      "order %d is not positive-definite).")                                                        \
    X(solve, true, TT_OWN_MEMORY, 0, ("rc"), "The solver failed because the input matrix is singular.") \
    X(solve_triangular, true, TT_OWN_MEMORY, 0, ("rc"), "")                                         \
    X(inv, true, TT_OWN_MEMORY, 0, ("nn"),                                                          \
      "The diagonal element %d is zero, the inversion could not be completed because the input matrix is singular.") \
    X(eigh, true, 1, 0, ("n", "nn"), TT_EIGENVALUES_FAILURE)                                        \
    X(eigvalsh, true, TT_OWN_MEMORY, 0, ("n"), TT_EIGENVALUES_FAILURE)                              \
    X(qr, false, TT_OWN_MEMORY, 0, ("mM", "Mn"), "")                                                \
    X(qr_r, false, TT_OWN_MEMORY, 0, ("kn"), "")                                                    \
    X(svd, false, TT_OWN_MEMORY, 0, ("mM", "k", "Nn"), TT_SINGULAR_VALUES_FAILURE)                  \
    X(svdvals, false, TT_OWN_MEMORY, 0, ("k"), TT_SINGULAR_VALUES_FAILURE)

#define TT_EIGENVALUES_FAILURE "The algorithm failed to converge because the input matrix is ill-conditioned or has too " \
                               "many repeated eigenvalues (error code: %d)."
#define TT_SINGULAR_VALUES_FAILURE "The algorithm failed to converge because the input matrix is ill-conditioned or has " \
                                   "too many repeated singular values (error code: %d)."

/* One matrix of each stack, column-major without gaps. */
typedef struct {
    int m, n, k;                   /* A is m x n; the smaller of both */
    int b_rows, b_cols, option;
    void *a, *b;                   /* copies of the operands, to work in */
    void *out[TT_MOST_RESULTS];
    void *tau, *work;              /* room for k elements; for lwork */
    int *iwork, lwork, liwork;
} tt_matrix;

typedef struct {
    tt_matrix first;
    int dtype;
    int64_t count, step_a, step_b, steps[TT_MOST_RESULTS]; /* from matrix to matrix, in bytes */
    int *info;                     /* what LAPACK says of each: 0 is success, below 0 means elements that are not finite */
} tt_stack;

bool tt_lapack(int decomposition, tt_stack *s); /* cpu/lapack.c */
