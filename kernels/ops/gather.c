/* Reading and writing by index tensors.
 *
 * Whatever the form (x[i, :, mask], gather, index_add, ...), it comes to this: a table of elements with strides, index
 * tensors that say where in it (tt_index_where), and dense rows (tt_moves). All values of the index tensors are checked
 * before the first element moves. */
#include "backend/backend.h"
#include "backend/now.h"
#include "ops/index.h"
#include "api/index.h"
#include <string.h>

/* What an index comes to: the result's shape, and the moves of its elements. */
typedef struct {
    int ndim;
    int64_t shape[TT_MAX_NDIM];
    tt_moves moves;
    tt_indexed view;
    tt_index_where where;
} plan;

/* The index tensors' common shape into plan->shape from `ndim` on; its numel, or -1. */
static int64_t broadcast(plan *pl, int n, tt_array *const *indices) {
    int64_t shape[TT_MAX_NDIM], m = 1;
    int ndim = 0;
    for (int k = 0; k < n; k++)
        if (indices[k]->ndim > ndim) ndim = indices[k]->ndim;
    for (int d = 0; d < ndim; d++) {
        shape[d] = 1;
        for (int k = 0; k < n; k++) {
            int own = d - (ndim - indices[k]->ndim);
            if (own < 0 || indices[k]->shape[own] == 1 || indices[k]->shape[own] == shape[d]) continue;
            if (shape[d] != 1) {
                char text[TT_SHAPE_TEXT], all[900];
                size_t used = 0;
                for (int i = 0; i < n && used < sizeof all - TT_SHAPE_TEXT - 2; i++) {
                    tt_shape_text(text, indices[i]->ndim, indices[i]->shape);
                    if (i) all[used++] = ',', all[used++] = ' ';
                    memcpy(all + used, text, strlen(text));
                    used += strlen(text);
                }
                all[used] = 0;
                tt_fail(TT_INDEX_ERROR,
                        "shape mismatch: indexing tensors could not be broadcast together with shapes "
                        "%s",
                        all);
                return -1;
            }
            shape[d] = indices[k]->shape[own];
        }
    }
    if (pl->ndim + ndim > TT_MAX_NDIM) {
        tt_fail(TT_RUNTIME_ERROR, "only tensors with up to %d dims are supported, and this index makes %d", TT_MAX_NDIM,
                pl->ndim + ndim);
        return -1;
    }
    for (int d = 0; d < ndim; d++) m *= pl->shape[pl->ndim++] = shape[d];
    return m;
}

/* An index tensor is on the device of what it indexes; that of a subscript may be on the CPU. */
static bool ready_index(tt_array *index, int rule) {
    if (index->storage->device == tt_device) return tt_ready(index) || tt_decline();
    if (rule != TT_INDEX_SUBSCRIPT) return tt_same_device("the index", index);
    if (index->storage->device) {
        char there[24];
        tt_fail(TT_RUNTIME_ERROR,
                "indices should be either on cpu or on the same device as the indexed tensor, got an index "
                "on %s for a tensor on %s",
                tt_device_text(there, sizeof there, index->storage->device), tt_device ? "another device" : "cpu");
        return false;
    }
    return tt_ready_here(index) || tt_decline();
}

static bool make_plan(plan *pl, tt_array *a, int n, const int64_t *code, tt_array *const *indices, int rule) {
    tt_indexed *v = &pl->view;
    if (!tt_resolve_index(v, a, n, code)) return false;
    for (int k = 0; k < v->n; k++)
        if (!ready_index(indices[k], rule)) return false;
    int first = v->n ? v->dim[0] : 0, from, count; /* without an index tensor: a plain view */
    bool adjoin = true;
    for (int k = 1; k < v->n; k++) adjoin &= v->dim[k] == v->dim[k - 1] + v->span[k - 1];
    if (!adjoin) first = 0;
    bool taken[TT_MAX_NDIM];
    for (int d = 0; d < v->ndim; d++) taken[d] = false;
    for (int k = 0; k < v->n; k++)
        for (int d = 0; d < v->span[k]; d++) taken[v->dim[k] + d] = true;
    int64_t size = tt_itemsizes[a->dtype];
    tt_moves *j = &pl->moves;
    tt_moves_begin(j, a->data + v->start * size, 0);
    pl->ndim = 0;
    for (int d = 0; d < first; d++) {
        pl->shape[pl->ndim++] = v->shape[d];
        j->npre *= v->shape[d];
        tt_merge_dim(&j->pre, j->pre_shape, j->pre_strides, v->shape[d], v->strides[d] * size);
    }
    from = pl->ndim;
    if ((j->m = broadcast(pl, v->n, indices)) < 0) return false;
    count = pl->ndim - from;
    for (int k = 0; k < v->n && j->m; k++)
        for (int d = 0; d < v->span[k]; d++)
            if (!v->shape[v->dim[k] + d])
                return tt_fail(TT_INDEX_ERROR, "index is out of bounds for dimension with size 0");
    for (int d = first; d < v->ndim; d++) {
        if (taken[d]) continue;
        if (pl->ndim == TT_MAX_NDIM)
            return tt_fail(TT_RUNTIME_ERROR, "only tensors with up to %d dims are supported, and this index makes more",
                           TT_MAX_NDIM);
        pl->shape[pl->ndim++] = v->shape[d];
        j->npost *= v->shape[d];
        tt_merge_dim(&j->post, j->post_shape, j->post_strides, v->shape[d], v->strides[d] * size);
    }
    if (tt_numel(pl->ndim, pl->shape) < 0) return false;
    pl->where = (tt_index_where){
        .rule = rule, .n = v->n, .ndim = count, .shape = pl->shape + from, .indices = indices, .view = v};
    return true;
}

bool tt_move_indexed(tt_moves *j, const tt_index_where *where, int dtype, int rows_dtype, int how) {
    if ((how == TT_MOVE_MAX || how == TT_MOVE_MIN) && !tt_has_order("scatter", dtype)) return false;
    if (how != TT_MOVE_PUT && how != TT_MOVE_GET && tt_is_wide_unsigned(dtype)) {
        tt_fail(TT_NOT_IMPLEMENTED, "scatter: not implemented for '%s'", tt_dtype_names[dtype]);
        return false;
    }
    return TT_WORK("indexing", move_indexed, j, where, dtype, rows_dtype, how);
}

/* What the plan names, as a new array. */
static tt_array *collect(plan *pl, const tt_array *a, int ndim, int64_t *shape) {
    tt_array *out = tt_empty(a->dtype, ndim, shape);
    if (out) {
        pl->moves.rows = out->data;
        pl->moves.row_step = tt_itemsizes[a->dtype];
        if (!tt_move_indexed(&pl->moves, &pl->where, a->dtype, a->dtype, TT_MOVE_GET)) {
            tt_free(out);
            out = NULL;
        }
    }
    return out;
}

tt_array *tt_index_get(tt_array *a, int n, int64_t *code, tt_array **indices, int rule) {
    plan pl;
    TT_ON_DEVICE(NULL, "index", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!make_plan(&pl, a, n, code, indices, rule)) return NULL;
    return collect(&pl, a, pl.ndim, pl.shape);
}

char *tt_dense_rows(tt_array *values, const tt_array *a, int dtype, int ndim, int64_t *shape, tt_array **copy,
                    int64_t *step) {
    bool one = values->numel == 1,
         same = values->ndim == ndim && memcmp(values->shape, shape, sizeof(int64_t) * (size_t)ndim) == 0;
    *copy = NULL;
    *step = one ? 0 : tt_itemsizes[dtype];
    if (!values->numel) return (char *)copy; /* never looked at, but not NULL */
    if (values->dtype == dtype && (one || (same && values->flags & TT_FLAG_CONTIGUOUS)) && !tt_overlaps(values, a) &&
        values->storage->device == tt_device)
        return values->data;
    *copy = one ? tt_empty(dtype, values->ndim, values->shape) : tt_empty(dtype, ndim, shape);
    if (*copy && tt_copy_now(*copy, values) == 0) return (*copy)->data;
    if (*copy) tt_free(*copy);
    *copy = NULL;
    return NULL;
}

static bool broadcasts(const tt_array *values, int ndim, const int64_t *shape) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    int lead = ndim - values->ndim;
    bool fits = true;
    for (int d = 0; fits && d < values->ndim; d++)
        fits = values->shape[d] == 1 || (d + lead >= 0 && values->shape[d] == shape[d + lead]);
    for (int d = 0; fits && d < -lead; d++) fits = values->shape[d] == 1;
    if (!fits)
        tt_fail(TT_RUNTIME_ERROR,
                "shape mismatch: value tensor of shape %s cannot be broadcast to indexing result of "
                "shape %s",
                tt_shape_text(have, values->ndim, values->shape), tt_shape_text(want, ndim, shape));
    return fits;
}

/* What is written: of the device, or one element of the CPU's. */
static bool ready_values(const char *op, tt_array *values) {
    bool number = values->ndim == 0 && !values->storage->device;
    if (number) return tt_ready_here(values) || tt_decline();
    return tt_same_device(op, values) && (tt_ready(values) || tt_decline());
}

/* A half type's updates are made in a copy of the table of twice the size, so that sums are rounded once. Where the
 * backend does that in registers, values of another dtype come as that too. */
static int rows_dtype(const tt_array *a, const tt_array *values, int mode) {
    return mode != TT_MOVE_PUT && tt_is_half(a->dtype) && values->dtype != a->dtype ? tt_compute_dtype(a->dtype)
                                                                                    : a->dtype;
}

static bool is_widened(const tt_array *a, int mode) {
    return mode != TT_MOVE_PUT && tt_is_half(a->dtype) && !(tt_here()->updates_halves && tt_is_floating(a->dtype));
}

static tt_array *widened(tt_array *a) {
    tt_array *wide = tt_empty(tt_compute_dtype(a->dtype), a->ndim, a->shape);
    if (wide && tt_copy_now(wide, a) < 0) {
        tt_free(wide);
        return NULL;
    }
    return wide;
}

/* The end of such an update: writes the copy back if `status` is good, and frees it. */
static int narrow(tt_array *a, tt_array *wide, int status, int writer) {
    status = tt_written(a, writer, status == 0 && tt_copy_now(a, wide) == 0);
    tt_free(wide);
    return status;
}

/* Moves values, broadcast to a shape, to what the plan names of `a`. */
static int put(plan *pl, tt_array *a, tt_array *values, int ndim, int64_t *shape, int mode, int writer) {
    tt_array *copy;
    int given = rows_dtype(a, values, mode);
    pl->moves.rows = tt_dense_rows(values, a, given, ndim, shape, &copy, &pl->moves.row_step);
    bool moved = pl->moves.rows && tt_move_indexed(&pl->moves, &pl->where, a->dtype, given, mode);
    if (copy) tt_free(copy);
    return tt_written(a, writer, moved);
}

int tt_index_put(tt_array *a, int n, int64_t *code, tt_array **indices, tt_array *values, int mode, int rule,
                 int writer) {
    plan pl;
    TT_ON_DEVICE(-1, "index_put_", 1, &a);
    if (!ready_values("index_put_", values) || !tt_writable("index_put_", a)) return -1;
    if (is_widened(a, mode)) {
        tt_array *wide = widened(a);
        return wide ? narrow(a, wide, tt_index_put(wide, n, code, indices, values, mode, rule, -1), writer) : -1;
    }
    if (!make_plan(&pl, a, n, code, indices, rule)) return -1;
    tt_array flat = *values; /* leading dimensions of size 1 beyond the result's are dropped */
    if (!broadcasts(values, pl.ndim, pl.shape)) return -1;
    if (flat.ndim > pl.ndim) {
        flat.shape += flat.ndim - pl.ndim;
        flat.strides += flat.ndim - pl.ndim;
        flat.ndim = pl.ndim;
    }
    return put(&pl, a, &flat, pl.ndim, pl.shape, mode, writer);
}

static bool index_fits(const char *op, const tt_array *index, const tt_array *a, int dim, const char *name) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    int na = a->ndim ? a->ndim : 1, ni = index->ndim ? index->ndim : 1, alike = 0;
    while (dim < 0 && alike < a->ndim && alike < ni && index->shape[alike] <= a->shape[alike]) alike++;
    if (dim < 0 && na < ni && a->ndim && alike == a->ndim) { /* PyTorch asks the source for a size that it has not */
        tt_fail(TT_INDEX_ERROR, "%s: Dimension out of range (expected to be in range of [%d, %d], but got %d)", op, -na,
                na - 1, na);
        return false;
    }
    if (na != ni) {
        tt_fail(TT_RUNTIME_ERROR,
                "%s: Index tensor must have the same number of dimensions as %s tensor: index has "
                "shape %s, %s %s",
                op, name, tt_shape_text(have, index->ndim, index->shape), name, tt_shape_text(want, a->ndim, a->shape));
        return false;
    }
    for (int d = 0; d < index->ndim; d++)
        if (d != dim && index->shape[d] > (a->ndim ? a->shape[d] : 1)) {
            tt_fail(TT_RUNTIME_ERROR,
                    "%s: Size does not match at dimension %d: expected index %s to be no larger than "
                    "%s %s%s",
                    op, d, tt_shape_text(have, index->ndim, index->shape), name, tt_shape_text(want, a->ndim, a->shape),
                    dim < 0 ? "" : " apart from the dimension indexed");
            return false;
        }
    return true;
}

/* The plan of a gather or scatter: one index tensor along `dim`, and the steps of the other dimensions. */
static void own_plan(plan *pl, const tt_array *a, int dim, tt_array **index) {
    tt_moves_begin(&pl->moves, a->data, (*index)->numel);
    tt_index_along(&pl->view, dim, a->ndim ? a->shape[dim] : 1, a->ndim ? a->strides[dim] : 0);
    for (int d = 0; d < (*index)->ndim; d++) pl->shape[d] = d == dim || d >= a->ndim ? 0 : a->strides[d];
    pl->where = (tt_index_where){.rule = TT_INDEX_STRICT,
                                 .n = 1,
                                 .ndim = (*index)->ndim,
                                 .shape = (*index)->shape,
                                 .steps = pl->shape,
                                 .indices = index,
                                 .view = &pl->view};
}

tt_array *tt_gather(tt_array *a, int dim, tt_array *index) {
    plan pl;
    TT_ON_DEVICE(NULL, "gather", 2, ((tt_array *[]){a, index}));
    if (!tt_ready(a) || !tt_ready(index)) return tt_decline();
    if (!index->numel) return tt_empty(a->dtype, index->ndim, index->shape);
    if (!index_fits("gather()", index, a, dim, "input")) return NULL;
    own_plan(&pl, a, dim, &index);
    return collect(&pl, a, index->ndim, index->shape);
}

int tt_scatter(tt_array *a, int dim, tt_array *index, tt_array *src, int mode, int writer) {
    plan pl;
    TT_ON_DEVICE(-1, "scatter", 2, ((tt_array *[]){a, index}));
    if (!tt_ready(index)) {
        tt_decline();
        return -1;
    }
    bool number = src->flags & TT_FLAG_WEAK;
    if (!ready_values("scatter", src) || !tt_writable("scatter", a)) return -1;
    if (is_widened(a, mode)) {
        tt_array *wide = widened(a);
        return wide ? narrow(a, wide, tt_scatter(wide, dim, index, src, mode, -1), writer) : -1;
    }
    if (!index->numel) return tt_written(a, writer, true);
    if (!index_fits("scatter()", index, a, dim, "self") || (!number && !index_fits("scatter()", index, src, -1, "src")))
        return -1;
    own_plan(&pl, a, dim, &index);
    tt_array part = *src; /* of src, what stands under index */
    if (!number && part.ndim) {
        part.numel = index->numel;
        if (index->ndim) part.shape = index->shape;
        tt_update_flags(&part);
    }
    return put(&pl, a, &part, index->ndim, index->shape, mode, writer);
}
