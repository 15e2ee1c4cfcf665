/* Operands and results as loops and kernels want them: plain.h. */
#include "backend/plain.h"
#include "backend/now.h"

bool tt_plain_copy(tt_plain *p, tt_array *a, int dtype) {
    p->array = p->copy = tt_empty(dtype, a->ndim, a->shape);
    return p->copy && tt_copy_now(p->copy, a) == 0;
}

bool tt_wide_copy(tt_wide *w, bool good) {
    good = good && tt_copy_now(w->out, w->array) == 0;
    if (w->array) tt_free(w->array);
    return good;
}
