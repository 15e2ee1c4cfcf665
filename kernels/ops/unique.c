/* What follows from an order, or from counting: unique elements and rows, histograms. */
#include "cuda/host/cuda.h"
#include "cpu/simd.h"
#include "cpu/sort.h"
#include "api/index.h"
#include "api/sort.h"
#include <math.h>
#include <string.h>

/* The keys of a contiguous array as 64-bit numbers. */
static void keys_of(uint64_t *out, const tt_array *a) {
    int64_t n = a->numel;
    int size = tt_itemsizes[a->dtype];
    tt_keyed wide[256];
    tt_packed narrow[256];
    for (int64_t i = 0; i < n; i += 256) {
        int64_t m = n - i < 256 ? n - i : 256;
        const char *p = a->data + i * size;
        if (tt_key_is_narrow(a->dtype)) tt_make_packed(narrow, p, a->dtype, m, false);
        else tt_make_keyed(wide, p, a->dtype, m, false);
        for (int64_t k = 0; k < m; k++) out[i + k] = tt_key_is_narrow(a->dtype) ? narrow[k] >> 32 : wide[k].key;
    }
}

static bool is_nan_key(int dtype, uint64_t key) {
    return tt_is_floating(dtype) && key == (dtype == TT_F64 ? ~(uint64_t)0 : 0xffffffffu);
}

typedef struct {
    const uint64_t *keys; /* [n][width] */
    int64_t n, width;
    int dtype;
} table;

static int compare(const table *t, int64_t a, int64_t b) {
    const uint64_t *x = t->keys + a * t->width, *y = t->keys + b * t->width;
    for (int64_t i = 0; i < t->width; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}

/* NaN differs from itself. */
static bool same(const table *t, int64_t a, int64_t b) {
    if (compare(t, a, b) != 0) return false;
    for (int64_t i = 0; i < t->width; i++)
        if (is_nan_key(t->dtype, t->keys[a * t->width + i])) return false;
    return true;
}

/* Row numbers in the order of the rows; stable. The result is in one of the two. */
static int64_t *order_rows(const table *t, int64_t *x, int64_t *spare) {
    for (int64_t run = 1; run < t->n; run *= 2) {
        for (int64_t i = 0; i < t->n; i += 2 * run) {
            int64_t a = i, mid = i + run < t->n ? i + run : t->n, b = mid, end = mid + run < t->n ? mid + run : t->n;
            for (int64_t to = i; to < end; to++)
                spare[to] = a < mid && (b >= end || compare(t, x[b], x[a]) >= 0) ? x[a++] : x[b++];
        }
        int64_t *swap = x;
        x = spare;
        spare = swap;
    }
    return x;
}

static void order_elements(const table *t, int64_t *order, tt_keyed *x, tt_keyed *spare) {
    for (int64_t i = 0; i < t->n; i++) x[i] = (tt_keyed){t->keys[i], (uint64_t)i};
    x = tt_sort_keyed(x, spare, t->n, tt_compact_keys(x, t->n));
    for (int64_t i = 0; i < t->n; i++) order[i] = (int64_t)x[i].index;
}

/* Groups of equal rows; gives the number of the first row of each. */
static tt_array *groups(const table *t, const int64_t *order, tt_array **inverse, tt_array **counts) {
    int64_t n = t->n, many = 0;
    for (int64_t i = 0; i < n; i++) many += i == 0 || !same(t, order[i - 1], order[i]);
    tt_array *first = tt_empty(TT_I64, 1, &many), *inv = tt_empty(TT_I64, 1, &n), *cnt = tt_empty(TT_I64, 1, &many);
    if (!first || !inv || !cnt) {
        if (first) tt_free(first);
        if (inv) tt_free(inv);
        if (cnt) tt_free(cnt);
        return NULL;
    }
    int64_t *f = (int64_t *)first->data, *v = (int64_t *)inv->data, *c = (int64_t *)cnt->data, g = -1;
    for (int64_t i = 0; i < n; i++) {
        if (i == 0 || !same(t, order[i - 1], order[i])) {
            f[++g] = order[i];
            c[g] = 0;
        }
        v[order[i]] = g;
        c[g]++;
    }
    *inverse = inv;
    *counts = cnt;
    return first;
}

static tt_array *unique(tt_array *a, int64_t n, int64_t width, int consecutive, tt_array **inverse, tt_array **counts) {
    if (!tt_ready(a)) return tt_decline();
    tt_array *x = tt_contiguous_now(a), *first = NULL;
    if (x && tt_device) {
        first = tt_cuda_groups(x, n, width, consecutive, inverse, counts);
        tt_free(x);
        return first;
    }
    int64_t keys = n * width * 8, orders = n * 8;
    char *room = x ? tt_scratch(keys + 2 * orders + (width == 1 ? n * 32 : 0)) : NULL;
    if (room) {
        table t = {(uint64_t *)room, n, width, a->dtype};
        int64_t *order = (int64_t *)(room + keys), *spare = order + n;
        keys_of((uint64_t *)room, x);
        for (int64_t i = 0; i < n; i++) order[i] = i;
        if (!consecutive && width == 1)
            order_elements(&t, order, (tt_keyed *)(spare + n), (tt_keyed *)(spare + n) + n);
        else if (!consecutive) order = order_rows(&t, order, spare);
        first = groups(&t, order, inverse, counts);
        tt_scratch_free(room);
    }
    if (x) tt_free(x);
    return first;
}

tt_array *tt_unique_rows(tt_array *a, int consecutive, tt_array **inverse, tt_array **counts) {
    TT_ON_DEVICE(NULL, "unique", 1, &a);
    return unique(a, a->shape[0], a->shape[0] ? a->numel / a->shape[0] : 0, consecutive, inverse, counts);
}

tt_array *tt_unique(tt_array *a, int consecutive, tt_array **inverse, tt_array **counts) {
    TT_ON_DEVICE(NULL, "unique", 1, &a);
    tt_array *first = unique(a, a->numel, 1, consecutive, inverse, counts), *x = first ? tt_contiguous_now(a) : NULL;
    tt_array *out = x ? tt_empty(a->dtype, 1, first->shape) : NULL;
    int64_t *f = first ? (int64_t *)first->data : NULL;
    int size = tt_itemsizes[a->dtype];
    if (out && tt_device && out->numel) {
        tt_array flat = *x; /* as a vector */
        flat.ndim = 1;
        flat.shape[0] = flat.numel;
        flat.strides[0] = 1;
        tt_free(out);
        out = tt_gather(&flat, 0, first);
    }
    for (int64_t i = 0; out && !tt_device && i < out->numel; i++) memcpy(out->data + i * size, x->data + f[i] * size, (size_t)size);
    if (x) tt_free(x);
    if (first && !out) {
        tt_free(*inverse);
        tt_free(*counts);
    }
    if (first) tt_free(first);
    return out;
}

tt_array *tt_bincount(tt_array *a, tt_array *weights, int64_t min_length) {
    TT_ON_DEVICE(NULL, "bincount", 2, ((tt_array *[]){a, weights}));
    if (!tt_ready(a) || (weights && !tt_ready(weights))) return tt_decline();
    if (a->ndim != 1 || !tt_is_integral(a->dtype))
        return tt_fail(TT_RUNTIME_ERROR, "bincount: only supports 1-d non-negative integral inputs, got %d dimensions of "
                       "%s", a->ndim, tt_dtype_names[a->dtype]);
    if (min_length < 0) return tt_fail(TT_RUNTIME_ERROR, "bincount: minlength should be >= 0");
    if (weights && !tt_same_shape(a, weights))
        return tt_fail(TT_RUNTIME_ERROR, "bincount: weights should be 1-d and have the same length as input");
    int dtype = !weights ? TT_I64 : weights->dtype == TT_F32 ? TT_F32 : TT_F64;
    tt_array *x = tt_empty(TT_I64, 1, a->shape), *w = weights ? tt_empty(dtype, 1, a->shape) : NULL, *out = NULL;
    if (!x || (weights && !w) || tt_copy_now(x, a) < 0 || (w && tt_copy_now(w, weights) < 0)) goto done;
    const int64_t *v = (const int64_t *)x->data;
    int64_t n = min_length, least = 0, largest = -1;
    if (tt_device && x->numel && !tt_cuda_extremes(v, TT_I64, x->numel, &least, &largest)) goto done;
    for (int64_t i = 0; !tt_device && i < x->numel && least >= 0; i++) {
        least = v[i];
        largest = v[i] > largest ? v[i] : largest;
    }
    if (least < 0) {
        tt_fail(TT_RUNTIME_ERROR, "bincount: only supports 1-d non-negative integral inputs, got %lld", (long long)least);
        goto done;
    }
    if (largest >= n) n = largest < INT64_MAX ? largest + 1 : largest;
    if (!(out = tt_full_now(dtype, 1, &n, TT_KIND_INT, 0, 0))) goto done;
    if (tt_device) {
        bool counted = !x->numel || (w ? tt_cuda_add_at(out, x, w) : tt_cuda_histogram(v, TT_I64, x->numel, 0, 0, out));
        if (!counted) {
            tt_free(out);
            out = NULL;
        }
        goto done;
    }
    for (int64_t i = 0; i < x->numel; i++)
        if (!w) ((int64_t *)out->data)[v[i]]++;
        else if (dtype == TT_F32) ((float *)out->data)[v[i]] += ((float *)w->data)[i];
        else ((double *)out->data)[v[i]] += ((double *)w->data)[i];
done:
    if (x) tt_free(x);
    if (w) tt_free(w);
    return out;
}

tt_array *tt_histc(tt_array *a, int64_t bins, double lo, double hi) {
    TT_ON_DEVICE(NULL, "histc", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (a->dtype != TT_F32 && a->dtype != TT_F64)
        return tt_fail(TT_RUNTIME_ERROR, "histc: not implemented for '%s'", tt_dtype_names[a->dtype]);
    if (bins <= 0) return tt_fail(TT_RUNTIME_ERROR, "histc: bins must be > 0, but got %lld", (long long)bins);
    tt_array *x = tt_empty(TT_F64, a->ndim, a->shape), *out = NULL;
    if (!x || tt_copy_now(x, a) < 0) goto done;
    const double *v = (const double *)x->data;
    if (lo == hi && x->numel && tt_device) {
        if (!tt_cuda_extremes(v, TT_F64, x->numel, &lo, &hi)) goto done;
    } else if (lo == hi && x->numel) {
        lo = hi = v[0];
        for (int64_t i = 0; i < x->numel; i++) {
            lo = v[i] < lo || v[i] != v[i] ? v[i] : lo;
            hi = v[i] > hi || v[i] != v[i] ? v[i] : hi;
        }
    }
    if (lo == hi) lo -= 1, hi += 1;
    if (!isfinite(lo) || !isfinite(hi) || lo > hi) {
        if (lo > hi) tt_fail(TT_RUNTIME_ERROR, "histc: max must be larger than min");
        else tt_fail(TT_RUNTIME_ERROR, "histc: range of [%g, %g] is not finite", lo, hi);
        goto done;
    }
    if (!(out = tt_full_now(a->dtype, 1, &bins, TT_KIND_INT, 0, 0))) goto done;
    if (tt_device && x->numel && !tt_cuda_histogram(v, TT_F64, x->numel, lo, hi, out)) {
        tt_free(out);
        out = NULL;
    }
    for (int64_t i = 0; out && !tt_device && i < x->numel; i++) {
        if (!(v[i] >= lo && v[i] <= hi)) continue;
        int64_t bin = (int64_t)((v[i] - lo) / (hi - lo) * (double)bins);
        if (bin >= bins) bin = bins - 1;
        if (a->dtype == TT_F32) ((float *)out->data)[bin] += 1;
        else ((double *)out->data)[bin] += 1;
    }
done:
    if (x) tt_free(x);
    return out;
}
