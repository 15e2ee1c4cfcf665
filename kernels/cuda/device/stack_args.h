/* What the host hands to the kernels of decompositions: stacks of column-major matrices, steps in bytes. */
#pragma once
#include "cuda/device/args.h"

/* What `stack` does with every matrix. */
#define TT_STACK_COPY 0 /* the part of `from` that is asked for, with zeros around it */
#define TT_STACK_FINITE 1 /* found: 1 for a matrix with elements that are not finite, which becomes 0 */
#define TT_STACK_SETTLE 2 /* info: -1 where `found` */
#define TT_STACK_DIAGONAL 3 /* info, where that is 0: the first zero on the diagonal, from 1 */
#define TT_STACK_NAN_DIAGONAL 4 /* ... the first NaN */
#define TT_STACK_PIVOTS 5 /* places: the pivots, valid ones in place of others, which are faults */
#define TT_STACK_PLACES 6 /* places: of each row, which one the pivots' exchanges bring there */
#define TT_STACK_PERMUTATION 9 /* to: that as a matrix, P^T */
#define TT_STACK_GATHER 10 /* to: from, with these rows */
#define TT_STACK_IN_ORDER 8 /* places: pivots that exchange nothing */
#define TT_STACK_EIGENVECTORS                                                                                          \
    7 /* to: complex vectors, from real and imaginary parts as LAPACK packs them; values: theirs */
/* What is copied: all, or a triangle, or ones on the diagonal. TT_PART_ADJOINT: of the adjoint of `from`. */
enum { TT_PART_ALL, TT_PART_UPPER, TT_PART_LOWER, TT_PART_IDENTITY, TT_PART_ADJOINT = 4 };

typedef struct {
    const char *from;
    char *to;
    const char *values;
    const int32_t *pivots;
    int32_t *places, *found, *info;
    tt_fault *fault;
    int64_t count, step_from, step_to, step_values;
    int32_t rows, cols, ld_from, ld_to; /* of `to`; of TT_STACK_FINITE and the diagonals of `from` */
    int32_t from_rows, from_cols;       /* of `from`, beyond which there are zeros */
    int32_t part, num_pivots;
} tt_stack_args;

/* ldl: factors, or solves with them */
#define TT_LDL_FACTOR 0
#define TT_LDL_SOLVE 1
#define TT_LDL_HERMITIAN 2
typedef struct {
    char *a, *b;
    int32_t *pivots, *info;
    tt_fault *fault;
    int64_t step_a, step_b;
    int32_t n, cols, nbatch, unused;
    int64_t batch[TT_CUDA_DIMS], a_strides[TT_CUDA_DIMS]; /* which a belongs to a problem, as in tt_stack */
} tt_ldl_args;

/* small: matrices that a thread block has in shared memory. Variant: the task, and TT_SMALL_LANES times the logarithm
 * of how many threads share a column */
#define TT_SMALL_LANES 16
#define TT_SMALL_CHOLESKY 0 /* b: the factor of b, option 1: the upper one */
#define TT_SMALL_CHOLESKY_INVERSE 1 /* b: the inverse of the matrix that has the factor b */
#define TT_SMALL_LU 2 /* b (m x n): the factors of b, with pivots; option 1: in order */
#define TT_SMALL_LU_SOLVE 3 /* b (n x cols): the solution, from a and pivots; options as lu_solve's */
#define TT_SMALL_INV 4 /* b: the inverse of a */
#define TT_SMALL_TRIANGLE 5 /* b (m x cols): the solution of a system with a; the sum of these: */
#define TT_SMALL_UPPER 1
#define TT_SMALL_RIGHT 2
#define TT_SMALL_UNIT 4
#define TT_SMALL_TRANSPOSED 8
#define TT_SMALL_GEQRF 6 /* b (m x n): R and reflectors of b, c: their factors */
#define TT_SMALL_QR 7 /* b: Q (m x cols), c: R (cols x n) of a (m x n) */
#define TT_SMALL_QR_R 8 /* c: R (k x n) of a */
typedef struct {
    char *a, *b, *c;
    int32_t *pivots, *info;
    tt_fault *fault;
    int64_t step_a, step_b, step_c;
    int32_t m, n, cols, at_once; /* of columns of b that a block has; as many blocks in y as there are such parts */
    int32_t option, nbatch;
    int64_t batch[TT_CUDA_DIMS], a_strides[TT_CUDA_DIMS]; /* which a belongs to a problem, as in tt_stack */
} tt_small_args;

/* tiny: square matrices of which a lane has a row in registers, read where they lie. Variant: as small's */
#define TT_TINY_CHOLESKY 0 /* out: the factor of a, option 1: the upper one */
#define TT_TINY_LU 1 /* lu: the factors of a, with pivots; option 1: in order */
#define TT_TINY_INV 2 /* out: the inverse of a */
#define TT_TINY_SOLVE 3 /* out: the solution of the system a, b; lu: the factors, with pivots */
#define TT_TINY_LU_SOLVE 4 /* out: the solution, from a, the factors, and pivots; options as lu_solve's */
typedef struct {
    const char *a, *b;
    char *out, *lu; /* column-major, matrix after matrix */
    int32_t *pivots, *info;
    tt_fault *fault;
    int64_t count, a_down, a_along, b_down, b_along; /* elements from row to row, from column to column */
    int32_t n, cols, option, nbatch;
    int64_t batch[TT_CUDA_DIMS]; /* elements from matrix to matrix; of given pivots: matrices */
    int64_t a_strides[TT_CUDA_DIMS], b_strides[TT_CUDA_DIMS], pivot_strides[TT_CUDA_DIMS];
} tt_tiny_args;

/* jacobi: eigenvalues and singular values of small matrices, by rotations. Variant: likewise */
#define TT_JACOBI_EIGH 0
#define TT_JACOBI_EIGVALSH 1
#define TT_JACOBI_SVD 2
#define TT_JACOBI_SVDVALS 3
typedef struct {
    const char *a;
    char *values, *u, *v; /* of eigenvalues: u the vectors; of singular ones: u and V^H */
    int32_t *info;
    int64_t step_a, step_values, step_u, step_v;
    int32_t m, n, upper, full;
} tt_jacobi_args;
