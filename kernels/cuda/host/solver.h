/* What decompositions on a device are made of: memory for one call, kernels between the library's routines
 * (cuda/device/stack_args.h), and those routines (tinytorch/backends/cuda/cusolver.py). */
#pragma once
#include "cuda/host/cuda.h"
#include "cuda/device/stack_args.h"

extern int tt_cuda_solver(int, int, tt_solver *);

#define MAX_Y 65535 /* of a grid */
#define ROOMS 8

typedef struct {
    tt_stack *s;
    tt_array *rooms[ROOMS]; /* memory for this call */
    int num_rooms;
    int *found, *spare; /* which matrices have elements that are not finite; an `info` that nobody reads */
} job;

static inline void *room(job *j, int64_t nbytes) {
    tt_array *a = tt_cuda_temporary(TT_U8, nbytes > 16 ? nbytes : 16);
    return a ? (j->rooms[j->num_rooms++] = a)->data : NULL;
}

static inline int64_t size_of(const job *j) { return tt_itemsizes[j->s->dtype]; }

/* Kernels. */

static inline bool per_element(const job *j, int task, int64_t numel, const tt_stack_args *p) {
    int64_t y = p->count < MAX_Y ? p->count : MAX_Y;
    return TT_LAUNCH(tt_key(TT_FAMILY_stack, 0, task, j->s->dtype, 0, 0, 0, 0),
                     (numel + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, y, TT_CUDA_THREADS, 0, *p);
}

static inline bool per_matrix(const job *j, int task, const tt_stack_args *p) {
    return TT_LAUNCH(tt_key(TT_FAMILY_stack, 0, task, j->s->dtype, 0, 0, 0, 0), p->count, 1, TT_CUDA_THREADS, 0, *p);
}

static inline bool per_number(const job *j, int task, const tt_stack_args *p) {
    return TT_LAUNCH(tt_key(TT_FAMILY_stack, 0, task, j->s->dtype, 0, 0, 0, 0),
                     (p->count + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, *p);
}

typedef struct {
    void *data;
    int rows, cols, ld;
    int64_t step;
} matrices;

static inline matrices stack_of(const job *j, void *data, int rows, int cols) {
    return (matrices){data, rows, cols, rows, (int64_t)rows * cols * size_of(j)};
}

static inline matrices room_for(job *j, int rows, int cols) {
    return stack_of(j, room(j, j->s->count * rows * cols * size_of(j)), rows, cols);
}

/* A part of `from`, with zeros around it; TT_PART_ADJOINT: of its adjoint. */
static inline bool copy(const job *j, matrices to, matrices from, int part) {
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

static inline bool set_identity(const job *j, matrices a) { return copy(j, a, a, TT_PART_IDENTITY); }

/* Takes matrices with elements that are not finite, in the part that counts, out of the library's way. */
static inline bool set_aside(job *j, matrices a, int part) {
    tt_stack_args p = {
        .from = a.data, .count = j->s->count, .step_from = a.step, .rows = a.rows, .cols = a.cols, .part = part};
    p.found = j->found = room(j, j->s->count * (int64_t)sizeof(int));
    return p.found && per_matrix(j, TT_STACK_FINITE, &p);
}

static inline bool settle(const job *j) {
    tt_stack_args p = {.found = j->found, .info = j->s->info, .count = j->s->count};
    return per_number(j, TT_STACK_SETTLE, &p);
}

static inline bool check_diagonal(const job *j, matrices a, int task) {
    tt_stack_args p = {.from = a.data, .info = j->s->info, .count = j->s->count, .step_from = a.step, .ld_from = a.ld};
    p.rows = a.rows < a.cols ? a.rows : a.cols;
    return per_matrix(j, task, &p);
}

/* The library's routines. */

static inline bool call(const job *j, tt_solver p) {
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
static inline bool solve_triangle(const job *j, matrices a, matrices b, int options, const int64_t *at) {
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

static inline bool reflectors(const job *j, matrices a, void *factors) {
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

static inline bool multiply_by_q(const job *j, matrices a, void *factors, matrices b, int options) {
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
static inline bool places_of_a(const tt_stack *s, int64_t **at) {
    bool same = true;
    *at = NULL;
    for (int64_t i = 0; same && i < s->count; i++) same = tt_matrix_of_a(s, i) == i;
    if (same) return true;
    if (!(*at = tt_scratch(s->count * (int64_t)sizeof **at)))
        return tt_fail(TT_OUT_OF_MEMORY, "out of memory for the places of matrices"), false;
    for (int64_t i = 0; i < s->count; i++) (*at)[i] = tt_matrix_of_a(s, i);
    return true;
}

static inline int64_t count_of_a(const tt_stack *s) {
    int64_t count = 1;
    for (int d = 0; d < s->nbatch; d++) count += (s->batch[d] - 1) * s->a_strides[d];
    return count;
}

static inline matrices operand_a(const job *j) { return stack_of(j, j->s->first.a, j->s->first.m, j->s->first.n); }
static inline matrices operand_b(const job *j) {
    return stack_of(j, j->s->first.b, j->s->first.b_rows, j->s->first.b_cols);
}
static inline matrices result(const job *j, int i, int rows, int cols) {
    return stack_of(j, j->s->first.out[i], rows, cols);
}

static inline void *room_for_factors(job *j) { return room(j, j->s->count * j->s->first.k * size_of(j)); }

/* The decompositions, in decompose.c, spectra.c. */
#define ROUTINE(name, ...) bool tt_cuda_##name(job *);
TT_DECOMPOSITIONS(ROUTINE)
#undef ROUTINE
