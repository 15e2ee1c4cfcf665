/* Classification losses on the CPU: rows shared out over the threads. */
#include "cpu/cpu.h"
#include "cpu/nn.h"
#include "cpu/reduce.h"

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

static void describe(loss_job *j, const tt_class_work *w, const tt_plain *x, int dtype) {
    j->loops = tt_nn_loops_of(dtype);
    j->size = tt_itemsizes[dtype];
    j->x = tt_plain_data(x);
    j->classes = (tt_classes){(const int64_t *)w->target->data,
                              w->weight ? w->weight->data : NULL,
                              (double)w->classes,
                              w->smoothing,
                              w->ignore,
                              w->classes,
                              w->logits};
    if (w->stats) {
        j->top = w->stats->data;
        j->log_sum = j->top + w->rows * j->size;
    }
}

/* In the tree that reductions have; `v` is used up. */
static double sum_of(double *v, int64_t n) {
    const tt_reducer *r = tt_get_reducer(TT_RED_sum, TT_F64);
    int64_t blocks = 0;
    for (int64_t i = 0; i < n; i += TT_BLOCK)
        r->reduce_block(&v[blocks++], v + i, n - i < TT_BLOCK ? n - i : TT_BLOCK, NULL);
    tt_join_blocks(r, (char *)v, blocks, sizeof *v, 1);
    return n ? v[0] : 0;
}

bool tt_cpu_class_loss(tt_array *out, const tt_class_work *w) {
    int dtype = w->stats->dtype;
    int64_t rows = w->rows;
    tt_plain x = {0};
    loss_job j = {.losses = tt_scratch(2 * rows * (int64_t)sizeof(double))};
    tt_wide wide = {0};
    bool ok = j.losses && tt_plain_take(&x, w->x, dtype) && tt_wide_start(&wide, out, dtype);
    if (ok) {
        describe(&j, w, &x, dtype);
        tt_parallel(rows, tt_nn_grain(w->classes), loss_range, &j);
        double *weights = j.losses + rows, divisor;
        for (int64_t i = 0; i < rows; i++) {
            int64_t t = j.classes.target[i];
            weights[i] = t == w->ignore ? 0 : weight_at(&j.classes, dtype, t);
        }
        divisor = sum_of(weights, rows);
        tt_isa->casts[TT_F64][dtype](j.log_sum + rows * j.size, &divisor, 1);
        if (w->reduction == 0) tt_isa->casts[TT_F64][dtype](wide.array->data, j.losses, rows);
        else {
            double total = sum_of(j.losses, rows);
            if (w->reduction == 1) total /= divisor;
            tt_isa->casts[TT_F64][dtype](wide.array->data, &total, 1);
        }
    }
    tt_scratch_free(j.losses);
    tt_plain_done(&x, 1);
    return tt_wide_end(&wide, ok);
}

bool tt_cpu_class_loss_backward(tt_array *out, const tt_class_work *w, tt_array *g, tt_array *weight_sum) {
    int dtype = w->stats->dtype;
    tt_plain p[2] = {{0}};
    loss_job j = {0};
    tt_wide wide = {0};
    bool ok = tt_plain_take(&p[0], w->x, dtype) && tt_plain_take(&p[1], g, dtype) && tt_wide_start(&wide, out, dtype);
    if (ok) {
        describe(&j, w, &p[0], dtype);
        if (weight_sum) j.classes.weight_sum = *(const double *)weight_sum->data;
        j.out = wide.array->data;
        j.factor = 1;
        if (w->reduction == 0) j.g = tt_plain_data(&p[1]);
        else tt_isa->casts[dtype][TT_F64](&j.factor, tt_plain_data(&p[1]), 1);
        if (w->reduction == 1) {
            double divisor;
            tt_isa->casts[dtype][TT_F64](&divisor, j.log_sum + w->rows * j.size, 1);
            j.factor /= divisor;
        }
        tt_parallel(w->rows, tt_nn_grain(w->classes), loss_backward_range, &j);
    }
    tt_plain_done(p, 2);
    return tt_wide_end(&wide, ok);
}

bool tt_cpu_class_targets(tt_array *out, const tt_class_work *w) {
    int dtype = tt_compute_dtype(out->dtype);
    loss_job j = {0};
    tt_wide wide = {0};
    if (!tt_wide_start(&wide, out, dtype)) return false;
    describe(&j, w, &(tt_plain){0}, dtype);
    for (int64_t i = 0; i < w->rows; i++)
        for (int64_t k = 0; k < w->classes; k++) {
            int64_t t = j.classes.target[i];
            double q = w->smoothing / (double)w->classes + (k == t ? 1 - w->smoothing : 0);
            q = t == w->ignore ? 0 : q * weight_at(&j.classes, dtype, k);
            tt_isa->casts[TT_F64][dtype](wide.array->data + (i * w->classes + k) * j.size, &q, 1);
        }
    return tt_wide_end(&wide, true);
}
