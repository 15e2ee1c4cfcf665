/* Decompositions of stacks of matrices on a device: each a sequence of cuSOLVER's and cuBLAS's routines
 * (tinytorch/backends/cuda/cusolver.py), and of kernels for what is between them (cuda/device/stack_args.h). Small
 * matrices: small.c. */
#include "backend/now.h"
#include "cuda/host/solver.h"

#define MOST_PLACES 50000 /* rows and pivots that a block's shared memory has room for */

/* Cholesky's factors. */

bool tt_cuda_cholesky(job *j) {
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

bool tt_cuda_cholesky_inverse(job *j) {
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

bool tt_cuda_lu_factor(job *j) {
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

bool tt_cuda_lu_permutation(job *j) {
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

bool tt_cuda_lu_solve(job *j) {
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

/* As tt_cuda_decompose_small, of what fits into a block's shared memory without the right hand sides. */
static int solve_small(job *j, matrices x, int *pivots) {
    tt_stack lu = *j->s, system = *j->s;
    lu.first.option = 0;
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
    done = tt_cuda_decompose_small(TT_DECOMPOSE_lu_solve, &system);
    return done ? done : solve(j, operand_a(j), pivots, x, 0, NULL) ? 1 : -1;
}

/* A becomes its factors, x the solution. */
static bool factor_and_solve(job *j, matrices x, int *pivots) {
    int done = solve_small(j, x, pivots);
    if (done) return done > 0;
    if (!factor(j, operand_a(j), pivots)) return false;
    if (solves_in_order(j)) return solve_in_order(j, operand_a(j), pivots, x);
    return !x.cols || solve(j, operand_a(j), pivots, x, 0, NULL);
}

bool tt_cuda_solve(job *j) { return factor_and_solve(j, operand_b(j), j->s->first.out[2]); }

bool tt_cuda_inv(job *j) {
    int n = j->s->first.n;
    matrices x = result(j, 0, n, n);
    int *pivots = room(j, j->s->count * n * (int64_t)sizeof(int));
    return pivots && set_identity(j, x) && factor_and_solve(j, x, pivots);
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

bool tt_cuda_ldl_factor(job *j) { return ldl(j, TT_LDL_FACTOR, j->s->first.out[0], NULL, j->s->first.out[1]); }
bool tt_cuda_ldl_solve(job *j) { return ldl(j, TT_LDL_SOLVE, j->s->first.a, j->s->first.b, (int *)j->s->first.pivots); }

bool tt_cuda_solve_triangular(job *j) {
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

/* QR. */

bool tt_cuda_geqrf(job *j) { return reflectors(j, operand_a(j), j->s->first.out[1]); }

bool tt_cuda_qr_r(job *j) {
    const tt_matrix *c = &j->s->first;
    return reflectors(j, operand_a(j), room_for_factors(j)) &&
           copy(j, result(j, 0, c->k, c->n), operand_a(j), TT_PART_UPPER);
}

bool tt_cuda_qr(job *j) {
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

/* Least squares. */

bool tt_cuda_gels(job *j) {
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
bool tt_cuda_gelsy(job *j) { return (void)j, decline("gelsy"); }
bool tt_cuda_gelsd(job *j) { return (void)j, decline("gelsd"); }
bool tt_cuda_gelss(job *j) { return (void)j, decline("gelss"); }

static bool (*const routines[])(job *) = {
#define ROUTINE(name, ...) tt_cuda_##name,
    TT_DECOMPOSITIONS(ROUTINE)
#undef ROUTINE
};

/* Do they give something for matrices without elements? */
static bool takes_empty(int decomposition) {
    return decomposition == TT_DECOMPOSE_svd || decomposition == TT_DECOMPOSE_qr ||
           decomposition == TT_DECOMPOSE_gels || decomposition == TT_DECOMPOSE_lu_permutation;
}

/* Do the library's routines tell of each matrix whether they succeeded? Else what they do not write is to be 0. */
static bool tells(int decomposition) {
    return decomposition == TT_DECOMPOSE_cholesky || decomposition == TT_DECOMPOSE_lu_factor;
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
    bool ok = (s->first.k && tells(decomposition)) || tt_fill_now(&info, TT_KIND_INT, 0, 0) == 0;
    if (ok && (s->first.k || takes_empty(decomposition))) ok = routines[decomposition](&j);
    while (j.num_rooms) tt_free(j.rooms[--j.num_rooms]);
    tt_free(spare);
    return ok;
}
