/* Operands of products: product.h. */
#include "backend/product.h"
#include "backend/now.h"
#include <limits.h>

/* Does BLAS take the matrix as it lies? */
static bool fits(tt_matrices *x) {
    if ((x->col_step == 1 || x->cols <= 1) && (x->rows <= 1 || x->row_step >= x->cols)) {
        x->trans = false;
        x->ld = x->rows <= 1 ? x->cols : x->row_step;
    } else if ((x->row_step == 1 || x->rows <= 1) && (x->cols <= 1 || x->col_step >= x->rows)) {
        x->trans = true;
        x->ld = x->cols <= 1 ? x->rows : x->col_step;
    } else return false;
    if (x->ld < 1) x->ld = 1;
    return x->ld <= INT_MAX;
}

bool tt_product_prepare(tt_product *p, tt_matrices *x, const tt_array *from, bool always_plain, bool whole) {
    if (from->dtype == p->dtype && fits(x) && !(always_plain && x->trans) && !whole) return true;
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM];
    tt_array view = {.storage = from->storage,
                     .data = (char *)(uintptr_t)x->data,
                     .dtype = from->dtype,
                     .ndim = p->nbatch + 2,
                     .numel = x->rows * x->cols,
                     .shape = shape,
                     .strides = strides};
    for (int d = 0; d < p->nbatch; d++) {
        view.shape[d] = x->steps[d] || whole ? p->batch[d] : 1; /* what is broadcast is copied once */
        view.strides[d] = x->steps[d];
        view.numel *= view.shape[d];
    }
    view.shape[p->nbatch] = x->rows;
    view.shape[p->nbatch + 1] = x->cols;
    view.strides[p->nbatch] = x->row_step;
    view.strides[p->nbatch + 1] = x->col_step;
    if (!(x->copy = tt_empty(p->dtype, view.ndim, view.shape)) || tt_copy_now(x->copy, &view) < 0) return false;
    x->data = x->copy->data;
    for (int d = 0; d < p->nbatch; d++) x->steps[d] = x->steps[d] || whole ? x->copy->strides[d] : 0;
    x->row_step = x->cols;
    x->col_step = 1;
    return fits(x);
}

void tt_product_fold_batch(tt_product *p) {
    int64_t rows = p->a.rows, step = p->a.row_step;
    for (int d = p->nbatch - 1; d >= 0; d--) {
        if (p->batch[d] == 1) continue;
        if (p->b.steps[d] != 0) return;
        if (rows == 1) step = p->a.steps[d];
        else if (p->a.steps[d] != rows * step) return;
        rows *= p->batch[d];
    }
    p->a.rows = p->m = rows;
    p->a.row_step = step;
    p->nbatch = 0;
    p->stack = 1;
}

void tt_product_done(tt_product *p) {
    if (p->a.copy) tt_free(p->a.copy);
    if (p->b.copy) tt_free(p->b.copy);
    p->a.copy = p->b.copy = NULL;
}
