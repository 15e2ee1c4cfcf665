/* Counting and searching on the CPU: nonzero, repeated positions, searches, histograms, one-hot rows. */
#include "cpu/cpu.h"
#include <stdlib.h>
#include <string.h>

tt_array *tt_cpu_nonzero(const uint8_t *set, const tt_array *a, bool flat) {
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
        int64_t *p = (int64_t *)out->data, index[TT_MAX_NDIM];
        memset(index, 0, sizeof(int64_t) * (size_t)ndim);
        for (int64_t i = 0, k = 0; k < count; i++) {
            if (set[i]) {
                memcpy(p + k * ndim, index, sizeof(int64_t) * (size_t)ndim);
                k++;
            }
            for (int64_t d = ndim - 1; d >= 0 && ++index[d] == a->shape[d]; d--) index[d] = 0;
        }
    }
    return out;
}

tt_array *tt_cpu_repeat_positions(const int64_t *times, int64_t n) {
    int64_t total = 0;
    for (int64_t i = 0; i < n; i++) {
        if (times[i] < 0)
            return tt_fail(TT_RUNTIME_ERROR,
                           "repeat_interleave: repeats can not be negative, got %lld at position %lld",
                           (long long)times[i], (long long)i);
        if (__builtin_add_overflow(total, times[i], &total))
            return tt_fail(TT_RUNTIME_ERROR, "repeat_interleave: the sum of repeats overflows");
    }
    tt_array *out = tt_empty(TT_I64, 1, &total);
    int64_t *p = out ? (int64_t *)out->data : NULL;
    for (int64_t i = 0; out && i < n; i++)
        for (int64_t k = 0; k < times[i]; k++) *p++ = i;
    return out;
}

/* The first place whose entry is not below x (right: above x). `order` sorts the entries, or is NULL. */
#define BOUND(T, name)                                                                                                 \
    static int64_t name(const T *sorted, const int64_t *order, int64_t n, T x, bool right) {                           \
        int64_t low = 0, high = n;                                                                                     \
        while (low < high) {                                                                                           \
            int64_t mid = low + (high - low) / 2;                                                                      \
            T entry = sorted[order ? order[mid] : mid];                                                                \
            if (right ? !(entry > x) : !(entry >= x)) low = mid + 1;                                                   \
            else high = mid;                                                                                           \
        }                                                                                                              \
        return low;                                                                                                    \
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
        else place = bound_i((const int64_t *)s->sorted + row, order, s->n, ((const int64_t *)s->values)[i], s->right);
        if (s->dtype == TT_I32) ((int32_t *)s->out)[i] = (int32_t)place;
        else ((int64_t *)s->out)[i] = place;
    }
}

bool tt_cpu_search(const void *sorted, const void *values, const int64_t *order, int64_t n, int64_t per_row, bool right,
                   int dtype, tt_array *out) {
    int64_t rows = per_row ? out->numel / per_row : 1;
    for (int64_t i = 0; order && i < rows * n; i++)
        if (order[i] < 0 || order[i] >= n) {
            tt_fail(TT_RUNTIME_ERROR, "searchsorted: sorter index %lld is out of range for a dimension of size %lld",
                    (long long)order[i], (long long)n);
            return false;
        }
    search s = {.sorted = sorted,
                .values = values,
                .order = order,
                .n = n,
                .per_row = per_row,
                .right = right,
                .floating = dtype == TT_F64,
                .out = out->data,
                .dtype = out->dtype};
    tt_parallel(out->numel, 1 << 12, search_range, &s);
    return true;
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

bool tt_cpu_isin(tt_array *among, const void *values, bool invert, tt_array *out) {
    bool floating = among->dtype == TT_F64;
    if (among->numel) qsort(among->data, (size_t)among->numel, 8, floating ? compare_f : compare_i);
    int64_t many = among->numel; /* less the NaNs, which would mislead the search */
    while (floating && many && ((const double *)among->data)[many - 1] != ((const double *)among->data)[many - 1])
        many--;
    for (int64_t i = 0; i < out->numel; i++) {
        bool found;
        if (floating) {
            const double *set = (const double *)among->data, x = ((const double *)values)[i];
            int64_t at = bound_f(set, NULL, many, x, false);
            found = at < many && set[at] == x;
        } else {
            const int64_t *set = (const int64_t *)among->data, x = ((const int64_t *)values)[i];
            int64_t at = bound_i(set, NULL, many, x, false);
            found = at < many && set[at] == x;
        }
        ((uint8_t *)out->data)[i] = found != invert;
    }
    return true;
}

#define EXTREMES(T)                                                                                                    \
    const T *v = x;                                                                                                    \
    T lo = v[0], hi = v[0];                                                                                            \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        lo = v[i] < lo || v[i] != v[i] ? v[i] : lo;                                                                    \
        hi = v[i] > hi || v[i] != v[i] ? v[i] : hi;                                                                    \
    }                                                                                                                  \
    *(T *)least = lo;                                                                                                  \
    *(T *)largest = hi;

bool tt_cpu_extremes(const void *x, int dtype, int64_t n, void *least, void *largest) {
    if (dtype == TT_F64) {
        EXTREMES(double)
    } else {
        EXTREMES(int64_t)
    }
    return true;
}

bool tt_cpu_histogram(const void *x, int dtype, int64_t n, double lo, double hi, tt_array *out) {
    const double *v = x;
    int64_t bins = out->numel;
    for (int64_t i = 0; dtype == TT_I64 && i < n; i++) ((int64_t *)out->data)[((const int64_t *)x)[i]]++;
    for (int64_t i = 0; dtype == TT_F64 && i < n; i++) {
        if (!(v[i] >= lo && v[i] <= hi)) continue;
        int64_t bin = (int64_t)((v[i] - lo) / (hi - lo) * (double)bins);
        if (bin >= bins) bin = bins - 1;
        if (out->dtype == TT_F32) ((float *)out->data)[bin] += 1;
        else ((double *)out->data)[bin] += 1;
    }
    return true;
}

bool tt_cpu_one_hot(const int64_t *classes, int64_t n, tt_array *out) {
    int64_t width = out->shape[out->ndim - 1];
    if (tt_fill_now(out, TT_KIND_INT, 0, 0) < 0) return false;
    for (int64_t i = 0; i < n; i++) ((int64_t *)out->data)[i * width + classes[i]] = 1;
    return true;
}

bool tt_cpu_add_at(tt_array *out, tt_array *x, tt_array *weights) {
    const int64_t *at = (const int64_t *)x->data;
    for (int64_t i = 0; i < x->numel; i++)
        if (out->dtype == TT_F32) ((float *)out->data)[at[i]] += ((float *)weights->data)[i];
        else ((double *)out->data)[at[i]] += ((double *)weights->data)[i];
    return true;
}
