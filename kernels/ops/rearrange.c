/* The same elements in other places: flip, roll; and matrices with a triangle zeroed. */
#include "cuda/host/cuda.h"
#include "fuse/fuse.h"
#include "api/index.h"
#include <string.h>

/* Copies a box of elements: `from` and `to` give the first element and strides (bytes, of any sign) of each side. */
static void copy_box(int dtype, int ndim, const int64_t *shape, char *to, const int64_t *to_strides, char *from,
                     const int64_t *from_strides) {
    tt_iter it = {.nops = 2, .ndim = ndim, .numel = 1};
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

#define REVERSED(T)                                                       \
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
        default: REVERSED(uint64_t) break;
        }
    }
}

/* `out`, or where it could not be filled, NULL. */
static tt_array *arranged(tt_array *out, bool done) {
    if (done) return out;
    tt_free(out);
    return NULL;
}

/* `dims` are distinct and in range. */
tt_array *tt_flip(tt_array *a, int n, int64_t *dims) {
    TT_ON_DEVICE(NULL, "flip", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    tt_array *out = tt_empty_like(a, a->dtype);
    if (!out || !a->numel) return out;
    if (tt_device) {
        bool flipped[TT_MAX_NDIM] = {false};
        for (int k = 0; k < n; k++) flipped[dims[k]] = true;
        return arranged(out, tt_cuda_rearrange(out, a, flipped, NULL));
    }
    flip f = {.ndim = a->ndim, .size = tt_itemsizes[a->dtype], .start = a->data, .out = out->data};
    memcpy(f.shape, a->shape, sizeof(int64_t) * (size_t)a->ndim);
    byte_strides(a, f.from);
    byte_strides(out, f.to);
    for (int k = 0; k < n; k++) {
        f.start += (a->shape[dims[k]] - 1) * f.from[dims[k]];
        f.from[dims[k]] = -f.from[dims[k]];
    }
    int last = a->ndim - 1;
    if (a->ndim && f.to[last] == f.size && f.from[last] == -f.size) {
        f.start -= (a->shape[last] - 1) * f.size;
        tt_parallel(a->numel / a->shape[last], 32768 / a->shape[last] + 1, reverse_rows, &f);
    } else copy_box(a->dtype, a->ndim, a->shape, out->data, f.to, f.start, f.from);
    return out;
}

/* Each dimension that rolls falls into two parts, which change places: so there are 2^n boxes to copy. */
tt_array *tt_roll(tt_array *a, int n, int64_t *shifts, int64_t *dims) {
    int64_t from[TT_MAX_NDIM], to[TT_MAX_NDIM], shift[TT_MAX_NDIM] = {0};
    int rolling[TT_MAX_NDIM], m = 0;
    TT_ON_DEVICE(NULL, "roll", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    tt_array *out = tt_empty(a->dtype, a->ndim, a->shape);
    if (!out || !a->numel) return out;
    for (int k = 0; k < n; k++) {
        int64_t size = a->shape[dims[k]], s = (shifts[k] % size + size) % size;
        shift[dims[k]] = (shift[dims[k]] + s) % size;
    }
    if (tt_device) return arranged(out, tt_cuda_rearrange(out, a, NULL, shift));
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
    return out;
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

static bool zero_triangle(tt_array *a, int64_t diagonal, int below) {
    triangle t = {a, diagonal, below};
    int64_t columns = a->shape[a->ndim - 1];
    if (tt_device) return !a->numel || tt_cuda_zero_triangle(a, diagonal, below);
    if (a->numel) tt_parallel(a->numel / columns, columns > 32768 ? 1 : 32768 / columns, zero_rows, &t);
    return true;
}

/* Fused mode: where(mask, a, 0), the mask one matrix of bools. */
static bool record_triangle(tt_array *a, int64_t diagonal, int below) {
    double zero = 0;
    tt_array nothing = {.data = (char *)&zero, .dtype = TT_F64, .numel = 1, .flags = TT_FLAG_CONTIGUOUS | TT_FLAG_WEAK};
    tt_array *mask = a->numel ? tt_full_now(TT_BOOL, 2, a->shape + a->ndim - 2, TT_KIND_BOOL, 0, 1) : NULL;
    if (!mask) return false;
    zero_triangle(mask, diagonal, below);
    bool ok = tt_record_op(TT_OP_where, a->dtype, a, 3, (tt_array *[]){mask, a, &nothing});
    tt_free(mask);
    return ok;
}

/* Zeroes what lies below the diagonal (below: triu), or above it (tril), in every matrix of a. */
int tt_zero_triangle(tt_array *a, int64_t diagonal, int below, int writer) {
    const char *name = below ? "triu" : "tril";
    TT_ON_DEVICE(-1, name, 1, &a);
    if (a->ndim < 2) {
        tt_fail(TT_RUNTIME_ERROR, "%s: input tensor must have at least 2 dimensions, got %d", name, a->ndim);
        return -1;
    }
    if (!tt_may_write(name, a)) return -1;
    int64_t columns = a->shape[a->ndim - 1], most = columns > a->shape[a->ndim - 2] ? columns : a->shape[a->ndim - 2];
    if (diagonal > most) diagonal = most;
    if (diagonal < -most - 1) diagonal = -most - 1;
    if (!TT_RECORDING || !record_triangle(a, diagonal, below)) {
        if (!tt_writable(name, a) || !zero_triangle(a, diagonal, below)) return -1;
    }
    if (writer >= 0) tt_bump_version(a, writer);
    return 0;
}
