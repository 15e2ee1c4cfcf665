/* Copies and fills that are done at once: now.h. */
#include "backend/now.h"
#include "backend/backend.h"
#include <string.h>

bool tt_copy_fits(const tt_array *out, const tt_array *a) {
    char to[TT_SHAPE_TEXT], from[TT_SHAPE_TEXT];
    int lead = out->ndim - a->ndim;
    bool ok = lead >= 0;
    for (int d = 0; ok && d < a->ndim; d++) ok = a->shape[d] == 1 || a->shape[d] == out->shape[d + lead];
    if (!ok)
        tt_fail(TT_RUNTIME_ERROR, "copy_: the shape %s of the source does not broadcast to %s",
                tt_shape_text(from, a->ndim, a->shape), tt_shape_text(to, out->ndim, out->shape));
    return ok;
}

/* Between two devices it is the work of the one that is not the CPU. */
int tt_copy_unchecked(tt_array *out, tt_array *a) {
    int device = 0;
    if (out->flags & TT_FLAG_DEVICE) device = out->storage->device;
    else if (a->flags & TT_FLAG_DEVICE) device = a->storage->device;
    return tt_backend_of(device)->copy(out, a) - 1;
}

int tt_copy_now(tt_array *out, tt_array *a) {
    if (!tt_copy_fits(out, a) || !tt_may_write("copy_", out)) return -1;
    if (!out->numel || tt_same_layout(out, a)) return 0;
    if (tt_overlaps(out, a)) { /* read all before the first write */
        tt_array *whole = tt_clone_now(a);
        if (!whole) return -1;
        int status = tt_copy_unchecked(out, whole);
        tt_free(whole);
        return status;
    }
    return tt_copy_unchecked(out, a);
}

/* `out`, filled from `a`; freed where that failed. */
static tt_array *filled(tt_array *out, tt_array *a) {
    if (out && a->numel && tt_copy_unchecked(out, a) < 0) {
        tt_free(out);
        return NULL;
    }
    return out;
}

tt_array *tt_cast_now(tt_array *a, int dtype) { return filled(tt_empty_like(a, dtype), a); }
tt_array *tt_clone_now(tt_array *a) { return filled(tt_empty_like(a, a->dtype), a); }
tt_array *tt_contiguous_now(tt_array *a) { return filled(tt_empty(a->dtype, a->ndim, a->shape), a); }

void tt_convert(void *to, int to_dtype, const void *from, int from_dtype) {
    tt_backend_of(0)->convert(to, to_dtype, from, from_dtype);
}

void tt_set_element(char *p, int dtype, int kind, double f, int64_t i) {
    if (kind == TT_KIND_COMPLEX) {
        tt_complex128 c = {f, tt_double_bits((tt_u64)i)};
        tt_convert(p, dtype, &c, TT_C128);
    } else if (kind == TT_KIND_FLOAT) tt_convert(p, dtype, &f, TT_F64);
    else tt_convert(p, dtype, &i, f == 0 ? TT_I64 : TT_U64);
}

tt_array *tt_element(tt_array *one, char *room, int dtype, int kind, double f, int64_t i) {
    static tt_storage nowhere; /* the CPU's */
    *one = (tt_array){.storage = &nowhere,
                      .dtype = (int16_t)dtype,
                      .numel = 1,
                      .flags = TT_FLAG_CONTIGUOUS | TT_FLAG_WEAK,
                      .shape = tt_no_dims,
                      .strides = tt_no_dims};
    one->data = memset(room, 0, TT_MAX_ITEMSIZE);
    tt_set_element(one->data, dtype, kind, f, i);
    return one;
}

int tt_fill_now(tt_array *out, int kind, double f, int64_t i) {
    tt_array one;
    char room[TT_MAX_ITEMSIZE];
    return tt_copy_unchecked(out, tt_element(&one, room, out->dtype, kind, f, i));
}

tt_array *tt_full_now(int dtype, int ndim, int64_t *shape, int kind, double f, int64_t i) {
    tt_array *a = tt_empty(dtype, ndim, shape);
    if (!a || !a->numel) return a;
    if (tt_here()->fill) {
        char element[TT_MAX_ITEMSIZE];
        tt_set_element(element, dtype, kind, f, i);
        tt_here()->fill(a, element);
        return a;
    }
    if (tt_fill_now(a, kind, f, i) == 0) return a;
    tt_free(a);
    return NULL;
}
