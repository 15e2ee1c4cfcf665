/* Products of matrices: shapes, broadcasting, and one call of the backend. */
#include "api/blas.h"
#include "backend/backend.h"
#include "backend/now.h"
#include "fuse/fuse.h"
#include "ops/dims.h"
#include <limits.h>
#include <string.h>

static bool mismatch(const tt_product *p, const tt_array *a, const tt_array *b) {
    char left[TT_SHAPE_TEXT], right[TT_SHAPE_TEXT];
    if (a->ndim == 1 && b->ndim == 1)
        tt_fail(TT_RUNTIME_ERROR,
                "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same "
                "number of elements, but got %lld and %lld elements respectively",
                (long long)a->shape[0], (long long)b->shape[0], (long long)a->shape[0], (long long)b->shape[0]);
    else if (b->ndim == 1 && a->ndim == 2)
        tt_fail(TT_RUNTIME_ERROR, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                (long long)a->shape[0], (long long)a->shape[0], (long long)a->shape[1], (long long)b->shape[0]);
    else
        tt_fail(TT_RUNTIME_ERROR,
                "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld), of tensors "
                "%s and %s",
                (long long)p->a.rows, (long long)p->a.cols, (long long)p->b.rows, (long long)p->b.cols,
                tt_shape_text(left, a->ndim, a->shape), tt_shape_text(right, b->ndim, b->shape));
    return false;
}

/* The operand's matrix, and its steps along the `nbatch` batch dimensions. A vector is a row or a column. */
static void describe(tt_matrices *x, const tt_array *a, bool transpose, bool row, int nbatch) {
    int nd = a->ndim;
    x->data = a->data;
    x->copy = NULL;
    if (nd == 1) {
        x->rows = row ? 1 : a->shape[0];
        x->cols = row ? a->shape[0] : 1;
        x->row_step = row ? 0 : a->strides[0];
        x->col_step = row ? a->strides[0] : 0;
    } else {
        int r = transpose ? nd - 1 : nd - 2, c = transpose ? nd - 2 : nd - 1;
        x->rows = a->shape[r];
        x->cols = a->shape[c];
        x->row_step = a->strides[r];
        x->col_step = a->strides[c];
    }
    for (int d = 0; d < nbatch; d++) {
        int at = nd - 2 - nbatch + d;
        x->steps[d] = nd > 2 && at >= 0 && a->shape[at] != 1 ? a->strides[at] : 0;
    }
}

static bool check_dtypes(const tt_array *a, const tt_array *b) {
    bool stacks = a->ndim > 2 && b->ndim > 2; /* of which PyTorch looks at the first one's dtype, then at both */
    if (a->dtype != b->dtype && !(stacks && a->dtype == TT_BOOL)) {
        tt_fail(TT_RUNTIME_ERROR, "expected m1 and m2 to have the same dtype, but got: %s != %s",
                tt_dtype_names[a->dtype], tt_dtype_names[b->dtype]);
        return false;
    }
    if (a->dtype == TT_BOOL) {
        tt_fail(TT_NOT_IMPLEMENTED, "not implemented for 'bool'");
        return false;
    }
    return true;
}

/* Versions of the first two inputs, as elementwise results carry them: Note [Version counters]. 8: one of them is an
 * inference tensor, which may not be saved. */
static int64_t versions(const tt_array *a, const tt_array *b) {
    int64_t inference = (a->flags | b->flags) & ~tt_thread_flags & TT_FLAG_INFERENCE ? 8 : 0;
    uint64_t va = (uint64_t)tt_version(a) & 0x3fffffff, vb = (uint64_t)tt_version(b) & 0x3fffffff;
    return inference | (int64_t)(va << 4 | vb << 34);
}

/* How a product is computed. */
enum {
    JOB = 1, /* it may be a job, because its result is rarely read at once */
    LAYER = 2,
};

/* All products: alpha a @ b + beta bias, into a fresh array. */
static tt_array *multiply(tt_array *a, bool ta, tt_array *b, bool tb, tt_array *bias, double beta, double alpha,
                          int how) {
    tt_product p;
    int64_t shape[TT_MAX_NDIM];
    tt_array *out;
    if (!tt_ready(a) || !tt_ready(b) || (bias && !tt_ready(bias))) return tt_decline();
    if (a->ndim == 0 || b->ndim == 0)
        return tt_fail(TT_RUNTIME_ERROR, "both arguments to matmul need to be at least 1D, but they are %dD and %dD",
                       a->ndim, b->ndim);
    if (!check_dtypes(a, b) || (bias && !check_dtypes(a, bias))) return NULL;
    p.alpha = alpha;
    p.beta = bias ? beta : 0;
    p.may_fold = !ta;
    if ((p.stack = tt_broadcast_batch(a, b, p.batch, &p.nbatch)) < 0) return NULL;
    describe(&p.a, a, ta, true, p.nbatch);
    describe(&p.b, b, tb, false, p.nbatch);
    if (p.a.cols != p.b.rows) return mismatch(&p, a, b), NULL;
    p.m = p.a.rows;
    p.n = p.b.cols;
    p.k = p.a.cols;
    if (p.k > INT_MAX || p.m > INT_MAX || p.n > INT_MAX)
        return tt_fail(TT_RUNTIME_ERROR, "matrices of more than %d rows or columns are not supported", INT_MAX);
    int nd = p.nbatch;
    memcpy(shape, p.batch, sizeof(int64_t) * (size_t)nd);
    if (a->ndim > 1) shape[nd++] = p.m;
    if (b->ndim > 1) shape[nd++] = p.n;
    if (!(out = tt_empty(a->dtype, nd, shape))) return NULL;
    p.layer = how & LAYER;
    p.asynchronous = how & JOB && tt_may_submit_jobs();
    bool done = TT_WORK("matmul", product, &p, out, a, b, bias);
    tt_product_done(&p);
    if (done) {
        out->stamp = versions(a, b);
        return out;
    }
    tt_free(out);
    return NULL;
}

static tt_array *matmul(tt_array *a, tt_array *b, int ta, int tb, int how) {
    TT_ON_DEVICE(NULL, "matmul", 2, ((tt_array *[]){a, b}));
    return multiply(a, ta, b, tb, NULL, 0, 1, how);
}

tt_array *tt_matmul(tt_array *a, tt_array *b, int ta, int tb) { return matmul(a, b, ta, tb, 0); }
tt_array *tt_layer_matmul(tt_array *a, tt_array *b, int ta, int tb) { return matmul(a, b, ta, tb, LAYER); }

tt_array *tt_addmm(tt_array *input, tt_array *a, tt_array *b, double beta, double alpha) {
    char have[TT_SHAPE_TEXT];
    TT_ON_DEVICE(NULL, "addmm", 3, ((tt_array *[]){a, b, input}));
    if (tt_is_integral(a->dtype) && (beta != 1 || alpha != 1)) return tt_decline();
    if (a->ndim != 2 || b->ndim != 2)
        return tt_fail(TT_RUNTIME_ERROR, "mat1 and mat2 must be matrices, got %dD and %dD tensors", a->ndim, b->ndim);
    if (a->shape[1] == b->shape[0]) { /* else multiply tells what is wrong */
        bool ok = input->ndim <= 2;
        for (int d = 1; ok && d <= input->ndim; d++) {
            int64_t s = input->shape[input->ndim - d], want = d == 1 ? b->shape[1] : a->shape[0];
            ok = s == 1 || s == want;
        }
        if (!ok)
            return tt_fail(TT_RUNTIME_ERROR,
                           "input of shape %s does not broadcast to (%lld, %lld): The expanded "
                           "size of the tensor must match the existing size",
                           tt_shape_text(have, input->ndim, input->shape), (long long)a->shape[0],
                           (long long)b->shape[1]);
    }
    return multiply(a, false, b, false, input, beta, alpha, 0);
}

static tt_array *linear(tt_array *x, tt_array *w, tt_array *bias, int how) {
    char have[TT_SHAPE_TEXT];
    TT_ON_DEVICE(NULL, "linear", 3, ((tt_array *[]){x, w, bias}));
    if (w->ndim != 2)
        return tt_fail(TT_RUNTIME_ERROR, "weight must be a matrix, got shape %s",
                       tt_shape_text(have, w->ndim, w->shape));
    if (bias && (bias->ndim != 1 || bias->shape[0] != w->shape[0]) && bias->ndim != 0)
        return tt_fail(TT_RUNTIME_ERROR,
                       "bias of shape %s does not match weight's %lld rows: The expanded size "
                       "of the tensor must match the existing size",
                       tt_shape_text(have, bias->ndim, bias->shape), (long long)w->shape[0]);
    return multiply(x, false, w, true, bias, 1, 1, how);
}

tt_array *tt_linear(tt_array *x, tt_array *w, tt_array *bias) { return linear(x, w, bias, 0); }
tt_array *tt_layer_linear(tt_array *x, tt_array *w, tt_array *bias) { return linear(x, w, bias, LAYER); }

/* All dimensions but the last as one; a copy where the strides do not allow it. */
static tt_array *as_rows(tt_array *a) {
    int64_t cols = a->ndim ? a->shape[a->ndim - 1] : 1, rows = 1;
    for (int d = 0; d + 1 < a->ndim; d++) rows *= a->shape[d];
    int64_t shape[2] = {rows, cols};
    if (!(a->flags & TT_FLAG_CONTIGUOUS)) {
        tt_array *plain = tt_contiguous_now(a);
        if (!plain) return NULL;
        tt_array *flat = tt_reshape_view(plain, 2, shape);
        tt_free(plain);
        return flat;
    }
    return tt_reshape_view(a, 2, shape);
}

static tt_array *weight_gradient(tt_array *g, tt_array *x, int how) {
    TT_ON_DEVICE(NULL, "linear", 2, ((tt_array *[]){g, x}));
    if (!tt_ready(g) || !tt_ready(x)) return tt_decline();
    if (g->ndim == 2 && x->ndim == 2) return multiply(g, true, x, false, NULL, 0, 1, how);
    tt_array *rows_g = as_rows(g), *rows_x = as_rows(x);
    tt_array *out = rows_g && rows_x ? multiply(rows_g, true, rows_x, false, NULL, 0, 1, how) : NULL;
    if (rows_g) tt_free(rows_g);
    if (rows_x) tt_free(rows_x);
    return out;
}

tt_array *tt_linear_weight(tt_array *g, tt_array *x) { return weight_gradient(g, x, JOB); }
tt_array *tt_layer_weight(tt_array *g, tt_array *x) { return weight_gradient(g, x, JOB | LAYER); }
