/* Subscripts: an index is applied to shape and strides in one pass; the views it makes. */
#include "api/index.h"
#include "ops/index.h"

#define NO_END INT64_MIN

static bool add_dim(tt_indexed *v, int64_t size, int64_t stride) {
    if (v->ndim == TT_MAX_NDIM) {
        tt_fail(TT_RUNTIME_ERROR, "only tensors with up to %d dims are supported, and this index makes more",
                TT_MAX_NDIM);
        return false;
    }
    v->shape[v->ndim] = size;
    v->strides[v->ndim++] = stride;
    return true;
}

static bool at(int64_t *start, const tt_array *a, int d, int64_t i) {
    int64_t size = a->shape[d];
    if (i < -size || i >= size) {
        tt_fail(TT_INDEX_ERROR, "index %lld is out of bounds for dimension %d with size %lld", (long long)i, d,
                (long long)size);
        return false;
    }
    *start += (i < 0 ? i + size : i) * a->strides[d];
    return true;
}

static int64_t clamp_end(int64_t i, int64_t size) {
    if (i < 0) i = i < -size ? 0 : i + size;
    return i > size ? size : i;
}

static bool slice(tt_indexed *v, const tt_array *a, int d, const int64_t *part) {
    int64_t size = a->shape[d], step = part[3] == NO_END ? 1 : part[3];
    int64_t start = part[1] == NO_END ? 0 : clamp_end(part[1], size);
    int64_t stop = part[2] == NO_END ? size : clamp_end(part[2], size);
    if (step <= 0) {
        tt_fail(TT_VALUE_ERROR, "step must be greater than zero, got a slice with step %lld in dimension %d",
                (long long)step, d);
        return false;
    }
    v->start += start * a->strides[d];
    int64_t length = stop > start ? (stop - start - 1) / step + 1 : 0, stride;
    if (__builtin_mul_overflow(a->strides[d], step, &stride)) stride = 1; /* at most one entry is left then */
    return add_dim(v, length, stride);
}

bool tt_resolve_index(tt_indexed *v, const tt_array *a, int n, const int64_t *code) {
    int named = 0, d = 0;
    bool rest = false;
    v->ndim = v->n = 0;
    v->start = 0;
    for (int k = 0; k < n; k++) {
        int64_t kind = code[4 * k], count = code[4 * k + 1];
        named += kind == TT_AT || kind == TT_SLICE ? 1 : kind == TT_INDEX || kind == TT_KEEP ? (int)count : 0;
    }
    if (named > a->ndim) {
        tt_fail(TT_INDEX_ERROR, "too many indices for tensor of dimension %d", a->ndim);
        return false;
    }
    for (int k = 0; k <= n; k++) {
        const int64_t *part = code + 4 * k;
        int64_t kind = k == n ? TT_REST : part[0], count = 0;
        if (kind == TT_AT) {
            if (!at(&v->start, a, d++, part[1])) return false;
        } else if (kind == TT_SLICE) {
            if (!slice(v, a, d++, part)) return false;
        } else if (kind == TT_NEW) {
            if (!add_dim(v, 1, d < a->ndim ? a->shape[d] * a->strides[d] : 1)) return false;
        } else if (kind == TT_REST) {
            count = rest ? 0 : a->ndim - named;
            rest = true;
        } else if (kind == TT_KEEP) count = part[1];
        else {
            count = part[1];
            v->dim[v->n] = v->ndim;
            v->source[v->n] = d;
            v->span[v->n++] = count ? (int)count : 1;
            if (!count && !add_dim(v, 1, 0)) return false;
        }
        for (int64_t c = 0; c < count; c++, d++)
            if (!add_dim(v, a->shape[d], a->strides[d])) return false;
    }
    return true;
}

static tt_array *show(tt_array *a, const tt_indexed *v) { return tt_show(a, v->ndim, v->shape, v->strides, v->start); }

/* a[i], without the parsing. */
tt_array *tt_index_int(tt_array *a, int64_t i) {
    int64_t start = 0;
    if (a->ndim == 0)
        return tt_fail(TT_INDEX_ERROR, "invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor "
                                       "to a Python number");
    if (!at(&start, a, 0, i)) return NULL;
    return tt_track(a, tt_show(a, a->ndim - 1, a->shape + 1, a->strides + 1, start));
}

/* a[start:stop], likewise. */
tt_array *tt_index_slice(tt_array *a, int64_t start, int64_t stop) {
    return tt_index_view(a, 1, (int64_t[]){TT_SLICE, start, stop, NO_END});
}

tt_array *tt_index_view(tt_array *a, int n, int64_t *code) {
    tt_indexed v;
    return tt_resolve_index(&v, a, n, code) ? tt_track(a, show(a, &v)) : NULL;
}

/* Writes src into the view of the fresh array `whole`, which it gives back, or frees. */
static tt_array *with_part(tt_array *whole, tt_array *src, int n, const int64_t *code) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    tt_indexed v;
    tt_array *part = NULL;
    if (!whole) return NULL;
    if (tt_resolve_index(&v, whole, n, code) && (part = show(whole, &v))) {
        if (!tt_same_shape(part, src))
            tt_fail(TT_RUNTIME_ERROR,
                    "expected src to have a size equal to the slice of self. src size = %s, "
                    "slice size = %s",
                    tt_shape_text(have, src->ndim, src->shape), tt_shape_text(want, part->ndim, part->shape));
        else if (tt_copy(part, src, -1) == 0) {
            tt_free(part);
            return whole;
        }
        tt_free(part);
    }
    tt_free(whole);
    return NULL;
}

/* A copy of a with src in place of one of its views. */
tt_array *tt_index_view_scatter(tt_array *a, tt_array *src, int n, int64_t *code) {
    TT_ON_DEVICE(NULL, "slice_scatter", 2, ((tt_array *[]){a, src}));
    if (!tt_current(a) || !tt_current(src)) return tt_decline();
    return with_part(tt_clone(a), src, n, code);
}

/* Zeros of a shape with g in one of their views. */
tt_array *tt_index_view_backward(tt_array *g, int ndim, int64_t *shape, int n, int64_t *code) {
    TT_ON_DEVICE(NULL, "slice_backward", 1, &g);
    if (!tt_current(g)) return tt_decline();
    return with_part(tt_full(g->dtype, ndim, shape, TT_KIND_INT, 0, 0), g, n, code);
}

/* Zeros of a's dtype, where a is. */
tt_array *tt_nought(tt_array *a, int ndim, int64_t *shape) {
    TT_ON_DEVICE(NULL, "zeros", 1, &a);
    return tt_full(a->dtype, ndim, shape, TT_KIND_INT, 0, 0);
}
