/* Copies and casts from layout to layout and device to device; numbers, as elements and as whole arrays. */
#include "fuse/fuse.h"
#include "cuda/host/cuda.h"
#include "cpu/simd.h"
#include <string.h>

static int run_copy(tt_array *out, tt_array *a) {
    if ((out->flags | a->flags) & TT_FLAG_DEVICE) return tt_cuda_copy_array(out, a) - 1;
    tt_iter it = {.nops = 2, .ndim = out->ndim, .numel = out->numel};
    int so = tt_itemsizes[out->dtype], sa = tt_itemsizes[a->dtype], lead = out->ndim - a->ndim;
    for (int d = 0; d < out->ndim; d++) {
        it.shape[d] = out->shape[d];
        it.strides[0][d] = out->strides[d] * so;
        it.strides[1][d] = d < lead || a->shape[d - lead] == 1 ? 0 : a->strides[d - lead] * sa;
    }
    it.data[0] = out->data;
    it.data[1] = a->data;
    it.dtype[0] = it.compute[0] = out->dtype;
    it.dtype[1] = a->dtype;
    it.compute[1] = out->dtype;
    tt_iter_coalesce(&it);
    tt_iter_run(&it, NULL, 1 << 15);
    return 0;
}

static bool fits(const tt_array *out, const tt_array *a) {
    char to[TT_SHAPE_TEXT], from[TT_SHAPE_TEXT];
    int lead = out->ndim - a->ndim;
    bool ok = lead >= 0;
    for (int d = 0; ok && d < a->ndim; d++) ok = a->shape[d] == 1 || a->shape[d] == out->shape[d + lead];
    if (!ok)
        tt_fail(TT_RUNTIME_ERROR, "copy_: the shape %s of the source does not broadcast to %s",
                tt_shape_text(from, a->ndim, a->shape), tt_shape_text(to, out->ndim, out->shape));
    return ok;
}

/* The functions named _now compute at once, from operands that are settled; those without may record. */
int tt_copy_now(tt_array *out, tt_array *a) {
    if (!fits(out, a) || !tt_may_write("copy_", out)) return -1;
    if (!out->numel || tt_same_layout(out, a)) return 0;
    if (tt_overlaps(out, a)) { /* read all before the first write */
        tt_array *whole = tt_clone_now(a);
        if (!whole) return -1;
        int status = run_copy(out, whole);
        tt_free(whole);
        return status;
    }
    return run_copy(out, a);
}

/* out[...] = a, with broadcasting and casting, from any device to any; the caller bumps the version. */
int tt_copy(tt_array *out, tt_array *a) {
    TT_ON_DEVICE(-1, "copy_", 1, &out);
    if (out->storage->device != a->storage->device) {
        if (tt_settled(out) && (!tt_pending_of(a->storage) || tt_settle(a, false))) return tt_copy_now(out, a);
        tt_decline();
        return -1;
    }
    if (TT_RECORDING && fits(out, a) && tt_may_write("copy_", out) && tt_record_copy(out, a)) return 0;
    if (!tt_settled(out) || (tt_pending_of(a->storage) && !tt_settle(a, false))) {
        tt_decline();
        return -1;
    }
    return tt_copy_now(out, a);
}

/* `out`, filled from `a`; freed where that failed. */
static tt_array *filled(tt_array *out, tt_array *a) {
    if (out && a->numel && run_copy(out, a) < 0) {
        tt_free(out);
        return NULL;
    }
    return out;
}
static tt_array *recorded(tt_array *out, tt_array *a) {
    if (!out || !a->numel || (TT_RECORDING && tt_record_copy(out, a))) return out;
    if (!tt_pending_of(a->storage) || tt_settle(a, false)) return filled(out, a);
    tt_free(out);
    return tt_decline();
}

tt_array *tt_cast_now(tt_array *a, int dtype) { return filled(tt_empty_like(a, dtype), a); }
tt_array *tt_clone_now(tt_array *a) { return filled(tt_empty_like(a, a->dtype), a); }
tt_array *tt_contiguous_now(tt_array *a) { return filled(tt_empty(a->dtype, a->ndim, a->shape), a); }
tt_array *tt_cast(tt_array *a, int dtype) {
    TT_ON_DEVICE(NULL, "to", 1, &a);
    return tt_current(a) ? recorded(tt_empty_like(a, dtype), a) : tt_decline();
}
tt_array *tt_clone(tt_array *a) {
    TT_ON_DEVICE(NULL, "clone", 1, &a);
    return tt_current(a) ? recorded(tt_empty_like(a, a->dtype), a) : tt_decline();
}
tt_array *tt_contiguous(tt_array *a) {
    TT_ON_DEVICE(NULL, "contiguous", 1, &a);
    return tt_current(a) ? recorded(tt_empty(a->dtype, a->ndim, a->shape), a) : tt_decline();
}

/* A Python number as an element of `dtype`. */
static void set_element(char *p, int dtype, int kind, double f, int64_t i) {
    if (kind == TT_KIND_FLOAT) tt_isa->casts[TT_F64][dtype](p, &f, 1);
    else tt_isa->casts[TT_I64][dtype](p, &i, 1);
}

tt_array *tt_scalar(int kind, double f, int64_t i) {
    int dtype = kind == TT_KIND_BOOL ? TT_BOOL : kind == TT_KIND_INT ? TT_I64 : TT_F64;
    TT_ON_DEVICE(NULL, "scalar", 0, NULL); /* on the CPU, whose numbers go with any device's arrays */
    tt_array *a = tt_empty(dtype, 0, NULL);
    if (!a) return NULL;
    set_element(a->data, dtype, kind, f, i);
    a->flags |= TT_FLAG_WEAK;
    return a;
}

/* A number as an array of `dtype`: a descriptor on the stack. */
static tt_array *element(tt_array *one, int64_t *bits, int dtype, int kind, double f, int64_t i) {
    static tt_storage nowhere; /* the CPU's */
    *bits = 0;
    *one = (tt_array){.storage = &nowhere, .dtype = (int16_t)dtype, .numel = 1, .flags = TT_FLAG_CONTIGUOUS | TT_FLAG_WEAK};
    one->data = (char *)bits;
    set_element(one->data, dtype, kind, f, i);
    return one;
}

int tt_fill_now(tt_array *out, int kind, double f, int64_t i) {
    tt_array one;
    int64_t bits;
    return run_copy(out, element(&one, &bits, out->dtype, kind, f, i));
}

int tt_fill(tt_array *out, int kind, double f, int64_t i) {
    tt_array one;
    int64_t bits;
    TT_ON_DEVICE(-1, "fill_", 1, &out);
    if (out->flags & TT_FLAG_READONLY) return tt_may_write("fill_", out) - 1;
    if (!out->numel) return 0; /* elements that share memory are no harm here */
    element(&one, &bits, out->dtype, kind, f, i);
    if (TT_RECORDING && tt_record_copy(out, &one)) return 0;
    if (!tt_settled(out)) {
        tt_decline();
        return -1;
    }
    return run_copy(out, &one);
}

static void fill_range(void *context, int64_t begin, int64_t end) {
    tt_array *a = context;
    int size = tt_itemsizes[a->dtype];
    char *p = a->data + begin * size;
    int64_t done = size, bytes = (end - begin) * size;
    if (p != a->data) memcpy(p, a->data, (size_t)size);
    while (done < bytes) { /* doubling */
        int64_t step = done < bytes - done ? done : bytes - done;
        if (step > 16384) step = 16384;
        memcpy(p + done, p, (size_t)step);
        done += step;
    }
}

tt_array *tt_full_now(int dtype, int ndim, int64_t *shape, int kind, double f, int64_t i) {
    tt_array *a = tt_empty(dtype, ndim, shape);
    if (!a || !a->numel) return a;
    if (tt_device) {
        if (tt_fill_now(a, kind, f, i) == 0) return a;
        tt_free(a);
        return NULL;
    }
    set_element(a->data, dtype, kind, f, i);
    tt_parallel(a->numel, 1 << 16, fill_range, a);
    return a;
}

tt_array *tt_full(int dtype, int ndim, int64_t *shape, int kind, double f, int64_t i) {
    tt_array one;
    int64_t bits;
    if (!TT_RECORDING) return tt_full_now(dtype, ndim, shape, kind, f, i);
    tt_array *a = tt_empty(dtype, ndim, shape);
    if (!a || !a->numel || tt_record_copy(a, element(&one, &bits, dtype, kind, f, i))) return a;
    run_copy(a, &one);
    return a;
}
