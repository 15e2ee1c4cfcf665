/* Positions: where a tensor is not zero, where values belong in a sorted one, whether they occur, one-hot rows. */
#include "cuda/host/cuda.h"
#include "cpu/simd.h"
#include "api/index.h"
#include <stdlib.h>
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
    if (!set) return NULL;
    if (tt_device) {
        tt_array *found = tt_cuda_nonzero(set, a, flat);
        if (copy) tt_free(copy);
        return found;
    }
    int64_t count = 0, n = a->numel, ndim = flat ? 1 : a->ndim;
    for (int64_t i = 0; i < n;) { /* in short stretches, whose counts fit a byte: that vectorises */
        int64_t end = n - i < 128 ? n : i + 128;
        uint8_t some = 0;
        for (; i < end; i++) some = (uint8_t)(some + (set[i] != 0));
        count += some;
    }
    tt_array *out = tt_empty(TT_I64, flat ? 1 : 2, (int64_t[]){count, ndim});
    if (out && (flat || a->ndim == 1)) {
        int64_t *p = (int64_t *)out->data, k = 0;
        for (int64_t i = 0; k < count; i++) {
            p[k] = i; /* overwritten unless it counts */
            k += set[i] != 0;
        }
    } else if (out && ndim) {
        int64_t *p = (int64_t *)out->data, index[TT_MAX_NDIM] = {0};
        for (int64_t i = 0, k = 0; k < count; i++) {
            if (set[i]) {
                memcpy(p + k * ndim, index, sizeof(int64_t) * (size_t)ndim);
                k++;
            }
            for (int64_t d = ndim - 1; d >= 0 && ++index[d] == a->shape[d]; d--) index[d] = 0;
        }
    }
    if (copy) tt_free(copy);
    return out;
}

/* Position i as often as repeats[i] says. */
tt_array *tt_repeat_positions(tt_array *repeats) {
    TT_ON_DEVICE(NULL, "repeat_interleave", 1, &repeats);
    if (!tt_ready(repeats)) return tt_decline();
    tt_array *copy, *out = NULL;
    const int64_t *times = dense(repeats, TT_I64, &copy);
    if (!times) return NULL;
    int64_t total = 0;
    bool good = !tt_device;
    if (tt_device) out = tt_cuda_repeat_positions(times, repeats->numel);
    for (int64_t i = 0; good && i < repeats->numel; i++) {
        if (times[i] < 0) {
            tt_fail(TT_RUNTIME_ERROR, "repeat_interleave: repeats can not be negative, got %lld at position %lld",
                    (long long)times[i], (long long)i);
            good = false;
        } else if (__builtin_add_overflow(total, times[i], &total)) {
            tt_fail(TT_RUNTIME_ERROR, "repeat_interleave: the sum of repeats overflows");
            good = false;
        }
    }
    if (good && (out = tt_empty(TT_I64, 1, &total))) {
        int64_t *p = (int64_t *)out->data;
        for (int64_t i = 0; i < repeats->numel; i++)
            for (int64_t k = 0; k < times[i]; k++) *p++ = i;
    }
    if (copy) tt_free(copy);
    return out;
}

/* Searches are made in float64 or int64, which hold every dtype's values exactly. */

/* The first place whose entry is not below x (right: above x). `order` sorts the entries, or is NULL. */
#define BOUND(T, name)                                                                                    \
    static int64_t name(const T *sorted, const int64_t *order, int64_t n, T x, bool right) {              \
        int64_t low = 0, high = n;                                                                        \
        while (low < high) {                                                                              \
            int64_t mid = low + (high - low) / 2;                                                         \
            T entry = sorted[order ? order[mid] : mid];                                                   \
            if (right ? !(entry > x) : !(entry >= x)) low = mid + 1;                                      \
            else high = mid;                                                                              \
        }                                                                                                 \
        return low;                                                                                       \
    }
BOUND(double, bound_f)
BOUND(int64_t, bound_i)

typedef struct {
    const void *sorted, *values;
    const int64_t *order;
    int64_t n, per_row; /* sorted's last dimension; values for each row of it (0: one row serves all) */
    bool right, floating;
    void *out;
    int dtype;
} search;

static void search_range(void *context, int64_t begin, int64_t end) {
    const search *s = context;
    for (int64_t i = begin; i < end; i++) {
        int64_t row = s->per_row ? i / s->per_row * s->n : 0, place;
        const int64_t *order = s->order ? s->order + row : NULL;
        if (s->floating)
            place = bound_f((const double *)s->sorted + row, order, s->n, ((const double *)s->values)[i], s->right);
        else
            place = bound_i((const int64_t *)s->sorted + row, order, s->n, ((const int64_t *)s->values)[i], s->right);
        if (s->dtype == TT_I32) ((int32_t *)s->out)[i] = (int32_t)place;
        else ((int64_t *)s->out)[i] = place;
    }
}

/* Rows of `sorted` are searched for the rows of `values` (all but the last dimension agree), or its one row for all. */
tt_array *tt_searchsorted(tt_array *sorted, tt_array *values, tt_array *order, int right, int dtype) {
    TT_ON_DEVICE(NULL, "searchsorted", 3, ((tt_array *[]){sorted, values, order}));
    if (!tt_ready(sorted) || !tt_ready(values) || (order && !tt_ready(order))) return tt_decline();
    tt_array *copies[3] = {NULL, NULL, NULL}, *out = NULL;
    bool floating = tt_is_floating(sorted->dtype) || tt_is_floating(values->dtype);
    int in = floating ? TT_F64 : TT_I64, last = sorted->ndim - 1;
    search s = {.n = sorted->shape[last], .right = right, .floating = floating, .dtype = dtype};
    if (sorted->ndim > 1) s.per_row = values->shape[last] ? values->shape[last] : 1;
    if (!(s.sorted = dense(sorted, in, &copies[0])) || !(s.values = dense(values, in, &copies[1]))) goto done;
    if (order && !(s.order = dense(order, TT_I64, &copies[2]))) goto done;
    if (tt_device) {
        out = tt_empty(dtype, values->ndim, values->shape);
        if (out && !tt_cuda_search(s.sorted, s.values, s.order, s.n, s.per_row, right, in, out)) {
            tt_free(out);
            out = NULL;
        }
        goto done;
    }
    for (int64_t i = 0; order && i < order->numel; i++)
        if (s.order[i] < 0 || s.order[i] >= s.n) {
            tt_fail(TT_RUNTIME_ERROR, "searchsorted: sorter index %lld is out of range for a dimension of size %lld",
                    (long long)s.order[i], (long long)s.n);
            goto done;
        }
    if ((out = tt_empty(dtype, values->ndim, values->shape))) {
        s.out = out->data;
        tt_parallel(out->numel, 1 << 12, search_range, &s);
    }
done:
    for (int k = 0; k < 3; k++)
        if (copies[k]) tt_free(copies[k]);
    return out;
}

static int compare_f(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    int nans = (x != x) - (y != y); /* NaN comes last */
    return nans ? nans : x < y ? -1 : x > y;
}
static int compare_i(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

/* Which elements of a occur in `among`: bool. NaN is never found. */
tt_array *tt_isin(tt_array *a, tt_array *among, int invert) {
    TT_ON_DEVICE(NULL, "isin", 2, ((tt_array *[]){a, among}));
    if (!tt_ready(a) || !tt_ready(among)) return tt_decline();
    bool floating = tt_is_floating(a->dtype) || tt_is_floating(among->dtype);
    tt_array *copy, *out = NULL, *sorted = tt_empty(floating ? TT_F64 : TT_I64, among->ndim, among->shape);
    if (!sorted) return NULL;
    const void *values = tt_copy_now(sorted, among) < 0 ? NULL : dense(a, sorted->dtype, &copy);
    if (!values) goto done;
    if (tt_device) {
        out = tt_empty(TT_BOOL, a->ndim, a->shape);
        if (out && !tt_cuda_isin(sorted, values, invert, out)) {
            tt_free(out);
            out = NULL;
        }
        if (copy) tt_free(copy);
        goto done;
    }
    if (sorted->numel) qsort(sorted->data, (size_t)sorted->numel, 8, floating ? compare_f : compare_i);
    int64_t many = sorted->numel; /* less the NaNs, which would mislead the search */
    while (floating && many && ((const double *)sorted->data)[many - 1] != ((const double *)sorted->data)[many - 1]) many--;
    if ((out = tt_empty(TT_BOOL, a->ndim, a->shape)))
        for (int64_t i = 0; i < a->numel; i++) {
            bool found;
            if (floating) {
                const double *set = (const double *)sorted->data, x = ((const double *)values)[i];
                int64_t at = bound_f(set, NULL, many, x, false);
                found = at < many && set[at] == x;
            } else {
                const int64_t *set = (const int64_t *)sorted->data, x = ((const int64_t *)values)[i];
                int64_t at = bound_i(set, NULL, many, x, false);
                found = at < many && set[at] == x;
            }
            ((uint8_t *)out->data)[i] = found != (bool)invert;
        }
    if (copy) tt_free(copy);
done:
    tt_free(sorted);
    return out;
}

/* Rows of zeros with a one at the class; num_classes < 0: one more than the largest class. */
tt_array *tt_one_hot(tt_array *a, int64_t num_classes) {
    int64_t shape[TT_MAX_NDIM], top = -1, least = 0;
    TT_ON_DEVICE(NULL, "one_hot", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (a->ndim == TT_MAX_NDIM) return tt_fail(TT_RUNTIME_ERROR, "one_hot: too many dimensions");
    tt_array *copy, *out = NULL;
    const int64_t *classes = dense(a, TT_I64, &copy);
    if (!classes) return NULL;
    if (!a->numel && num_classes <= 0) {
        tt_fail(TT_RUNTIME_ERROR, "one_hot: Can not infer total number of classes from empty tensor.");
        goto done;
    }
    if (tt_device && num_classes < 0 && !tt_cuda_extremes(classes, TT_I64, a->numel, &least, &top)) goto done;
    for (int64_t i = 0; !tt_device && i < a->numel && least >= 0; i++) {
        least = classes[i];
        if (classes[i] > top) top = classes[i];
    }
    if (least < 0) {
        tt_fail(TT_RUNTIME_ERROR, "one_hot: Class values must be non-negative, got %lld.", (long long)least);
        goto done;
    }
    if (num_classes < 0) num_classes = top < INT64_MAX ? top + 1 : top;
    else if (top >= num_classes) {
        tt_fail(TT_RUNTIME_ERROR, "one_hot: Class values must be smaller than num_classes. Got %lld, num_classes is "
                "%lld", (long long)top, (long long)num_classes);
        goto done;
    }
    memcpy(shape, a->shape, sizeof(int64_t) * (size_t)a->ndim);
    shape[a->ndim] = num_classes;
    if (tt_device) {
        out = tt_empty(TT_I64, a->ndim + 1, shape);
        if (out && !tt_cuda_one_hot(classes, a->numel, out)) {
            tt_free(out);
            out = NULL;
        }
    } else if ((out = tt_full_now(TT_I64, a->ndim + 1, shape, TT_KIND_INT, 0, 0)))
        for (int64_t i = 0; i < a->numel; i++) ((int64_t *)out->data)[i * num_classes + classes[i]] = 1;
done:
    if (copy) tt_free(copy);
    return out;
}
