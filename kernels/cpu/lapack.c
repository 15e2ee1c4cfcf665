/* Decompositions of stacks of matrices, one matrix by one or two calls of LAPACK. A decomposition is a function here,
 * made for each dtype, and a row in the table below it.
 *
 * Operands are copied to column-major stacks, from any strides, since LAPACK works in place: into a result where it lies
 * there in the end, else into memory of their own. The matrices are then shared out among our threads, and the library
 * uses one for each (openblas.c); so the bits do not depend on the number of threads. Inputs are never written. */
#include "openblas.h"
#include "api/lapack.h"
#include <float.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>

#define MAX_RESULTS 3
#define PARALLEL_WORK ((int64_t)1 << 15) /* multiplications, about, that are worth a second thread */
#define OWN_MEMORY (-1)
#define NOT_FINITE (-1) /* an `info` */

/* One matrix of each stack. */
typedef struct {
    int m, n, k;            /* A is m x n; the smaller of both */
    int b_rows, b_cols;
    int option;
    void *a, *b, *out[MAX_RESULTS]; /* a and b: where the operands were copied to */
    void *tau, *work;       /* for k elements; for lwork, or -1: LAPACK tells how many it wants */
    int *iwork;
    int lwork, liwork;
} matrix;

static int at_least_1(int n) { return n > 1 ? n : 1; } /* leading dimensions */

#define TRIANGLES(s, T)                                                                             \
    /* keeps the upper or lower triangle of a matrix, which has `ld` rows in memory */              \
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
    }
    /* of a matrix, or of its upper or lower triangle: LAPACK runs for ever over some infinities */   \
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

/* option 1: from the upper triangle */
#define CHOLESKY(s, T)                                                                              \
    static int cholesky_##s(matrix *c) {                                                            \
        int info = tt_blas.s##potrf(COL_MAJOR, c->option ? 'U' : 'L', c->n, c->a, at_least_1(c->n)); \
        clear_triangle_##s(c->a, c->n, c->option);                                                  \
        return info;                                                                                \
    }
CHOLESKY(s, float) CHOLESKY(d, double)

#define SOLVE(s, T)                                                                                 \
    static int solve_##s(matrix *c) {                                                               \
        int ld = at_least_1(c->n);                                                                  \
        return tt_blas.s##gesv(COL_MAJOR, c->n, c->b_cols, c->a, ld, c->iwork, c->b, ld);           \
    }
SOLVE(s, float) SOLVE(d, double)

#define INVERSE(s, T)                                                                               \
    static int inv_##s(matrix *c) {                                                                 \
        int ld = at_least_1(c->n);                                                                  \
        set_identity_##s(c->out[0], c->n);                                                          \
        return tt_blas.s##gesv(COL_MAJOR, c->n, c->n, c->a, ld, c->iwork, c->out[0], ld);           \
    }
INVERSE(s, float) INVERSE(d, double)

/* option: the sum of 1 for an upper triangle, 2 for X A = B, 4 for a diagonal of ones */
#define SOLVE_TRIANGULAR(s, T)                                                                      \
    static int solve_triangular_##s(matrix *c) {                                                    \
        tt_blas.s##trsm(COL_MAJOR, c->option & 2 ? RIGHT : LEFT, c->option & 1 ? UPPER : LOWER, NO_TRANS, \
                        c->option & 4 ? UNIT : NON_UNIT, c->b_rows, c->b_cols, 1, c->a, at_least_1(c->n), c->b, \
                        at_least_1(c->b_rows));                                                     \
        return 0;                                                                                   \
    }
SOLVE_TRIANGULAR(s, float) SOLVE_TRIANGULAR(d, double)

/* option 1: of the symmetric matrix with this upper triangle */
#define EIGH(s, T)                                                                                  \
    static int eigenvalues_##s(matrix *c, char job) {                                               \
        char part = c->option ? 'U' : 'L';                                                          \
        if (c->lwork >= 0 && !is_finite_##s(c->a, c->n, c->n, part)) return NOT_FINITE;             \
        return tt_blas.s##syevd(COL_MAJOR, job, part, c->n, c->a, at_least_1(c->n), c->out[0], c->work, c->lwork, \
                                c->iwork, c->liwork);                                               \
    }                                                                                               \
    static int eigh_##s(matrix *c) { return eigenvalues_##s(c, 'V'); }                              \
    static int eigvalsh_##s(matrix *c) { return eigenvalues_##s(c, 'N'); }
EIGH(s, float) EIGH(d, double)

/* option 1: Q is square */
#define QR(s, T)                                                                                    \
    static int factor_##s(matrix *c) {                                                              \
        return tt_blas.s##geqrf(COL_MAJOR, c->m, c->n, c->a, at_least_1(c->m), c->tau, c->work, c->lwork); \
    }                                                                                               \
    static int qr_##s(matrix *c) {                                                                  \
        int m = c->m, cols = c->option ? m : c->k, info = factor_##s(c);                            \
        T *q = c->out[0], asked = c->lwork < 0 ? *(T *)c->work : 0;                                 \
        if (c->lwork >= 0) {                                                                        \
            copy_upper_##s(c->out[1], cols, c->n, c->a, m);                                         \
            memcpy(q, c->a, (size_t)m * (size_t)c->k * sizeof(T));                                  \
        }                                                                                           \
        if (!info) info = tt_blas.s##orgqr(COL_MAJOR, m, cols, c->k, q, at_least_1(m), c->tau, c->work, c->lwork); \
        if (c->lwork < 0 && asked > *(T *)c->work) *(T *)c->work = asked;                           \
        return info;                                                                                \
    }                                                                                               \
    static int qr_r_##s(matrix *c) {                                                                \
        int info = factor_##s(c);                                                                   \
        if (c->lwork >= 0) copy_upper_##s(c->out[0], c->k, c->n, c->a, c->m);                       \
        return info;                                                                                \
    }
QR(s, float) QR(d, double)

/* option 1: U and V are square */
#define SVD(s, T)                                                                                   \
    static int svd_##s(matrix *c) {                                                                 \
        T *u = c->out[0], *v = c->out[2];                                                           \
        if (!c->k && c->lwork >= 0) {                                                               \
            set_identity_##s(u, c->option ? c->m : 0);                                              \
            set_identity_##s(v, c->option ? c->n : 0);                                              \
            return 0;                                                                               \
        }                                                                                           \
        int v_rows = c->option ? c->n : c->k;                                                       \
        if (c->lwork >= 0 && !is_finite_##s(c->a, c->m, c->n, 'A')) return NOT_FINITE;              \
        return tt_blas.s##gesdd(COL_MAJOR, c->option ? 'A' : 'S', c->m, c->n, c->a, at_least_1(c->m), c->out[1], \
                                u, at_least_1(c->m), v, at_least_1(v_rows), c->work, c->lwork, c->iwork); \
    }                                                                                               \
    static int svdvals_##s(matrix *c) {                                                             \
        if (c->lwork >= 0 && !is_finite_##s(c->a, c->m, c->n, 'A')) return NOT_FINITE;              \
        return tt_blas.s##gesdd(COL_MAJOR, 'N', c->m, c->n, c->a, at_least_1(c->m), c->out[0], NULL, 1, NULL, 1, \
                                c->work, c->lwork, c->iwork);                                       \
    }
SVD(s, float) SVD(d, double)

/* A result's shape in letters: m, n and k as in `matrix`; M and N: m and n for option 1, else k; r and c: B's rows and
 * columns. */
typedef struct {
    const char *name;
    int (*run[2])(matrix *);          /* float32, float64 */
    bool square, takes_b, needs_work; /* A is square; there is a B; with an lwork of -1, run() tells what it needs */
    int a_at, b_at;                   /* the result that takes the operand's copy, or OWN_MEMORY */
    const char *results[MAX_RESULTS + 1];
    const char *failure;              /* for an `info` above 0, which it may name */
} decomposition;

#define RUN(name) {name##_s, name##_d}
static const char singular_values[] = "The algorithm failed to converge because the input matrix is ill-conditioned or "
                                      "has too many repeated singular values (error code: %d).";
static const char eigenvalues[] = "The algorithm failed to converge because the input matrix is ill-conditioned or has "
                                  "too many repeated eigenvalues (error code: %d).";
static const decomposition table[] = {
    {"cholesky", RUN(cholesky), .square = true, .a_at = 0, .results = {"nn"},
     .failure = "The factorization could not be completed because the input is not positive-definite (the leading minor "
                "of order %d is not positive-definite)."},
    {"solve", RUN(solve), .square = true, .takes_b = true, .a_at = OWN_MEMORY, .b_at = 0, .results = {"rc"},
     .failure = "The solver failed because the input matrix is singular."},
    {"solve_triangular", RUN(solve_triangular), .square = true, .takes_b = true, .a_at = OWN_MEMORY, .b_at = 0,
     .results = {"rc"}},
    {"inv", RUN(inv), .square = true, .a_at = OWN_MEMORY, .results = {"nn"},
     .failure = "The diagonal element %d is zero, the inversion could not be completed because the input matrix is "
                "singular."},
    {"eigh", RUN(eigh), .square = true, .needs_work = true, .a_at = 1, .results = {"n", "nn"}, .failure = eigenvalues},
    {"eigvalsh", RUN(eigvalsh), .square = true, .needs_work = true, .a_at = OWN_MEMORY, .results = {"n"},
     .failure = eigenvalues},
    {"qr", RUN(qr), .needs_work = true, .a_at = OWN_MEMORY, .results = {"mM", "Mn"}},
    {"qr_r", RUN(qr_r), .needs_work = true, .a_at = OWN_MEMORY, .results = {"kn"}},
    {"svd", RUN(svd), .needs_work = true, .a_at = OWN_MEMORY, .results = {"mM", "k", "Nn"}, .failure = singular_values},
    {"svdvals", RUN(svdvals), .needs_work = true, .a_at = OWN_MEMORY, .results = {"k"}, .failure = singular_values},
};

int tt_decomposition(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name)) return (int)i;
    tt_fail(TT_VALUE_ERROR, "there is no decomposition named '%s'", name);
    return -1;
}

/* A call: the stacks and what is known of all their matrices. */
typedef struct {
    const decomposition *d;
    matrix c;
    int dtype, nbatch;
    int64_t batch[TT_MAX_NDIM], count;
    tt_array *a, *b, *results[MAX_RESULTS + 1]; /* a, b: the copies, where they are no results; last: info */
    int num_results;
    char *at_a, *at_b;                          /* where the copies lie */
    int64_t step_a, step_b, steps[MAX_RESULTS]; /* from matrix to matrix, in bytes */
    bool failed;
} call;

static bool check_operand(const char *name, const tt_array *x, bool square) {
    char device[16];
    if (x->flags & TT_FLAG_DEVICE)
        tt_fail(TT_NOT_IMPLEMENTED, "not implemented for tensors on %s", tt_device_text(device, sizeof device,
                x->storage->device));
    else if (x->ndim < 2)
        tt_fail(TT_RUNTIME_ERROR, "The input tensor %s must have at least 2 dimensions.", name);
    else if (square && x->shape[x->ndim - 2] != x->shape[x->ndim - 1])
        tt_fail(TT_RUNTIME_ERROR, "%s must be batches of square matrices, but they are %lld by %lld matrices", name,
                (long long)x->shape[x->ndim - 2], (long long)x->shape[x->ndim - 1]);
    else if (tt_kind_of(x->dtype) != TT_KIND_FLOAT)
        tt_fail(TT_RUNTIME_ERROR, "Expected a floating point or complex tensor as input. Got %s",
                tt_dtype_names[x->dtype]);
    else if (x->dtype != TT_F32 && x->dtype != TT_F64)
        tt_fail(TT_NOT_IMPLEMENTED, "not implemented for '%s'", tt_dtype_names[x->dtype]);
    else if (x->shape[x->ndim - 2] > INT_MAX || x->shape[x->ndim - 1] > INT_MAX)
        tt_fail(TT_RUNTIME_ERROR, "matrices of more than %d rows or columns are not supported", INT_MAX);
    else return true;
    return false;
}

static bool check_rhs(const matrix *c, const tt_array *a, const tt_array *b, bool left) {
    if (b->dtype != a->dtype)
        tt_fail(TT_RUNTIME_ERROR, "Expected A and B to have the same dtype, but found A of type %s and B of type %s "
                "instead", tt_dtype_names[a->dtype], tt_dtype_names[b->dtype]);
    else if ((left ? c->b_rows : c->b_cols) != c->n)
        tt_fail(TT_RUNTIME_ERROR, "Incompatible shapes of A and B for the equation %s (%dx%d and %dx%d)",
                left ? "AX = B" : "XA = B", c->m, c->n, c->b_rows, c->b_cols);
    else return true;
    return false;
}

/* The shape that the operands' leading dimensions broadcast to. */
static bool broadcast_batch(call *s, const tt_array *a, const tt_array *b) {
    int na = a->ndim - 2, nb = b ? b->ndim - 2 : 0;
    s->nbatch = na > nb ? na : nb;
    s->count = 1;
    for (int d = 0; d < s->nbatch; d++) {
        int ia = d - (s->nbatch - na), ib = d - (s->nbatch - nb);
        int64_t x = ia < 0 ? 1 : a->shape[ia], y = ib < 0 ? 1 : b->shape[ib];
        if (x != y && x != 1 && y != 1) {
            tt_fail(TT_RUNTIME_ERROR, "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                    "non-singleton dimension %d", (long long)x, (long long)y, d);
            return false;
        }
        s->batch[d] = x == 1 ? y : x;
        s->count *= s->batch[d];
    }
    return true;
}

/* A stack of matrices, or of vectors (cols < 0); *step: from one to the next, in bytes. */
static tt_array *stack_of(const call *s, int rows, int cols, int64_t *step) {
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM], size = rows;
    int ndim = s->nbatch;
    memcpy(shape, s->batch, sizeof(int64_t) * (size_t)ndim);
    shape[ndim] = rows;
    strides[ndim++] = 1;
    if (cols >= 0) {
        shape[ndim] = cols;
        strides[ndim++] = at_least_1(rows);
        size *= cols;
    }
    *step = size * tt_itemsizes[s->dtype];
    if (size < 1) size = 1;
    for (int d = s->nbatch - 1; d >= 0; d--) {
        strides[d] = size;
        size *= shape[d] > 1 ? shape[d] : 1;
    }
    return tt_empty_strided(s->dtype, ndim, shape, strides);
}

static int length_of(const matrix *c, char letter) {
    switch (letter) {
    case 'm': return c->m;
    case 'n': return c->n;
    case 'M': return c->option ? c->m : c->k;
    case 'N': return c->option ? c->n : c->k;
    case 'r': return c->b_rows;
    case 'c': return c->b_cols;
    default: return c->k;
    }
}

static bool make_results(call *s) {
    for (int i = 0; i < MAX_RESULTS && s->d->results[i]; i++) {
        const char *letters = s->d->results[i];
        int rows = length_of(&s->c, letters[0]), cols = letters[1] ? length_of(&s->c, letters[1]) : -1;
        if (!(s->results[i] = stack_of(s, rows, cols, &s->steps[i]))) return false;
        s->num_results++;
    }
    return (s->results[s->num_results] = tt_empty(TT_I32, s->nbatch, s->batch)) != NULL;
}

/* Copies an operand to where LAPACK works on it. */
static bool copy_operand(call *s, tt_array *x, int at, tt_array **own, char **where, int64_t *step) {
    tt_array *to;
    if (at == OWN_MEMORY)
        to = *own = stack_of(s, (int)x->shape[x->ndim - 2], (int)x->shape[x->ndim - 1], step);
    else {
        to = s->results[at];
        *step = s->steps[at];
    }
    if (!to || tt_copy_now(to, x) < 0) return false;
    *where = to->data;
    return true;
}

static int64_t in_lines(int64_t nbytes) { return (nbytes + 63) / 64 * 64; }

static void run_matrices(void *context, int64_t begin, int64_t end) {
    call *s = context;
    matrix c = s->c;
    int64_t size = tt_itemsizes[s->dtype], tau = in_lines(c.k * size), work = in_lines(c.lwork * size);
    char *room = tt_scratch(tau + work + c.liwork * (int64_t)sizeof(int));
    int *info = (int *)s->results[s->num_results]->data;
    if (!room) {
        __atomic_store_n(&s->failed, true, __ATOMIC_RELAXED);
        return;
    }
    c.tau = room;
    c.work = room + tau;
    c.iwork = (int *)(room + tau + work);
    for (int64_t i = begin; i < end; i++) {
        c.a = s->at_a + i * s->step_a;
        c.b = s->at_b ? s->at_b + i * s->step_b : NULL;
        for (int r = 0; r < s->num_results; r++) c.out[r] = s->results[r]->data + i * s->steps[r];
        info[i] = s->d->run[s->dtype == TT_F64](&c);
    }
    tt_scratch_free(room);
}

/* How much memory LAPACK wants for one matrix. */
static bool ask_for_work(call *s) {
    union { float f32; double f64; } answer = {.f64 = 0};
    matrix *c = &s->c;
    c->liwork = 8 * at_least_1(c->m > c->n ? c->m : c->n); /* as much as any routine here */
    if (!s->d->needs_work) return true;
    int first;
    c->lwork = -1;
    c->work = &answer;
    c->iwork = &first;
    int info = s->d->run[s->dtype == TT_F64](c);
    double wanted = s->dtype == TT_F64 ? answer.f64 : answer.f32 * (1 + (double)FLT_EPSILON);
    if (info || wanted > INT_MAX - 1) {
        tt_fail(TT_RUNTIME_ERROR, "matrices of %d x %d are too large for LAPACK", c->m, c->n);
        return false;
    }
    c->lwork = at_least_1((int)wanted + 1);
    return true;
}

/* The error for the first matrix that LAPACK gave up on. */
static bool all_succeeded(const call *s) {
    const int *info = (const int *)s->results[s->num_results]->data;
    for (int64_t i = 0; i < s->count; i++) {
        if (!info[i]) continue;
        char text[300], where[48] = "";
        if (info[i] < 0)
            snprintf(text, sizeof text, "The algorithm failed to converge because the input matrix contained non-finite "
                     "values.");
        else snprintf(text, sizeof text, s->d->failure, info[i]);
        if (s->nbatch) snprintf(where, sizeof where, "(Batch element %lld): ", (long long)i);
        tt_fail(TT_LINALG_ERROR, "%s%s", where, text);
        return false;
    }
    return true;
}

static bool run(call *s, tt_array *a, tt_array *b, bool check) {
    if (!make_results(s)) return false;
    if (!copy_operand(s, a, s->d->a_at, &s->a, &s->at_a, &s->step_a)) return false;
    if (b && !copy_operand(s, b, s->d->b_at, &s->b, &s->at_b, &s->step_b)) return false;
    if (!ask_for_work(s)) return false;
    int64_t work = (int64_t)s->c.m * s->c.n * at_least_1(s->c.k) + 512;
    tt_parallel(s->count, work >= PARALLEL_WORK ? 1 : PARALLEL_WORK / work, run_matrices, s);
    if (s->failed) {
        tt_fail(TT_OUT_OF_MEMORY, "out of memory for the work on matrices of %d x %d", s->c.m, s->c.n);
        return false;
    }
    return !check || all_succeeded(s);
}

int tt_decompose(int which, tt_array *a, tt_array *b, int option, int check, tt_array **results) {
    call s = {.d = &table[which], .dtype = a->dtype};
    matrix *c = &s.c;
    if (!check_operand("A", a, s.d->square) || (b && !check_operand("B", b, false))) return -1;
    c->m = (int)a->shape[a->ndim - 2];
    c->n = (int)a->shape[a->ndim - 1];
    c->k = c->m < c->n ? c->m : c->n;
    c->option = option;
    if (b) {
        c->b_rows = (int)b->shape[b->ndim - 2];
        c->b_cols = (int)b->shape[b->ndim - 1];
        if (!check_rhs(c, a, b, !(option & 2))) return -1;
    }
    if (!broadcast_batch(&s, a, b) || !tt_blas_need()) return -1;
    if (!tt_ready(a) || (b && !tt_ready(b))) {
        tt_decline();
        return -1;
    }
    bool done = run(&s, a, b, check);
    if (s.a) tt_free(s.a);
    if (s.b) tt_free(s.b);
    int given = done ? s.num_results + !check : 0;
    for (int i = 0; i <= s.num_results; i++)
        if (i < given) results[i] = s.results[i];
        else if (s.results[i]) tt_free(s.results[i]);
    return done ? given : -1;
}
