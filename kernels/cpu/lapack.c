/* LAPACK on a stack of matrices. A decomposition is a function in lapack_routines.h and a row of TT_DECOMPOSITIONS in
 * backend/decompose.h, which also tells what `option` means.
 *
 * The matrices are shared out among our threads, and the library uses one for each (openblas.c): so the bits do not
 * depend on the number of threads. */
#include "core/sizes.h"
#include "cpu/cpu.h"
#include "cpu/float_product.h"
#include "cpu/jacobi.h"
#include "cpu/openblas.h"
#include "cpu/simd.h"
#include "cpu/triangle.h"
#include <complex.h>
#include <float.h>
#include <limits.h>
#include <math.h>
#include <string.h>

TT_ISA_TABLES(tt_jacobi_table, tt_jacobi_loops)
TT_ISA_TABLES(tt_triangle_table, tt_triangle_loops)

#define PARALLEL_WORK ((int64_t)1 << 15) /* multiplications, about, that are worth a second thread */
#define NOT_FINITE (-1)                  /* an `info`, */
#define NO_MEMORY INT_MIN                /* and one that ends it all */

#define SMALL 32    /* rows and columns that are not the library's */
#define LARGE 192   /* rows of a matrix on which several threads may work, */
#define PANEL 64    /* its columns, or reflections of them, that are applied at once; */
#define COLUMNS 64  /* or rows below a corner, that are a task, */
#define SIDES 64    /* right-hand sides, or vectors, that are; in strips as many as leave a task for each thread, */
#define FEW_SIDES 32 /* but so many at least, as each task packs what it multiplies them by, */
#define MANY_SIDES 256 /* and at most: on two threads 512 right-hand sides of 512 rows 1.4 -> 1.1 ms, */
#define SIDES_BYTES ((int64_t)1 << 20) /* which stay in the cache */
#define DEEP 128 /* rows of a product, and their length, that AMX is worth: Note [Products in parts] */
#define MANY 12 /* so many of them that it pays to turn them into rows, */
#define BLOCK 128 /* of a tridiagonal matrix, what is left to LAPACK, */
#define LEAST_BLOCK 25 /* and one that LAPACK does not divide, */
#define SPAN 64 /* poles of a merge of two that are a thread's, */
#define WHOLE 64 /* or, where they are rows, to solve by lines of the cache that they do not fill */

static int at_least_1(int n) { return n > 1 ? n : 1; } /* leading dimensions */
enum { IN_FIRST, IN_BOTH, IN_SECOND }; /* the block in whose rows a vector is not zero */
static bool asks(const tt_matrix *c) { return c->lwork < 0; } /* how much work memory to bring */

#define T float
#define R float
#define DTYPE TT_F32
#define OF(name) name##_f32
#define LAPACK(name) tt_blas.s##name
#include "cpu/lapack_routines.h"
#define T double
#define R double
#define DTYPE TT_F64
#define OF(name) name##_f64
#define LAPACK(name) tt_blas.d##name
#include "cpu/lapack_routines.h"
#define COMPLEX
#define T float _Complex
#define R float
#define OF(name) name##_c64
#define LAPACK(name) tt_blas.c##name
#include "cpu/lapack_routines.h"
#define COMPLEX
#define T double _Complex
#define R double
#define OF(name) name##_c128
#define LAPACK(name) tt_blas.z##name
#include "cpu/lapack_routines.h"

static int (*const routines[][4])(const tt_matrix *) = {
#define ROUTINE(name, ...) {name##_f32, name##_f64, name##_c64, name##_c128},
    TT_DECOMPOSITIONS(ROUTINE)
#undef ROUTINE
};

static int (*routine_of(int decomposition, int dtype))(const tt_matrix *) {
    return routines[decomposition][dtype == TT_F32 ? 0 : dtype == TT_F64 ? 1 : dtype == TT_C64 ? 2 : 3];
}

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
    int64_t rwork = in_lines(c.lrwork * (int64_t)tt_itemsizes[tt_real_dtype(s->dtype)]);
    char *room = tt_scratch(tau + work + rwork + c.liwork * (int64_t)sizeof(int));
    if (!room) {
        __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
        return;
    }
    c.tau = room;
    c.work = room + tau;
    c.rwork = room + tau + work;
    c.iwork = (int *)(room + tau + work + rwork);
    for (int64_t i = begin; i < end; i++) {
        int64_t at = tt_matrix_of_a(s, i);
        c.a = (char *)s->first.a + at * s->step_a;
        if (c.pivots) c.pivots = s->first.pivots + at * c.k;
        if (c.b) c.b = (char *)s->first.b + i * s->step_b;
        for (int r = 0; r < TT_MOST_RESULTS; r++)
            if (c.out[r]) c.out[r] = (char *)s->first.out[r] + i * s->steps[r];
        s->info[i] = j->run(&c);
        if (s->info[i] == NO_MEMORY) __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
    }
    tt_scratch_free(room);
}

typedef union {
    float f32;
    double f64, most[2];
} answer; /* an element, of which the real part counts */

/* One more than LAPACK asks for, in float32 perhaps rounded down. */
static double wanted(const answer *a, int dtype) {
    return (tt_real_dtype(dtype) == TT_F64 ? a->f64 : a->f32 * (1 + (double)FLT_EPSILON)) + 1;
}

/* How much memory LAPACK wants for one matrix: it tells when lwork is -1. */
static bool ask_for_work(job *j) {
    tt_matrix *c = &j->s->first, ask = *c;
    answer work = {.f64 = 0}, rwork = {.f64 = 0};
    int integers = 8 * at_least_1(c->m > c->n ? c->m : c->n); /* as much as any routine that does not tell */
    ask.lwork = ask.lrwork = ask.liwork = -1;
    ask.work = &work;
    ask.rwork = &rwork;
    ask.iwork = &integers;
    int info = j->run(&ask);
    double elements = wanted(&work, j->s->dtype), reals = wanted(&rwork, j->s->dtype);
    if (info || elements > INT_MAX || reals > INT_MAX) {
        tt_fail(TT_RUNTIME_ERROR, "matrices of %d x %d are too large for LAPACK", c->m, c->n);
        return false;
    }
    c->lwork = (int)elements;
    c->lrwork = (int)reals;
    c->liwork = at_least_1(integers);
    return true;
}

static tt_matrix matrix_at(const tt_stack *s, int64_t i) {
    tt_matrix c = s->first;
    c.a = (char *)c.a + tt_matrix_of_a(s, i) * s->step_a;
    for (int r = 0; r < TT_MOST_RESULTS; r++)
        if (c.out[r]) c.out[r] = (char *)c.out[r] + i * s->steps[r];
    return c;
}

static bool is_svd(const job *j) {
    return j->run == svd_f32 || j->run == svd_f64 || j->run == svdvals_f32 || j->run == svdvals_f64;
}

/* Few matrices leave most of a long vector empty. */
static const tt_jacobi_table *table_for(const tt_stack *s) {
    bool few = s->count <= tt_jacobi_loops[0]->types[s->dtype == TT_F64].lanes;
    return tt_jacobi_loops[few ? 0 : tt_isa_index];
}

/* As many matrices at a time as a vector has lanes: Note [Matrices side by side]. */
static void run_together(void *context, int64_t begin, int64_t end) {
    job *j = context;
    tt_stack *s = j->s;
    bool wide = s->dtype == TT_F64;
    const tt_jacobi_table *table = table_for(s);
    int lanes = table->types[wide].lanes, n = s->first.n;
    bool singular = is_svd(j), vectors = s->first.out[1] != NULL;
    tt_jacobi w = {.n = n, .upper = s->first.option, .vectors = vectors};
    if (!(w.room = tt_scratch(TT_JACOBI_ROOM(n, lanes, wide ? 8 : 4) + 64))) {
        __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
        return;
    }
    char *memory = w.room;
    w.room += (64 - (uintptr_t)memory % 64) % 64;
    for (int64_t first = begin * lanes; first < end * lanes && first < s->count; first += lanes) {
        w.count = s->count - first < lanes ? (int)(s->count - first) : lanes;
        for (int k = 0; k < lanes; k++) {
            int64_t i = first + (k < w.count ? k : w.count - 1);
            tt_matrix c = matrix_at(s, i);
            char part = singular ? 'A' : c.option ? 'U' : 'L';
            bool finite = wide ? is_finite_f64(c.a, n, n, part) : is_finite_f32(c.a, n, n, part);
            s->info[i] = finite ? 0 : NOT_FINITE;
            w.a[k] = c.a;
            w.values[k] = c.out[singular && vectors];
            w.u[k] = c.out[0];
            w.v[k] = c.out[2];
        }
        (singular ? table->types[wide].svd : table->types[wide].eigh)(&w);
        for (int k = 0; k < w.count; k++)
            if (!s->info[first + k] && !w.done[k]) run_matrices(j, first + k, first + k + 1);
    }
    tt_scratch_free(memory);
}

/* By the matrices' shape alone, so that bits are those of any batch and any machine. */
static bool goes_together(const job *j) {
    bool symmetric = j->run == eigh_f32 || j->run == eigh_f64 || j->run == eigvalsh_f32 || j->run == eigvalsh_f64;
    const tt_matrix *c = &j->s->first;
    return (symmetric || (is_svd(j) && c->m == c->n)) && c->n >= 2 && c->n <= TT_JACOBI_MOST;
}

/* What a task takes of those that the threads share out. */
static int64_t sides_of(const tt_stack *s, int threads) {
    if (!tt_prefers_strips()) return SIDES;
    int64_t n = at_least_1(s->first.n), all = s->first.b ? (int64_t)s->first.b_rows * s->first.b_cols / n : n;
    int64_t share = pieces(all, most(1, threads / most(1, s->count)));
    int64_t limit = least(MANY_SIDES, SIDES_BYTES / (n * tt_itemsizes[s->dtype]));
    int64_t lines = least(pieces(share, TT_TRIANGLE_COLUMNS), limit / TT_TRIANGLE_COLUMNS);
    return most(FEW_SIDES, lines * TT_TRIANGLE_COLUMNS);
}

bool tt_cpu_decompose(int decomposition, tt_stack *s) {
    job j = {s, routine_of(decomposition, s->dtype), false};
    int64_t work = (int64_t)s->first.m * s->first.n * at_least_1(s->first.k) + 512;
    int64_t grain = work >= PARALLEL_WORK ? 1 : PARALLEL_WORK / work;
    bool several = s->count > grain || s->first.n >= LARGE || (s->first.b && s->first.b_cols > SIDES);
    int claimed, threads = tt_blas_enter(several ? tt_get_num_threads() : 1, &claimed);
    if (!threads) return false;
    s->first.shared = threads > 1;
    s->first.together = sides_of(s, threads);
    bool ok = ask_for_work(&j);
    if (ok && goes_together(&j)) {
        int lanes = table_for(s)->types[s->dtype == TT_F64].lanes;
        tt_parallel((s->count + lanes - 1) / lanes, threads > 1 ? (grain + lanes - 1) / lanes : s->count, run_together,
                    &j);
    } else if (ok && threads > 1) tt_parallel(s->count, grain, run_matrices, &j);
    else if (ok) run_matrices(&j, 0, s->count);
    tt_blas_leave(claimed);
    if (ok && j.failed)
        tt_fail(TT_OUT_OF_MEMORY, "out of memory for the work on matrices of %d x %d", s->first.m, s->first.n);
    return ok && !j.failed;
}
