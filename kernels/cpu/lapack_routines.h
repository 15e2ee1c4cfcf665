/* LAPACK on one matrix of elements T, whose real type is R; lapack.c includes this file for each dtype, COMPLEX or not.
 * OF(name) names the function for the dtype, LAPACK(name) the library's. A routine gives LAPACK's `info`; asked, it
 * tells how much work memory it wants: where nothing is written none, but for integers. */
#ifdef COMPLEX
#define RWORK , c->rwork /* of routines that take it for complex numbers alone */
#define RWORK_SIZE , c->rwork, c->lrwork
#define COMPLEX_T T
#define CONJUGATE(x) conj(x)
#define ONE                                                                                                            \
    &(T) { 1 }
#else
#define RWORK
#define RWORK_SIZE
#define COMPLEX_T R _Complex
#define CONJUGATE(x) (x)
#define ONE 1
#endif

static void OF(want_real)(const tt_matrix *c, double count) { *(R *)c->rwork = (R)count; }

/* The upper triangle of a matrix with `ld` rows in memory, zeros below it. */
static void OF(copy_upper)(T *to, int rows, int cols, const T *a, int ld) {
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++) to[i + (int64_t)j * rows] = i <= j ? a[i + (int64_t)j * ld] : 0;
}

static void OF(clear_triangle)(T *a, int n, bool lower) {
    for (int j = 0; j < n; j++) {
        T *column = a + (int64_t)j * n;
        if (lower) memset(column + j + 1, 0, (size_t)(n - j - 1) * sizeof(T));
        else memset(column, 0, (size_t)j * sizeof(T));
    }
}

static void OF(set_identity)(T *a, int n) {
    memset(a, 0, (size_t)n * (size_t)n * sizeof(T));
    for (int i = 0; i < n; i++) a[i * (int64_t)(n + 1)] = 1;
}

/* Are the elements of a matrix ('A'), or of its upper or lower triangle, finite? LAPACK never ends for some
 * infinities. */
static bool OF(is_finite)(const T *a, int rows, int cols, char part) {
    for (int j = 0; j < cols; j++) {
        int begin = part == 'L' ? j : 0, end = part == 'U' ? j + 1 : rows;
        T sum = 0;
        for (int i = begin; i < end; i++) sum += a[i + (int64_t)j * rows] * 0;
        if (sum != 0) return false;
    }
    return true;
}

/* The inverse of A from its triangular factor: LAPACK gives one triangle. */
static int OF(cholesky_inverse)(const tt_matrix *c) {
    if (asks(c)) return 0;
    T *a = c->a;
    int n = c->n, info = LAPACK(potri)(COL_MAJOR, c->option ? 'U' : 'L', n, a, at_least_1(n));
    for (int64_t j = 0; j < n; j++)
        for (int64_t i = j + 1; i < n; i++) {
            if (c->option) a[i + j * n] = CONJUGATE(a[j + i * n]);
            else a[j + i * n] = CONJUGATE(a[i + j * n]);
        }
    return info;
}

#ifdef COMPLEX
static int OF(factor_lu)(const tt_matrix *c, int *pivots) {
    return LAPACK(getrf)(COL_MAJOR, c->m, c->n, c->a, at_least_1(c->m), pivots);
}

static int OF(solve_factored)(const tt_matrix *c, int option, const T *lu, const int *pivots, T *b, int cols) {
    int ld = at_least_1(c->n);
    return LAPACK(getrs)(COL_MAJOR, "NTC"[option], c -> n, cols, lu, ld, pivots, b, ld);
}

static int OF(factor_cholesky)(const tt_matrix *c) {
    return LAPACK(potrf)(COL_MAJOR, c->option ? 'U' : 'L', c->n, c->a, at_least_1(c->n));
}
#else
#include "cpu/systems.h"
#endif

/* OpenBLAS takes a pivot that is NaN for a positive one. */
static int OF(cholesky)(const tt_matrix *c) {
    if (asks(c)) return 0;
    const T *a = c->a;
    int n = c->n, info = OF(factor_cholesky)(c);
    for (int64_t i = 0; !info && i < n; i++)
        if (a[i * (n + 1)] != a[i * (n + 1)]) info = (int)i + 1;
    OF(clear_triangle)(c->a, n, c->option);
    return info;
}

static int OF(lu_factor)(const tt_matrix *c) { return asks(c) ? 0 : OF(factor_lu)(c, c->out[1]); }

/* P^T of A = P L U: its i-th row has a one for the row which the exchanges take to the i-th place. */
static int OF(lu_permutation)(const tt_matrix *c) {
    if (asks(c)) {
        *c->iwork = at_least_1(c->m);
        return 0;
    }
    int m = c->m, *from = c->iwork;
    T *p = c->out[0];
    for (int i = 0; i < m; i++) from[i] = i;
    for (int i = 0; i < c->k; i++) {
        int other = c->pivots[i] - 1, row = from[i];
        from[i] = from[other];
        from[other] = row;
    }
    memset(p, 0, (size_t)m * (size_t)m * sizeof(T));
    for (int i = 0; i < m; i++) p[i + (int64_t)from[i] * m] = 1;
    return 0;
}

static int OF(lu_solve)(const tt_matrix *c) {
    return asks(c) ? 0 : OF(solve_factored)(c, c->option, c->a, c->pivots, c->b, c->b_cols);
}

static int OF(ldl_factor)(const tt_matrix *c) {
    return (c->option ? LAPACK(hetrf) : LAPACK(sytrf))(COL_MAJOR, 'L', c->n, c->a, at_least_1(c->n), c->out[1], c->work,
                                                       c->lwork);
}

static int OF(ldl_solve)(const tt_matrix *c) {
    int ld = at_least_1(c->n);
    if (asks(c)) return 0;
    return (c->option ? LAPACK(hetrs) : LAPACK(sytrs))(COL_MAJOR, 'L', c->n, c->b_cols, c->a, ld, c->pivots, c->b, ld);
}

static int OF(solve)(const tt_matrix *c) {
    if (asks(c)) return 0;
    int info = OF(factor_lu)(c, c->out[2]), failed = 0;
    if (info != NO_MEMORY) failed = OF(solve_factored)(c, 0, c->a, c->out[2], c->b, c->b_cols);
    return failed ? failed : info;
}

static int OF(inv)(const tt_matrix *c) {
    if (asks(c)) return 0;
    OF(set_identity)(c->out[0], c->n);
    int *pivots = c->iwork, info = OF(factor_lu)(c, pivots), failed = 0;
    if (info != NO_MEMORY) failed = OF(solve_factored)(c, 0, c->a, pivots, c->out[0], c->n);
    return failed ? failed : info;
}

static int OF(solve_triangular)(const tt_matrix *c) {
    int side = c->option & 2 ? RIGHT : LEFT, part = !(c->option & 1) == c->row_major ? UPPER : LOWER;
    if (asks(c)) return 0;
#ifndef COMPLEX
    if (side == LEFT ? c->b_cols >= MANY : c->b_rows >= WHOLE || c->b_rows % TT_TRIANGLE_COLUMNS == 0)
        return OF(solve_many)(c);
#endif
    LAPACK(trsm)
    (COL_MAJOR, side, part, c->row_major ? TRANS : NO_TRANS, c->option & 4 ? UNIT : NON_UNIT, c->b_rows, c->b_cols, ONE,
     c->a, at_least_1(c->n), c->b, at_least_1(c->b_rows));
    return 0;
}

#ifndef COMPLEX
/* The largest of n absolute values, or `most`: in lanes, since the compiler does not reorder comparisons of floats. */
static T OF(largest)(const T *x, int64_t n, T most) {
    T lanes[16] = {0};
    for (int64_t i = 0; i < n; i += 16)
        for (int64_t k = 0, some = n - i < 16 ? n - i : 16; k < some; k++) {
            T size = x[i + k] < 0 ? -x[i + k] : x[i + k];
            lanes[k] = size > lanes[k] ? size : lanes[k];
        }
    for (int k = 0; k < 16; k++) most = lanes[k] > most ? lanes[k] : most;
    return most;
}

#include "cpu/merge.h"
#include "cpu/tridiagonal.h"
#include "cpu/bidiagonal.h"
#include "cpu/reflections.h"
#endif

static int OF(eigenvalues)(const tt_matrix *c, char job) {
    char part = c->option ? 'U' : 'L';
    if (!asks(c) && !OF(is_finite)(c->a, c->n, c->n, part)) return NOT_FINITE;
#ifndef COMPLEX
    if (job == 'V' && OF(is_large)(c, part)) return OF(eigh_large)(c);
#endif
    return LAPACK(heevd)(COL_MAJOR, job, part, c->n, c->a, at_least_1(c->n), c->out[0], c->work, c->lwork RWORK_SIZE,
                         c->iwork, c->liwork);
}

static int OF(eigh)(const tt_matrix *c) { return OF(eigenvalues)(c, 'V'); }
static int OF(eigvalsh)(const tt_matrix *c) { return OF(eigenvalues)(c, 'N'); }

/* Eigenvalues of any matrix, and with `v`, n x n, the eigenvectors. */
static int OF(any_eigenvalues)(const tt_matrix *c, COMPLEX_T *values, COMPLEX_T *v) {
    int n = c->n, ld = at_least_1(n);
    char job = v ? 'V' : 'N';
    if (!asks(c) && !OF(is_finite)(c->a, n, n, 'A')) return NOT_FINITE;
#ifdef COMPLEX
    if (asks(c)) OF(want_real)(c, 2.0 * n);
    return LAPACK(geev)(COL_MAJOR, 'N', job, n, c->a, ld, values, NULL, ld, v, ld, c->work, c->lwork, c->rwork);
#else
    if (asks(c)) OF(want_real)(c, 2.0 * n + (v ? (double)n * n : 0));
    R *re = c->rwork, *im = asks(c) ? re : re + n, *real = asks(c) ? re : im + n;
    int info = LAPACK(geev)(COL_MAJOR, 'N', job, n, c->a, ld, re, im, NULL, ld, real, ld, c->work, c->lwork);
    if (asks(c)) return info;
    for (int j = 0; j < n; j++) values[j] = re[j] + im[j] * (COMPLEX_T)_Complex_I;
    for (int64_t j = 0; v && j < n; j++) {
        const R *column = real + j * n;
        bool pair = im[j] != 0 && j + 1 < n; /* and the next one is conjugate: real and imaginary part */
        for (int64_t i = 0; i < n; i++) {
            v[i + j * n] = pair ? column[i] + column[i + n] * (COMPLEX_T)_Complex_I : column[i];
            if (pair) v[i + (j + 1) * n] = column[i] - column[i + n] * (COMPLEX_T)_Complex_I;
        }
        j += pair;
    }
    return info;
#endif
}

static int OF(eig)(const tt_matrix *c) { return OF(any_eigenvalues)(c, c->out[0], c->out[1]); }
static int OF(eigvals)(const tt_matrix *c) { return OF(any_eigenvalues)(c, c->out[0], NULL); }

static int OF(factor)(const tt_matrix *c) {
#ifndef COMPLEX
    if (!asks(c) && c->k >= LARGE) return OF(factor_large)(c, c->tau);
#endif
    return LAPACK(geqrf)(COL_MAJOR, c->m, c->n, c->a, at_least_1(c->m), c->tau, c->work, c->lwork);
}

static int OF(geqrf)(const tt_matrix *c) {
    tt_matrix into = *c;
    if (!asks(c)) into.tau = c->out[1];
    return OF(factor)(&into);
}

static int OF(qr)(const tt_matrix *c) {
    int m = c->m, cols = c->option ? m : c->k, info = OF(factor)(c);
    T *q = c->out[0];
    R asked = asks(c) ? *(R *)c->work : 0;
    if (!asks(c)) {
        OF(copy_upper)(c->out[1], cols, c->n, c->a, m);
#ifndef COMPLEX
        if (c->k >= LARGE) return info ? info : OF(form_large)(c, c->a, c->tau, q, cols);
#endif
        memcpy(q, c->a, (size_t)m * (size_t)c->k * sizeof(T));
    }
    if (!info) info = LAPACK(orgqr)(COL_MAJOR, m, cols, c->k, q, at_least_1(m), c->tau, c->work, c->lwork);
    if (asks(c) && asked > *(R *)c->work) *(R *)c->work = asked;
    return info;
}

static int OF(qr_r)(const tt_matrix *c) {
    int info = OF(factor)(c);
    if (!asks(c)) OF(copy_upper)(c->out[0], c->k, c->n, c->a, c->m);
    return info;
}

/* What LAPACK's documentation says of gesdd's `rwork`, by job. */
static void OF(want_for_svd)(const tt_matrix *c, bool vectors) {
    double small = c->k, large = c->m > c->n ? c->m : c->n, a = 5 * small + 5, b = 2 * large + 2 * small + 1;
    OF(want_real)(c, small * (vectors ? a > b ? a : b : 7));
}

static int OF(svd)(const tt_matrix *c) {
    T *u = c->out[0], *v = c->out[2];
    if (!c->k && !asks(c)) {
        OF(set_identity)(u, c->option ? c->m : 0);
        OF(set_identity)(v, c->option ? c->n : 0);
        return 0;
    }
    int v_rows = c->option ? c->n : c->k;
    if (asks(c)) OF(want_for_svd)(c, true);
    else if (!OF(is_finite)(c->a, c->m, c->n, 'A')) return NOT_FINITE;
#ifndef COMPLEX
    if (OF(is_large)(c, 'A')) return OF(svd_large)(c);
#endif
    return LAPACK(gesdd)(COL_MAJOR, c->option ? 'A' : 'S', c->m, c->n, c->a, at_least_1(c->m), c->out[1], u,
                         at_least_1(c->m), v, at_least_1(v_rows), c->work, c->lwork RWORK, c->iwork);
}

static int OF(svdvals)(const tt_matrix *c) {
    if (asks(c)) OF(want_for_svd)(c, false);
    else if (!OF(is_finite)(c->a, c->m, c->n, 'A')) return NOT_FINITE;
    return LAPACK(gesdd)(COL_MAJOR, 'N', c->m, c->n, c->a, at_least_1(c->m), c->out[0], NULL, 1, NULL, 1, c->work,
                         c->lwork RWORK, c->iwork);
}

/* Least squares. */

static int OF(gels)(const tt_matrix *c) {
    int ld_b = at_least_1(c->b_rows);
    if (!asks(c) && !OF(is_finite)(c->a, c->m, c->n, 'A')) return NOT_FINITE;
    return LAPACK(gels)(COL_MAJOR, 'N', c->m, c->n, c->b_cols, c->a, at_least_1(c->m), c->b, ld_b, c->work, c->lwork);
}

static int OF(gelsy)(const tt_matrix *c) {
    int ld_b = at_least_1(c->b_rows);
    if (asks(c)) {
        OF(want_real)(c, 2.0 * c->n);
        *c->iwork = at_least_1(c->n);
    } else {
        if (!OF(is_finite)(c->a, c->m, c->n, 'A')) return NOT_FINITE;
        memset(c->iwork, 0, (size_t)c->n * sizeof(int)); /* every column may be exchanged */
    }
    return LAPACK(gelsy)(COL_MAJOR, c->m, c->n, c->b_cols, c->a, at_least_1(c->m), c->b, ld_b, c->iwork, (R)c->rcond,
                         c->out[1], c->work, c->lwork RWORK);
}

static int OF(gelsd)(const tt_matrix *c) {
    int ld_b = at_least_1(c->b_rows);
    if (!asks(c) && !OF(is_finite)(c->a, c->m, c->n, 'A')) return NOT_FINITE;
    return LAPACK(gelsd)(COL_MAJOR, c->m, c->n, c->b_cols, c->a, at_least_1(c->m), c->b, ld_b, c->out[2], (R)c->rcond,
                         c->out[1], c->work, c->lwork RWORK, c->iwork);
}

static int OF(gelss)(const tt_matrix *c) {
    int ld_b = at_least_1(c->b_rows);
    if (asks(c)) OF(want_real)(c, 5.0 * c->k);
    else if (!OF(is_finite)(c->a, c->m, c->n, 'A')) return NOT_FINITE;
    return LAPACK(gelss)(COL_MAJOR, c->m, c->n, c->b_cols, c->a, at_least_1(c->m), c->b, ld_b, c->out[2], (R)c->rcond,
                         c->out[1], c->work, c->lwork RWORK);
}

#undef T
#undef R
#undef OF
#undef LAPACK
#undef RWORK
#undef RWORK_SIZE
#undef COMPLEX_T
#undef CONJUGATE
#undef ONE
#undef COMPLEX
#undef DTYPE
