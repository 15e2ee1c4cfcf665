/* Classification losses. */
#include "api/nn.h"
#include "api/reduce.h"
#include "backend/backend.h"
#include "backend/plain.h"
#include "ops/nn.h"

static bool check_batch(const char *op, tt_array *target, int64_t rows) {
    if (target->ndim == 1 && target->shape[0] == rows) return true;
    tt_fail(TT_VALUE_ERROR, "%s: Expected input batch_size (%lld) to match target batch_size (%lld).", op,
            (long long)rows, (long long)(target->ndim ? target->shape[0] : 1));
    return false;
}

static bool check_classes(const char *op, tt_array *target, tt_array *weight, int64_t rows, int64_t classes,
                          int64_t ignore) {
    char have[TT_SHAPE_TEXT];
    if (!check_batch(op, target, rows)) return false;
    if (target->dtype != TT_I64) {
        tt_fail(TT_RUNTIME_ERROR, "%s: expected scalar type Long (int64) for argument 'target' but found %s", op,
                tt_dtype_names[target->dtype]);
        return false;
    }
    if (weight && (weight->ndim != 1 || weight->shape[0] != classes)) {
        tt_fail(TT_RUNTIME_ERROR,
                "%s: weight tensor should be defined either for all %lld classes or no classes but "
                "got weight tensor of shape: %s",
                op, (long long)classes, tt_shape_text(have, weight->ndim, weight->shape));
        return false;
    }
    if (!tt_here()->on_host) return true; /* a device's elements are not waited for */
    int64_t step = target->ndim ? target->strides[0] : 0;
    const int64_t *t = (const int64_t *)target->data;
    for (int64_t i = 0; i < rows; i++)
        if (t[i * step] != ignore && (t[i * step] < 0 || t[i * step] >= classes)) {
            tt_fail(TT_INDEX_ERROR, "%s: Target %lld is out of bounds.", op, (long long)t[i * step]);
            return false;
        }
    return true;
}

/* The sum of all classes' weights in double, an array of one element. */
static tt_array *weights_sum(tt_array *weight) {
    tt_array *sum = tt_reduce(tt_reduce_code("sum"), weight, 0, 0, 0, TT_F64);
    if (!sum || tt_ready(sum)) return sum;
    tt_free(sum);
    return NULL;
}

tt_array *tt_class_loss(tt_array *x, tt_array *target, tt_array *weight, int logits, int wide, int reduction,
                        int64_t ignore, double smoothing, tt_array **stats) {
    const char *op = logits ? "cross_entropy" : "nll_loss";
    *stats = NULL;
    TT_ON_DEVICE(NULL, op, 3, ((tt_array *[]){x, target, weight}));
    if (!tt_ready(x) || !tt_ready(target) || (weight && !tt_ready(weight))) return tt_decline();
    if (!logits && x->ndim == 2 && !check_batch(op, target, x->shape[0])) return NULL; /* before its dtype */
    if (!tt_rows_are_float(op, x)) return NULL;
    if (x->ndim != 2) return tt_fail(TT_RUNTIME_ERROR, "%s: input should be 1D or 2D, got %dD", op, x->ndim);
    int64_t rows = x->shape[0], classes = x->shape[1];
    if (!check_classes(op, target, weight, rows, classes, ignore) || tt_rows_too_long(op, classes)) return NULL;
    int dtype = tt_compute_dtype(x->dtype), result = wide ? dtype : x->dtype;
    if (weight && weight->dtype != result)
        return tt_fail(TT_RUNTIME_ERROR, "%s: expected weight of dtype %s, that of input, but found %s", op,
                       tt_dtype_names[result], tt_dtype_names[weight->dtype]);
    tt_plain p[2] = {{0}};
    tt_array *out = NULL;
    bool ok = (*stats = tt_empty(dtype, 1, (int64_t[]){2 * rows + 1})) && tt_plain_take(&p[0], target, TT_I64) &&
              tt_plain_take(&p[1], weight, dtype) && (out = tt_empty(result, reduction == 0, &rows));
    tt_class_work w = {.x = x,
                       .target = p[0].array,
                       .weight = p[1].array,
                       .stats = *stats,
                       .rows = rows,
                       .classes = classes,
                       .ignore = ignore,
                       .smoothing = smoothing,
                       .logits = logits,
                       .reduction = reduction};
    ok = ok && TT_WORK(op, class_loss, out, &w);
    tt_plain_done(p, 2);
    if (ok) return out;
    if (out) tt_free(out);
    if (*stats) tt_free(*stats);
    *stats = NULL;
    return NULL;
}

tt_array *tt_class_loss_backward(tt_array *g, tt_array *x, tt_array *target, tt_array *weight, tt_array *stats,
                                 int logits, int reduction, int64_t ignore, double smoothing) {
    const char *op = logits ? "cross_entropy" : "nll_loss";
    TT_ON_DEVICE(NULL, op, 5, ((tt_array *[]){g, x, target, weight, stats}));
    if (!tt_ready(g) || !tt_ready(x) || !tt_ready(target) || (weight && !tt_ready(weight))) return tt_decline();
    int64_t rows = x->shape[0], classes = x->shape[1];
    if (!check_classes(op, target, weight, rows, classes, ignore)) return NULL;
    if (g->numel != (reduction == 0 ? rows : 1)) return tt_decline();
    tt_plain p[2] = {{0}};
    bool whole = weight && smoothing != 0 && logits; /* the sum of all weights is needed */
    tt_array *out = NULL, *all = whole ? weights_sum(weight) : NULL;
    bool ok = (all || !whole) && tt_plain_take(&p[0], target, TT_I64) && tt_plain_take(&p[1], weight, stats->dtype) &&
              (out = tt_empty(x->dtype, 2, x->shape));
    tt_class_work w = {.x = x,
                       .target = p[0].array,
                       .weight = p[1].array,
                       .stats = stats,
                       .rows = rows,
                       .classes = classes,
                       .ignore = ignore,
                       .smoothing = smoothing,
                       .logits = logits,
                       .reduction = reduction};
    ok = ok && (!out->numel || TT_WORK(op, class_loss_backward, out, &w, g, all));
    if (all) tt_free(all);
    tt_plain_done(p, 2);
    if (ok) return out;
    if (out) tt_free(out);
    return NULL;
}

tt_array *tt_class_targets(tt_array *target, tt_array *weight, int64_t classes, int dtype, int64_t ignore,
                           double smoothing) {
    TT_ON_DEVICE(NULL, "cross_entropy", 2, ((tt_array *[]){target, weight}));
    if (!tt_ready(target) || (weight && !tt_ready(weight))) return tt_decline();
    if (!check_classes("cross_entropy", target, weight, target->numel, classes, ignore)) return NULL;
    tt_plain p[2] = {{0}};
    tt_array *out = tt_empty(dtype, 2, (int64_t[]){target->numel, classes});
    bool ok = out && tt_plain_take(&p[0], target, TT_I64) && tt_plain_take(&p[1], weight, tt_compute_dtype(dtype));
    tt_class_work w = {.target = p[0].array,
                       .weight = p[1].array,
                       .rows = target->numel,
                       .classes = classes,
                       .ignore = ignore,
                       .smoothing = smoothing,
                       .logits = 1};
    ok = ok && (!out->numel || TT_WORK("cross_entropy", class_targets, out, &w));
    tt_plain_done(p, 2);
    if (ok) return out;
    if (out) tt_free(out);
    return NULL;
}
