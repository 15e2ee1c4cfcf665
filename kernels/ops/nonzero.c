/* Positions: where a tensor is not zero, where values belong in a sorted one, whether they occur, one-hot rows. */
#include "api/index.h"
#include "backend/backend.h"
#include "backend/now.h"
#include <string.h>

/* Calls that need all elements dense in one dtype; the caller frees *copy if there is one. */
static void *dense(tt_array *a, int dtype, tt_array **copy) {
    static char nothing; /* a device has no memory for no elements, and NULL is an error here */
    *copy = NULL;
    if (!a->numel) return &nothing;
    if (a->dtype == dtype && a->flags & TT_FLAG_CONTIGUOUS) return a->data;
    if (!(*copy = tt_empty(dtype, a->ndim, a->shape))) return NULL;
    if (tt_copy_now(*copy, a) == 0) return (*copy)->data;
    tt_free(*copy);
    *copy = NULL;
    return NULL;
}

/* The positions of what is not zero, in row-major order: one number each (flat), or a row of ndim numbers. */
tt_array *tt_nonzero(tt_array *a, int flat) {
    TT_ON_DEVICE(NULL, "nonzero", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    tt_array *copy;
    const uint8_t *set = dense(a, TT_BOOL, &copy);
    tt_array *found = set ? TT_WORK_ARRAY("nonzero", nonzero, set, a, flat) : NULL;
    if (copy) tt_free(copy);
    return found;
}

/* Position i as often as repeats[i] says. */
tt_array *tt_repeat_positions(tt_array *repeats) {
    TT_ON_DEVICE(NULL, "repeat_interleave", 1, &repeats);
    if (!tt_ready(repeats)) return tt_decline();
    if (!tt_has_order("repeat_interleave", repeats->dtype)) return NULL;
    tt_array *copy;
    const int64_t *times = dense(repeats, TT_I64, &copy);
    tt_array *out = times ? TT_WORK_ARRAY("repeat_interleave", repeat_positions, times, repeats->numel) : NULL;
    if (copy) tt_free(copy);
    return out;
}

/* Searches are made in float64 or int64, which hold every dtype's values exactly. */

/* Rows of `sorted` are searched for the rows of `values` (all but the last dimension agree), or its one row for all. */
tt_array *tt_searchsorted(tt_array *sorted, tt_array *values, tt_array *order, int right, int dtype) {
    TT_ON_DEVICE(NULL, "searchsorted", 3, ((tt_array *[]){sorted, values, order}));
    if (!tt_ready(sorted) || !tt_ready(values) || (order && !tt_ready(order))) return tt_decline();
    if (!tt_has_order("searchsorted", sorted->dtype) || !tt_has_order("searchsorted", values->dtype)) return NULL;
    tt_array *copies[3] = {NULL, NULL, NULL}, *out = NULL;
    bool floating = tt_is_floating(sorted->dtype) || tt_is_floating(values->dtype);
    int in = floating ? TT_F64 : TT_I64, last = sorted->ndim - 1;
    const void *in_sorted, *in_values;
    const int64_t *in_order = NULL;
    int64_t per_row = sorted->ndim == 1 ? 0 : values->shape[last] ? values->shape[last] : 1;
    if (!(in_sorted = dense(sorted, in, &copies[0])) || !(in_values = dense(values, in, &copies[1]))) goto done;
    if (order && !(in_order = dense(order, TT_I64, &copies[2]))) goto done;
    out = tt_empty(dtype, values->ndim, values->shape);
    if (out && !TT_WORK("searchsorted", search, in_sorted, in_values, in_order, sorted->shape[last], per_row, right, in,
                        out)) {
        tt_free(out);
        out = NULL;
    }
done:
    for (int k = 0; k < 3; k++)
        if (copies[k]) tt_free(copies[k]);
    return out;
}

/* Which elements of a occur in `among`: bool. NaN is never found. */
tt_array *tt_isin(tt_array *a, tt_array *among, int invert) {
    TT_ON_DEVICE(NULL, "isin", 2, ((tt_array *[]){a, among}));
    if (!tt_ready(a) || !tt_ready(among)) return tt_decline();
    if (!tt_has_order("isin", a->dtype) || !tt_has_order("isin", among->dtype)) return NULL;
    bool floating = tt_is_floating(a->dtype) || tt_is_floating(among->dtype);
    tt_array *copy = NULL, *out = NULL, *set = tt_empty(floating ? TT_F64 : TT_I64, among->ndim, among->shape);
    if (!set) return NULL;
    const void *values = tt_copy_now(set, among) < 0 ? NULL : dense(a, set->dtype, &copy);
    if (values) out = tt_empty(TT_BOOL, a->ndim, a->shape);
    if (out && !TT_WORK("isin", isin, set, values, invert, out)) {
        tt_free(out);
        out = NULL;
    }
    if (copy) tt_free(copy);
    tt_free(set);
    return out;
}

/* Rows of zeros with a one at the class; num_classes < 0: one more than the largest class. */
tt_array *tt_one_hot(tt_array *a, int64_t num_classes) {
    int64_t shape[TT_MAX_NDIM], top = -1, least = 0;
    TT_ON_DEVICE(NULL, "one_hot", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!tt_has_order("one_hot", a->dtype)) return NULL;
    if (a->ndim == TT_MAX_NDIM)
        return tt_fail(TT_RUNTIME_ERROR, "one_hot: only tensors with up to %d dims are supported, got %d", TT_MAX_NDIM,
                       a->ndim + 1);
    tt_array *copy, *out = NULL;
    const int64_t *classes = dense(a, TT_I64, &copy);
    if (!classes) return NULL;
    if (!a->numel && num_classes <= 0) {
        tt_fail(TT_RUNTIME_ERROR, "one_hot: Can not infer total number of classes from empty tensor.");
        goto done;
    }
    bool looks = a->numel && (num_classes < 0 || tt_here()->on_host);
    if (looks && !TT_WORK("one_hot", extremes, classes, TT_I64, a->numel, &least, &top)) goto done;
    if (least < 0) {
        tt_fail(TT_RUNTIME_ERROR, "one_hot: Class values must be non-negative, got %lld.", (long long)least);
        goto done;
    }
    if (num_classes < 0) num_classes = top < INT64_MAX ? top + 1 : top;
    else if (top >= num_classes) {
        tt_fail(TT_RUNTIME_ERROR,
                "one_hot: Class values must be smaller than num_classes. Got %lld, num_classes is "
                "%lld",
                (long long)top, (long long)num_classes);
        goto done;
    }
    memcpy(shape, a->shape, sizeof(int64_t) * (size_t)a->ndim);
    shape[a->ndim] = num_classes;
    out = tt_empty(TT_I64, a->ndim + 1, shape);
    if (out && !TT_WORK("one_hot", one_hot, classes, a->numel, out)) {
        tt_free(out);
        out = NULL;
    }
done:
    if (copy) tt_free(copy);
    return out;
}
