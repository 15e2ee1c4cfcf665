/* Resampling: the step of each dimension is found, and the result allocated. */
#include "api/resample.h"
#include "backend/backend.h"
#include "ops/layout.h"

_Static_assert((int)TT_NEAREST_EXACT == (int)TT_TAPS_NEAREST_EXACT && (int)TT_LINEAR == (int)TT_TAPS_LINEAR &&
                   (int)TT_CUBIC == (int)TT_TAPS_CUBIC,
               "modes have one number");

static double scale_of(const tt_resampling *r, double factor) {
    if (r->align && r->mode >= TT_LINEAR)
        return r->out > 1 ? tt_resample_rounded(r, tt_resample_rounded(r, (double)(r->in - 1)) / (double)(r->out - 1))
                          : 0;
    return factor > 0 ? tt_resample_rounded(r, 1 / factor) : tt_resample_rounded(r, (double)r->in / (double)r->out);
}

tt_array *tt_resample(tt_array *x, int dims, int64_t *sizes, double *scales, int mode, int align, int antialias,
                      int backward) {
    const char *op = backward ? "interpolate_backward" : "interpolate";
    TT_ON_DEVICE(NULL, op, 1, &x);
    if (!tt_ready(x)) return tt_decline();
    if (dims < 1 || dims > 3 || x->ndim != dims + 2)
        return tt_fail(TT_RUNTIME_ERROR, "%s: expected a tensor of %d dimensions, got %d", op, dims + 2, x->ndim);
    if (!tt_is_floating(x->dtype) && x->dtype != TT_U8)
        return tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for '%s'", op, tt_dtype_names[x->dtype]);
    for (int d = 0; d < dims; d++)
        if (sizes[d] < 1 || x->shape[d + 2] < 1)
            return tt_fail(TT_RUNTIME_ERROR, "%s: Input and output sizes should be greater than 0", op);
    tt_resample_work w = {.from = x, .outer = 1, .inner = 1, .backward = backward};
    bool last = tt_channels_are_last(x, dims), ok = true;
    tt_array *to = w.to = tt_spatial(x, x->dtype, dims, sizes, last), *views[2] = {0};
    if (!to || !to->numel) return to;
    for (int k = 0; k < 3; k++) {
        int d = k - (3 - dims);
        w.axes[k] = (tt_resampling){1, 1, 1, TT_NEAREST, align, false, mode < TT_LINEAR || x->dtype != TT_F64};
        if (d < 0) continue;
        w.axes[k].in = backward ? sizes[d] : x->shape[d + 2];
        w.axes[k].out = backward ? x->shape[d + 2] : sizes[d];
        w.axes[k].mode = mode;
        w.axes[k].antialias = antialias;
        w.axes[k].scale = scale_of(&w.axes[k], scales[d]);
    }
    *(last ? &w.inner : &w.outer) = x->shape[1];
    w.outer *= x->shape[0];
    if (last) { ok = ok && (w.from = views[0] = tt_channels_last(x)) && (w.to = views[1] = tt_channels_last(to)); }
    ok = ok && TT_WORK(op, resample, &w);
    for (int k = 0; k < 2; k++)
        if (views[k]) tt_free(views[k]);
    if (ok) return to;
    tt_free(to);
    return NULL;
}
