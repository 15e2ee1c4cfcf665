/* Products of matrices on a device: floating ones by cuBLASLt (tinytorch/backends/cuda/cublas.py), integers by a
 * kernel. */
#include "backend/now.h"
#include "backend/operators.h"
#include "cuda/host/cuda.h"

extern int tt_cuda_gemm(int, int, tt_gemm *, void *, void *, void *, void *, void *, void *, void *);

#define MAX_Y 65535 /* of a grid */

static int alignment(const void *p) {
    int log = 0;
    while (log < 8 && !((intptr_t)p >> log & 1)) log++;
    return log;
}

/* One number for each column, the same for all rows? */
static bool is_row(const tt_array *bias, int64_t n) {
    return bias->ndim && bias->numel == n && bias->shape[bias->ndim - 1] == n &&
           (n == 1 || bias->strides[bias->ndim - 1] == 1);
}

static int call(tt_gemm *g, const char *a, const char *b, const char *c, char *out, const char *bias, double alpha,
                double beta) {
    int64_t factor[2][2]; /* of the dtype that sums are made in */
    int scale = tt_is_complex(g->dtype) || g->dtype == TT_F64 ? g->dtype : TT_F32;
    tt_convert(factor[0], scale, &alpha, TT_F64);
    tt_convert(factor[1], scale, &beta, TT_F64);
    g->bias = bias != NULL;
    int c_align = alignment(c), out_align = alignment(out);
    g->align = alignment(a) | alignment(b) << 4 | (c_align < out_align ? c_align : out_align) << 8 |
               (bias ? alignment(bias) : 0) << 12;
    int device = tt_device - 1, status = tt_multiply_again(g, factor[0], a, b, factor[1], c, out, bias);
    if (status <= 0) return status;
    TT_LEAVE_TO_PYTHON;
    status = tt_cuda_gemm(device, tt_cuda_stream(device), g, (void *)a, (void *)b, (void *)c, out, (void *)bias,
                          &factor[0], &factor[1]);
    if (status < 0) tt_fail(TT_PYTHON_ERROR, "the matrices could not be multiplied");
    return status;
}

bool tt_cuda_multiply(tt_gemm *g, const char *a, const char *b, char *out) {
    return call(g, a, b, out, out, NULL, 1, 0) == 0;
}

static bool integers(const tt_gemm *g, const char *a, const char *b, tt_array *out, bool add) {
    int64_t rows = (g->m + TT_MATMUL_TILE - 1) / TT_MATMUL_TILE, size = tt_itemsizes[g->dtype];
    tt_matmul_args p = {.m = g->m,
                        .n = g->n,
                        .k = g->k,
                        .lda = g->lda,
                        .ldb = g->ldb,
                        .step_a = g->step_a,
                        .step_b = g->step_b,
                        .tiles_n = (g->n + TT_MATMUL_TILE - 1) / TT_MATMUL_TILE,
                        .add = add};
    for (int64_t at = 0; at < g->count; at += MAX_Y) {
        p.a = a + at * g->step_a * size;
        p.b = b + at * g->step_b * size;
        p.c = out->data + at * g->m * g->n * size;
        if (!TT_LAUNCH(tt_key(TT_FAMILY_matmul_int, 0, 0, g->dtype, 0, 0, 0, 0), rows * p.tiles_n,
                       g->count - at < MAX_Y ? g->count - at : MAX_Y, TT_MATMUL_TILE * TT_MATMUL_TILE, 0, p))
            return false;
    }
    return true;
}

static bool multiply(tt_gemm *g, const char *a, const char *b, tt_array *out, tt_array *bias, double alpha,
                     double beta) {
    bool is_float = tt_is_differentiable(g->dtype);
    if (bias && is_float && g->count == 1) {
        if (beta == 1 && is_row(bias, g->n)) {
            int status = call(g, a, b, out->data, out->data, bias->data, alpha, 0);
            if (status <= 0) return status == 0;
        } else if (bias->flags & TT_FLAG_CONTIGUOUS && bias->numel == out->numel)
            return call(g, a, b, bias->data, out->data, NULL, alpha, beta) == 0;
    }
    if (bias && tt_copy_now(out, bias) < 0) return false;
    if (!is_float) return integers(g, a, b, out, bias != NULL);
    return call(g, a, b, out->data, out->data, NULL, alpha, bias ? beta : 0) == 0;
}

/* The step from each matrix of a stack to the next, through all batch dimensions; -1: there is no one such step. */
static int64_t single_step(const tt_product *p, const tt_matrices *x) {
    int64_t step = 0, count = 1;
    for (int d = p->nbatch - 1; d >= 0; d--) {
        if (p->batch[d] == 1) continue;
        if (count == 1) step = x->steps[d];
        else if (x->steps[d] != step * count) return -1;
        count *= p->batch[d];
    }
    return step;
}

static bool prepare_stack(tt_product *p, tt_matrices *x, const tt_array *from) {
    return tt_product_prepare(p, x, from, tt_is_integral(p->dtype), single_step(p, x) < 0);
}

/* beta * bias, of the result's shape */
static bool only_bias(tt_product *p, tt_array *out, tt_array *bias) {
    if (p->beta == 0) return tt_fill_now(out, TT_KIND_INT, 0, 0) == 0;
    if (p->beta == 1) return tt_copy_now(out, bias) == 0;
    tt_array number, *scaled = tt_empty(bias->dtype, bias->ndim, bias->shape);
    char room[TT_MAX_ITEMSIZE];
    tt_element(&number, room, TT_F64, TT_KIND_FLOAT, p->beta, 0);
    bool done = scaled && tt_cuda_elementwise(TT_OP_mul, bias->dtype, scaled, 2, (tt_array *[]){bias, &number}) &&
                tt_copy_now(out, scaled) == 0;
    if (scaled) tt_free(scaled);
    return done;
}

/* The whole product by one call of the device's library: a stack is one operand with a step. */
bool tt_cuda_product(tt_product *p, tt_array *out, const tt_array *a, const tt_array *b, tt_array *bias) {
    p->dtype = a->dtype;
    if (!out->numel) return true;
    if (p->k == 0) return only_bias(p, out, bias);
    if (p->nbatch && p->may_fold) tt_product_fold_batch(p);
    if (!prepare_stack(p, &p->a, a) || !prepare_stack(p, &p->b, b)) return false;
    tt_gemm g = {.m = p->m,
                 .n = p->n,
                 .k = p->k,
                 .lda = p->a.ld,
                 .ldb = p->b.ld,
                 .count = p->stack,
                 .step_a = single_step(p, &p->a),
                 .step_b = single_step(p, &p->b),
                 .dtype = p->dtype,
                 .trans = p->a.trans | p->b.trans << 1,
                 .layer = p->layer};
    if (tt_is_half(g.dtype) && g.count == 1 && p->beta == 0 && p->alpha == 1) {
        int status = tt_cuda_multiply_padded(&g, a, p->a.data, b, p->b.data, out);
        if (status) return status > 0;
    }
    return multiply(&g, p->a.data, p->b.data, out, p->beta != 0 ? bias : NULL, p->alpha, p->beta);
}
