/* Factors and systems of matrices of at most 32 rows on a device, one launch from operands as they lie
 * (cuda/device/tiny.cuh). */
#include "cuda/device/stack_args.h"
#include "cuda/host/cuda.h"

#define MOST_ROWS 32  /* as many as a warp's lanes */
#define MOST_BYTES 256 /* of a row in registers */
#define MAX_Y 65535   /* of a grid */

static int task_of(int decomposition) {
    switch (decomposition) {
    case TT_DECOMPOSE_cholesky: return TT_TINY_CHOLESKY;
    case TT_DECOMPOSE_lu_factor: return TT_TINY_LU;
    case TT_DECOMPOSE_inv: return TT_TINY_INV;
    case TT_DECOMPOSE_solve: return TT_TINY_SOLVE;
    case TT_DECOMPOSE_lu_solve: return TT_TINY_LU_SOLVE;
    default: return -1;
    }
}

/* From matrix to matrix of a batch that broadcasts to the problems'. */
static void set_strides(const tt_stack *s, const tt_array *x, int64_t *strides) {
    for (int d = s->nbatch - 1, own = x->ndim - 3; d >= 0; d--, own--)
        strides[d] = own < 0 || x->shape[own] == 1 ? 0 : x->strides[own];
}

int tt_cuda_decompose_as_given(int decomposition, const tt_stack *s, const tt_array *a, const tt_array *b) {
    const tt_matrix *c = &s->first;
    int task = task_of(decomposition), n = c->n, cols = b ? c->b_cols : n;
    int log = n <= 8 ? 3 : n <= 16 ? 4 : 5, lanes = 1 << log;
    bool tiny = task >= 0 && c->m == n && n <= MOST_ROWS && n <= tt_cuda_small_side;
    if (!tiny || !n || !cols || !s->count || lanes * tt_itemsizes[s->dtype] > MOST_BYTES || s->nbatch > TT_CUDA_DIMS)
        return 0;
    int64_t parts = (cols + (int64_t)lanes - 1) / lanes, teams = TT_FLAT_THREADS / lanes, matrices = 1;
    if (parts > MAX_Y) return 0;
    bool solves = task == TT_TINY_SOLVE;
    tt_tiny_args p = {.a = a->data,
                      .out = c->out[0],
                      .lu = c->out[solves],
                      .pivots = task == TT_TINY_LU_SOLVE ? (int *)c->pivots : c->out[1 + solves],
                      .info = s->info,
                      .fault = tt_cuda_fault(),
                      .count = s->count,
                      .a_down = a->strides[a->ndim - 2],
                      .a_along = a->strides[a->ndim - 1],
                      .n = n,
                      .cols = cols,
                      .option = c->option,
                      .nbatch = s->nbatch};
    set_strides(s, a, p.a_strides);
    if (b) {
        p.b = b->data;
        p.b_down = b->strides[b->ndim - 2];
        p.b_along = b->strides[b->ndim - 1];
        set_strides(s, b, p.b_strides);
    }
    for (int d = s->nbatch - 1, own = a->ndim - 3; d >= 0; d--, own--) {
        int64_t size = own < 0 ? 1 : a->shape[own];
        p.batch[d] = s->batch[d];
        p.pivot_strides[d] = size == 1 ? 0 : matrices;
        matrices *= size;
    }
    return TT_LAUNCH(tt_key(TT_FAMILY_tiny, 0, task + TT_SMALL_LANES * log, s->dtype, 0, 0, 0, 0),
                     (s->count + teams - 1) / teams, parts, TT_FLAT_THREADS, 0, p)
               ? 1
               : -1;
}
