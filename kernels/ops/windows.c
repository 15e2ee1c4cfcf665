/* Pooling: the layout is found, and the result allocated in it. */
#include "api/windows.h"
#include "backend/backend.h"
#include "ops/layout.h"

/* Runs the work on views as the backend wants them. */
static bool run(const char *op, tt_pool_work *w, bool last, int dims) {
    tt_array **operands[3] = {&w->from, &w->to, &w->index}, *views[3] = {0};
    bool ok = true;
    w->outer = w->inner = w->in = w->out = 1;
    for (int d = 0; d < w->from->ndim - dims; d++) *(last && d ? &w->inner : &w->outer) *= w->from->shape[d];
    for (int k = 0; k < 3; k++) {
        w->in *= w->axes[k].in;
        w->out *= w->axes[k].out;
    }
    for (int k = 0; last && k < 3; k++)
        if (*operands[k] && (ok = ok && (views[k] = tt_channels_last(*operands[k])))) *operands[k] = views[k];
    ok = ok && TT_WORK(op, pool, w);
    for (int k = 0; k < 3; k++)
        if (views[k]) tt_free(views[k]);
    return ok;
}

static bool usable(const char *op, const tt_array *a, int dims) {
    if (dims < 1 || dims > 3 || a->ndim < dims || a->ndim > dims + 2)
        tt_fail(TT_RUNTIME_ERROR, "%s: a tensor of %d dimensions cannot be pooled over %d", op, a->ndim, dims);
    else if (a->dtype == TT_BOOL) tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for 'bool'", op);
    else return tt_has_order(op, a->dtype);
    return false;
}

/* Axes of the last dimensions, behind axes of one element. */
static bool set_axes(const char *op, tt_pool_work *w, int dims, const int64_t *sizes, const int64_t *spec) {
    w->dims = dims;
    for (int k = 0; k < 3; k++) {
        int d = k - (3 - dims);
        tt_window_axis a = {1, 1, 1, 1, 0, 1};
        if (d >= 0)
            a = (tt_window_axis){sizes[d],        spec[5 * d + 4], spec[5 * d],
                                 spec[5 * d + 1], spec[5 * d + 2], spec[5 * d + 3]};
        if (a.in < 0 || a.out < 0 || a.taps < 1 || a.stride < 0 || a.padding < 0 || a.step < 1) {
            tt_fail(TT_RUNTIME_ERROR, "%s: sizes, windows, strides and dilations must be positive", op);
            return false;
        }
        w->axes[k] = a;
    }
    return true;
}

static tt_array *pool(const char *op, tt_pool_work w, tt_array *x, int dims, int64_t *spec, tt_array **index) {
    int64_t sizes[3];
    if (index) *index = NULL;
    TT_ON_DEVICE(NULL, op, 2, ((tt_array *[]){x, w.starts}));
    if (!tt_ready(x) || (w.starts && !tt_ready(w.starts))) return tt_decline();
    if (!usable(op, x, dims) || !set_axes(op, &w, dims, x->shape + x->ndim - dims, spec)) return NULL;
    for (int d = 0; d < dims; d++) sizes[d] = spec[5 * d + 4];
    bool last = !w.starts && tt_channels_are_last(x, dims);
    w.from = x;
    w.to = tt_spatial(x, x->dtype, dims, sizes, last);
    w.index = w.to && index ? tt_spatial(x, TT_I64, dims, sizes, last) : NULL;
    tt_array *out = w.to, *places = w.index;
    if (out && (places || !index) && (!out->numel || run(op, &w, last, dims))) {
        if (index) *index = places;
        return out;
    }
    if (out) tt_free(out);
    if (places) tt_free(places);
    return NULL;
}

tt_array *tt_max_pool(tt_array *x, int dims, int64_t *spec, tt_array *starts, tt_array **index) {
    return pool("max_pool", (tt_pool_work){.what = TT_POOL_MAX, .starts = starts}, x, dims, spec, index);
}

tt_array *tt_avg_pool(tt_array *x, int dims, int64_t *spec, int padding, int64_t divisor) {
    return pool("avg_pool", (tt_pool_work){.what = TT_POOL_AVG, .padding = padding, .divisor = divisor}, x, dims, spec,
                NULL);
}

static tt_array *backward(const char *op, tt_pool_work w, tt_array *g, int dims, int64_t *sizes, int64_t *spec) {
    TT_ON_DEVICE(NULL, op, 3, ((tt_array *[]){g, w.index, w.starts}));
    if (!tt_ready(g) || (w.index && !tt_ready(w.index)) || (w.starts && !tt_ready(w.starts))) return tt_decline();
    if (!usable(op, g, dims) || !set_axes(op, &w, dims, sizes, spec)) return NULL;
    if (w.index && (!tt_same_shape(g, w.index) || w.index->dtype != TT_I64))
        return tt_fail(TT_RUNTIME_ERROR, "%s: expected int64 indices of the gradient's shape", op);
    for (int k = 0; k < dims; k++)
        if (w.axes[3 - dims + k].out != g->shape[g->ndim - dims + k])
            return tt_fail(TT_RUNTIME_ERROR, "%s: the gradient's shape does not fit", op);
    bool last = tt_channels_are_last(w.index ? w.index : g, dims);
    tt_array *to = w.to = tt_spatial(g, g->dtype, dims, sizes, last);
    w.from = g;
    if (!to || !to->numel || run(op, &w, last, dims)) return to;
    tt_free(to);
    return NULL;
}

tt_array *tt_max_pool_backward(tt_array *g, tt_array *index, int dims, int64_t *sizes, int64_t *spec,
                               tt_array *starts) {
    return backward("max_pool_backward", (tt_pool_work){.what = TT_POOL_MAX_BACKWARD, .index = index, .starts = starts},
                    g, dims, sizes, spec);
}

tt_array *tt_avg_pool_backward(tt_array *g, int dims, int64_t *sizes, int64_t *spec, int padding, int64_t divisor) {
    return backward("avg_pool_backward",
                    (tt_pool_work){.what = TT_POOL_AVG_BACKWARD, .padding = padding, .divisor = divisor}, g, dims,
                    sizes, spec);
}
