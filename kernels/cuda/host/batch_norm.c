/* Normalisation of channels on a device. Sums are the reductions' or have their tree, so that results have the bits of the
 * CPU's, which makes them of elementwise operators and reductions. */
#include "backend/plain.h"
#include "cuda/device/batch_norm_args.h"
#include "cuda/host/cuda.h"

#define NARROW ((int64_t)1 << 31) /* what 32-bit arithmetic does not reach */

static tt_divider divider(int64_t size) { return tt_divider_of(size < NARROW ? size : 1); }

/* Mean or (`about`, the means) variance of each channel. */
static bool moment(const tt_array *x, const tt_array *about, int compute, int64_t n, char *out) {
    int64_t mask = tt_first_bits(x->ndim) & ~tt_bit(1);
    tt_reduction g;
    tt_reduction_plan(&g, x, mask, compute, tt_itemsizes[compute], false);
    return tt_cuda_reduction(&g, about ? TT_RED_devsq : TT_RED_sum, compute, TT_RED_DIVIDE, (double)n, about, compute,
                             out, NULL);
}

bool tt_cuda_batch_statistics(const tt_batch_statistics_work *w) {
    int compute = w->stats->dtype;
    int64_t channels = w->x->shape[1], n = w->x->numel / channels, bytes = channels * tt_itemsizes[compute];
    tt_array *const *running = w->running, *either = running[0] ? running[0] : running[1];
    if (!moment(w->x, NULL, compute, n, w->stats->data) || !moment(w->x, w->stats, compute, n, w->stats->data + bytes))
        return false;
    tt_batch_running_args p = {.stats = w->stats->data,
                               .running_mean = running[0] ? running[0]->data : NULL,
                               .running_var = running[1] ? running[1]->data : NULL,
                               .channels = channels,
                               .kept = 1 - w->momentum,
                               .momentum = w->momentum,
                               .eps = w->eps,
                               .freedom = (double)n / (double)(n > 1 ? n - 1 : 1)};
    return TT_LAUNCH(
        tt_key(TT_FAMILY_batch_running, 0, either != NULL, either ? either->dtype : compute, compute, 0, 0, 0),
        (channels + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, p);
}

static bool apply(const tt_batch_norm_work *w, tt_batch_norm_args *p, int compute) {
    int dtype = w->out->dtype, log = 4, op = !w->g ? 0 : w->sums ? 1 : 2;
    int64_t along = w->inner > 1 ? w->inner : w->channels, all = (intptr_t)p->x | (intptr_t)p->out | (intptr_t)p->g;
    while (log > 0 &&
           (tt_itemsizes[dtype] << log > 16 || along % ((int64_t)1 << log) || all & ((tt_itemsizes[dtype] << log) - 1)))
        log--;
    int variant = log | (p->numel >= NARROW ? TT_BATCH_WIDE : 0) | (w->inner == 1 ? TT_BATCH_LAST : 0) |
                  (w->weight ? TT_BATCH_WEIGHT : 0) | (w->bias ? TT_BATCH_BIAS : 0);
    int64_t tile = (int64_t)TT_CUDA_THREADS << log;
    return TT_LAUNCH(tt_key(TT_FAMILY_batch_norm, op, variant, dtype, compute, w->weight ? w->weight->dtype : compute,
                            w->bias ? w->bias->dtype : compute, 0),
                     (p->numel + tile - 1) / tile, 1, TT_CUDA_THREADS, 0, *p);
}

enum { X, G, WEIGHT, BIAS, MEAN, RSTD, SUMS, OPERANDS };

static bool take(tt_plain *in, const tt_batch_norm_work *w, int compute) {
    tt_array *all[OPERANDS] = {w->x, w->g, w->weight, w->bias, w->mean, w->rstd, w->sums};
    for (int k = 0; k < OPERANDS; k++)
        if (!tt_plain_take(&in[k], all[k], !all[k] ? 0 : k < MEAN ? all[k]->dtype : compute)) return false;
    return true;
}

bool tt_cuda_batch_norm(const tt_batch_norm_work *w) {
    int compute = tt_compute_dtype(w->x->dtype);
    tt_plain in[OPERANDS] = {{0}};
    bool ok = take(in, w, compute);
    if (ok) {
        tt_batch_norm_args p = {.x = tt_plain_data(&in[X]),
                                .g = tt_plain_data(&in[G]),
                                .out = w->out->data,
                                .weight = tt_plain_data(&in[WEIGHT]),
                                .bias = tt_plain_data(&in[BIAS]),
                                .mean = tt_plain_data(&in[MEAN]),
                                .rstd = tt_plain_data(&in[RSTD]),
                                .sums = tt_plain_data(&in[SUMS]),
                                .numel = w->out->numel,
                                .channels = w->channels,
                                .inner = w->inner,
                                .n = w->outer * w->inner,
                                .by_inner = divider(w->inner),
                                .by_channels = divider(w->channels)};
        ok = apply(w, &p, compute);
    }
    tt_plain_done(in, OPERANDS);
    return ok;
}

static bool sum_up(const tt_batch_norm_work *w, tt_batch_sums_args *p, int compute) {
    bool last = w->inner == 1;
    int columns = 0, dtype = w->x->dtype;
    int64_t grid = (p->blocks * w->channels + TT_CUDA_THREADS / 32 - 1) / (TT_CUDA_THREADS / 32);
    if (last) {
        columns = tt_cuda_columns(w->channels, tt_itemsizes[dtype], p->blocks);
        int64_t threads = TT_CUDA_THREADS >> columns, at_once = threads > 32 ? threads / 32 : 1;
        p->tiles = (w->channels + (1 << columns) - 1) >> columns;
        grid = (p->blocks + at_once - 1) / at_once * p->tiles;
    }
    return TT_LAUNCH(tt_key(TT_FAMILY_batch_sums, last, columns << TT_BATCH_COLUMNS, dtype, compute, 0, 0, 0), grid, 1,
                     TT_CUDA_THREADS, 0, *p);
}

bool tt_cuda_batch_norm_sums(const tt_batch_norm_work *w) {
    int compute = w->sums->dtype;
    tt_batch_norm_work operands = *w;
    operands.sums = NULL;
    tt_plain in[OPERANDS] = {{0}};
    tt_batch_sums_args p = {.channels = w->channels, .inner = w->inner, .n = w->outer * w->inner};
    p.blocks = (p.n + TT_BLOCK - 1) / TT_BLOCK;
    tt_array *parts = p.blocks > 1 ? tt_cuda_temporary(compute, 2 * p.blocks * w->channels) : NULL;
    bool ok = (parts || p.blocks == 1) && take(in, &operands, compute);
    if (ok) {
        p.g = tt_plain_data(&in[G]);
        p.x = tt_plain_data(&in[X]);
        p.mean = tt_plain_data(&in[MEAN]);
        p.parts = parts ? parts->data : w->sums->data;
        bool last = w->inner == 1;
        ok = sum_up(w, &p, compute) &&
             (!parts || tt_cuda_join_parts(TT_RED_sum, compute, parts, p.blocks, last ? 2 : 2 * w->channels,
                                           last ? w->channels : 1, compute, w->sums->data));
    }
    tt_plain_done(in, OPERANDS);
    if (parts) tt_free(parts);
    return ok;
}
