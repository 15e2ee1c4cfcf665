/* Normalisation of channels: operands are laid out alike, and results allocated. */
#include "api/batch_norm.h"
#include "backend/backend.h"
#include "ops/layout.h"

static bool channels_are_last(const tt_array *x) { return tt_channels_are_last(x, x->ndim - 2); }

int tt_batch_norm_fits(tt_array *x) {
    bool dense = x->flags & TT_FLAG_CONTIGUOUS || channels_are_last(x);
    return tt_backend_of(x->storage->device)->batch_norm && x->ndim >= 2 && x->ndim <= 5 && x->numel &&
           tt_is_floating(x->dtype) && dense;
}

static bool has_one_each(const char *op, const tt_array *a, int64_t channels) {
    if (!a || (a->numel == channels && tt_is_floating(a->dtype))) return true;
    tt_fail(TT_RUNTIME_ERROR, "%s: expected a number for each of %lld channels", op, (long long)channels);
    return false;
}

tt_array *tt_batch_statistics(tt_array *x, tt_array *running_mean, tt_array *running_var, double momentum, double eps,
                              int writer) {
    static const char op[] = "batch_norm";
    TT_ON_DEVICE(NULL, op, 3, ((tt_array *[]){x, running_mean, running_var}));
    tt_batch_statistics_work w = {.x = x, .running = {running_mean, running_var}, .momentum = momentum, .eps = eps};
    if (!tt_ready(x)) return tt_decline();
    if (x->ndim < 2) return tt_fail(TT_RUNTIME_ERROR, "%s: expected at least 2 dimensions", op);
    for (int k = 0; k < 2; k++) {
        tt_array *a = w.running[k];
        if (a && !tt_ready(a)) return tt_decline();
        if (a && (!has_one_each(op, a, x->shape[1]) || !(a->flags & TT_FLAG_CONTIGUOUS) || !tt_writable(op, a)))
            return NULL;
    }
    if (!(w.stats = tt_empty(tt_compute_dtype(x->dtype), 2, (int64_t[]){3, x->shape[1]}))) return NULL;
    if (TT_WORK(op, batch_statistics, &w)) {
        for (int k = 0; k < 2; k++)
            if (w.running[k]) tt_bump_version(w.running[k], writer);
        return w.stats;
    }
    tt_free(w.stats);
    return NULL;
}

/* Shows x, g and out as the backend wants them, and runs the work: the normalised array or its gradient, or (`sums`) sums. */
static bool run(const char *op, tt_batch_norm_work *w, bool sums) {
    tt_array **operands[3] = {&w->x, &w->g, &w->out}, *views[3] = {0};
    bool last = channels_are_last(w->x), ok = true;
    w->channels = w->x->shape[1];
    w->outer = w->x->shape[0];
    w->inner = w->x->numel / (w->outer * w->channels);
    if (last) {
        w->outer *= w->inner;
        w->inner = 1;
    }
    for (int k = 0; last && k < 3; k++)
        if (*operands[k] && (ok = ok && (views[k] = tt_channels_last(*operands[k])))) *operands[k] = views[k];
    ok = ok && (sums ? TT_WORK(op, batch_norm_sums, w) : TT_WORK(op, batch_norm, w));
    for (int k = 0; k < 3; k++)
        if (views[k]) tt_free(views[k]);
    return ok;
}

static bool usable(const char *op, const tt_batch_norm_work *w) {
    tt_array *each[4] = {w->weight, w->bias, w->mean, w->rstd};
    if (!tt_batch_norm_fits(w->x)) return tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for this layout", op), false;
    if (w->g && (!tt_same_shape(w->g, w->x) || w->g->dtype != w->x->dtype))
        return tt_fail(TT_RUNTIME_ERROR, "%s: expected a gradient like the input", op), false;
    for (int k = 0; k < 4; k++)
        if (!has_one_each(op, each[k], w->x->shape[1])) return false;
    return true;
}

static tt_array *normalized(const char *op, tt_batch_norm_work w) {
    tt_array *all[] = {w.x, w.g, w.weight, w.bias, w.mean, w.rstd, w.sums};
    TT_ON_DEVICE(NULL, op, 7, all);
    for (int k = 0; k < 7; k++)
        if (all[k] && !tt_ready(all[k])) return tt_decline();
    if (!usable(op, &w)) return NULL;
    int dims = w.x->ndim - 2;
    tt_array *out = w.out = tt_spatial(w.x, w.x->dtype, dims, w.x->shape + 2, channels_are_last(w.x));
    if (!out || run(op, &w, false)) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_batch_norm(tt_array *x, tt_array *weight, tt_array *bias, tt_array *mean, tt_array *rstd) {
    return normalized("batch_norm",
                      (tt_batch_norm_work){.x = x, .weight = weight, .bias = bias, .mean = mean, .rstd = rstd});
}

tt_array *tt_batch_norm_backward(tt_array *g, tt_array *x, tt_array *weight, tt_array *mean, tt_array *rstd,
                                 tt_array *sums) {
    return normalized("batch_norm_backward",
                      (tt_batch_norm_work){.x = x, .g = g, .weight = weight, .mean = mean, .rstd = rstd, .sums = sums});
}

tt_array *tt_batch_norm_sums(tt_array *g, tt_array *x, tt_array *mean) {
    static const char op[] = "batch_norm_backward";
    TT_ON_DEVICE(NULL, op, 3, ((tt_array *[]){g, x, mean}));
    if (!tt_ready(g) || !tt_ready(x) || !tt_ready(mean)) return tt_decline();
    tt_batch_norm_work w = {.x = x, .g = g, .mean = mean};
    if (!usable(op, &w)) return NULL;
    tt_array *sums = w.sums = tt_empty(tt_compute_dtype(x->dtype), 2, (int64_t[]){2, x->shape[1]});
    if (!sums || run(op, &w, true)) return sums;
    tt_free(sums);
    return NULL;
}
