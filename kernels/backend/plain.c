/* Operands and results as loops and kernels want them: plain.h. */
#include "backend/plain.h"
#include "backend/now.h"

bool tt_plain_take(tt_plain *p, tt_array *a, int dtype) {
    p->copy = NULL;
    p->array = a;
    if (!a || (a->flags & TT_FLAG_CONTIGUOUS && a->dtype == dtype)) return true;
    p->array = p->copy = tt_empty(dtype, a->ndim, a->shape);
    return p->copy && tt_copy_now(p->copy, a) == 0;
}

void tt_plain_done(tt_plain *p, int n) {
    for (int k = 0; k < n; k++)
        if (p[k].copy) tt_free(p[k].copy);
}

bool tt_wide_start(tt_wide *w, tt_array *out, int dtype) {
    w->out = out;
    w->array = out->dtype == dtype ? out : tt_empty(dtype, out->ndim, out->shape);
    return w->array != NULL;
}

bool tt_wide_end(tt_wide *w, bool good) {
    if (w->array == w->out) return good;
    good = good && tt_copy_now(w->out, w->array) == 0;
    if (w->array) tt_free(w->array);
    return good;
}
