/* Decompositions of stacks of matrices, as every backend does them. */
#pragma once
#include "core/tt.h"

#define TT_MOST_RESULTS 3
#define TT_OWN_MEMORY (-1)
#define TT_READ_ONLY (-2)
#define TT_EITHER_ORDER (-3)

/* X(name, A is square, the result that takes the copy of A, the result that takes the copy of B, the results' shapes,
 *   the message for an `info` above 0)
 * A is copied to TT_OWN_MEMORY where it is no result; TT_READ_ONLY: only where it is not column-major already;
 * TT_EITHER_ORDER: nor row-major.
 * Shapes in letters: m, n and k as in tt_matrix; M and N: m and n for option 1, else k; r and c: B's rows and columns;
 * none for a number. After a colon the dtype, where it is not A's: "real" and "complex" of A's precision, int32.
 * Options: cholesky and its inverse, eigh: 1 for the upper triangle; ldl_factor, ldl_solve: 1 for Hermitian matrices;
 * lu_factor: CUDA's 1 for no pivoting; lu_solve: 1 for A^T, 2 for A^H; qr: 1 for a square Q; svd: 1 for square U and V,
 * CUDA's 2 for gesvd; solve_triangular: the sum of 1 for an upper triangle, 2 for X A = B, 4 for a diagonal of ones. */
#define TT_DECOMPOSITIONS(X)                                                                                           \
    X(cholesky, true, 0, 0, ("nn"),                                                                                    \
      "The factorization could not be completed because the input is not positive-definite (the leading minor of "     \
      "order %d is not positive-definite).")                                                                           \
    X(cholesky_inverse, true, 0, 0, ("nn"), TT_SINGULAR_DIAGONAL)                                                      \
    X(lu_factor, false, 0, 0, ("mn", "k:int32"), "The solver failed because the input matrix is singular.")            \
    X(lu_permutation, false, TT_READ_ONLY, 0, ("mm"), "")                                                              \
    X(lu_solve, true, TT_READ_ONLY, 0, ("rc"), "")                                                                     \
    X(ldl_factor, true, 0, 0, ("nn", "n:int32"),                                                                       \
      "The factorization has a zero on its diagonal (%d), so that a system of equations cannot be solved with it.")    \
    X(ldl_solve, true, TT_READ_ONLY, 0, ("rc"), "")                                                                    \
    X(solve_triangular, true, TT_EITHER_ORDER, 0, ("rc"), "")                                                          \
    X(solve, true, 1, 0, ("rc", "nn", "n:int32"), "The solver failed because the input matrix is singular.")           \
    X(inv, true, TT_OWN_MEMORY, 0, ("nn"), TT_SINGULAR_DIAGONAL)                                                       \
    X(eig, true, TT_OWN_MEMORY, 0, ("n:complex", "nn:complex"), TT_EIGENVALUES_FAILURE)                                \
    X(eigvals, true, TT_OWN_MEMORY, 0, ("n:complex"), TT_EIGENVALUES_FAILURE)                                          \
    X(eigh, true, 1, 0, ("n:real", "nn"), TT_EIGENVALUES_FAILURE)                                                      \
    X(eigvalsh, true, TT_OWN_MEMORY, 0, ("n:real"), TT_EIGENVALUES_FAILURE)                                            \
    X(geqrf, false, 0, 0, ("mn", "k"), "")                                                                             \
    X(qr, false, TT_OWN_MEMORY, 0, ("mM", "Mn"), "")                                                                   \
    X(qr_r, false, TT_OWN_MEMORY, 0, ("kn"), "")                                                                       \
    X(svd, false, TT_OWN_MEMORY, 0, ("mM", "k:real", "Nn"), TT_SINGULAR_VALUES_FAILURE)                                \
    X(svdvals, false, TT_OWN_MEMORY, 0, ("k:real"), TT_SINGULAR_VALUES_FAILURE)                                        \
    X(gels, false, TT_OWN_MEMORY, 0, ("rc"), TT_LEAST_SQUARES_FAILURE)                                                 \
    X(gelsy, false, TT_OWN_MEMORY, 0, ("rc", ":int32"), TT_LEAST_SQUARES_FAILURE)                                      \
    X(gelsd, false, TT_OWN_MEMORY, 0, ("rc", ":int32", "k:real"), TT_LEAST_SQUARES_FAILURE)                            \
    X(gelss, false, TT_OWN_MEMORY, 0, ("rc", ":int32", "k:real"), TT_LEAST_SQUARES_FAILURE)

#define TT_SINGULAR_DIAGONAL                                                                                           \
    "The diagonal element %d is zero, the inversion could not be completed because the input matrix is singular."
#define TT_EIGENVALUES_FAILURE                                                                                         \
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated "           \
    "eigenvalues (error code: %d)."
#define TT_SINGULAR_VALUES_FAILURE                                                                                     \
    "The algorithm failed to converge because the input matrix is ill-conditioned or has too many repeated singular "  \
    "values (error code: %d)."
#define TT_LEAST_SQUARES_FAILURE                                                                                       \
    "The least squares problem could not be solved because the input matrix does not have full rank (error code: %d)."

#define TT_DECOMPOSE_NUMBER(name, ...) TT_DECOMPOSE_##name,
enum { TT_DECOMPOSITIONS(TT_DECOMPOSE_NUMBER) };

/* The number of rows, a pivot. */
#define TT_WRONG_PIVOT                                                                                                 \
    "pivots must be between 1 and the number of rows, %lld, as the factorization gives them; one is %d"

/* One matrix of each stack, column-major without gaps. */
typedef struct {
    int m, n, k;                   /* A is m x n; the smaller of both */
    int b_rows, b_cols, option;
    bool row_major;                /* A is, which TT_EITHER_ORDER allows */
    bool shared;                   /* may several threads work on one matrix? */
    int64_t together;              /* right-hand sides, or vectors, of a task */
    double rcond;                  /* of least squares: singular values below this share of the largest are zero */
    void *a, *b;                   /* copies of the operands, to work in */
    void *out[TT_MOST_RESULTS];
    const int *pivots;             /* an operand */
    void *tau, *work, *rwork;      /* room for k elements; for lwork; for lrwork real ones */
    int *iwork, lwork, lrwork, liwork;
} tt_matrix;

typedef struct {
    tt_matrix first;
    int dtype, nbatch;
    int64_t count, batch[TT_MAX_NDIM], a_strides[TT_MAX_NDIM]; /* in matrices: there may be fewer A than problems */
    int64_t step_a, step_b, steps[TT_MOST_RESULTS]; /* from matrix to matrix, in bytes */
    int *info; /* of each, on the backend's device: 0 for success; below 0: elements that are not finite */
} tt_stack;

/* Which matrix A belongs to the i-th problem. */
static inline int64_t tt_matrix_of_a(const tt_stack *s, int64_t i) {
    int64_t at = 0;
    for (int d = s->nbatch - 1; d >= 0; i /= s->batch[d--]) at += i % s->batch[d] * s->a_strides[d];
    return at;
}
