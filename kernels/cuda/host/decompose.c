/* Decompositions of stacks of matrices on a device: each a sequence of cuSOLVER's and cuBLAS's routines
 * (tinytorch/backends/cuda/cusolver.py), and of kernels for what is between them (cuda/device/stack_args.h). Small
 * matrices: small.c. */
#include "backend/now.h"
#include "cuda/host/cuda.h"
#include "cuda/device/stack_args.h"

extern int tt_cuda_solver(int, int, tt_solver *);

#define MAX_Y 65535 /* of a grid */
#define ROOMS 8
#define MOST_PLACES 50000 /* rows and pivots that a block's shared memory has room for */

typedef struct {
    tt_stack *s;
    tt_array *rooms[ROOMS]; /* memory for this call */
    int num_rooms;
    int *found, *spare; /* which matrices have elements that are not finite; an `info` that nobody reads */
} job;

static void *room(job *j, int64_t nbytes) {
    tt_array *a = tt_cuda_temporary(TT_U8, nbytes > 16 ? nbytes : 16);
    return a ? (j->rooms[j->num_rooms++] = a)->data : NULL;
}

static int64_t size_of(const job *j) { return tt_itemsizes[j->s->dtype]; }

/* Kernels. */

static bool per_element(const job *j, int task, int64_t numel, const tt_stack_args *p) {
    int64_t y = p->count < MAX_Y ? p->count : MAX_Y;
    return TT_LAUNCH(tt_key(TT_FAMILY_stack, 0, task, j->s->dtype, 0, 0, 0, 0),
                     (numel + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, y, TT_CUDA_THREADS, 0, *p);
}

static bool per_matrix(const job *j, int task, const tt_stack_args *p) {
    return TT_LAUNCH(tt_key(TT_FAMILY_stack, 0, task, j->s->dtype, 0, 0, 0, 0), p->count, 1, TT_CUDA_THREADS, 0, *p);
}

static bool per_number(const job *j, int task, const tt_stack_args *p) {
    return TT_LAUNCH(tt_key(TT_FAMILY_stack, 0, task, j->s->dtype, 0, 0, 0, 0),
                     (p->count + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, *p);
}

typedef struct {
    void *data;
    int rows, cols, ld;
    int64_t step;
} matrices;

static matrices stack_of(const job *j, void *data, int rows, int cols) {
    return (matrices){data, rows, cols, rows, (int64_t)rows * cols * size_of(j)};
}

static matrices room_for(job *j, int rows, int cols) {
    return stack_of(j, room(j, j->s->count * rows * cols * size_of(j)), rows, cols);
}

/* A part of `from`, with zeros around it; TT_PART_ADJOINT: of its adjoint. */
static bool copy(const job *j, matrices to, matrices from, int part) {
    tt_stack_args p = {.from = from.data,
                       .to = to.data,
                       .count = j->s->count,
                       .step_from = from.step,
                       .step_to = to.step,
                       .rows = to.rows,
                       .cols = to.cols,
                       .ld_from = from.ld,
                       .ld_to = to.ld,
                       .from_rows = from.rows,
                       .from_cols = from.cols,
                       .part = part};
    int64_t numel = (int64_t)to.rows * to.cols;
    return !numel || (to.data && from.data && per_element(j, TT_STACK_COPY, numel, &p));
}

static bool set_identity(const job *j, matrices a) { return copy(j, a, a, TT_PART_IDENTITY); }

/* Takes matrices with elements that are not finite, in the part that counts, out of the library's way. */
static bool set_aside(job *j, matrices a, int part) {
    tt_stack_args p = {
        .from = a.data, .count = j->s->count, .step_from = a.step, .rows = a.rows, .cols = a.cols, .part = part};
    p.found = j->found = room(j, j->s->count * (int64_t)sizeof(int));
    return p.found && per_matrix(j, TT_STACK_FINITE, &p);
}

static bool settle(const job *j) {
    tt_stack_args p = {.found = j->found, .info = j->s->info, .count = j->s->count};
    return per_number(j, TT_STACK_SETTLE, &p);
}

static bool check_diagonal(const job *j, matrices a, int task) {
    tt_stack_args p = {.from = a.data, .info = j->s->info, .count = j->s->count, .step_from = a.step, .ld_from = a.ld};
    p.rows = a.rows < a.cols ? a.rows : a.cols;
    return per_matrix(j, task, &p);
}

/* The library's routines. */

static bool call(const job *j, tt_solver p) {
    p.dtype = j->s->dtype;
    p.count = p.count ? p.count : j->s->count;
    if (!p.info) p.info = j->s->info;
    int device = tt_device - 1;
    TT_LEAVE_TO_PYTHON;
    bool done = tt_cuda_solver(device, tt_cuda_stream(device), &p) == 0;
    if (!done) tt_fail(TT_PYTHON_ERROR, "the matrices could not be decomposed");
    return done;
}

/* X of op(A) X = B, or of X op(A) = B. */
static bool solve_triangle(const job *j, matrices a, matrices b, int options, const int64_t *at) {
    return call(j, (tt_solver){.routine = TT_TRSM,
                               .options = options,
                               .m = b.rows,
                               .k = b.cols,
                               .a = a.data,
                               .b = b.data,
                               .step_a = a.step,
                               .step_b = b.step,
                               .lda = a.ld,
                               .ldb = b.ld,
                               .at = at,
                               .info = j->spare});
}

static bool reflectors(const job *j, matrices a, void *factors) {
    int64_t k = a.rows < a.cols ? a.rows : a.cols;
    return factors && call(j, (tt_solver){.routine = TT_GEQRF,
                                          .m = a.rows,
                                          .n = a.cols,
                                          .a = a.data,
                                          .c = factors,
                                          .step_a = a.step,
                                          .step_c = k * size_of(j),
                                          .lda = a.ld});
}

static bool multiply_by_q(const job *j, matrices a, void *factors, matrices b, int options) {
    int k = a.rows < a.cols ? a.rows : a.cols;
    return call(j, (tt_solver){.routine = TT_ORMQR,
                               .options = options,
                               .m = b.rows,
                               .n = b.cols,
                               .k = k,
                               .a = a.data,
                               .b = b.data,
                               .c = factors,
                               .step_a = a.step,
                               .step_b = b.step,
                               .step_c = k * size_of(j),
                               .lda = a.ld,
                               .ldb = b.ld,
                               .info = j->spare});
}

/* Which A belongs to each problem: *at, to be given back, or NULL where they are as many, in order. */
static bool places_of_a(const tt_stack *s, int64_t **at) {
    bool same = true;
    *at = NULL;
    for (int64_t i = 0; same && i < s->count; i++) same = tt_matrix_of_a(s, i) == i;
    if (same) return true;
    if (!(*at = tt_scratch(s->count * (int64_t)sizeof **at)))
        return tt_fail(TT_OUT_OF_MEMORY, "out of memory for the places of matrices"), false;
    for (int64_t i = 0; i < s->count; i++) (*at)[i] = tt_matrix_of_a(s, i);
    return true;
}

static int64_t count_of_a(const tt_stack *s) {
    int64_t count = 1;
    for (int d = 0; d < s->nbatch; d++) count += (s->batch[d] - 1) * s->a_strides[d];
    return count;
}

static matrices operand_a(const job *j) { return stack_of(j, j->s->first.a, j->s->first.m, j->s->first.n); }
static matrices operand_b(const job *j) { return stack_of(j, j->s->first.b, j->s->first.b_rows, j->s->first.b_cols); }
static matrices result(const job *j, int i, int rows, int cols) { return stack_of(j, j->s->first.out[i], rows, cols); }

/* Cholesky's factors. */

static bool cholesky(job *j) {
    const tt_matrix *c = &j->s->first;
    matrices a = result(j, 0, c->n, c->n);
    return call(j, (tt_solver){.routine = TT_POTRF,
                               .options = c->option ? TT_UPPER : 0,
                               .n = c->n,
                               .a = a.data,
                               .step_a = a.step,
                               .lda = a.ld}) &&
           check_diagonal(j, a, TT_STACK_NAN_DIAGONAL) && copy(j, a, a, c->option ? TT_PART_UPPER : TT_PART_LOWER);
}

static bool cholesky_inverse(job *j) {
    const tt_matrix *c = &j->s->first;
    matrices x = result(j, 0, c->n, c->n), a = room_for(j, c->n, c->n);
    int first = c->option ? TT_UPPER | TT_ADJOINT : 0, second = c->option ? TT_UPPER : TT_ADJOINT;
    return copy(j, a, x, TT_PART_ALL) && check_diagonal(j, a, TT_STACK_DIAGONAL) && set_identity(j, x) &&
           solve_triangle(j, a, x, first, NULL) && solve_triangle(j, a, x, second, NULL);
}

/* LU. */

/* Without pivots: in order. */
static bool factor(const job *j, matrices a, int *pivots) {
    return call(j, (tt_solver){.routine = TT_GETRF,
                               .m = a.rows,
                               .n = a.cols,
                               .a = a.data,
                               .step_a = a.step,
                               .lda = a.ld,
                               .pivots = pivots});
}

static bool solve(job *j, matrices a, int *pivots, matrices b, int option, const int64_t *at) {
    static const int options[] = {0, TT_TRANSPOSED, TT_ADJOINT};
    return call(j, (tt_solver){.routine = TT_GETRS,
                               .options = options[option],
                               .n = a.rows,
                               .m = a.rows,
                               .k = b.cols,
                               .a = a.data,
                               .b = b.data,
                               .step_a = a.step,
                               .step_b = b.step,
                               .lda = a.ld,
                               .ldb = b.ld,
                               .at = at,
                               .pivots = pivots,
                               .info = j->spare});
}

static bool lu_factor(job *j) {
    const tt_matrix *c = &j->s->first;
    tt_stack_args p = {.places = c->out[1], .count = j->s->count * c->k, .num_pivots = c->k};
    if (c->option) return factor(j, operand_a(j), NULL) && per_number(j, TT_STACK_IN_ORDER, &p);
    return factor(j, operand_a(j), c->out[1]);
}

/* Of each row of every matrix, which one the pivots' exchanges bring there; NULL: an error. */
static int *places_of(job *j, const int *pivots, int rows, int num_pivots) {
    if (rows + num_pivots > MOST_PLACES)
        return tt_fail(TT_NOT_IMPLEMENTED, "not implemented for %d exchanged rows on CUDA", rows);
    tt_stack_args p = {.pivots = pivots,
                       .places = room(j, j->s->count * rows * (int64_t)sizeof(int)),
                       .fault = tt_cuda_fault(),
                       .count = j->s->count,
                       .rows = rows,
                       .num_pivots = num_pivots};
    bool ok = p.places && TT_LAUNCH(tt_key(TT_FAMILY_stack, 0, TT_STACK_PLACES, j->s->dtype, 0, 0, 0, 0), p.count, 1,
                                    TT_CUDA_THREADS, (rows + num_pivots) * (int64_t)sizeof(int), p);
    return ok ? p.places : NULL;
}

static bool place_rows(const job *j, int task, matrices to, matrices from, int *places) {
    tt_stack_args p = {.from = from.data,
                       .to = to.data,
                       .places = places,
                       .count = j->s->count,
                       .step_from = from.step,
                       .step_to = to.step,
                       .rows = to.rows,
                       .cols = to.cols};
    return places && per_element(j, task, (int64_t)to.rows * to.cols, &p);
}

static bool lu_permutation(job *j) {
    const tt_matrix *c = &j->s->first;
    return !c->m || place_rows(j, TT_STACK_PERMUTATION, result(j, 0, c->m, c->m), (matrices){.data = NULL},
                               places_of(j, c->pivots, c->m, c->k));
}

/* Is a single matrix solved sooner than by getrs, which exchanges rows one after the other? */
static bool solves_in_order(const job *j) { return j->s->count == 1 && j->s->first.m <= MOST_PLACES / 2; }

/* b becomes the solution. */
static bool solve_in_order(job *j, matrices a, const int *pivots, matrices b) {
    matrices given = room_for(j, b.rows, b.cols);
    return copy(j, given, b, TT_PART_ALL) &&
           place_rows(j, TT_STACK_GATHER, b, given, places_of(j, pivots, a.rows, a.rows)) &&
           solve_triangle(j, a, b, TT_UNIT, NULL) && solve_triangle(j, a, b, TT_UPPER, NULL);
}

static bool lu_solve(job *j) {
    const tt_matrix *c = &j->s->first;
    int64_t count = count_of_a(j->s) * c->k, *at;
    if (!c->b_cols) return true;
    if (!c->option && solves_in_order(j)) return solve_in_order(j, operand_a(j), c->pivots, operand_b(j));
    tt_stack_args p = {.pivots = c->pivots,
                       .places = room(j, count * (int64_t)sizeof(int)),
                       .fault = tt_cuda_fault(),
                       .count = count,
                       .rows = c->m};
    if (!p.places || !per_number(j, TT_STACK_PIVOTS, &p) || !places_of_a(j->s, &at)) return false;
    bool ok = solve(j, operand_a(j), p.places, operand_b(j), c->option, at);
    if (at) tt_scratch_free(at);
    return ok;
}

/* Of what fits into a block's shared memory without its inverse; as tt_cuda_decompose_small. */
static int inv_small(job *j, matrices x, int *pivots) {
    tt_stack lu = *j->s, system = *j->s;
    lu.first.out[0] = lu.first.a;
    lu.first.out[1] = pivots;
    lu.steps[0] = lu.step_a;
    int done = tt_cuda_decompose_small(TT_DECOMPOSE_lu_factor, &lu);
    if (done <= 0) return done;
    system.first.pivots = pivots;
    system.first.b = x.data;
    system.first.b_rows = x.rows;
    system.first.b_cols = x.cols;
    system.step_b = x.step;
    system.info = j->spare;
    if (!set_identity(j, x)) return -1;
    done = tt_cuda_decompose_small(TT_DECOMPOSE_lu_solve, &system);
    return done ? done : solve(j, operand_a(j), pivots, x, 0, NULL) ? 1 : -1;
}

static bool inv(job *j) {
    int n = j->s->first.n;
    matrices x = result(j, 0, n, n);
    int *pivots = room(j, j->s->count * n * (int64_t)sizeof(int));
    int done = pivots ? inv_small(j, x, pivots) : -1;
    if (done) return done > 0;
    if (!factor(j, operand_a(j), pivots) || !set_identity(j, x)) return false;
    if (solves_in_order(j)) return solve_in_order(j, operand_a(j), pivots, x);
    return solve(j, operand_a(j), pivots, x, 0, NULL);
}

/* L D L^T and L D L^H, for which no library's routine takes Hermitian matrices. */

static bool ldl(job *j, int task, void *a, void *b, int *pivots) {
    const tt_stack *s = j->s;
    tt_ldl_args p = {.a = a,
                     .b = b,
                     .pivots = pivots,
                     .info = s->info,
                     .fault = tt_cuda_fault(),
                     .step_a = s->step_a,
                     .step_b = s->step_b,
                     .n = s->first.n,
                     .cols = s->first.b_cols};
    for (int d = 0; b && d < s->nbatch; d++) {
        if (s->batch[d] == 1) continue;
        if (p.nbatch == TT_CUDA_DIMS) return tt_cuda_too_deep("ldl_solve");
        p.batch[p.nbatch] = s->batch[d];
        p.a_strides[p.nbatch++] = s->a_strides[d];
    }
    int64_t y = b ? (p.cols + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS : 1;
    return !y ||
           TT_LAUNCH(tt_key(TT_FAMILY_ldl, 0, task | (s->first.option ? TT_LDL_HERMITIAN : 0), s->dtype, 0, 0, 0, 0),
                     s->count, y, TT_CUDA_THREADS, 0, p);
}

static bool ldl_factor(job *j) { return ldl(j, TT_LDL_FACTOR, j->s->first.out[0], NULL, j->s->first.out[1]); }
static bool ldl_solve(job *j) { return ldl(j, TT_LDL_SOLVE, j->s->first.a, j->s->first.b, (int *)j->s->first.pivots); }

static bool solve_triangular(job *j) {
    const tt_matrix *c = &j->s->first;
    bool upper = c->option & 1;
    int64_t *at;
    int options = (upper != c->row_major ? TT_UPPER : 0) | (c->row_major ? TT_TRANSPOSED : 0) |
                  (c->option & 2 ? TT_RIGHT : 0) | (c->option & 4 ? TT_UNIT : 0);
    if (!c->b_rows || !c->b_cols) return true;
    if (!places_of_a(j->s, &at)) return false;
    bool ok = solve_triangle(j, operand_a(j), operand_b(j), options, at);
    if (at) tt_scratch_free(at);
    return ok;
}

/* Eigenvalues. */

static bool any_eigenvalues(job *j, bool vectors) {
    const tt_matrix *c = &j->s->first;
    bool is_real = !tt_is_complex(j->s->dtype);
    matrices a = operand_a(j), v = vectors ? result(j, 1, c->n, c->n) : (matrices){.data = NULL};
    if (vectors && is_real) v = room_for(j, c->n, c->n);
    tt_solver p = {.routine = TT_GEEV,
                   .options = vectors ? TT_VECTORS : 0,
                   .n = c->n,
                   .a = a.data,
                   .b = v.data,
                   .c = c->out[0],
                   .step_a = a.step,
                   .step_b = v.step,
                   .step_c = j->s->steps[0],
                   .lda = a.ld};
    if (!set_aside(j, a, TT_PART_ALL) || (vectors && !v.data) || !call(j, p) || !settle(j)) return false;
    if (!vectors || !is_real) return true;
    tt_stack_args packed = {.from = v.data,
                            .to = c->out[1],
                            .values = c->out[0],
                            .count = j->s->count,
                            .step_from = v.step,
                            .step_to = j->s->steps[1],
                            .step_values = j->s->steps[0],
                            .rows = c->n};
    return per_element(j, TT_STACK_EIGENVECTORS, (int64_t)c->n * c->n, &packed);
}

static bool eig(job *j) { return any_eigenvalues(j, true); }
static bool eigvals(job *j) { return any_eigenvalues(j, false); }

static bool eigenvalues(job *j, bool vectors) {
    const tt_matrix *c = &j->s->first;
    matrices a = operand_a(j);
    return set_aside(j, a, c->option ? TT_PART_UPPER : TT_PART_LOWER) &&
           call(j, (tt_solver){.routine = TT_SYEVD,
                               .options = (c->option ? TT_UPPER : 0) | (vectors ? TT_VECTORS : 0),
                               .n = c->n,
                               .a = a.data,
                               .c = c->out[0],
                               .step_a = a.step,
                               .step_c = j->s->steps[0],
                               .lda = a.ld}) &&
           settle(j);
}

static bool eigh(job *j) { return eigenvalues(j, true); }
static bool eigvalsh(job *j) { return eigenvalues(j, false); }

/* QR. */

static bool geqrf(job *j) { return reflectors(j, operand_a(j), j->s->first.out[1]); }

static void *room_for_factors(job *j) { return room(j, j->s->count * j->s->first.k * size_of(j)); }

static bool qr_r(job *j) {
    const tt_matrix *c = &j->s->first;
    return reflectors(j, operand_a(j), room_for_factors(j)) &&
           copy(j, result(j, 0, c->k, c->n), operand_a(j), TT_PART_UPPER);
}

static bool qr(job *j) {
    const tt_matrix *c = &j->s->first;
    int cols = c->option & 1 ? c->m : c->k;
    matrices a = operand_a(j), columns = a, q = result(j, 0, c->m, cols);
    void *factors = room_for_factors(j);
    columns.cols = c->k;
    if (!c->k) return set_identity(j, q);
    return reflectors(j, a, factors) && copy(j, result(j, 1, cols, c->n), a, TT_PART_UPPER) &&
           copy(j, q, columns, TT_PART_ALL) &&
           call(j, (tt_solver){.routine = TT_ORGQR,
                               .m = c->m,
                               .n = cols,
                               .k = c->k,
                               .a = q.data,
                               .c = factors,
                               .step_a = q.step,
                               .step_c = c->k * size_of(j),
                               .lda = q.ld});
}

/* Singular values. */

static matrices nth(matrices a, int64_t i) {
    a.data = (char *)a.data + i * a.step;
    return a;
}

/* Of one matrix, by gesvd, which wants no fewer rows than columns. u: NULL, or m x M; v: N x n */
static bool svd_by_qr(job *j, int64_t i, matrices a, matrices u, void *values, matrices v) {
    tt_stack one = *j->s;
    job k = {.s = &one, .spare = j->spare};
    bool vectors = u.data != NULL, wide = a.rows < a.cols, ok = true;
    one.count = 1;
    one.info += i;
    matrices from = a, left = u, right = v;
    if (wide) {
        from = room_for(&k, a.cols, a.rows);
        ok = copy(&k, from, a, TT_PART_ALL | TT_PART_ADJOINT);
        if (vectors) {
            left = room_for(&k, v.cols, v.rows);
            right = room_for(&k, u.cols, u.rows);
            ok = ok && left.data && right.data;
        }
    }
    ok = ok && call(&k, (tt_solver){.routine = TT_GESVD,
                                    .options = (vectors ? TT_VECTORS : 0) | (one.first.option & 1 ? TT_FULL : 0),
                                    .m = from.rows,
                                    .n = from.cols,
                                    .a = from.data,
                                    .b = left.data,
                                    .c = values,
                                    .d = right.data,
                                    .lda = from.ld});
    if (ok && wide && vectors)
        ok = copy(&k, v, left, TT_PART_ALL | TT_PART_ADJOINT) && copy(&k, u, right, TT_PART_ALL | TT_PART_ADJOINT);
    while (k.num_rooms) tt_free(k.rooms[--k.num_rooms]);
    return ok;
}

/* All, or what did not converge. */
static bool svd_again(job *j, bool all, matrices a, matrices u, char *values, int64_t step, matrices v) {
    int64_t nbytes = j->s->count * (int64_t)sizeof(int);
    int *infos = tt_scratch(nbytes);
    if (!infos) return tt_fail(TT_OUT_OF_MEMORY, "out of memory for the state of each matrix"), false;
    bool ok = all || tt_device_read(infos, j->s->info, nbytes);
    for (int64_t i = 0; ok && i < j->s->count; i++)
        if (all || infos[i] > 0)
            ok = svd_by_qr(j, i, nth(a, i), u.data ? nth(u, i) : u, values + i * step, v.data ? nth(v, i) : v);
    tt_scratch_free(infos);
    return ok;
}

static bool singular_values(job *j, char *values, int64_t step, matrices u, matrices v) {
    const tt_matrix *c = &j->s->first;
    bool vectors = u.data != NULL;
    matrices a = operand_a(j);
    if (!set_aside(j, a, TT_PART_ALL)) return false;
    if (c->option & 2) return svd_again(j, true, a, u, values, step, vectors ? v : u) && settle(j);
    matrices lost = room_for(j, c->m, c->n);
    matrices left = u, right = room_for(j, v.cols, v.rows);
    if (!vectors) left = room_for(j, c->m, c->k); /* which the library wants all the same */
    return left.data && right.data && copy(j, lost, a, TT_PART_ALL) &&
           call(j, (tt_solver){.routine = TT_GESVDJ,
                               .options = (vectors ? TT_VECTORS : 0) | (c->option & 1 ? TT_FULL : 0),
                               .m = c->m,
                               .n = c->n,
                               .a = lost.data,
                               .b = left.data,
                               .c = values,
                               .d = right.data,
                               .step_a = lost.step,
                               .step_b = left.step,
                               .step_c = step,
                               .step_d = right.step,
                               .lda = lost.ld}) &&
           (!vectors || copy(j, v, right, TT_PART_ALL | TT_PART_ADJOINT)) &&
           svd_again(j, false, a, u, values, step, vectors ? v : u) && settle(j);
}

static bool svd(job *j) {
    const tt_matrix *c = &j->s->first;
    bool full = c->option & 1;
    matrices u = result(j, 0, c->m, full ? c->m : c->k), v = result(j, 2, full ? c->n : c->k, c->n);
    if (!c->k) return set_identity(j, u) && set_identity(j, v);
    return singular_values(j, c->out[1], j->s->steps[1], u, v);
}

static bool svdvals(job *j) {
    const tt_matrix *c = &j->s->first;
    return singular_values(j, c->out[0], j->s->steps[0], (matrices){.data = NULL},
                           (matrices){.rows = c->k, .cols = c->n});
}

/* Least squares. */

static bool gels(job *j) {
    const tt_matrix *c = &j->s->first;
    matrices a = operand_a(j), b = operand_b(j), top = b, r;
    void *factors = room_for_factors(j);
    top.rows = c->k;
    if (!c->k || !b.cols) {
        top.rows = 0;
        return copy(j, b, top, TT_PART_ALL);
    }
    if (!set_aside(j, a, TT_PART_ALL)) return false;
    if (c->m < c->n) {
        r = room_for(j, c->n, c->m);
        if (!copy(j, r, a, TT_PART_ALL | TT_PART_ADJOINT)) return false;
    } else r = a;
    if (!reflectors(j, r, factors) || !check_diagonal(j, r, TT_STACK_DIAGONAL)) return false;
    if (c->m < c->n)
        return solve_triangle(j, r, top, TT_UPPER | TT_ADJOINT, NULL) && copy(j, b, top, TT_PART_ALL) &&
               multiply_by_q(j, r, factors, b, 0) && settle(j);
    return multiply_by_q(j, r, factors, b, TT_ADJOINT) && solve_triangle(j, r, top, TT_UPPER, NULL) && settle(j);
}

/* PyTorch's CUDA has none of the others. */
static bool decline(const char *name) { return tt_no_kernel(name), false; }
static bool gelsy(job *j) { return (void)j, decline("gelsy"); }
static bool gelsd(job *j) { return (void)j, decline("gelsd"); }
static bool gelss(job *j) { return (void)j, decline("gelss"); }

static bool (*const routines[])(job *) = {
#define ROUTINE(name, ...) name,
    TT_DECOMPOSITIONS(ROUTINE)
#undef ROUTINE
};

/* Do they give something for matrices without elements? */
static bool takes_empty(bool (*routine)(job *)) {
    return routine == svd || routine == qr || routine == gels || routine == lu_permutation;
}

bool tt_cuda_decompose(int decomposition, tt_stack *s) {
    job j = {.s = s};
    tt_array *spare, info;
    if (!s->count) return true;
    int small = tt_cuda_decompose_small(decomposition, s);
    if (small) return small > 0;
    if (!(spare = tt_cuda_temporary(TT_I32, s->count))) return false;
    info = *spare;
    info.data = (char *)s->info;
    j.spare = (int *)spare->data;
    bool ok = tt_fill_now(&info, TT_KIND_INT, 0, 0) == 0;
    if (ok && (s->first.k || takes_empty(routines[decomposition]))) ok = routines[decomposition](&j);
    while (j.num_rooms) tt_free(j.rooms[--j.num_rooms]);
    tt_free(spare);
    return ok;
}
