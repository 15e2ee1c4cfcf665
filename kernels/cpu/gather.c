/* Reading and writing by index tensors on the CPU: index tensors as byte offsets, all checked before the first element
 * moves. */
#include "cpu/cpu.h"
#include "cpu/gather_rows.h"
#include <string.h>

static bool out_of_range(int rule, int64_t i, int64_t size, int dim) {
    long long given = (long long)i, n = (long long)size;
    if (rule == TT_INDEX_SELF)
        tt_fail(TT_INDEX_ERROR, "index out of range in self: index %lld, but dimension %d has size %lld", given, dim,
                n);
    else if (rule == TT_INDEX_FLAT)
        tt_fail(TT_INDEX_ERROR, "out of range: tried to access index %lld on a tensor of %lld elements.", given, n);
    else tt_fail(TT_INDEX_ERROR, "index %lld is out of bounds for dimension %d with size %lld", given, dim, n);
    return false;
}

/* Adds the byte offsets of one index tensor, whose values stand in `values`. */
static bool add_offsets(int64_t *offsets, const int64_t *values, int64_t m, const tt_indexed *v, int k,
                        int64_t itemsize, int rule) {
    const int64_t *shape = v->shape + v->dim[k], *strides = v->strides + v->dim[k];
    int span = v->span[k], merged = 0;
    int64_t size = 1, sizes[TT_MAX_NDIM], steps[TT_MAX_NDIM];
    for (int d = 0; d < span; d++) {
        size *= shape[d];
        tt_merge_dim(&merged, sizes, steps, shape[d], strides[d]);
    }
    bool wraps = rule == TT_INDEX_SUBSCRIPT || rule == TT_INDEX_FLAT;
    int64_t low = wraps ? -size : 0, step = merged ? steps[merged - 1] * itemsize : 0;
    for (int64_t i = 0; i < m; i++)
        if (values[i] < low || values[i] >= size) return out_of_range(rule, values[i], size, v->source[k]);
    for (int64_t i = 0; i < m; i++) {
        int64_t at = values[i] < 0 ? values[i] + size : values[i];
        if (merged > 1)
            for (int d = merged - 1; d >= 0; d--) {
                offsets[i] += at % sizes[d] * steps[d] * itemsize;
                at /= sizes[d];
            }
        else offsets[i] += at * step;
    }
    return true;
}

/* The values of an index tensor, cast to int64 and broadcast to a shape: where they lie, or into `copy`. */
static const int64_t *index_values(tt_array *index, int ndim, int64_t *shape, tt_array **copy) {
    *copy = NULL;
    if (index->dtype == TT_I64 && index->flags & TT_FLAG_CONTIGUOUS && index->ndim == ndim &&
        memcmp(index->shape, shape, sizeof(int64_t) * (size_t)ndim) == 0)
        return (const int64_t *)index->data;
    if (!(*copy = tt_empty(TT_I64, ndim, shape))) return NULL;
    if (tt_copy_now(*copy, index) < 0) {
        tt_free(*copy);
        return NULL;
    }
    return (const int64_t *)(*copy)->data;
}

/* The offsets of a walk of the table along the positions' shape. */
static void add_steps(int64_t *offsets, int64_t m, const tt_index_where *w, int64_t itemsize) {
    int64_t counter[TT_MAX_NDIM], at = 0;
    int last = w->ndim - 1;
    for (int d = 0; d < last; d++) counter[d] = 0;
    int64_t inner = w->ndim ? w->shape[last] : 1, inner_step = w->ndim ? w->steps[last] * itemsize : 0;
    for (int64_t i = 0; i < m; i += inner) {
        for (int64_t k = 0; k < inner; k++) offsets[i + k] += at + k * inner_step;
        for (int d = last - 1; d >= 0; d--) {
            int64_t across = w->steps[d] * itemsize;
            at += across;
            if (++counter[d] < w->shape[d]) break;
            at -= across * counter[d];
            counter[d] = 0;
        }
    }
}

bool tt_cpu_move_indexed(tt_moves *j, const tt_index_where *w, int dtype, int rows_dtype, int how) {
    (void)rows_dtype; /* the table's */
    int64_t item = tt_itemsizes[dtype], *offsets = tt_scratch((j->m ? j->m : 1) * (int64_t)sizeof(int64_t));
    if (!offsets) return false;
    memset(offsets, 0, (size_t)j->m * sizeof(int64_t));
    bool good = true;
    for (int k = 0; good && k < w->n; k++) {
        tt_array *copy;
        const int64_t *values = index_values(w->indices[k], w->ndim, (int64_t *)w->shape, &copy);
        good = values && add_offsets(offsets, values, j->m, w->view, k, item, w->rule);
        if (copy) tt_free(copy);
    }
    if (good && w->steps) add_steps(offsets, j->m, w, item);
    j->offsets = offsets;
    if (good) tt_run_moves(j, dtype, how);
    tt_scratch_free(offsets);
    return good;
}
