/* The functions of OpenBLAS and its LAPACK that kernels call. */
#pragma once
#include "core/tt.h"

/* A routine is one line here: X(its name in `tt_blas`, the library's name less "scipy_", result, parameters ...). The
 * LAPACKE_..._work functions are LAPACK's own, with work memory from the caller; `layout` is COL_MAJOR. */
#define TT_BLAS_OF(X, s, T)                                                                                            \
    X(s##gemm, cblas_##s##gemm, void, int layout, int trans_a, int trans_b, int m, int n, int k, T alpha, const T *a,  \
      int lda, const T *b, int ldb, T beta, T *c, int ldc)                                                             \
    X(s##gemv, cblas_##s##gemv, void, int layout, int trans, int m, int n, T alpha, const T *a, int lda, const T *x,   \
      int step_x, T beta, T *y, int step_y)                                                                            \
    X(s##dot, cblas_##s##dot, T, int n, const T *x, int step_x, const T *y, int step_y)                                \
    X(s##trsm, cblas_##s##trsm, void, int layout, int side, int uplo, int trans, int diag, int m, int n, T alpha,      \
      const T *a, int lda, T *b, int ldb)                                                                              \
    X(s##potrf, LAPACKE_##s##potrf_work, int, int layout, char uplo, int n, T *a, int lda)                             \
    X(s##getrf, LAPACKE_##s##getrf_work, int, int layout, int m, int n, T *a, int lda, int *pivots)                    \
    X(s##getrs, LAPACKE_##s##getrs_work, int, int layout, char trans, int n, int nrhs, const T *a, int lda,            \
      const int *pivots, T *b, int ldb)                                                                                \
    X(s##geqrf, LAPACKE_##s##geqrf_work, int, int layout, int m, int n, T *a, int lda, T *tau, T *work, int lwork)     \
    X(s##orgqr, LAPACKE_##s##orgqr_work, int, int layout, int m, int n, int k, T *a, int lda, const T *tau, T *work,   \
      int lwork)                                                                                                       \
    X(s##syevd, LAPACKE_##s##syevd_work, int, int layout, char job, char uplo, int n, T *a, int lda, T *w, T *work,    \
      int lwork, int *iwork, int liwork)                                                                               \
    X(s##gesdd, LAPACKE_##s##gesdd_work, int, int layout, char job, int m, int n, T *a, int lda, T *s, T *u, int ldu,  \
      T *vt, int ldvt, T *work, int lwork, int *iwork)

#define TT_BLAS_OF_COMPLEX(X, s)                                                                                       \
    X(s##gemm, cblas_##s##gemm, void, int layout, int trans_a, int trans_b, int m, int n, int k, const void *alpha,    \
      const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc)

#define TT_BLAS_SYMBOLS(X)                                                                                             \
    TT_BLAS_OF(X, s, float)                                                                                            \
    TT_BLAS_OF(X, d, double)                                                                                           \
    TT_BLAS_OF_COMPLEX(X, c) TT_BLAS_OF_COMPLEX(X, z) X(set_num_threads, openblas_set_num_threads, void, int n)

enum { ROW_MAJOR = 101, COL_MAJOR, NO_TRANS = 111, TRANS, UPPER = 121, LOWER, NON_UNIT = 131, UNIT, LEFT = 141, RIGHT };

typedef struct {
#define TT_BLAS_FIELD(name, symbol, result, ...) result (*name)(__VA_ARGS__);
    TT_BLAS_SYMBOLS(TT_BLAS_FIELD)
#undef TT_BLAS_FIELD
} tt_blas_functions;
extern tt_blas_functions tt_blas; /* once tt_blas_enter was true */

/* Between the two, so many threads may call BLAS as tt_blas_enter gives, `threads` or 1; 0: an error. The library is open,
 * and there is room for its buffers: Note [The memory of OpenBLAS]. */
int tt_blas_enter(int threads, int *claimed);
void tt_blas_leave(int claimed);
