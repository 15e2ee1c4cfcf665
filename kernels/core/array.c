/* Descriptors: creation, views, what may be written. */
#include "core/sizes.h"
#include "core/tt.h"
#include "api/cuda.h"
#include <stdlib.h>
#include <string.h>

#define ITEMSIZE(code, suffix, type, ...) sizeof(type),
#define NAME(code, suffix, type, name, ...) #name,
#define FACTS(code, suffix, type, name, kind, is_signed, compute, dlpack)                                              \
    {#name, #suffix, #type, sizeof(type), TT_KIND_##kind, is_signed, TT_##compute, dlpack},
const int tt_itemsizes[TT_NUM_DTYPES] = {TT_DTYPES(ITEMSIZE)};
const char *const tt_dtype_names[TT_NUM_DTYPES] = {TT_DTYPES(NAME)};
static const tt_dtype_info facts[TT_NUM_DTYPES] = {TT_DTYPES(FACTS)};
int tt_default_dtype = TT_F32;
int64_t tt_no_dims[1];

const tt_dtype_info *tt_dtype_facts(int dtype) { return dtype >= 0 && dtype < TT_NUM_DTYPES ? &facts[dtype] : NULL; }
int tt_itemsize(int dtype) { return tt_itemsizes[dtype]; }
int tt_set_default_dtype(int dtype) {
    tt_default_dtype = dtype;
    return 0;
}

int64_t tt_numel(int ndim, const int64_t *shape) {
    char text[TT_SHAPE_TEXT];
    int64_t n = 1, step = 1, signs = 0; /* step: the first stride, which without elements is there, too */
    bool overflows = false;
    if (ndim > TT_MAX_NDIM) {
        tt_fail(TT_RUNTIME_ERROR, "only tensors with up to %d dims are supported, got %d", TT_MAX_NDIM, ndim);
        return -1;
    }
    for (int d = 0; d < ndim; d++) {
        signs |= shape[d];
        overflows |= __builtin_mul_overflow(n, shape[d], &n);
        overflows |= d && shape[d] && __builtin_mul_overflow(step, shape[d], &step);
    }
    if (signs >= 0 && !overflows && n <= INT64_MAX / TT_MAX_ITEMSIZE) return n;
    for (int d = 0; d < ndim; d++)
        if (shape[d] < 0) {
            tt_fail(TT_RUNTIME_ERROR, "Trying to create tensor with negative dimension %lld: %s", (long long)shape[d],
                    tt_shape_text(text, ndim, shape));
            return -1;
        }
    tt_fail(TT_RUNTIME_ERROR, "Storage size calculation overflowed with sizes=%s", tt_shape_text(text, ndim, shape));
    return -1;
}

void tt_update_flags(tt_array *a) {
    const int64_t *shape = a->shape, *strides = a->strides;
    int64_t expected = 1;
    bool contiguous = true;
    if (a->numel)
        for (int d = a->ndim - 1; d >= 0; d--) {
            if (shape[d] == 1) continue;
            contiguous &= strides[d] == expected;
            expected *= shape[d];
        }
    a->flags = (uint16_t)((a->flags & ~TT_FLAG_CONTIGUOUS) | (contiguous ? TT_FLAG_CONTIGUOUS : 0));
}

void tt_set_contiguous(tt_array *a) {
    int64_t *strides = a->strides;
    const int64_t *shape = a->shape;
    for (int d = a->ndim - 1; d >= 0; d--)
        strides[d] = d + 1 < a->ndim ? strides[d + 1] * (shape[d + 1] ? shape[d + 1] : 1) : 1;
    a->flags |= TT_FLAG_CONTIGUOUS;
}

static tt_array *with_storage(tt_array *a, int64_t nbytes) {
    tt_storage *s = tt_storage_new(nbytes);
    if (!s) {
        tt_array_recycle(a);
        return NULL;
    }
    a->storage = s;
    a->data = s->data;
    if (s->device) a->flags |= TT_FLAG_DEVICE;
    return a;
}

tt_array *tt_empty(int dtype, int ndim, int64_t *shape) {
    int64_t n = tt_numel(ndim, shape);
    if (n < 0) return NULL;
    tt_array *a = tt_array_new(ndim);
    if (!a) return NULL;
    a->dtype = (int16_t)dtype;
    a->ndim = ndim;
    a->numel = n;
    if (ndim) memcpy(a->shape, shape, sizeof(int64_t) * (size_t)ndim);
    tt_set_contiguous(a);
    return with_storage(a, n * tt_itemsizes[dtype]);
}

/* Without dimensions the pointers may be NULL, which memcpy does not take. */
static void set_layout(tt_array *a, int ndim, const int64_t *shape, const int64_t *strides) {
    if (ndim <= 0) return;
    memcpy(a->shape, shape, sizeof(int64_t) * (size_t)ndim);
    memcpy(a->strides, strides, sizeof(int64_t) * (size_t)ndim);
}

/* Elements from the first to one past the last that the strides reach. */
static int64_t extent(int ndim, const int64_t *shape, const int64_t *strides) {
    int64_t last = 0, step;
    for (int d = 0; d < ndim; d++) {
        if (shape[d] == 0) return 0;
        if (__builtin_mul_overflow(shape[d] - 1, strides[d], &step) || __builtin_add_overflow(last, step, &last))
            return -1;
    }
    return last + 1;
}

static bool check_strides(int ndim, const int64_t *strides) {
    char text[TT_SHAPE_TEXT];
    for (int d = 0; d < ndim; d++)
        if (strides[d] < 0) {
            tt_fail(TT_RUNTIME_ERROR, "negative strides are not supported, got strides %s",
                    tt_shape_text(text, ndim, strides));
            return false;
        }
    return true;
}

tt_array *tt_empty_strided(int dtype, int ndim, int64_t *shape, int64_t *strides) {
    int64_t n = tt_numel(ndim, shape);
    if (n < 0 || !check_strides(ndim, strides)) return NULL;
    int64_t reach = extent(ndim, shape, strides);
    if (reach < 0 || reach > INT64_MAX / TT_MAX_ITEMSIZE)
        return tt_fail(TT_RUNTIME_ERROR, "Storage size calculation overflowed");
    tt_array *a = tt_array_new(ndim);
    if (!a) return NULL;
    a->dtype = (int16_t)dtype;
    a->ndim = ndim;
    a->numel = n;
    set_layout(a, ndim, shape, strides);
    tt_update_flags(a);
    return with_storage(a, reach * tt_itemsizes[dtype]);
}

/* Same shape and device; without gaps, the dimensions in the same order in memory (torch.preserve_format). */
tt_array *tt_empty_like(tt_array *a, int dtype) {
    TT_ON_DEVICE(NULL, "empty_like", 1, &a);
    return tt_like(a, dtype);
}

/* Is dimension d outside of e in memory? 1: yes, -1: no, 0: the strides do not tell. */
static int is_outside(const tt_array *a, int d, int e) {
    int64_t of_d = a->strides[d], of_e = a->strides[e];
    if (!of_d || !of_e || (of_d == of_e && a->shape[d] <= a->shape[e])) return 0;
    return of_d < of_e ? -1 : 1;
}

/* The same, on this thread's device. */
tt_array *tt_like(tt_array *a, int dtype) {
    int64_t strides[TT_MAX_NDIM], n = 1;
    int order[TT_MAX_NDIM]; /* the innermost first */
    if (a->flags & TT_FLAG_CONTIGUOUS) return tt_empty(dtype, a->ndim, a->shape);
    for (int k = 0; k < a->ndim; k++) {
        order[k] = a->ndim - 1 - k;
        for (int at = k, before = k - 1, found = 0; before >= 0 && found >= 0; before--) {
            found = is_outside(a, order[before], order[at]);
            if (found <= 0) continue;
            int d = order[at];
            order[at] = order[before];
            order[at = before] = d;
        }
    }
    for (int k = 0; k < a->ndim; k++) {
        strides[order[k]] = n;
        n *= most(a->shape[order[k]], 1);
    }
    return tt_empty_strided(dtype, a->ndim, a->shape, strides);
}

tt_array *tt_from_owner(int device, int dtype, int ndim, int64_t *shape, int64_t *strides, void *data, int64_t nbytes,
                        void *owner, void (*release)(void *)) {
    int64_t n = tt_numel(ndim, shape);
    if (n < 0 || !check_strides(ndim, strides)) return NULL;
    tt_array *a = tt_array_new(ndim);
    if (!a) return NULL;
    tt_storage *s;
    if (!(s = __builtin_calloc(1, sizeof *s))) {
        tt_array_recycle(a);
        return tt_fail(TT_OUT_OF_MEMORY, "out of memory: no room for a storage's header");
    }
    *s = (tt_storage){.data = data,
                      .nbytes = nbytes,
                      .refs = 1,
                      .writer = -1,
                      .size_class = -1,
                      .shared = 1,
                      .device = (int16_t)device,
                      .owner = owner,
                      .release = release};
    a->storage = s;
    a->data = data;
    a->dtype = (int16_t)dtype;
    a->ndim = ndim;
    a->numel = n;
    set_layout(a, ndim, shape, strides);
    tt_update_flags(a);
    if (device) a->flags |= TT_FLAG_DEVICE;
    return a;
}

/* Another descriptor of the same elements; it keeps the flags of the device, not those of history. */
tt_array *tt_alias(tt_array *a) {
    tt_array *b = tt_array_new(a->ndim);
    if (!b) return NULL;
    memcpy(b, a, offsetof(tt_array, shape));
    set_layout(b, a->ndim, a->shape, a->strides);
    b->flags &= (uint16_t) ~(TT_FLAG_VIEW | TT_FLAG_CREATION | TT_FLAG_WEAK);
    b->stamp = 0;
    tt_storage_ref(b->storage);
    if (b->counter) tt_storage_ref(b->counter);
    return b;
}

/* Any view inside the storage; `offset` counts elements from the storage's start. */
tt_array *tt_view(tt_array *a, int ndim, int64_t *shape, int64_t *strides, int64_t offset) {
    char st[TT_SHAPE_TEXT], dt[TT_SHAPE_TEXT];
    int64_t n = tt_numel(ndim, shape);
    if (n < 0 || !check_strides(ndim, strides)) return NULL;
    int64_t reach = extent(ndim, shape, strides), size = tt_itemsizes[a->dtype];
    if (offset < 0 || offset > INT64_MAX / size || reach < 0 ||
        (n && (offset > a->storage->nbytes / size || reach > a->storage->nbytes / size - offset)))
        return tt_fail(TT_RUNTIME_ERROR,
                       "setStorage: sizes %s, strides %s, storage offset %lld and itemsize %lld "
                       "are out of bounds for storage of size %lld",
                       tt_shape_text(st, ndim, shape), tt_shape_text(dt, ndim, strides), (long long)offset,
                       (long long)size, (long long)a->storage->nbytes);
    tt_array *b = tt_array_new(ndim);
    if (!b) return NULL;
    b->storage = a->storage;
    b->data = a->storage->data + offset * size;
    b->numel = n;
    b->ndim = ndim;
    b->dtype = a->dtype;
    b->flags = a->flags & (TT_FLAG_DEVICE | TT_FLAG_READONLY | TT_FLAG_INFERENCE);
    set_layout(b, ndim, shape, strides);
    tt_update_flags(b);
    tt_storage_ref(b->storage);
    if ((b->counter = a->counter)) tt_storage_ref(b->counter);
    return b;
}

int64_t tt_offset(tt_array *a) { return a->storage->data ? (a->data - a->storage->data) / tt_itemsizes[a->dtype] : 0; }

/* The view of `a` with another shape of as many elements; declines when the strides do not allow one. */
tt_array *tt_reshape_view(tt_array *a, int ndim, int64_t *shape) {
    int64_t strides[TT_MAX_NDIM], n = tt_numel(ndim, shape);
    char from[TT_SHAPE_TEXT], to[TT_SHAPE_TEXT];
    if (n < 0) return NULL;
    if (n != a->numel)
        return tt_fail(TT_RUNTIME_ERROR, "shape '%s' is invalid for input of size %lld (shape %s)",
                       tt_shape_text(to, ndim, shape), (long long)a->numel, tt_shape_text(from, a->ndim, a->shape));
    if (a->numel == 0 || a->flags & TT_FLAG_CONTIGUOUS) {
        int64_t step = 1;
        for (int d = ndim - 1; d >= 0; d--) {
            strides[d] = step;
            step *= shape[d] ? shape[d] : 1;
        }
        return tt_view(a, ndim, shape, strides, tt_offset(a));
    }
    /* Both shapes from the right: each run of old dimensions that is one stretch of memory may be split otherwise. */
    int view = ndim - 1;
    int64_t stretch = 1, made = 1, step = a->strides[a->ndim - 1];
    for (int d = a->ndim - 1; d >= 0; d--) {
        stretch *= a->shape[d];
        if (d == 0 || (a->shape[d - 1] != 1 && a->strides[d - 1] != stretch * step)) {
            while (view >= 0 && (made < stretch || shape[view] == 1)) {
                strides[view] = made * step;
                made *= shape[view];
                view--;
            }
            if (made != stretch) return tt_decline();
            if (d > 0) {
                step = a->strides[d - 1];
                stretch = made = 1;
            }
        }
    }
    if (view != -1) return tt_decline();
    return tt_view(a, ndim, shape, strides, tt_offset(a));
}

/* The same bytes as another dtype; the last dimension grows or shrinks with the element's size. */
tt_array *tt_view_dtype(tt_array *a, int dtype) {
    int64_t from = tt_itemsizes[a->dtype], to = tt_itemsizes[dtype];
    int last = a->ndim - 1;
    if (from != to) {
        if (last < 0)
            return tt_fail(TT_RUNTIME_ERROR, "view: self.dim() cannot be 0 to view %s as %s (different element sizes)",
                           tt_dtype_names[a->dtype], tt_dtype_names[dtype]);
        if (a->shape[last] > 1 && a->strides[last] != 1)
            return tt_fail(TT_RUNTIME_ERROR,
                           "view: self.stride(-1) must be 1 to view %s as %s (different element sizes), "
                           "but got %lld",
                           tt_dtype_names[a->dtype], tt_dtype_names[dtype], (long long)a->strides[last]);
        bool fits = a->shape[last] * from % to == 0 && (a->data - a->storage->data) % to == 0;
        for (int d = 0; d < last; d++) fits &= a->strides[d] * from % to == 0;
        if (!fits)
            return tt_fail(TT_RUNTIME_ERROR,
                           "view: the size, strides and offset in bytes must be divisible by %lld to view "
                           "%s as %s",
                           (long long)to, tt_dtype_names[a->dtype], tt_dtype_names[dtype]);
    }
    tt_array *b = tt_alias(a);
    if (!b) return NULL;
    b->dtype = (int16_t)dtype;
    if (from != to) {
        for (int d = 0; d < last; d++) b->strides[d] = a->strides[d] * from / to;
        b->shape[last] = a->shape[last] * from / to;
        b->strides[last] = 1;
        b->numel = a->numel * from / to;
        tt_update_flags(b);
    }
    return b;
}

/* Complex numbers as their first parts; `add`: as both, along one more dimension. */
static tt_array *in_parts(tt_array *a, bool add) {
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM];
    int ndim = a->ndim;
    for (int d = 0; d < ndim; d++) {
        shape[d] = a->shape[d];
        strides[d] = 2 * a->strides[d];
    }
    if (add) {
        shape[ndim] = 2;
        strides[ndim++] = 1;
    }
    tt_array *b = tt_show(a, ndim, shape, strides, 0);
    if (!b) return NULL;
    b->dtype = (int16_t)tt_real_dtype(a->dtype);
    return b;
}

tt_array *tt_view_as_real(tt_array *a) {
    if (!tt_is_complex(a->dtype))
        return tt_fail(TT_RUNTIME_ERROR, "view_as_real is only supported for complex tensors");
    if (a->ndim == TT_MAX_NDIM)
        return tt_fail(TT_RUNTIME_ERROR, "only tensors with up to %d dims are supported, got %d", TT_MAX_NDIM,
                       a->ndim + 1);
    return in_parts(a, true);
}

tt_array *tt_view_part(tt_array *a, int imaginary) {
    if (!tt_is_complex(a->dtype)) {
        if (!imaginary) return tt_alias(a);
        return tt_fail(TT_RUNTIME_ERROR, "imag is not implemented for tensors with non-complex dtypes.");
    }
    tt_array *b = in_parts(a, false);
    if (b && imaginary && b->data) b->data += tt_itemsizes[b->dtype];
    return b;
}

tt_array *tt_view_as_complex(tt_array *a) {
    int last = a->ndim - 1, size = tt_itemsizes[a->dtype];
    if (tt_real_dtype(tt_complex_dtype(a->dtype)) != a->dtype || !tt_is_floating(a->dtype))
        return tt_fail(TT_RUNTIME_ERROR,
                       "view_as_complex is only supported for floating point tensors, but got a "
                       "tensor of dtype %s",
                       tt_dtype_names[a->dtype]);
    if (last < 0) return tt_fail(TT_RUNTIME_ERROR, "Input tensor must have one or more dimensions");
    if (a->shape[last] != 2) return tt_fail(TT_RUNTIME_ERROR, "Tensor must have a last dimension of size 2");
    if (a->numel && a->strides[last] != 1)
        return tt_fail(TT_RUNTIME_ERROR, "Tensor must have a last dimension with stride 1");
    for (int d = 0; d < last; d++)
        if (a->numel && a->strides[d] % 2)
            return tt_fail(TT_RUNTIME_ERROR, "Tensor must have a stride divisible by 2 for all but last dimension");
    if ((a->data - a->storage->data) / size % 2)
        return tt_fail(TT_RUNTIME_ERROR, "Tensor must have a storage_offset divisible by 2");
    tt_array *b = tt_alias(a);
    if (!b) return NULL;
    b->dtype = (int16_t)tt_complex_dtype(a->dtype);
    b->ndim = last;
    b->numel /= 2;
    for (int d = 0; d < last; d++) b->strides[d] /= 2;
    tt_update_flags(b);
    return b;
}

int64_t tt_shape_key(tt_array *a) {
    static const char bits_of[] = {0, 60, 30, 20, 15, 12};
    if (a->ndim >= (int)sizeof bits_of) return -1;
    int bits = bits_of[a->ndim];
    int64_t key = (int64_t)a->ndim << 60;
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] >> bits) return -1;
        key |= a->shape[d] << bits * d;
    }
    return key;
}

int tt_same_shape(tt_array *a, tt_array *b) {
    return a->ndim == b->ndim && memcmp(a->shape, b->shape, sizeof(int64_t) * (size_t)a->ndim) == 0;
}

bool tt_same_layout(const tt_array *a, const tt_array *b) {
    if (a->data != b->data || a->ndim != b->ndim || a->dtype != b->dtype) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != b->shape[d] || (a->shape[d] != 1 && a->strides[d] != b->strides[d])) return false;
    return true;
}

bool tt_overlaps(const tt_array *a, const tt_array *b) {
    if (!a->numel || !b->numel) return false;
    const char *a_end = a->data + extent(a->ndim, a->shape, a->strides) * tt_itemsizes[a->dtype];
    const char *b_end = b->data + extent(b->ndim, b->shape, b->strides) * tt_itemsizes[b->dtype];
    return a->data < b_end && b->data < a_end;
}

bool tt_writable(const char *op, const tt_array *out) { return tt_may_write(op, out) && tt_ready_to_write(out); }

bool tt_may_write(const char *op, const tt_array *out) {
    if (out->flags & TT_FLAG_READONLY) {
        tt_fail(TT_RUNTIME_ERROR, "%s: the tensor to be written shares memory that is read-only", op);
        return false;
    }
    if (out->flags & ~tt_thread_flags & TT_FLAG_INFERENCE) {
        tt_fail(TT_RUNTIME_ERROR,
                "%s: Inplace update to inference tensor outside InferenceMode is not allowed. Make a "
                "clone() of it first.",
                op);
        return false;
    }
    for (int d = 0; !(out->flags & TT_FLAG_CONTIGUOUS) && out->numel && d < out->ndim; d++)
        if (out->shape[d] > 1 && out->strides[d] == 0) {
            tt_fail(TT_RUNTIME_ERROR,
                    "%s: unsupported operation: more than one element of the written-to tensor refers "
                    "to a single memory location. Please clone() the tensor before performing the operation.",
                    op);
            return false;
        }
    return true;
}

int tt_bump(tt_array *a, int writer) {
    tt_bump_version(a, writer);
    return 0;
}

int64_t tt_version_of(tt_array *a) { return tt_version(a); }

static int count_with(tt_array *a, tt_storage *counter) { /* whose reference it takes over */
    if (a->counter) tt_storage_unref(a->counter);
    a->counter = counter;
    return 0;
}

static int own_counter(tt_array *a, int64_t version) {
    tt_storage *s = calloc(1, sizeof *s); /* without memory: a counter only */
    if (!s) {
        tt_fail(TT_OUT_OF_MEMORY, "out of memory: no room for a version counter");
        return -1;
    }
    s->refs = 1;
    s->writer = s->size_class = -1;
    s->version = version;
    return count_with(a, s);
}

tt_array *tt_apart(tt_array *a) {
    tt_array *b = tt_alias(a);
    if (b && own_counter(b, 0) == 0) return b;
    if (b) tt_free(b);
    return NULL;
}

int tt_keep_counter(tt_array *a, tt_array *old) {
    tt_storage *s = tt_counter(old);
    if (s == a->storage) return count_with(a, NULL);
    /* A storage that nobody else shows is not kept for the sake of its version. */
    if (s == old->storage && __atomic_load_n(&s->refs, __ATOMIC_RELAXED) == 1) return own_counter(a, s->version);
    tt_storage_ref(s);
    return count_with(a, s);
}
