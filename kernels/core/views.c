/* Views that Python tracks, each in one call. What is unusual or wrong here (a dimension out of range, sizes that do
 * not fit, strides that do not allow it) gives NULL, and Python's general path finds out what it is: see
 * tinytorch/ops/shape.py. */
#include "core/tt.h"
#include "api/views.h"
#include <string.h>

/* A view inside of what `a` shows; `start` counts elements from its first. */
tt_array *tt_show(tt_array *a, int ndim, const int64_t *shape, const int64_t *strides, int64_t start) {
    tt_array *b = tt_array_new(ndim);
    if (!b) return NULL;
    b->storage = a->storage;
    b->data = a->data + start * tt_itemsizes[a->dtype];
    b->ndim = ndim;
    b->dtype = a->dtype;
    b->flags = a->flags & (TT_FLAG_DEVICE | TT_FLAG_READONLY | TT_FLAG_INFERENCE);
    int64_t *sizes = b->shape, *steps = b->strides;
    uint64_t n = 1; /* which a size of 0 may come after an overflow of */
    bool contiguous = true;
    for (int d = ndim - 1; d >= 0; d--) {
        int64_t size = sizes[d] = shape[d], step = steps[d] = strides[d];
        contiguous &= step == (int64_t)n || size == 1;
        n *= (uint64_t)size;
    }
    b->numel = (int64_t)n;
    if (contiguous || n == 0) b->flags |= TT_FLAG_CONTIGUOUS;
    tt_storage_ref(b->storage);
    if ((b->counter = a->counter)) tt_storage_ref(b->counter);
    return b;
}

/* Marks a view of `a` as tracked, and up to date with its storage: autograd/views.py. Those of inference tensors are
 * not. */
tt_array *tt_track(const tt_array *a, tt_array *view) {
    if (!view || a->flags & TT_FLAG_INFERENCE) return view;
    view->flags |= TT_FLAG_VIEW | (a->flags & TT_FLAG_VIEW ? a->flags & TT_FLAG_CREATION : 0);
    view->seen_version = tt_version(view);
    return view;
}

/* The same for one of several views that one operator makes. */
static tt_array *among(tt_array *view) {
    if (view) view->flags = (uint16_t)((view->flags & ~TT_FLAG_CREATION) | TT_FLAG_MANY);
    return view;
}

/* n of them, or none. */
static int all_of(tt_array **views, int n) {
    for (int k = 0; k < n; k++)
        if (!views[k]) {
            for (int i = 0; i < n; i++)
                if (views[i]) tt_free(views[i]);
            return -1;
        }
    return 0;
}

static tt_array *shown(tt_array *a, int ndim, const int64_t *shape, const int64_t *strides, int64_t start) {
    return tt_track(a, tt_show(a, ndim, shape, strides, start));
}

/* 0 ... n - 1, or -1 */
static int64_t dim_of(int64_t d, int n) { return d < -n || d >= n ? -1 : d < 0 ? d + n : d; }

tt_array *tt_view_shaped(tt_array *a, int n, int64_t *shape) {
    int64_t sizes[TT_MAX_NDIM], known = 1;
    int unknown = -1;
    if (n > TT_MAX_NDIM) return tt_decline();
    for (int d = 0; d < n; d++) {
        sizes[d] = shape[d];
        if (shape[d] == -1 && unknown < 0) unknown = d;
        else if (shape[d] < 0 || __builtin_mul_overflow(known, shape[d], &known)) return tt_decline();
    }
    if (unknown >= 0) {
        if (known == 0 || a->numel % known) return tt_decline();
        sizes[unknown] = a->numel / known;
    } else if (known != a->numel) return tt_decline();
    if (!(a->flags & TT_FLAG_CONTIGUOUS) || !a->numel) return tt_track(a, tt_reshape_view(a, n, sizes));
    int64_t strides[TT_MAX_NDIM], step = 1;
    for (int d = n - 1; d >= 0; d--) {
        strides[d] = step;
        step *= sizes[d];
    }
    return shown(a, n, sizes, strides, 0);
}

tt_array *tt_view_expanded(tt_array *a, int n, int64_t *sizes) {
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM];
    int lead = n - a->ndim;
    if (n > TT_MAX_NDIM || lead < 0) return tt_decline();
    for (int d = n - 1; d >= 0; d--) {
        int64_t have = d < lead ? 1 : a->shape[d - lead];
        shape[d] = sizes[d] == -1 && d >= lead ? have : sizes[d];
        if (shape[d] < 0 || (shape[d] != have && have != 1)) return tt_decline();
        if (have == 1 && shape[d] != 1) strides[d] = 0;
        else strides[d] = d >= lead ? a->strides[d - lead] : d + 1 < n ? shape[d + 1] * strides[d + 1] : 0;
    }
    int64_t numel = 1;
    for (int d = 0; d < n; d++)
        if (__builtin_mul_overflow(numel, shape[d], &numel) || numel > INT64_MAX / TT_MAX_ITEMSIZE) return tt_decline();
    return shown(a, n, shape, strides, 0);
}

tt_array *tt_view_permuted(tt_array *a, int n, int64_t *dims) {
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM];
    uint64_t seen = 0;
    if (n != a->ndim) return tt_decline();
    for (int k = 0; k < n; k++) {
        int64_t d = dim_of(dims[k], n);
        if (d < 0 || seen >> d & 1) return tt_decline();
        seen |= (uint64_t)1 << d;
        shape[k] = a->shape[d];
        strides[k] = a->strides[d];
    }
    return shown(a, n, shape, strides, 0);
}

tt_array *tt_view_transposed(tt_array *a, int64_t dim0, int64_t dim1) {
    dim0 = dim_of(dim0, a->ndim);
    dim1 = dim_of(dim1, a->ndim);
    if (dim0 < 0 || dim1 < 0) return tt_decline();
    tt_array *b = shown(a, a->ndim, a->shape, a->strides, 0);
    if (!b) return NULL;
    b->shape[dim0] = a->shape[dim1];
    b->shape[dim1] = a->shape[dim0];
    b->strides[dim0] = a->strides[dim1];
    b->strides[dim1] = a->strides[dim0];
    tt_update_flags(b);
    return b;
}

tt_array *tt_view_t(tt_array *a) { return a->ndim == 2 ? tt_view_transposed(a, 0, 1) : tt_decline(); }

tt_array *tt_view_squeezed(tt_array *a, int n, int64_t *dims) {
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM];
    uint64_t among = n < 0 ? ~(uint64_t)0 : 0;
    int ndim = 0;
    for (int k = 0; k < n; k++) {
        int64_t d = dim_of(dims[k], a->ndim);
        if (d < 0 || among >> d & 1) return tt_decline();
        among |= (uint64_t)1 << d;
    }
    for (int d = 0; d < a->ndim; d++) {
        if (a->shape[d] == 1 && among >> d & 1) continue;
        shape[ndim] = a->shape[d];
        strides[ndim++] = a->strides[d];
    }
    return shown(a, ndim, shape, strides, 0);
}

tt_array *tt_view_unsqueezed(tt_array *a, int64_t dim) {
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM];
    int n = a->ndim + 1;
    dim = dim_of(dim, n);
    if (dim < 0 || n > TT_MAX_NDIM) return tt_decline();
    for (int d = 0; d < a->ndim; d++) {
        shape[d + (d >= dim)] = a->shape[d];
        strides[d + (d >= dim)] = a->strides[d];
    }
    shape[dim] = 1;
    strides[dim] = dim < a->ndim ? a->shape[dim] * a->strides[dim] : 1;
    return shown(a, n, shape, strides, 0);
}

tt_array *tt_view_selected(tt_array *a, int64_t dim, int64_t index) {
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM];
    dim = dim_of(dim, a->ndim);
    if (dim < 0 || index < -a->shape[dim] || index >= a->shape[dim]) return tt_decline();
    for (int d = 0, k = 0; d < a->ndim; d++) {
        if (d == dim) continue;
        shape[k] = a->shape[d];
        strides[k++] = a->strides[d];
    }
    return shown(a, a->ndim - 1, shape, strides, (index < 0 ? index + a->shape[dim] : index) * a->strides[dim]);
}

tt_array *tt_view_narrowed(tt_array *a, int64_t dim, int64_t start, int64_t length) {
    int64_t shape[TT_MAX_NDIM];
    dim = dim_of(dim, a->ndim);
    if (dim < 0) return tt_decline();
    int64_t n = a->shape[dim];
    if (start < 0) start += n;
    if (start < 0 || start > n || length < 0 || length > n - start) return tt_decline();
    memcpy(shape, a->shape, sizeof(int64_t) * (size_t)a->ndim);
    shape[dim] = length;
    return shown(a, a->ndim, shape, a->strides, start * a->strides[dim]);
}

tt_array *tt_view_diagonal(tt_array *a, int64_t offset, int64_t dim1, int64_t dim2) {
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM];
    dim1 = dim_of(dim1, a->ndim);
    dim2 = dim_of(dim2, a->ndim);
    if (dim1 < 0 || dim2 < 0 || dim1 == dim2) return tt_decline();
    int64_t rows = a->shape[dim1], columns = a->shape[dim2];
    if (offset <= -rows || offset >= columns) return tt_decline(); /* there are no elements */
    int last = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (d == dim1 || d == dim2) continue;
        shape[last] = a->shape[d];
        strides[last++] = a->strides[d];
    }
    int64_t down = offset < 0 ? -offset : 0, right = offset > 0 ? offset : 0;
    shape[last] = rows - down < columns - right ? rows - down : columns - right;
    strides[last] = a->strides[dim1] + a->strides[dim2];
    return shown(a, last + 1, shape, strides, down * a->strides[dim1] + right * a->strides[dim2]);
}

int tt_view_parts(tt_array *a, int64_t dim, int64_t size, int64_t *sizes, int n, tt_array **views) {
    int64_t start = 0, end = a->shape[dim];
    for (int k = 0; k < n; k++) {
        int64_t length = sizes ? sizes[k] : end - start < size ? end - start : size;
        views[k] = among(tt_view_narrowed(a, dim, start, length));
        start += length;
    }
    return all_of(views, n);
}

int tt_view_entries(tt_array *a, int64_t dim, int n, tt_array **views) {
    for (int k = 0; k < n; k++) views[k] = among(tt_view_selected(a, dim, k));
    return all_of(views, n);
}
