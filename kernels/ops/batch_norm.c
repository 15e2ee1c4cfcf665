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

/* Shows x, g and out as the backend wants them, and runs the work: the normalised array or its gradient, sums, or
 * statistics. */
static bool run(const char *op, tt_batch_norm_work *w, bool sums, const tt_batch_statistics_work *statistics) {
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
    ok = ok && (statistics ? TT_WORK(op, batch_statistics, w, statistics)
                : sums     ? TT_WORK(op, batch_norm_sums, w)
                           : TT_WORK(op, batch_norm, w));
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

tt_array *tt_batch_statistics(tt_array *x, tt_array *running_mean, tt_array *running_var, double momentum, double eps,
                              int writer, tt_array **views) {
    static const char op[] = "batch_norm";
    TT_ON_DEVICE(NULL, op, 3, ((tt_array *[]){x, running_mean, running_var}));
    tt_batch_norm_work of = {.x = x};
    tt_batch_statistics_work w = {.running = {running_mean, running_var}, .momentum = momentum, .eps = eps};
    views[0] = views[1] = NULL;
    if (!tt_ready(x)) return tt_decline();
    if (!usable(op, &of)) return NULL;
    for (int k = 0; k < 2; k++) {
        tt_array *a = w.running[k];
        if (a && !tt_ready(a)) return tt_decline();
        if (a && (!has_one_each(op, a, x->shape[1]) || !(a->flags & TT_FLAG_CONTIGUOUS) || !tt_writable(op, a)))
            return NULL;
    }
    if (!(w.stats = tt_empty(tt_compute_dtype(x->dtype), 2, (int64_t[]){2, x->shape[1]}))) return NULL;
    int64_t channels = x->shape[1], step = 1;
    bool ok = (views[0] = tt_view(w.stats, 1, &channels, &step, 0)) &&
              (views[1] = tt_view(w.stats, 1, &channels, &step, channels)) && run(op, &of, false, &w);
    if (ok) {
        for (int k = 0; k < 2; k++)
            if (w.running[k]) tt_bump_version(w.running[k], writer);
        return w.stats;
    }
    for (int k = 0; k < 2; k++) {
        if (views[k]) tt_free(views[k]);
        views[k] = NULL;
    }
    tt_free(w.stats);
    return NULL;
}

/* of: NULL, or where the gradients of weight and bias are wanted */
static tt_array *normalized(const char *op, tt_batch_norm_work w, tt_array **of) {
    tt_array *all[] = {w.x, w.g, w.weight, w.bias, w.mean, w.rstd};
    TT_ON_DEVICE(NULL, op, 6, all);
    for (int k = 0; k < 6; k++)
        if (all[k] && !tt_ready(all[k])) return tt_decline();
    if (!usable(op, &w)) return NULL;
    int dims = w.x->ndim - 2;
    tt_array *out = w.out = tt_spatial(w.x, w.x->dtype, dims, w.x->shape + 2, channels_are_last(w.x));
    bool ok = out;
    for (int k = 0; k < 2 && ok && of; k++) ok = (of[k] = tt_empty(tt_compute_dtype(w.x->dtype), 1, w.x->shape + 1));
    if (of) w.of_weight = of[0], w.of_bias = of[1];
    if (ok && run(op, &w, false, NULL)) return out;
    for (int k = 0; k < 2 && of; k++) {
        if (of[k]) tt_free(of[k]);
        of[k] = NULL;
    }
    if (out) tt_free(out);
    return NULL;
}

tt_array *tt_batch_norm(tt_array *x, tt_array *weight, tt_array *bias, tt_array *mean, tt_array *rstd) {
    return normalized("batch_norm",
                      (tt_batch_norm_work){.x = x, .weight = weight, .bias = bias, .mean = mean, .rstd = rstd}, NULL);
}

tt_array *tt_batch_norm_backward(tt_array *g, tt_array *x, tt_array *weight, tt_array *mean, tt_array *rstd, int own,
                                 tt_array **of) {
    of[0] = of[1] = NULL;
    return normalized("batch_norm_backward",
                      (tt_batch_norm_work){.x = x, .g = g, .weight = weight, .mean = mean, .rstd = rstd},
                      own ? of : NULL);
}

tt_array *tt_batch_norm_sums(tt_array *g, tt_array *x, tt_array *mean) {
    static const char op[] = "batch_norm_backward";
    TT_ON_DEVICE(NULL, op, 3, ((tt_array *[]){g, x, mean}));
    if (!tt_ready(g) || !tt_ready(x) || !tt_ready(mean)) return tt_decline();
    tt_batch_norm_work w = {.x = x, .g = g, .mean = mean};
    if (!usable(op, &w)) return NULL;
    tt_array *sums = w.sums = tt_empty(tt_compute_dtype(x->dtype), 2, (int64_t[]){2, x->shape[1]});
    if (!sums || run(op, &w, true, NULL)) return sums;
    tt_free(sums);
    return NULL;
}

int tt_group_norm_fits(tt_array *x) {
    return tt_backend_of(x->storage->device)->group_norm && x->ndim >= 2 && x->numel && tt_is_floating(x->dtype);
}

/* made: what else it writes, for each sample: of groups their statistics, or of channels the gradients */
static tt_array *groups_of(const char *op, tt_batch_norm_work w, int64_t groups, double eps, tt_array **made) {
    int64_t batch = w.x->shape[0], channels = w.x->shape[1];
    int dtype = tt_compute_dtype(w.x->dtype);
    if (groups < 1 || channels % groups || !has_one_each(op, w.weight, channels) || !has_one_each(op, w.bias, channels))
        return tt_fail(TT_RUNTIME_ERROR, "%s: expected groups and parameters of %lld channels", op,
                       (long long)channels);
    tt_array *out = w.out = tt_empty(w.x->dtype, w.x->ndim, w.x->shape);
    bool ok = out;
    for (int k = 0; k < 2 && ok; k++) ok = (made[k] = tt_empty(dtype, 2, (int64_t[]){batch, w.g ? channels : groups}));
    if (w.g) w.of_weight = made[0], w.of_bias = made[1];
    else w.rstd = made[0], w.mean = made[1];
    w.outer = batch;
    w.channels = batch * channels;
    w.inner = w.x->numel / w.channels;
    if (ok && TT_WORK(op, group_norm, &w, channels / groups, eps)) return out;
    for (int k = 0; k < 2; k++) {
        if (made[k]) tt_free(made[k]);
        made[k] = NULL;
    }
    if (out) tt_free(out);
    return NULL;
}

tt_array *tt_group_norm(tt_array *x, tt_array *weight, tt_array *bias, int64_t groups, double eps, tt_array **stats) {
    static const char op[] = "group_norm";
    TT_ON_DEVICE(NULL, op, 3, ((tt_array *[]){x, weight, bias}));
    stats[0] = stats[1] = NULL;
    if (!tt_ready(x) || (weight && !tt_ready(weight)) || (bias && !tt_ready(bias))) return tt_decline();
    if (!tt_group_norm_fits(x)) return tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for this array", op);
    return groups_of(op, (tt_batch_norm_work){.x = x, .weight = weight, .bias = bias}, groups, eps, stats);
}

tt_array *tt_group_norm_backward(tt_array *g, tt_array *x, tt_array *weight, tt_array *rstd, tt_array *mean,
                                 tt_array **of) {
    static const char op[] = "group_norm_backward";
    tt_array *all[] = {g, x, weight, rstd, mean};
    TT_ON_DEVICE(NULL, op, 5, all);
    of[0] = of[1] = NULL;
    for (int k = 0; k < 5; k++)
        if (all[k] && !tt_ready(all[k])) return tt_decline();
    if (!tt_group_norm_fits(x)) return tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for this array", op);
    int dtype = tt_compute_dtype(x->dtype);
    if (!tt_same_shape(g, x) || g->dtype != x->dtype || !tt_same_shape(rstd, mean) || rstd->ndim != 2 ||
        rstd->shape[0] != x->shape[0] || rstd->dtype != dtype || mean->dtype != dtype ||
        !(rstd->flags & mean->flags & TT_FLAG_CONTIGUOUS))
        return tt_fail(TT_RUNTIME_ERROR, "%s: expected a gradient like the input, and its statistics", op);
    tt_batch_norm_work w = {.x = x, .g = g, .weight = weight, .rstd = rstd, .mean = mean};
    return groups_of(op, w, rstd->shape[1], 0, of);
}
