/* Fourier transforms on a device, by cuFFT (tinytorch/backends/cuda/cufft.py), which takes rows that one step leads
 * through. Others are copied: to where a row's numbers follow each other. */
#include "api/fft.h"
#include "backend/now.h"
#include "backend/operators.h"
#include "cuda/host/cuda.h"

extern int tt_cuda_transform(int, int, tt_transform *, void *, void *);

/* Does one step, and not that of an expanded dimension, lead from each row along `dim` to the next? The library also
 * wants memory that is aligned for a complex number. */
static bool one_step(const tt_array *a, int dim, int64_t *step) {
    int64_t count = 1;
    *step = 0;
    if (a->shape[dim] > 1 && a->strides[dim] == 0) return false;
    if ((intptr_t)a->data % tt_itemsizes[tt_complex_dtype(a->dtype)]) return false;
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (d == dim || a->shape[d] == 1) continue;
        if (a->strides[d] == 0) return false;
        if (count == 1) *step = a->strides[d];
        else if (a->strides[d] != *step * count) return false;
        count *= a->shape[d];
    }
    return true;
}

/* `a` with the dimension `dim` last, in `to` with room for sizes and strides. */
static void with_last(tt_array *to, const tt_array *a, int dim, int64_t *room) {
    *to = *a;
    to->shape = room;
    to->strides = room + TT_MAX_NDIM;
    for (int d = 0, k = 0; d <= a->ndim; d++) {
        int from = d == a->ndim ? dim : d;
        if (d == dim) continue;
        to->shape[k] = a->shape[from];
        to->strides[k++] = a->strides[from];
    }
    tt_update_flags(to);
}

/* The imaginary parts of what is its own counterpart are not looked at, as on the CPU. */
static bool forget_imaginary(tt_array *half, int64_t size) {
    int64_t n = half->shape[half->ndim - 1], rows = half->numel / n, step = 2 * n;
    tt_array parts = *half;
    parts.ndim = 1;
    parts.shape = &rows;
    parts.strides = &step;
    parts.numel = rows;
    parts.dtype = (int16_t)tt_real_dtype(half->dtype);
    for (int64_t k = 0; k <= size / 2; k += size % 2 || size == 1 ? size : size / 2) {
        parts.data = half->data + k * tt_itemsizes[half->dtype] + tt_itemsizes[parts.dtype];
        tt_update_flags(&parts);
        if (tt_fill_now(&parts, TT_KIND_INT, 0, 0) < 0) return false;
    }
    return true;
}

static bool scaled(tt_array *a, double by) {
    tt_array number;
    char room[TT_MAX_ITEMSIZE];
    if (by == 1) return true;
    tt_element(&number, room, TT_F64, TT_KIND_FLOAT, by, 0);
    return tt_cuda_elementwise(TT_OP_mul, a->dtype, a, 2, (tt_array *[]){a, &number});
}

static bool call(const tt_fft_work *w, const tt_array *a, int dim_a, const tt_array *out, int dim_out) {
    tt_transform t = {.size = w->size,
                      .rows = a->numel / a->shape[dim_a],
                      .in_stride = a->strides[dim_a],
                      .out_stride = out->strides[dim_out],
                      .in_dtype = a->dtype,
                      .out_dtype = out->dtype,
                      .forward = w->forward};
    one_step(a, dim_a, &t.in_step);
    one_step(out, dim_out, &t.out_step);
    int device = tt_device - 1;
    TT_LEAVE_TO_PYTHON;
    bool done = tt_cuda_transform(device, tt_cuda_stream(device), &t, a->data, out->data) == 0;
    if (!done) tt_fail(TT_PYTHON_ERROR, "the transform could not be computed");
    return done;
}

bool tt_cuda_fft(const tt_fft_work *w) {
    int64_t sizes[2][2 * TT_MAX_NDIM], step;
    int last = w->a->ndim - 1, dim_a = w->dim, dim_out = w->dim;
    bool to_real = !tt_is_complex(w->out->dtype);
    bool whole = !tt_is_complex(w->a->dtype) && w->out->shape[w->dim] == w->size && w->size > 2;
    tt_array moved_a, moved_out, *a = NULL, *out = NULL;
    with_last(&moved_a, w->a, w->dim, sizes[0]);
    with_last(&moved_out, w->out, w->dim, sizes[1]);
    bool ok = true;
    if (to_real || whole || !one_step(w->a, w->dim, &step)) { /* the library writes into what becomes real */
        a = tt_empty(whole ? w->out->dtype : w->a->dtype, moved_a.ndim, moved_a.shape);
        ok = a && tt_copy_now(a, &moved_a) == 0 && (!to_real || forget_imaginary(a, w->size));
        dim_a = last;
    }
    if (ok && !one_step(w->out, w->dim, &step)) {
        ok = (out = tt_empty(w->out->dtype, moved_out.ndim, moved_out.shape));
        dim_out = last;
    }
    ok = ok && call(w, a ? a : w->a, dim_a, out ? out : w->out, dim_out) &&
         (!out || tt_copy_now(&moved_out, out) == 0) && scaled(w->out, w->scale);
    if (a) tt_free(a);
    if (out) tt_free(out);
    return ok;
}
