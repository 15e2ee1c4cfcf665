/* cuSOLVER's and cuBLAS's interfaces over the CPU's memory, as far as tinytorch uses them, by the LAPACK that the CPU's
 * tensors use (scipy-openblas32). The emulated device loads it in the libraries' place. */
#include <complex.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { INVALID_VALUE = 3, ROOM = 64, COL_MAJOR = 102 };
enum { R_32F = 0, R_64F = 1, C_32F = 4, C_64F = 5 };

int fake_does_not_converge; /* how many calls of gesvdj, from the next on, fail: set by tests */
int fake_calls;

int scipy_LAPACKE_set_nancheck(int on);
static int create(void **handle) {
    scipy_LAPACKE_set_nancheck(0);
    return *handle = malloc(1), 0;
}
int cusolverDnCreate(void **handle) { return create(handle); }
int cusolverDnSetStream(void *handle, intptr_t stream) { return (void)stream, handle ? 0 : INVALID_VALUE; }
int cusolverDnCreateParams(void **params) { return create(params); }
int cusolverDnCreateGesvdjInfo(void **params) { return create(params); }
int cublasCreate_v2(void **handle) { return create(handle); }
int cublasSetStream_v2(void *handle, intptr_t stream) { return (void)stream, handle ? 0 : INVALID_VALUE; }
const char *cublasGetStatusString(int status) { return status == INVALID_VALUE ? "CUBLAS_STATUS_INVALID_VALUE" : "a fault"; }

/* Work memory is written, as far as it was asked for. */
static int use(void *work, int64_t size, int64_t bytes) {
    fake_calls++;
    if (size) memset(work, 0xCD, (size_t)(size * bytes));
    return size == 0;
}
#define UPLO(upper) ((upper) ? 'U' : 'L')
#define SIDE(right) ((right) ? 'R' : 'L')
#define TRANS(trans) "NTC"[trans]
#define L(x, name) scipy_LAPACKE_##x##name

#define ROUTINES(X, x, T, R, o, s)                                                                                     \
    int L(x, potrf)(int, char, int, T *, int);                                                                         \
    int L(x, getrf)(int, int, int, T *, int, int *);                                                                   \
    int L(x, getrs)(int, char, int, int, const T *, int, const int *, T *, int);                                       \
    int L(x, geqrf)(int, int, int, T *, int, T *);                                                                     \
    int L(x, o##gqr)(int, int, int, int, T *, int, const T *);                                                         \
    int L(x, o##mqr)(int, char, char, int, int, int, const T *, int, const T *, T *, int);                             \
    int L(x, s##evd)(int, char, char, int, T *, int, R *);                                                             \
    int L(x, gesdd)(int, char, int, int, T *, int, R *, T *, int, T *, int);                                           \
    int L(x, gesvd)(int, char, char, int, int, T *, int, R *, T *, int, T *, int, R *);                                \
    int cusolverDn##X##potrf_bufferSize(void *h, int upper, int n, T *a, int lda, int *size) {                         \
        return (void)h, (void)upper, (void)a, *size = ROOM, lda < n ? INVALID_VALUE : 0;                               \
    }                                                                                                                  \
    int cusolverDn##X##potrf(void *h, int upper, int n, T *a, int lda, T *work, int size, int *info) {                 \
        if (!h || use(work, size, sizeof(T))) return INVALID_VALUE;                                                    \
        return *info = L(x, potrf)(COL_MAJOR, UPLO(upper), n, a, lda), 0;                                              \
    }                                                                                                                  \
    int cusolverDn##X##getrf_bufferSize(void *h, int m, int n, T *a, int lda, int *size) {                             \
        return (void)h, (void)n, (void)a, *size = ROOM, lda < m ? INVALID_VALUE : 0;                                   \
    }                                                                                                                  \
    int cusolverDn##X##getrf(void *h, int m, int n, T *a, int lda, T *work, int *pivots, int *info) {                  \
        if (!h || use(work, ROOM, sizeof(T))) return INVALID_VALUE;                                                    \
        if (pivots) return *info = L(x, getrf)(COL_MAJOR, m, n, a, lda, pivots), 0;                                    \
        *info = 0;                                                                                                     \
        for (int k = 0; k < m && k < n; k++)                                                                           \
            for (int i = k + 1; i < m; i++) {                                                                          \
                a[i + k * lda] /= a[k + k * lda];                                                                      \
                for (int j = k + 1; j < n; j++) a[i + j * lda] -= a[i + k * lda] * a[k + j * lda];                     \
            }                                                                                                          \
        return 0;                                                                                                      \
    }                                                                                                                  \
    int cusolverDn##X##getrs(void *h, int trans, int n, int k, const T *a, int lda, const int *pivots, T *b, int ldb,  \
                             int *info) {                                                                              \
        return *info = L(x, getrs)(COL_MAJOR, TRANS(trans), n, k, a, lda, pivots, b, ldb), h ? 0 : INVALID_VALUE;      \
    }                                                                                                                  \
    int cusolverDn##X##geqrf_bufferSize(void *h, int m, int n, T *a, int lda, int *size) {                             \
        return (void)h, (void)n, (void)a, *size = ROOM, lda < m ? INVALID_VALUE : 0;                                   \
    }                                                                                                                  \
    int cusolverDn##X##geqrf(void *h, int m, int n, T *a, int lda, T *tau, T *work, int size, int *info) {             \
        if (!h || use(work, size, sizeof(T))) return INVALID_VALUE;                                                    \
        return *info = L(x, geqrf)(COL_MAJOR, m, n, a, lda, tau), 0;                                                   \
    }                                                                                                                  \
    int cusolverDn##X##o##gqr_bufferSize(void *h, int m, int n, int k, T *a, int lda, T *tau, int *size) {             \
        return (void)h, (void)a, (void)tau, (void)lda, *size = ROOM, n > m || k > n ? INVALID_VALUE : 0;               \
    }                                                                                                                  \
    int cusolverDn##X##o##gqr(void *h, int m, int n, int k, T *a, int lda, T *tau, T *work, int size, int *info) {     \
        if (!h || use(work, size, sizeof(T))) return INVALID_VALUE;                                                    \
        return *info = L(x, o##gqr)(COL_MAJOR, m, n, k, a, lda, tau), 0;                                               \
    }                                                                                                                  \
    int cusolverDn##X##o##mqr_bufferSize(void *h, int right, int trans, int m, int n, int k, T *a, int lda, T *tau,    \
                                         T *b, int ldb, int *size) {                                                   \
        (void)h, (void)trans, (void)n, (void)a, (void)lda, (void)tau, (void)b;                                         \
        return *size = ROOM, ldb < m || (!right && k > m) ? INVALID_VALUE : 0;                                         \
    }                                                                                                                  \
    int cusolverDn##X##o##mqr(void *h, int right, int trans, int m, int n, int k, T *a, int lda, T *tau, T *b,         \
                              int ldb, T *work, int size, int *info) {                                                 \
        if (!h || use(work, size, sizeof(T))) return INVALID_VALUE;                                                    \
        return *info = L(x, o##mqr)(COL_MAJOR, SIDE(right), TRANS(trans), m, n, k, a, lda, tau, b, ldb), 0;            \
    }                                                                                                                  \
    int cusolverDn##X##s##evd_bufferSize(void *h, int vectors, int upper, int n, T *a, int lda, R *w, int *size) {     \
        return (void)h, (void)vectors, (void)upper, (void)a, (void)w, *size = ROOM, lda < n ? INVALID_VALUE : 0;       \
    }                                                                                                                  \
    int cusolverDn##X##s##evd(void *h, int vectors, int upper, int n, T *a, int lda, R *w, T *work, int size,          \
                              int *info) {                                                                             \
        if (!h || use(work, size, sizeof(T))) return INVALID_VALUE;                                                    \
        return *info = L(x, s##evd)(COL_MAJOR, vectors ? 'V' : 'N', UPLO(upper), n, a, lda, w), 0;                     \
    }                                                                                                                  \
    int cusolverDn##X##gesvdj_bufferSize(void *h, int vectors, int thin, int m, int n, T *a, int lda, R *s_, T *u,     \
                                         int ldu, T *v, int ldv, int *size, void *params) {                            \
        (void)h, (void)vectors, (void)thin, (void)a, (void)s_, (void)u, (void)v, *size = ROOM;                         \
        return lda < m || ldu < m || ldv < n || !params ? INVALID_VALUE : 0;                                           \
    }                                                                                                                  \
    int cusolverDn##X##gesvdj(void *h, int vectors, int thin, int m, int n, T *a, int lda, R *s_, T *u, int ldu, T *v, \
                              int ldv, T *work, int size, int *info, void *params) {                                   \
        int k = m < n ? m : n, rows = thin ? k : n;                                                                    \
        if (!h || !params || use(work, size, sizeof(T)) || !u || !v) return INVALID_VALUE;                             \
        if (fake_does_not_converge > 0) return fake_does_not_converge--, *info = k + 1, 0;                             \
        T *vt = malloc(sizeof(T) * (size_t)rows * (size_t)n);                                                          \
        *info = L(x, gesdd)(COL_MAJOR, vectors ? thin ? 'S' : 'A' : 'N', m, n, a, lda, s_, u, ldu, vt, rows);          \
        for (int i = 0; vectors && i < rows; i++)                                                                      \
            for (int j = 0; j < n; j++) v[j + (int64_t)i * ldv] = (T)conj(vt[i + (int64_t)j * rows]);                  \
        memset(a, 0xCD, sizeof(T) * (size_t)m * (size_t)n);                                                            \
        return free(vt), 0;                                                                                            \
    }                                                                                                                  \
    int cusolverDn##X##gesvd_bufferSize(void *h, int m, int n, int *size) {                                            \
        return (void)h, *size = ROOM, m < n ? INVALID_VALUE : 0;                                                       \
    }                                                                                                                  \
    int cusolverDn##X##gesvd(void *h, signed char u_job, signed char v_job, int m, int n, T *a, int lda, R *s_, T *u,  \
                             int ldu, T *vt, int ldv, T *work, int size, R *rwork, int *info) {                        \
        if (!h || m < n || use(work, size, sizeof(T))) return INVALID_VALUE;                                           \
        return *info = L(x, gesvd)(COL_MAJOR, u_job, v_job, m, n, a, lda, s_, u, ldu, vt, ldv, rwork), 0;              \
    }

ROUTINES(S, s, float, float, or, sy)
ROUTINES(D, d, double, double, or, sy)
ROUTINES(C, c, float complex, float, un, he)
ROUTINES(Z, z, double complex, double, un, he)

void scipy_cblas_strsm(int, int, int, int, int, int, int, float, const void *, int, void *, int);
void scipy_cblas_dtrsm(int, int, int, int, int, int, int, double, const void *, int, void *, int);
void scipy_cblas_ctrsm(int, int, int, int, int, int, int, const void *, const void *, int, void *, int);
void scipy_cblas_ztrsm(int, int, int, int, int, int, int, const void *, const void *, int, void *, int);
#define TRSM(X, x, A, alpha)                                                                                           \
    int cublas##X##trsm_v2(void *h, int right, int upper, int trans, int unit, int m, int n, const A *by, void *a,     \
                           int lda, void *b, int ldb) {                                                                \
        if (!h || lda < (right ? n : m) || ldb < m) return INVALID_VALUE;                                              \
        fake_calls++;                                                                                                  \
        scipy_cblas_##x##trsm(COL_MAJOR, 141 + right, upper ? 121 : 122, 111 + trans, unit ? 132 : 131, m, n, alpha,   \
                              a, lda, b, ldb);                                                                         \
        return 0;                                                                                                      \
    }
TRSM(S, s, float, *by)
TRSM(D, d, double, *by)
TRSM(C, c, void, by)
TRSM(Z, z, void, by)

int scipy_LAPACKE_sgeev(int, char, char, int, void *, int, float *, float *, void *, int, void *, int);
int scipy_LAPACKE_dgeev(int, char, char, int, void *, int, double *, double *, void *, int, void *, int);
int scipy_LAPACKE_cgeev(int, char, char, int, void *, int, void *, void *, int, void *, int);
int scipy_LAPACKE_zgeev(int, char, char, int, void *, int, void *, void *, int, void *, int);

int cusolverDnXgeev_bufferSize(void *h, void *params, int left, int right, int64_t n, int type_a, void *a, int64_t lda,
                               int type_w, void *w, int type_l, void *vl, int64_t ldl, int type_r, void *vr,
                               int64_t ldr, int compute, size_t *size, size_t *host_size) {
    (void)right, (void)n, (void)a, (void)lda, (void)w, (void)type_l, (void)vl, (void)ldl, (void)vr, (void)ldr;
    *size = *host_size = ROOM;
    return !h || !params || left || type_r != type_a || compute != type_a || type_w < C_32F ? INVALID_VALUE : 0;
}

#define REAL_GEEV(x, R)                                                                                                \
    {                                                                                                                  \
        R *re = malloc(2 * sizeof(R) * (size_t)n), *im = re + n, *out = w;                                             \
        *info = scipy_LAPACKE_##x##geev(COL_MAJOR, 'N', job, (int)n, a, (int)lda, re, im, NULL, 1, vr, (int)ldr);      \
        for (int64_t i = 0; i < n; i++) out[2 * i] = re[i], out[2 * i + 1] = im[i];                                    \
        free(re);                                                                                                      \
        break;                                                                                                         \
    }

int cusolverDnXgeev(void *h, void *params, int left, int right, int64_t n, int type_a, void *a, int64_t lda, int type_w,
                    void *w, int type_l, void *vl, int64_t ldl, int type_r, void *vr, int64_t ldr, int compute,
                    void *work, size_t size, void *host_work, size_t host_size, int *info) {
    char job = right ? 'V' : 'N';
    (void)left, (void)type_w, (void)type_l, (void)vl, (void)ldl, (void)type_r, (void)compute;
    if (!h || !params || use(work, (int64_t)size, 1) || use(host_work, (int64_t)host_size, 1)) return INVALID_VALUE;
    switch (type_a) {
    case R_32F: REAL_GEEV(s, float)
    case R_64F: REAL_GEEV(d, double)
    case C_32F: *info = scipy_LAPACKE_cgeev(COL_MAJOR, 'N', job, (int)n, a, (int)lda, w, NULL, 1, vr, (int)ldr); break;
    default: *info = scipy_LAPACKE_zgeev(COL_MAJOR, 'N', job, (int)n, a, (int)lda, w, NULL, 1, vr, (int)ldr);
    }
    return 0;
}
