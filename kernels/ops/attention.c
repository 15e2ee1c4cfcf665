/* Attention: operands are checked against each other, and results are allocated. */
#include "api/attention.h"
#include "backend/backend.h"
#include "ops/nn.h"
#include "ops/second.h"
#include <limits.h>

static const char op[] = "scaled_dot_product_attention";

static bool fits(const char *name, const tt_array *a, int dtype, int64_t n, int64_t heads, int64_t rows, int64_t cols) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    int64_t shape[4] = {n, heads, rows, cols};
    bool same = a->ndim == 4 && a->dtype == dtype;
    for (int d = 0; d < 4 && same; d++) same = a->shape[d] == shape[d];
    if (!same)
        tt_fail(TT_RUNTIME_ERROR, "%s: expected %s of %s and shape %s, but got %s and %s", op, name,
                tt_dtype_names[dtype], tt_shape_text(want, 4, shape), tt_dtype_names[a->dtype],
                tt_shape_text(have, a->ndim, a->shape));
    return same;
}

static bool mask_fits(const tt_attention_work *w, int compute) {
    char have[TT_SHAPE_TEXT];
    int64_t shape[4] = {w->batch, w->heads, w->rows, w->keys};
    const tt_array *m = w->mask;
    if (!m) return true;
    bool good = m->ndim == 4 && (m->dtype == TT_BOOL || m->dtype == compute);
    for (int d = 0; d < 4 && good; d++) good = m->shape[d] == 1 || m->shape[d] == shape[d];
    if (!good)
        tt_fail(TT_RUNTIME_ERROR, "%s: a mask of %s and shape %s does not fit", op, tt_dtype_names[m->dtype],
                tt_shape_text(have, m->ndim, m->shape));
    return good;
}

/* Fills in the sizes. */
static bool check(tt_attention_work *w) {
    const tt_array *q = w->query, *k = w->key, *v = w->value;
    if (!tt_rows_are_float(op, q)) return false;
    if (q->ndim != 4 || k->ndim != 4 || v->ndim != 4) {
        tt_fail(TT_RUNTIME_ERROR, "%s: expected tensors of four dimensions, got %dD, %dD and %dD", op, q->ndim, k->ndim,
                v->ndim);
        return false;
    }
    w->batch = q->shape[0], w->heads = q->shape[1], w->rows = q->shape[2], w->width = q->shape[3];
    w->of_keys = k->shape[1], w->keys = k->shape[2], w->out_width = v->shape[3];
    if (w->of_keys ? w->heads % w->of_keys != 0 : w->heads != 0) {
        tt_fail(TT_RUNTIME_ERROR, "%s: %lld heads of keys do not divide %lld heads of queries", op,
                (long long)w->of_keys, (long long)w->heads);
        return false;
    }
    if (w->width > INT_MAX || w->heads * w->out_width > INT_MAX) {
        tt_fail(TT_RUNTIME_ERROR, "%s: heads are too large", op);
        return false;
    }
    return fits("key", k, q->dtype, w->batch, w->of_keys, w->keys, w->width) &&
           fits("value", v, q->dtype, w->batch, w->of_keys, w->keys, w->out_width) &&
           mask_fits(w, tt_compute_dtype(q->dtype));
}

static tt_draw kept(double keep, uint64_t seed, uint64_t draw, const uint64_t *place) {
    return (tt_draw){.seed = seed,
                     .draw = draw,
                     .place = place,
                     .kind = TT_RANDOM_mask,
                     .a = keep,
                     .b = keep > 0 ? 1 / keep : 0,
                     .digits = 24};
}

tt_array *tt_attention(tt_array *query, tt_array *key, tt_array *value, tt_array *mask, double scale, int causal,
                       double keep, uint64_t seed, uint64_t draw, const uint64_t *place, int kernel) {
    tt_array *in[4] = {query, key, value, mask};
    TT_ON_DEVICE(NULL, op, 4, in);
    for (int k = 0; k < 4; k++)
        if (in[k] && !tt_ready(in[k])) return tt_decline();
    tt_attention_work w = {.query = query,
                           .key = key,
                           .value = value,
                           .mask = mask,
                           .scale = scale,
                           .causal = causal,
                           .drops = keep < 1,
                           .kernel = kernel,
                           .draw = kept(keep, seed, draw, place)};
    if (!check(&w)) return NULL;
    int64_t shape[4] = {w.batch, w.heads, w.rows, w.out_width}, across = w.heads * w.out_width;
    int64_t side_by_side[4] = {w.rows * across, w.out_width, across, 1}; /* heads, as a model splits and joins them */
    bool plain = query->flags & TT_FLAG_CONTIGUOUS;
    bool ok =
        (w.lse = tt_empty(tt_compute_dtype(query->dtype), 3, shape)) &&
        (w.out = plain ? tt_empty(query->dtype, 4, shape) : tt_empty_strided(query->dtype, 4, shape, side_by_side)) &&
        (!w.lse->numel || TT_WORK(op, attention, &w));
    if (!ok && w.out) tt_free(w.out);
    if (!ok && w.lse) tt_free(w.lse);
    tt_second_array = ok ? w.lse : NULL;
    return ok ? w.out : NULL;
}

/* Laid out as `a` where its rows are whole in memory and leave no gaps, else row-major. Side by side, the gradients of
 * parts of one product's rows take longer to write than is won when they are stacked: a step of GPT on two cores takes
 * 131 ms, row-major 127. */
static tt_array *gradient_of(tt_array *a) {
    int64_t reach = 1;
    for (int d = 0; d < 4; d++) reach += (a->shape[d] - 1) * a->strides[d];
    return a->strides[3] == 1 && reach == a->numel ? tt_like(a, a->dtype) : tt_empty(a->dtype, a->ndim, a->shape);
}

int tt_attention_backward(tt_array *g, tt_array *query, tt_array *key, tt_array *value, tt_array *out, tt_array *lse,
                          tt_array *mask, double scale, int causal, double keep, uint64_t seed, uint64_t draw,
                          const uint64_t *place, int kernel, tt_array **grads) {
    tt_array *in[7] = {g, query, key, value, out, lse, mask};
    TT_ON_DEVICE(-1, op, 7, in);
    for (int k = 0; k < 7; k++)
        if (in[k] && !tt_ready(in[k])) {
            tt_decline();
            return -1;
        }
    tt_attention_work w = {.query = query,
                           .key = key,
                           .value = value,
                           .mask = mask,
                           .out = out,
                           .lse = lse,
                           .g = g,
                           .scale = scale,
                           .causal = causal,
                           .drops = keep < 1,
                           .kernel = kernel,
                           .draw = kept(keep, seed, draw, place)};
    if (!check(&w) || !fits("the result's gradient", g, query->dtype, w.batch, w.heads, w.rows, w.out_width)) return -1;
    bool ok = true;
    for (int k = 0; k < 3; k++) ok = ok && (w.grads[k] = gradient_of(in[1 + k]));
    ok = ok && TT_WORK(op, attention_backward, &w);
    for (int k = 0; k < 3; k++) {
        if (!ok && w.grads[k]) tt_free(w.grads[k]);
        grads[k] = ok ? w.grads[k] : NULL;
    }
    return ok ? 0 : -1;
}
