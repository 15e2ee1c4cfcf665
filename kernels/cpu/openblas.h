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
      const T *a, int lda, T *b, int ldb)

#define TT_BLAS_OF_COMPLEX(X, s)                                                                                       \
    X(s##gemm, cblas_##s##gemm, void, int layout, int trans_a, int trans_b, int m, int n, int k, const void *alpha,    \
      const void *a, int lda, const void *b, int ldb, const void *beta, void *c, int ldc)                              \
    X(s##trsm, cblas_##s##trsm, void, int layout, int side, int uplo, int trans, int diag, int m, int n,               \
      const void *alpha, const void *a, int lda, void *b, int ldb)

/* Where LAPACK has other names for complex numbers: `q` and `h` are or and sy, un and he. RW: `rwork`, which routines
 * take for complex numbers alone, RWS: with its size; W: eigenvalues, of real matrices in two parts. R is T's real
 * type. */
#define TT_LAPACK_OF(X, s, T, R, q, h, RW, RWS, W)                                                                     \
    X(s##potrf, LAPACKE_##s##potrf_work, int, int layout, char uplo, int n, T *a, int lda)                             \
    X(s##potri, LAPACKE_##s##potri_work, int, int layout, char uplo, int n, T *a, int lda)                             \
    X(s##getrf, LAPACKE_##s##getrf_work, int, int layout, int m, int n, T *a, int lda, int *pivots)                    \
    X(s##getrs, LAPACKE_##s##getrs_work, int, int layout, char trans, int n, int nrhs, const T *a, int lda,            \
      const int *pivots, T *b, int ldb)                                                                                \
    X(s##sytrf, LAPACKE_##s##sytrf_work, int, int layout, char uplo, int n, T *a, int lda, int *pivots, T *work,       \
      int lwork)                                                                                                       \
    X(s##sytrs, LAPACKE_##s##sytrs_work, int, int layout, char uplo, int n, int nrhs, const T *a, int lda,             \
      const int *pivots, T *b, int ldb)                                                                                \
    X(s##hetrf, LAPACKE_##s##h##trf_work, int, int layout, char uplo, int n, T *a, int lda, int *pivots, T *work,      \
      int lwork)                                                                                                       \
    X(s##hetrs, LAPACKE_##s##h##trs_work, int, int layout, char uplo, int n, int nrhs, const T *a, int lda,            \
      const int *pivots, T *b, int ldb)                                                                                \
    X(s##geqrf, LAPACKE_##s##geqrf_work, int, int layout, int m, int n, T *a, int lda, T *tau, T *work, int lwork)     \
    X(s##orgqr, LAPACKE_##s##q##gqr_work, int, int layout, int m, int n, int k, T *a, int lda, const T *tau, T *work,  \
      int lwork)                                                                                                       \
    X(s##heevd, LAPACKE_##s##h##evd_work, int, int layout, char job, char uplo, int n, T *a, int lda, R *w, T *work,   \
      int lwork RWS, int *iwork, int liwork)                                                                           \
    X(s##geev, LAPACKE_##s##geev_work, int, int layout, char left, char right, int n, T *a, int lda W, T *vl,          \
      int ldvl, T *vr, int ldvr, T *work, int lwork RW)                                                                \
    X(s##gesdd, LAPACKE_##s##gesdd_work, int, int layout, char job, int m, int n, T *a, int lda, R *s, T *u, int ldu,  \
      T *vt, int ldvt, T *work, int lwork RW, int *iwork)                                                              \
    X(s##gels, LAPACKE_##s##gels_work, int, int layout, char trans, int m, int n, int nrhs, T *a, int lda, T *b,       \
      int ldb, T *work, int lwork)                                                                                     \
    X(s##gelsy, LAPACKE_##s##gelsy_work, int, int layout, int m, int n, int nrhs, T *a, int lda, T *b, int ldb,        \
      int *jpvt, R rcond, int *rank, T *work, int lwork RW)                                                            \
    X(s##gelsd, LAPACKE_##s##gelsd_work, int, int layout, int m, int n, int nrhs, T *a, int lda, T *b, int ldb, R *s,  \
      R rcond, int *rank, T *work, int lwork RW, int *iwork)                                                           \
    X(s##gelss, LAPACKE_##s##gelss_work, int, int layout, int m, int n, int nrhs, T *a, int lda, T *b, int ldb, R *s,  \
      R rcond, int *rank, T *work, int lwork RW)
#define TT_LAPACK_REAL(X, s, T)                                                                                        \
    TT_LAPACK_OF(X, s, T, T, or, sy, , , TT_LAPACK_TWO_PARTS(T))                                                       \
    X(s##sytrd, LAPACKE_##s##sytrd_work, int, int layout, char uplo, int n, T *a, int lda, T *d, T *e, T *tau,         \
      T *work, int lwork)                                                                                              \
    X(s##stedc, LAPACKE_##s##stedc_work, int, int layout, char vectors, int n, T *d, T *e, T *z, int ldz, T *work,     \
      int lwork, int *iwork, int liwork)                                                                               \
    X(s##gebrd, LAPACKE_##s##gebrd_work, int, int layout, int m, int n, T *a, int lda, T *d, T *e, T *tau_q, T *tau_p, \
      T *work, int lwork)                                                                                              \
    X(s##laed4, s##laed4_, void, const int *n, const int *i, const T *d, const T *z, T *delta, const T *rho, T *value, \
      int *info)                                                                                                       \
    X(s##lasd0, s##lasd0_, void, const int *n, const int *wider, T *d, T *e, T *u, const int *ldu, T *vt,              \
      const int *ldvt, const int *size, int *iwork, T *work, int *info)                                                \
    X(s##lasd4, s##lasd4_, void, const int *n, const int *i, const T *d, const T *z, T *delta, const T *rho, T *sigma, \
      T *work, int *info)
#define TT_LAPACK_COMPLEX(X, s, R)                                                                                     \
    TT_LAPACK_OF(X, s, R _Complex, R, un, he, TT_LAPACK_RWORK(R), TT_LAPACK_RWORK_SIZE(R), TT_LAPACK_ONE_PART(R))
#define TT_LAPACK_TWO_PARTS(T) , T *wr, T *wi
#define TT_LAPACK_ONE_PART(R) , R _Complex *w
#define TT_LAPACK_RWORK(R) , R *rwork
#define TT_LAPACK_RWORK_SIZE(R) , R *rwork, int lrwork

#define TT_BLAS_SYMBOLS(X)                                                                                             \
    TT_BLAS_OF(X, s, float)                                                                                            \
    TT_BLAS_OF(X, d, double)                                                                                           \
    TT_BLAS_OF_COMPLEX(X, c)                                                                                           \
    TT_BLAS_OF_COMPLEX(X, z)                                                                                           \
    TT_LAPACK_REAL(X, s, float)                                                                                        \
    TT_LAPACK_REAL(X, d, double)                                                                                       \
    TT_LAPACK_COMPLEX(X, c, float)                                                                                     \
    TT_LAPACK_COMPLEX(X, z, double) X(set_num_threads, openblas_set_num_threads, void, int n)

enum { ROW_MAJOR = 101, COL_MAJOR, NO_TRANS = 111, TRANS, UPPER = 121, LOWER, NON_UNIT = 131, UNIT, LEFT = 141, RIGHT };

typedef struct {
#define TT_BLAS_FIELD(name, symbol, result, ...) result (*name)(__VA_ARGS__);
    TT_BLAS_SYMBOLS(TT_BLAS_FIELD)
#undef TT_BLAS_FIELD
} tt_blas_functions;
extern tt_blas_functions tt_blas; /* once tt_blas_enter was true */

/* Between the two, so many threads may call BLAS as tt_blas_enter gives, `threads` or 1; 0: an error. The library is
 * open, and there is room for its buffers: Note [The memory of OpenBLAS]. */
int tt_blas_enter(int threads, int *claimed);
void tt_blas_leave(int claimed);
