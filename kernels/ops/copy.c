/* Copies and casts from layout to layout and device to device; numbers, as elements and as whole arrays. */
#include "fuse/fuse.h"
#include "backend/now.h"

static int copy(tt_array *out, tt_array *a) {
    TT_ON_DEVICE(-1, "copy_", 1, &out);
    if (out->storage->device != a->storage->device) {
        if (tt_ready_to_write(out) && (!tt_lazy_of(a->storage) || tt_flush(a, false))) return tt_copy_now(out, a);
        tt_decline();
        return -1;
    }
    if (TT_RECORDING && tt_copy_fits(out, a) && tt_may_write("copy_", out) && tt_record_copy(out, a)) return 0;
    if (!tt_ready_to_write(out) || (tt_lazy_of(a->storage) && !tt_flush(a, false))) {
        tt_decline();
        return -1;
    }
    return tt_copy_now(out, a);
}

/* out[...] = a, with broadcasting and casting, from any device to any. */
int tt_copy(tt_array *out, tt_array *a, int writer) { return tt_written(out, writer, copy(out, a) == 0); }

static tt_array *recorded(tt_array *out, tt_array *a) {
    if (!out || !a->numel || (TT_RECORDING && tt_record_copy(out, a))) return out;
    bool ready = !tt_lazy_of(a->storage) || tt_flush(a, false);
    if (ready && tt_copy_unchecked(out, a) == 0) return out;
    tt_free(out);
    return ready ? NULL : tt_decline();
}

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

tt_array *tt_scalar(int kind, double f, int64_t i) {
    int dtype = kind == TT_KIND_INT && f != 0 ? TT_U64 : tt_dtype_of_kind(kind);
    TT_ON_DEVICE(NULL, "scalar", 0, NULL); /* on the CPU, whose numbers go with any device's arrays */
    tt_array *a = tt_empty(dtype, 0, NULL);
    if (!a) return NULL;
    tt_set_element(a->data, dtype, kind, f, i);
    a->flags |= TT_FLAG_WEAK;
    return a;
}

static int fill(tt_array *out, int kind, double f, int64_t i) {
    tt_array one;
    char room[TT_MAX_ITEMSIZE];
    TT_ON_DEVICE(-1, "fill_", 1, &out);
    if (out->flags & TT_FLAG_READONLY) return tt_may_write("fill_", out) - 1;
    if (!out->numel) return 0; /* elements that share memory are no harm here */
    tt_element(&one, room, out->dtype, kind, f, i);
    if (TT_RECORDING && tt_record_copy(out, &one)) return 0;
    if (!tt_ready_to_write(out)) {
        tt_decline();
        return -1;
    }
    return tt_copy_unchecked(out, &one);
}

int tt_fill(tt_array *out, int kind, double f, int64_t i, int writer) {
    return tt_written(out, writer, fill(out, kind, f, i) == 0);
}

tt_array *tt_full(int dtype, int ndim, int64_t *shape, int kind, double f, int64_t i) {
    tt_array one;
    char room[TT_MAX_ITEMSIZE];
    if (!TT_RECORDING) return tt_full_now(dtype, ndim, shape, kind, f, i);
    tt_array *a = tt_empty(dtype, ndim, shape);
    if (!a || !a->numel || tt_record_copy(a, tt_element(&one, room, dtype, kind, f, i))) return a;
    tt_copy_unchecked(a, &one);
    return a;
}
