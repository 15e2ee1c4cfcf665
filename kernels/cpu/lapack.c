/* LAPACK on a stack of matrices. A decomposition is a function here, made for each dtype, and a row of
 * TT_DECOMPOSITIONS in ops/decompose.h, which also tells what `option` means.
 *
 * The matrices are shared out among our threads, and the library uses one for each (openblas.c): so the bits do not
 * depend on the number of threads. */
#include "cpu/openblas.h"
#include "ops/decompose.h"
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

#define PARALLEL_WORK ((int64_t)1 << 15) /* multiplications, about, that are worth a second thread */
#define NOT_FINITE (-1)                  /* an `info` */

static int at_least_1(int n) { return n > 1 ? n : 1; } /* of leading dimensions */
static bool asks(const tt_matrix *c) { return c->lwork < 0; }          /* how much work memory to bring */

#define TRIANGLES(s, T)                                                                             \
    /* of a matrix with `ld` rows in memory */                                                      \
    static void copy_upper_##s(T *to, int rows, int cols, const T *a, int ld) {                     \
        for (int j = 0; j < cols; j++)                                                              \
            for (int i = 0; i < rows; i++)                                                          \
                to[i + (int64_t)j * rows] = i <= j ? a[i + (int64_t)j * ld] : 0;                    \
    }                                                                                               \
    static void clear_triangle_##s(T *a, int n, bool lower) {                                       \
        for (int j = 0; j < n; j++) {                                                               \
            T *column = a + (int64_t)j * n;                                                         \
            if (lower) memset(column + j + 1, 0, (size_t)(n - j - 1) * sizeof(T));                  \
            else memset(column, 0, (size_t)j * sizeof(T));                                          \
        }                                                                                           \
    }                                                                                               \
    static void set_identity_##s(T *a, int n) {                                                     \
        memset(a, 0, (size_t)n * (size_t)n * sizeof(T));                                            \
        for (int i = 0; i < n; i++) a[i * (int64_t)(n + 1)] = 1;                                    \
    }                                                                                               \
    /* of a matrix, or of its upper or lower triangle: LAPACK runs for ever over some infinities */ \
    static bool is_finite_##s(const T *a, int rows, int cols, char part) {                          \
        for (int j = 0; j < cols; j++) {                                                            \
            int begin = part == 'L' ? j : 0, end = part == 'U' ? j + 1 : rows;                      \
            T sum = 0;                                                                              \
            for (int i = begin; i < end; i++) sum += a[i + (int64_t)j * rows] * 0;                  \
            if (sum != 0) return false;                                                             \
        }                                                                                           \
        return true;                                                                                \
    }
TRIANGLES(s, float) TRIANGLES(d, double)

/* OpenBLAS takes a pivot that is NaN for a positive one. */
#define CHOLESKY(s, T)                                                                              \
    static int cholesky_##s(const tt_matrix *c) {                                                   \
        if (asks(c)) return 0;                                                                      \
        const T *a = c->a;                                                                          \
        int n = c->n, info = tt_blas.s##potrf(COL_MAJOR, c->option ? 'U' : 'L', n, c->a, at_least_1(n)); \
        for (int64_t i = 0; !info && i < n; i++)                                                    \
            if (isnan(a[i * (n + 1)])) info = (int)i + 1;                                           \
        clear_triangle_##s(c->a, n, c->option);                                                     \
        return info;                                                                                \
    }
CHOLESKY(s, float) CHOLESKY(d, double)

#define LU(s, T)                                                                                    \
    static int lu_factor_##s(const tt_matrix *c) {                                                  \
        return asks(c) ? 0 : tt_blas.s##getrf(COL_MAJOR, c->m, c->n, c->a, at_least_1(c->m), c->out[1]); \
    }                                                                                               \
    static int lu_solve_##s(const tt_matrix *c) {                                                   \
        int ld = at_least_1(c->n);                                                                  \
        if (asks(c)) return 0;                                                                      \
        return tt_blas.s##getrs(COL_MAJOR, c->option ? 'T' : 'N', c->n, c->b_cols, c->a, ld, c->pivots, c->b, ld); \
    }
LU(s, float) LU(d, double)

#define INVERSE(s, T)                                                                               \
    static int inv_##s(const tt_matrix *c) {                                                        \
        if (asks(c)) return 0;                                                                      \
        int ld = at_least_1(c->n);                                                                  \
        set_identity_##s(c->out[0], c->n);                                                          \
        return tt_blas.s##gesv(COL_MAJOR, c->n, c->n, c->a, ld, c->iwork, c->out[0], ld);           \
    }
INVERSE(s, float) INVERSE(d, double)

#define SOLVE_TRIANGULAR(s, T)                                                                      \
    static int solve_triangular_##s(const tt_matrix *c) {                                           \
        if (asks(c)) return 0;                                                                      \
        tt_blas.s##trsm(COL_MAJOR, c->option & 2 ? RIGHT : LEFT, c->option & 1 ? UPPER : LOWER, NO_TRANS, \
                        c->option & 4 ? UNIT : NON_UNIT, c->b_rows, c->b_cols, 1, c->a, at_least_1(c->n), c->b, \
                        at_least_1(c->b_rows));                                                     \
        return 0;                                                                                   \
    }
SOLVE_TRIANGULAR(s, float) SOLVE_TRIANGULAR(d, double)

#define EIGH(s, T)                                                                                  \
    static int eigenvalues_##s(const tt_matrix *c, char job) {                                      \
        char part = c->option ? 'U' : 'L';                                                          \
        if (!asks(c) && !is_finite_##s(c->a, c->n, c->n, part)) return NOT_FINITE;                  \
        return tt_blas.s##syevd(COL_MAJOR, job, part, c->n, c->a, at_least_1(c->n), c->out[0], c->work, c->lwork, \
                                c->iwork, c->liwork);                                               \
    }                                                                                               \
    static int eigh_##s(const tt_matrix *c) { return eigenvalues_##s(c, 'V'); }                     \
    static int eigvalsh_##s(const tt_matrix *c) { return eigenvalues_##s(c, 'N'); }
EIGH(s, float) EIGH(d, double)

#define QR(s, T)                                                                                    \
    static int factor_##s(const tt_matrix *c) {                                                     \
        return tt_blas.s##geqrf(COL_MAJOR, c->m, c->n, c->a, at_least_1(c->m), c->tau, c->work, c->lwork); \
    }                                                                                               \
    static int qr_##s(const tt_matrix *c) {                                                         \
        int m = c->m, cols = c->option ? m : c->k, info = factor_##s(c);                            \
        T *q = c->out[0], asked = asks(c) ? *(T *)c->work : 0;                                      \
        if (!asks(c)) {                                                                             \
            copy_upper_##s(c->out[1], cols, c->n, c->a, m);                                         \
            memcpy(q, c->a, (size_t)m * (size_t)c->k * sizeof(T));                                  \
        }                                                                                           \
        if (!info) info = tt_blas.s##orgqr(COL_MAJOR, m, cols, c->k, q, at_least_1(m), c->tau, c->work, c->lwork); \
        if (asks(c) && asked > *(T *)c->work) *(T *)c->work = asked;                                \
        return info;                                                                                \
    }                                                                                               \
    static int qr_r_##s(const tt_matrix *c) {                                                       \
        int info = factor_##s(c);                                                                   \
        if (!asks(c)) copy_upper_##s(c->out[0], c->k, c->n, c->a, c->m);                            \
        return info;                                                                                \
    }
QR(s, float) QR(d, double)

#define SVD(s, T)                                                                                   \
    static int svd_##s(const tt_matrix *c) {                                                        \
        T *u = c->out[0], *v = c->out[2];                                                           \
        if (!c->k && !asks(c)) {                                                                    \
            set_identity_##s(u, c->option ? c->m : 0);                                              \
            set_identity_##s(v, c->option ? c->n : 0);                                              \
            return 0;                                                                               \
        }                                                                                           \
        int v_rows = c->option ? c->n : c->k;                                                       \
        if (!asks(c) && !is_finite_##s(c->a, c->m, c->n, 'A')) return NOT_FINITE;                   \
        return tt_blas.s##gesdd(COL_MAJOR, c->option ? 'A' : 'S', c->m, c->n, c->a, at_least_1(c->m), c->out[1], \
                                u, at_least_1(c->m), v, at_least_1(v_rows), c->work, c->lwork, c->iwork); \
    }                                                                                               \
    static int svdvals_##s(const tt_matrix *c) {                                                    \
        if (!asks(c) && !is_finite_##s(c->a, c->m, c->n, 'A')) return NOT_FINITE;                   \
        return tt_blas.s##gesdd(COL_MAJOR, 'N', c->m, c->n, c->a, at_least_1(c->m), c->out[0], NULL, 1, NULL, 1, \
                                c->work, c->lwork, c->iwork);                                       \
    }
SVD(s, float) SVD(d, double)

static int (*const routines[][2])(const tt_matrix *) = {
#define ROUTINE(name, ...) {name##_s, name##_d},
    TT_DECOMPOSITIONS(ROUTINE)
#undef ROUTINE
};

typedef struct {
    tt_stack *s;
    int (*run)(const tt_matrix *);
    bool failed;
} job;

static int64_t in_lines(int64_t nbytes) { return (nbytes + 63) / 64 * 64; }

static void run_matrices(void *context, int64_t begin, int64_t end) {
    job *j = context;
    tt_stack *s = j->s;
    tt_matrix c = s->first;
    int64_t size = tt_itemsizes[s->dtype], tau = in_lines(c.k * size), work = in_lines(c.lwork * size);
    char *room = tt_scratch(tau + work + c.liwork * (int64_t)sizeof(int));
    if (!room) {
        __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
        return;
    }
    c.tau = room;
    c.work = room + tau;
    c.iwork = (int *)(room + tau + work);
    for (int64_t i = begin; i < end; i++) {
        int64_t at = tt_matrix_of_a(s, i);
        c.a = (char *)s->first.a + at * s->step_a;
        if (c.pivots) c.pivots = s->first.pivots + at * c.k;
        if (c.b) c.b = (char *)s->first.b + i * s->step_b;
        for (int r = 0; r < TT_MOST_RESULTS; r++)
            if (c.out[r]) c.out[r] = (char *)s->first.out[r] + i * s->steps[r];
        s->info[i] = j->run(&c);
    }
    tt_scratch_free(room);
}

/* How much memory LAPACK wants for one matrix: it tells when lwork is -1. */
static bool ask_for_work(job *j) {
    union { float f32; double f64; } answer = {.f64 = 0};
    tt_matrix *c = &j->s->first, ask = *c;
    int first = 0;
    ask.lwork = ask.liwork = -1;
    ask.work = &answer;
    ask.iwork = &first;
    int info = j->run(&ask);
    double wanted = j->s->dtype == TT_F64 ? answer.f64 : answer.f32 * (1 + (double)FLT_EPSILON);
    if (info || wanted > INT_MAX - 1) {
        tt_fail(TT_RUNTIME_ERROR, "matrices of %d x %d are too large for LAPACK", c->m, c->n);
        return false;
    }
    c->lwork = at_least_1((int)wanted + 1);
    c->liwork = 8 * at_least_1(c->m > c->n ? c->m : c->n); /* as much as any routine here */
    return true;
}

bool tt_lapack(int decomposition, tt_stack *s) {
    job j = {s, routines[decomposition][s->dtype == TT_F64], false};
    if (!tt_blas_need() || !ask_for_work(&j)) return false;
    int64_t work = (int64_t)s->first.m * s->first.n * at_least_1(s->first.k) + 512;
    tt_parallel(s->count, work >= PARALLEL_WORK ? 1 : PARALLEL_WORK / work, run_matrices, &j);
    if (j.failed)
        tt_fail(TT_OUT_OF_MEMORY, "out of memory for the work on matrices of %d x %d", s->first.m, s->first.n);
    return !j.failed;
}
