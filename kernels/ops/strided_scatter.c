/* Writing into a strided view of a copy. */
#include "fuse/fuse.h"
#include "backend/now.h"
#include "ops/index.h"
#include "api/index.h"
#include <string.h>

/* Is every element of such a view another one? Dimensions by stride: each steps over all that the smaller ones
 * reach. */
static bool distinct(int ndim, const int64_t *shape, const int64_t *strides) {
    int64_t reach = 0;
    for (int64_t least = 0;;) {
        int next = -1;
        for (int d = 0; d < ndim; d++)
            if (shape[d] > 1 && strides[d] > least && (next < 0 || strides[d] < strides[next])) next = d;
        if (next < 0) break;
        if (strides[next] <= reach) return false;
        least = strides[next];
        reach += (shape[next] - 1) * least;
        for (int d = 0; d < ndim; d++) /* of one stride there can be one */
            if (d != next && shape[d] > 1 && strides[d] == least) return false;
    }
    for (int d = 0; d < ndim; d++)
        if (shape[d] > 1 && strides[d] == 0) return false;
    return true;
}

/* All that a's strides reach, between too. */
static bool copy_storage(tt_array *out, tt_array *a) {
    int64_t n = out->storage->nbytes / tt_itemsizes[a->dtype];
    if (!n) return true;
    tt_array to = {.storage = out->storage,
                   .data = out->data,
                   .numel = n,
                   .ndim = 1,
                   .dtype = a->dtype,
                   .shape = &n,
                   .strides = (int64_t[]){1},
                   .flags = TT_FLAG_CONTIGUOUS | (out->flags & TT_FLAG_DEVICE)},
             from = to;
    from.storage = a->storage;
    from.data = a->data;
    return tt_copy_now(&to, &from) == 0;
}

/* A copy of a, with its strides, and in it src in place of the view of that shape, strides and start (in elements from
 * the first). Where the view shows an element several times, it gets the sum: so this is also how the gradient of a
 * strided view is formed. */
tt_array *tt_strided_scatter(tt_array *a, tt_array *src, int ndim, int64_t *shape, int64_t *strides, int64_t start) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    TT_ON_DEVICE(NULL, "as_strided_scatter", 2, ((tt_array *[]){a, src}));
    if (!tt_current(a) || !tt_current(src)) return tt_decline();
    if (src->ndim != ndim || memcmp(src->shape, shape, sizeof(int64_t) * (size_t)ndim) != 0)
        return tt_fail(TT_RUNTIME_ERROR,
                       "as_strided_scatter: expected src to have a size equal to the slice of self. "
                       "src size = %s, slice size = %s",
                       tt_shape_text(have, src->ndim, src->shape), tt_shape_text(want, ndim, shape));
    tt_array *out = tt_empty_strided(a->dtype, a->ndim, a->shape, a->strides), *part = NULL, *copy = NULL;
    if (!out) return NULL;
    bool plain = distinct(ndim, shape, strides);
    int64_t item = tt_itemsizes[a->dtype], step;
    if (!(part = tt_view(out, ndim, shape, strides, start))) goto failed;
    if (TT_RECORDING && plain && out->numel * item == out->storage->nbytes && tt_record_copy(out, a) &&
        (!part->numel || tt_record_copy(part, src))) {
        tt_free(part);
        return out;
    }
    if (!tt_ready(a) || !tt_ready(src) || !tt_ready_to_write(out)) {
        tt_decline();
        goto failed;
    }
    if (!copy_storage(out, a)) goto failed;
    if (part->numel && plain) {
        if (tt_copy_now(part, src) < 0) goto failed;
    } else if (part->numel) {
        tt_moves moves;
        tt_moves_begin(&moves, part->data, part->numel);
        tt_index_where where = {.ndim = ndim, .shape = shape, .steps = strides};
        tt_array *nought = tt_full_now(a->dtype, 0, NULL, TT_KIND_INT, 0, 0);
        if (!nought) goto failed;
        moves.rows = nought->data;
        bool good = tt_move_indexed(&moves, &where, a->dtype, a->dtype, TT_MOVE_PUT);
        tt_free(nought);
        if (!good || !(moves.rows = tt_dense_rows(src, out, a->dtype, ndim, shape, &copy, &step))) goto failed;
        moves.row_step = step;
        if (!tt_move_indexed(&moves, &where, a->dtype, a->dtype, TT_MOVE_ADD)) goto failed;
    }
    if (copy) tt_free(copy);
    tt_free(part);
    return out;
failed:
    if (copy) tt_free(copy);
    if (part) tt_free(part);
    tt_free(out);
    return NULL;
}
