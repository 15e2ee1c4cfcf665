/* Classification losses: rows shared out over the threads. */
#include "cuda/host/cuda.h"
#include "cpu/nn.h"
#include "cpu/reduce.h"
#include "cpu/simd.h"
#include "api/nn.h"
#include "api/reduce.h"

typedef struct {
    const tt_nn_loops *loops;
    tt_classes classes;
    char *out, *top, *log_sum;
    const char *x, *g; /* g: a gradient per row, or NULL: `factor` for all */
    double *losses, factor;
    int size;
} loss_job;

static void loss_range(void *context, int64_t begin, int64_t end) {
    const loss_job *j = context;
    for (int64_t i = begin; i < end; i++)
        j->losses[i] = j->loops->class_loss(j->x, i, &j->classes, j->top + i * j->size, j->log_sum + i * j->size);
}

static void loss_backward_range(void *context, int64_t begin, int64_t end) {
    const loss_job *j = context;
    for (int64_t i = begin; i < end; i++) {
        double g = j->factor;
        if (j->g) g *= j->size == 8 ? ((const double *)j->g)[i] : (double)((const float *)j->g)[i];
        j->loops->class_loss_backward(j->out, j->x, i, &j->classes, g, j->top + i * j->size, j->log_sum + i * j->size);
    }
}

static double weight_at(const tt_classes *c, int dtype, int64_t k) {
    if (!c->weight) return 1;
    return dtype == TT_F64 ? ((const double *)c->weight)[k] : (double)((const float *)c->weight)[k];
}

static bool check_classes(const char *op, tt_array *target, tt_array *weight, int64_t rows, int64_t classes,
                          int64_t ignore) {
    char have[TT_SHAPE_TEXT];
    if (target->dtype != TT_I64) {
        tt_fail(TT_RUNTIME_ERROR, "%s: expected scalar type Long (int64) for argument 'target' but found %s", op,
                tt_dtype_names[target->dtype]);
        return false;
    }
    if (target->ndim != 1 || target->shape[0] != rows) {
        tt_fail(TT_VALUE_ERROR, "%s: Expected input batch_size (%lld) to match target batch_size (%lld).", op,
                (long long)rows, (long long)(target->ndim ? target->shape[0] : 1));
        return false;
    }
    if (weight && (weight->ndim != 1 || weight->shape[0] != classes)) {
        tt_fail(TT_RUNTIME_ERROR, "%s: weight tensor should be defined either for all %lld classes or no classes but "
                "got weight tensor of shape: %s", op, (long long)classes, tt_shape_text(have, weight->ndim, weight->shape));
        return false;
    }
    if (tt_device) return true; /* a device's elements are not waited for */
    int64_t step = target->ndim ? target->strides[0] : 0;
    const int64_t *t = (const int64_t *)target->data;
    for (int64_t i = 0; i < rows; i++)
        if (t[i * step] != ignore && (t[i * step] < 0 || t[i * step] >= classes)) {
            tt_fail(TT_INDEX_ERROR, "%s: Target %lld is out of bounds.", op, (long long)t[i * step]);
            return false;
        }
    return true;
}

static void describe(loss_job *j, const tt_plain *p, int dtype, int64_t classes, int logits, int64_t ignore,
                     double smoothing) {
    j->loops = tt_nn_loops_of(dtype);
    j->size = tt_itemsizes[dtype];
    j->x = tt_plain_data(&p[0]);
    j->classes = (tt_classes){(const int64_t *)tt_plain_data(&p[1]), tt_plain_data(&p[2]), (double)classes, smoothing, ignore,
                              classes, logits};
}

/* The sum of all classes' weights in double, an array of one element. */
static tt_array *weights_sum(tt_array *weight) {
    tt_array *sum = tt_reduce(tt_reduce_code("sum"), weight, 0, 0, 0, TT_F64);
    if (!sum || tt_ready(sum)) return sum;
    tt_free(sum);
    return NULL;
}

/* In the tree that reductions have; `v` is used up. */
static double sum_of(double *v, int64_t n) {
    const tt_reducer *r = tt_get_reducer(TT_RED_sum, TT_F64);
    int64_t blocks = 0;
    for (int64_t i = 0; i < n; i += TT_BLOCK) r->fold(&v[blocks++], v + i, n - i < TT_BLOCK ? n - i : TT_BLOCK, NULL);
    tt_join_blocks(r, (char *)v, blocks, sizeof *v, 1);
    return n ? v[0] : 0;
}

static tt_class_args class_args(const tt_plain *p, int64_t rows, int64_t classes, int64_t ignore, double smoothing,
                                const tt_array *stats) {
    tt_class_args args = {.rows = rows, .n = (int32_t)classes, .x = tt_plain_data(&p[0]),
                          .target = (const int64_t *)tt_plain_data(&p[1]), .weight = tt_plain_data(&p[2]), .ignore = ignore,
                          .smoothing = smoothing};
    if (stats) {
        args.top = stats->data;
        args.log_sum = stats->data + rows * tt_itemsizes[stats->dtype];
    }
    return args;
}

static tt_array *class_loss_on_device(const tt_plain *p, int64_t rows, int64_t classes, int logits, int reduction,
                                      int64_t ignore, double smoothing, tt_array *stats) {
    int64_t shape[2] = {2, rows};
    const tt_array *x = p[0].array;
    int compute = stats->dtype;
    tt_array *out = tt_empty(x->dtype, reduction == 0, &rows), *sums = NULL;
    tt_array *losses = out && reduction ? tt_empty(TT_F64, 2, shape) : NULL;
    tt_class_args args = class_args(p, rows, classes, ignore, smoothing, stats);
    if (losses) args.losses = (double *)losses->data;
    else if (out) args.out = out->data;
    bool ok = out && (losses || !reduction) &&
              (!rows || tt_cuda_class_loss(logits ? TT_CLASS_LOGITS : 0, &args, x->dtype, compute));
    if (ok && reduction)
        ok = (sums = tt_reduce(tt_reduce_code("sum"), losses, 1, 1, 0, -1)) && tt_ready(sums) &&
             tt_cuda_class_total(sums, out, stats->data + 2 * rows * tt_itemsizes[compute], compute, reduction == 1);
    if (sums) tt_free(sums);
    if (losses) tt_free(losses);
    if (ok || !out) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_class_loss(tt_array *x, tt_array *target, tt_array *weight, int logits, int reduction, int64_t ignore,
                        double smoothing, tt_array **stats) {
    const char *op = logits ? "cross_entropy" : "nll_loss";
    *stats = NULL;
    TT_ON_DEVICE(NULL, op, 3, ((tt_array *[]){x, target, weight}));
    if (!tt_ready(x) || !tt_ready(target) || (weight && !tt_ready(weight))) return tt_decline();
    if (!tt_nn_is_float(op, x)) return NULL;
    if (x->ndim != 2) return tt_fail(TT_RUNTIME_ERROR, "%s: input should be 1D or 2D, got %dD", op, x->ndim);
    int64_t rows = x->shape[0], classes = x->shape[1];
    if (!check_classes(op, target, weight, rows, classes, ignore) || (tt_device && tt_nn_too_long(op, classes))) return NULL;
    int dtype = tt_compute_dtype(x->dtype);
    tt_plain p[3] = {{0}};
    tt_array *out = NULL;
    loss_job j = {0};
    if (!(*stats = tt_empty(dtype, 1, (int64_t[]){2 * rows + 1})) || !tt_plain_take(&p[0], x, tt_device ? x->dtype : dtype) ||
        !tt_plain_take(&p[1], target, TT_I64) || !tt_plain_take(&p[2], weight, dtype))
        goto end;
    if (tt_device) {
        out = class_loss_on_device(p, rows, classes, logits, reduction, ignore, smoothing, *stats);
        goto end;
    }
    if (!(j.losses = tt_scratch(2 * rows * (int64_t)sizeof(double))) || !(out = tt_empty(dtype, reduction == 0, &rows)))
        goto end;
    describe(&j, p, dtype, classes, logits, ignore, smoothing);
    j.top = (*stats)->data;
    j.log_sum = j.top + rows * j.size;
    tt_parallel(rows, tt_nn_grain(classes), loss_range, &j);
    double *weights = j.losses + rows, divisor;
    for (int64_t i = 0; i < rows; i++) {
        int64_t t = j.classes.target[i];
        weights[i] = t == ignore ? 0 : weight_at(&j.classes, dtype, t);
    }
    divisor = sum_of(weights, rows);
    tt_isa->casts[TT_F64][dtype](j.log_sum + rows * j.size, &divisor, 1);
    if (reduction == 0) tt_isa->casts[TT_F64][dtype](out->data, j.losses, rows);
    else {
        double total = sum_of(j.losses, rows);
        if (reduction == 1) total /= divisor;
        tt_isa->casts[TT_F64][dtype](out->data, &total, 1);
    }
end:
    if (j.losses) tt_scratch_free(j.losses);
    tt_plain_done(p, 3);
    out = tt_nn_finish(out, x->dtype);
    if (!out && *stats) {
        tt_free(*stats);
        *stats = NULL;
    }
    return out;
}

tt_array *tt_class_loss_backward(tt_array *g, tt_array *x, tt_array *target, tt_array *weight, tt_array *stats,
                                 int logits, int reduction, int64_t ignore, double smoothing) {
    const char *op = logits ? "cross_entropy" : "nll_loss";
    TT_ON_DEVICE(NULL, op, 5, ((tt_array *[]){g, x, target, weight, stats}));
    if (!tt_ready(g) || !tt_ready(x) || !tt_ready(target) || (weight && !tt_ready(weight))) return tt_decline();
    int64_t rows = x->shape[0], classes = x->shape[1];
    if (!check_classes(op, target, weight, rows, classes, ignore)) return NULL;
    int dtype = stats->dtype, own = tt_device ? x->dtype : dtype;
    if (g->numel != (reduction == 0 ? rows : 1)) return tt_decline();
    tt_plain p[4] = {{0}};
    tt_array *out = NULL, *all = weight && smoothing != 0 && logits ? weights_sum(weight) : NULL;
    loss_job j = {0};
    if (weight && smoothing != 0 && logits && !all) return NULL;
    if (tt_plain_take(&p[0], x, own) && tt_plain_take(&p[1], target, TT_I64) && tt_plain_take(&p[2], weight, dtype) && tt_plain_take(&p[3], g, dtype) &&
        (out = tt_empty(own, 2, x->shape)) && out->numel && tt_device) {
        tt_class_args args = class_args(p, rows, classes, ignore, smoothing, stats);
        args.out = out->data;
        args.g = tt_plain_data(&p[3]);
        args.each_row = reduction == 0;
        if (reduction == 1) args.divisor = stats->data + 2 * rows * tt_itemsizes[dtype];
        if (all) args.weight_sum = (const double *)all->data;
        if (!tt_cuda_class_loss(TT_CLASS_BACKWARD | (logits ? TT_CLASS_LOGITS : 0), &args, own, dtype)) {
            tt_free(out);
            out = NULL;
        }
    } else if (out && rows) {
        describe(&j, p, dtype, classes, logits, ignore, smoothing);
        if (all) j.classes.weight_sum = *(const double *)all->data;
        j.out = out->data;
        j.top = stats->data;
        j.log_sum = j.top + rows * j.size;
        j.factor = 1;
        if (reduction == 0) j.g = tt_plain_data(&p[3]);
        else tt_isa->casts[dtype][TT_F64](&j.factor, tt_plain_data(&p[3]), 1);
        if (reduction == 1) {
            double divisor;
            tt_isa->casts[dtype][TT_F64](&divisor, j.log_sum + rows * j.size, 1);
            j.factor /= divisor;
        }
        tt_parallel(rows, tt_nn_grain(classes), loss_backward_range, &j);
    }
    if (all) tt_free(all);
    tt_plain_done(p, 4);
    return tt_nn_finish(out, x->dtype);
}

tt_array *tt_class_targets(tt_array *target, tt_array *weight, int64_t classes, int dtype, int64_t ignore,
                           double smoothing) {
    TT_ON_DEVICE(NULL, "cross_entropy", 2, ((tt_array *[]){target, weight}));
    if (!tt_ready(target) || (weight && !tt_ready(weight))) return tt_decline();
    if (!check_classes("cross_entropy", target, weight, target->numel, classes, ignore)) return NULL;
    int wide = tt_compute_dtype(dtype);
    tt_plain p[3] = {{0}};
    tt_array *out = tt_empty(tt_device ? dtype : wide, 2, (int64_t[]){target->numel, classes});
    loss_job j = {0};
    bool ok = out && tt_plain_take(&p[1], target, TT_I64) && tt_plain_take(&p[2], weight, wide);
    if (ok && tt_device) {
        tt_class_args args = class_args(p, target->numel, classes, ignore, smoothing, NULL);
        args.out = out->data;
        ok = !out->numel || tt_cuda_class_loss(TT_CLASS_TARGETS, &args, dtype, wide);
    } else if (ok) {
        describe(&j, p, wide, classes, 1, ignore, smoothing);
        for (int64_t i = 0; i < target->numel; i++)
            for (int64_t k = 0; k < classes; k++) {
                int64_t t = j.classes.target[i];
                double q = smoothing / (double)classes + (k == t ? 1 - smoothing : 0);
                q = t == ignore ? 0 : q * weight_at(&j.classes, wide, k);
                tt_isa->casts[TT_F64][wide](out->data + (i * classes + k) * j.size, &q, 1);
            }
    }
    if (out && !ok) {
        tt_free(out);
        out = NULL;
    }
    tt_plain_done(p, 3);
    return tt_nn_finish(out, dtype);
}
