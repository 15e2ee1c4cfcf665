/* Decompositions of small matrices on a device: a kernel that has a matrix in a block's shared memory
 * (cuda/device/small.cuh, jacobi.cuh). Of cuSOLVER's routines most take one matrix, and launch a dozen kernels for
 * it. */
#include "cuda/host/cuda.h"
#include "cuda/device/stack_args.h"

int tt_cuda_small_side = 128;

#define STATIC_SHARED 6144     /* of the kernel's own */
#define MAX_Y 65535            /* of a grid */
#define MOST_THREADS 256

static int64_t room_in_elements(const tt_stack *s) {
    return (tt_cuda_shared_room() - STATIC_SHARED) / tt_itemsizes[s->dtype];
}

/* As many as have something to do in most steps. */
static int threads_for(int64_t elements) {
    int threads = 32;
    while (threads < MOST_THREADS && threads * 4 < elements) threads *= 2;
    return threads;
}

/* Of a column, in a kernel's variant. */
static int lanes_for(int rows) { return TT_SMALL_LANES * (rows <= 8 ? 3 : rows <= 16 ? 4 : 5); }

/* 1: done, 0: too large, -1: an error. `elements`: of shared memory. */
static int launch(const tt_stack *s, int task, tt_small_args *p, int64_t elements, int64_t parts) {
    const tt_matrix *c = &s->first;
    if (elements > room_in_elements(s) || parts > MAX_Y) return 0;
    p->info = s->info;
    p->fault = tt_cuda_fault();
    p->step_a = s->step_a;
    p->m = c->m;
    p->n = c->n;
    int64_t bytes = elements * tt_itemsizes[s->dtype];
    int lanes = lanes_for(task < TT_SMALL_GEQRF ? c->m : 32); /* reflectors are a whole warp's */
    return TT_LAUNCH(tt_key(TT_FAMILY_small, 0, task + lanes, s->dtype, 0, 0, 0, 0), s->count, parts,
                     threads_for((int64_t)c->m * c->n), bytes, *p)
               ? 1
               : -1;
}

static int system_of(const tt_stack *s, int task, int option, int cols) {
    const tt_matrix *c = &s->first;
    int64_t square = (int64_t)c->n * c->n, at_once = (room_in_elements(s) - square) / c->n;
    tt_small_args p = {
        .a = c->a, .b = c->b, .pivots = (int *)c->pivots, .step_b = s->step_b, .cols = cols, .option = option};
    if (!cols || at_once < 1 || s->nbatch > TT_CUDA_DIMS) return 0;
    int64_t blocks = (TT_CUDA_ENOUGH + s->count - 1) / s->count, share = (cols + blocks - 1) / blocks;
    if (share < MOST_THREADS / 32) share = MOST_THREADS / 32;
    if (at_once > share) at_once = share;
    p.at_once = at_once < cols ? (int)at_once : cols;
    for (p.nbatch = 0; p.nbatch < s->nbatch; p.nbatch++) {
        p.batch[p.nbatch] = s->batch[p.nbatch];
        p.a_strides[p.nbatch] = s->a_strides[p.nbatch];
    }
    return launch(s, task, &p, square + (int64_t)c->n * p.at_once, (cols + p.at_once - 1) / p.at_once);
}

static int triangle(const tt_stack *s) {
    const tt_matrix *c = &s->first;
    bool right = c->option & 2, upper = c->option & 1;
    int option = (upper != c->row_major ? TT_SMALL_UPPER : 0) | (c->row_major ? TT_SMALL_TRANSPOSED : 0) |
                 (right ? TT_SMALL_RIGHT : 0) | (c->option & 4 ? TT_SMALL_UNIT : 0);
    return system_of(s, TT_SMALL_TRIANGLE, option, right ? c->b_rows : c->b_cols);
}

#define MOST_ALONE 32 /* rows and columns of a single matrix that one block rotates sooner than the library */
#define ROTATIONS_SHARED 8192

static int rotate(const tt_stack *s, int task, tt_jacobi_args p, int64_t elements) {
    const tt_matrix *c = &s->first;
    int small = c->m < c->n ? c->m : c->n, large = c->m < c->n ? c->n : c->m,
        warps = (small * (large < 32 ? large : 32) + 127) / 128;
    int64_t bytes = elements * tt_itemsizes[s->dtype];
    if (bytes > tt_cuda_shared_room() - ROTATIONS_SHARED || (s->count == 1 && large > MOST_ALONE)) return 0;
    p.a = c->a;
    p.info = s->info;
    p.step_a = s->step_a;
    p.m = c->m;
    p.n = c->n;
    return TT_LAUNCH(tt_key(TT_FAMILY_jacobi, 0, task + lanes_for(large), s->dtype, 0, 0, 0, 0), s->count, 1,
                     32 * (warps < 8 ? warps : 8), bytes, p)
               ? 1
               : -1;
}

static int eigenvalues(const tt_stack *s, bool vectors) {
    const tt_matrix *c = &s->first;
    tt_jacobi_args p = {.values = c->out[0], .step_values = s->steps[0], .upper = c->option};
    if (vectors) {
        p.u = c->out[1];
        p.step_u = s->steps[1];
    }
    return rotate(s, vectors ? TT_JACOBI_EIGH : TT_JACOBI_EIGVALSH, p, (int64_t)c->n * c->n * (vectors ? 2 : 1));
}

static int singular_values(const tt_stack *s, bool vectors) {
    const tt_matrix *c = &s->first;
    int at = vectors ? 1 : 0;
    bool full = c->option & 1;
    int64_t small = c->k, large = c->m < c->n ? c->n : c->m, elements = small * large;
    tt_jacobi_args p = {.values = c->out[at], .step_values = s->steps[at], .full = full};
    if (c->option & 2) return 0;
    if (vectors) {
        p.u = c->out[0];
        p.v = c->out[2];
        p.step_u = s->steps[0];
        p.step_v = s->steps[2];
        elements += small * small + large * (full ? large : small);
    }
    return rotate(s, vectors ? TT_JACOBI_SVD : TT_JACOBI_SVDVALS, p, elements);
}

int tt_cuda_decompose_small(int decomposition, const tt_stack *s) {
    const tt_matrix *c = &s->first;
    int64_t numel = (int64_t)c->m * c->n;
    int cols = c->option ? c->m : c->k; /* of Q */
    tt_small_args p = {
        .a = c->a, .b = c->out[0], .c = c->out[1], .step_b = s->steps[0], .step_c = s->steps[1], .option = c->option};
    if (c->m > tt_cuda_small_side || c->n > tt_cuda_small_side || !c->k) return 0;
    switch (decomposition) {
    case TT_DECOMPOSE_cholesky: return launch(s, TT_SMALL_CHOLESKY, &p, numel, 1);
    case TT_DECOMPOSE_cholesky_inverse: return launch(s, TT_SMALL_CHOLESKY_INVERSE, &p, 2 * numel, 1);
    case TT_DECOMPOSE_lu_factor: p.pivots = c->out[1]; return launch(s, TT_SMALL_LU, &p, numel, 1);
    case TT_DECOMPOSE_lu_solve: return system_of(s, TT_SMALL_LU_SOLVE, c->option, c->b_cols);
    case TT_DECOMPOSE_inv: return launch(s, TT_SMALL_INV, &p, 2 * numel, 1);
    case TT_DECOMPOSE_solve_triangular: return triangle(s);
    case TT_DECOMPOSE_geqrf: return launch(s, TT_SMALL_GEQRF, &p, numel, 1);
    case TT_DECOMPOSE_qr:
        p.cols = cols;
        return launch(s, TT_SMALL_QR, &p, cols > c->n ? (int64_t)c->m * cols : numel, 1);
    case TT_DECOMPOSE_qr_r:
        p.cols = c->k;
        p.c = c->out[0];
        p.step_c = s->steps[0];
        return launch(s, TT_SMALL_QR_R, &p, numel, 1);
    case TT_DECOMPOSE_eigh: return eigenvalues(s, true);
    case TT_DECOMPOSE_eigvalsh: return eigenvalues(s, false);
    case TT_DECOMPOSE_svd: return singular_values(s, true);
    case TT_DECOMPOSE_svdvals: return singular_values(s, false);
    default: return 0;
    }
}
