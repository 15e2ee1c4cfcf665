/* Groups of equal elements or rows, from their order or as they follow one another. */
#include "cpu/cpu.h"
#include "cpu/sort.h"
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

tt_array *tt_cpu_groups(const tt_array *x, int64_t n, int64_t width, bool consecutive, tt_array **inverse,
                        tt_array **counts) {
    int64_t keys = n * width * 8, orders = n * 8;
    char *room = tt_scratch(keys + 2 * orders + (width == 1 ? n * 32 : 0));
    if (!room) return NULL;
    table t = {(uint64_t *)room, n, width, x->dtype};
    int64_t *order = (int64_t *)(room + keys), *spare = order + n;
    keys_of((uint64_t *)room, x);
    for (int64_t i = 0; i < n; i++) order[i] = i;
    if (!consecutive && width == 1) order_elements(&t, order, (tt_keyed *)(spare + n), (tt_keyed *)(spare + n) + n);
    else if (!consecutive) order = order_rows(&t, order, spare);
    tt_array *first = groups(&t, order, inverse, counts);
    tt_scratch_free(room);
    return first;
}

tt_array *tt_cpu_distinct(const tt_array *x, bool consecutive) {
    tt_array *inverse, *counts, *first = tt_cpu_groups(x, x->numel, 1, consecutive, &inverse, &counts);
    if (!first) return NULL;
    tt_array *out = tt_empty(x->dtype, 1, &first->numel);
    int64_t item = tt_itemsizes[x->dtype];
    for (int64_t i = 0; out && i < first->numel; i++)
        memcpy(out->data + i * item, x->data + ((const int64_t *)first->data)[i] * item, (size_t)item);
    tt_free(first);
    tt_free(inverse);
    tt_free(counts);
    return out;
}
