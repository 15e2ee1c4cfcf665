/* The same elements in other places, on the CPU: flip, roll; and matrices with a triangle zeroed. */
#include "cpu/cpu.h"
#include <string.h>

/* Copies a box of elements: `from` and `to` give the first element and strides (bytes, of any sign) of each side. */
static void copy_box(int dtype, int ndim, const int64_t *shape, char *to, const int64_t *to_strides, char *from,
                     const int64_t *from_strides) {
    tt_iter it;
    it.nops = 2;
    it.ndim = ndim;
    it.numel = 1;
    for (int d = 0; d < ndim; d++) {
        it.shape[d] = shape[d];
        it.strides[0][d] = to_strides[d];
        it.strides[1][d] = from_strides[d];
        it.numel *= shape[d];
    }
    if (!it.numel) return;
    it.data[0] = to;
    it.data[1] = from;
    it.dtype[0] = it.dtype[1] = it.compute[0] = it.compute[1] = (int16_t)dtype;
    tt_iter_coalesce(&it);
    tt_iter_run(&it, NULL, 1 << 15);
}

static void byte_strides(const tt_array *a, int64_t *strides) {
    for (int d = 0; d < a->ndim; d++) strides[d] = a->strides[d] * tt_itemsizes[a->dtype];
}

typedef struct {
    int ndim, size;
    int64_t shape[TT_MAX_NDIM], from[TT_MAX_NDIM], to[TT_MAX_NDIM];
    char *start, *out;
} flip;

#define REVERSED(T)                                                                                                    \
    for (int64_t i = 0; i < n; i++) ((T *)to)[i] = ((const T *)from)[n - 1 - i];

/* Rows that are dense on both sides and change their order: `from` is a row's least address. */
static void reverse_rows(void *context, int64_t begin, int64_t end) {
    const flip *f = context;
    int last = f->ndim - 1;
    int64_t n = f->shape[last];
    for (int64_t r = begin; r < end; r++) {
        char *from = f->start, *to = f->out;
        int64_t rest = r;
        for (int d = last - 1; d >= 0; d--) {
            int64_t i = rest % f->shape[d];
            from += i * f->from[d];
            to += i * f->to[d];
            rest /= f->shape[d];
        }
        switch (f->size) {
        case 1: REVERSED(uint8_t) break;
        case 2: REVERSED(uint16_t) break;
        case 4: REVERSED(uint32_t) break;
        case 8: REVERSED(uint64_t) break;
        default: REVERSED(tt_complex128) break;
        }
    }
}

static void run_flip(tt_array *out, const tt_array *a, const bool *flipped) {
    flip f;
    f.ndim = a->ndim;
    f.size = tt_itemsizes[a->dtype];
    f.start = a->data;
    f.out = out->data;
    memcpy(f.shape, a->shape, sizeof(int64_t) * (size_t)a->ndim);
    byte_strides(a, f.from);
    byte_strides(out, f.to);
    for (int d = 0; d < a->ndim; d++) {
        if (!flipped[d]) continue;
        f.start += (a->shape[d] - 1) * f.from[d];
        f.from[d] = -f.from[d];
    }
    int last = a->ndim - 1;
    if (a->ndim && f.to[last] == f.size && f.from[last] == -f.size) {
        f.start -= (a->shape[last] - 1) * f.size;
        tt_parallel(a->numel / a->shape[last], 32768 / a->shape[last] + 1, reverse_rows, &f);
    } else copy_box(a->dtype, a->ndim, a->shape, out->data, f.to, f.start, f.from);
}

/* Each dimension that rolls falls into two parts, which change places: so there are 2^n boxes to copy. */
static void run_roll(tt_array *out, const tt_array *a, const int64_t *shift) {
    int64_t from[TT_MAX_NDIM], to[TT_MAX_NDIM];
    int rolling[TT_MAX_NDIM], m = 0;
    for (int d = 0; d < a->ndim; d++)
        if (shift[d]) rolling[m++] = d;
    byte_strides(a, from);
    byte_strides(out, to);
    for (int box = 0; box < 1 << m; box++) {
        int64_t shape[TT_MAX_NDIM];
        char *source = a->data, *target = out->data;
        memcpy(shape, a->shape, sizeof(int64_t) * (size_t)a->ndim);
        for (int k = 0; k < m; k++) {
            int d = rolling[k];
            int64_t cut = a->shape[d] - shift[d]; /* entries from here on come first */
            shape[d] = box >> k & 1 ? shift[d] : cut;
            source += box >> k & 1 ? cut * from[d] : 0;
            target += box >> k & 1 ? 0 : shift[d] * to[d];
        }
        copy_box(a->dtype, a->ndim, shape, target, to, source, from);
    }
}

bool tt_cpu_rearrange(tt_array *out, const tt_array *a, const bool *flipped, const int64_t *shift) {
    if (flipped) run_flip(out, a, flipped);
    else run_roll(out, a, shift);
    return true;
}

typedef struct {
    tt_array *a;
    int64_t diagonal;
    bool below;
} triangle;

static void zero_rows(void *context, int64_t begin, int64_t end) {
    const triangle *t = context;
    const tt_array *a = t->a;
    int size = tt_itemsizes[a->dtype], last = a->ndim - 1;
    int64_t columns = a->shape[last], step = a->strides[last] * size;
    for (int64_t r = begin; r < end; r++) {
        int64_t rest = r, row = r % a->shape[last - 1], from, until;
        char *p = a->data;
        for (int d = last - 1; d >= 0; d--) {
            p += rest % a->shape[d] * a->strides[d] * size;
            rest /= a->shape[d];
        }
        int64_t edge = row + t->diagonal + !t->below; /* tril keeps columns before it, triu those from it on */
        edge = edge < 0 ? 0 : edge > columns ? columns : edge;
        from = t->below ? 0 : edge;
        until = t->below ? edge : columns;
        if (step == size) memset(p + from * size, 0, (size_t)((until - from) * size));
        else
            for (int64_t c = from; c < until; c++) memset(p + c * step, 0, (size_t)size);
    }
}

bool tt_cpu_zero_triangle(tt_array *a, int64_t diagonal, bool below) {
    triangle t = {a, diagonal, below};
    int64_t columns = a->shape[a->ndim - 1];
    tt_parallel(a->numel / columns, columns > 32768 ? 1 : 32768 / columns, zero_rows, &t);
    return true;
}
