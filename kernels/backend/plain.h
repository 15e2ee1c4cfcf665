/* Operands and results as loops and kernels want them. */
#pragma once
#include "core/tt.h"

/* An operand, contiguous and of one dtype: itself, or a copy that tt_plain_done frees. NULL stays NULL. */
typedef struct {
    tt_array *array, *copy;
} tt_plain;
bool tt_plain_copy(tt_plain *p, tt_array *a, int dtype);
static inline bool tt_plain_take(tt_plain *p, tt_array *a, int dtype) {
    *p = (tt_plain){a, NULL};
    return !a || (a->flags & TT_FLAG_CONTIGUOUS && a->dtype == dtype) || tt_plain_copy(p, a, dtype);
}
static inline void tt_plain_done(tt_plain *p, int n) {
    for (int k = 0; k < n; k++)
        if (p[k].copy) tt_free(p[k].copy);
}
static inline const char *tt_plain_data(const tt_plain *p) { return p->array ? p->array->data : NULL; }

/* A contiguous result: itself, or an array of another dtype, which is copied to it in the end. */
typedef struct {
    tt_array *array, *out;
} tt_wide;
static inline bool tt_wide_start(tt_wide *w, tt_array *out, int dtype) {
    *w = (tt_wide){out->dtype == dtype ? out : tt_empty(dtype, out->ndim, out->shape), out};
    return w->array != NULL;
}
bool tt_wide_copy(tt_wide *w, bool good);
static inline bool tt_wide_end(tt_wide *w, bool good) { return w->array == w->out ? good : tt_wide_copy(w, good); }
