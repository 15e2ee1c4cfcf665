/* Normalisation of channels on a device. Sums are the reductions' or have their tree, so that results have the bits of
 * the CPU's, which makes them of elementwise operators and reductions. */
#include "backend/plain.h"
#include "cuda/device/batch_norm_args.h"
#include "cuda/host/cuda.h"
#include "cuda/host/last_block.h"

#define NARROW ((int64_t)1 << 31) /* what 32-bit arithmetic does not reach */

static tt_divider divider(int64_t size) { return tt_divider_of(size < NARROW ? size : 1); }

/* Sums of each channel (TT_BATCH_...) into `out`. */
static bool sum_up(int what, tt_batch_sums_args *p, int dtype, int compute, char *out) {
    bool last = p->inner == 1;
    int columns = 0, sums = what == TT_BATCH_GRADIENT ? 2 : 1;
    p->blocks = (p->n + TT_BLOCK - 1) / TT_BLOCK;
    int64_t grid = (p->blocks * p->channels + TT_CUDA_THREADS / 32 - 1) / (TT_CUDA_THREADS / 32);
    if (last) {
        columns = tt_cuda_columns(p->channels, tt_itemsizes[dtype], p->blocks);
        int64_t threads = TT_CUDA_THREADS >> columns, at_once = threads > 32 ? threads / 32 : 1;
        p->tiles = (p->channels + (1 << columns) - 1) >> columns;
        grid = (p->blocks + at_once - 1) / at_once * p->tiles;
    }
    tt_array *parts = p->blocks > 1 ? tt_cuda_temporary(compute, sums * p->blocks * p->channels) : NULL;
    if (!parts && p->blocks > 1) return false;
    p->parts = parts ? parts->data : out;
    int variant = last ? TT_BATCH_LAST | columns << TT_BATCH_COLUMNS : 0;
    int64_t slots = TT_CUDA_THREADS >> columns;
    bool few = p->blocks <= slots * TT_BATCH_MOST_PARTS && p->tiles <= TT_CUDA_COUNTERS;
    if (parts && last && few && !tt_cuda_counters(&p->counters)) {
        tt_free(parts);
        return false;
    }
    if (p->counters) {
        variant |= TT_BATCH_JOINS;
        p->out = out;
        for (p->log_per = 0; slots << p->log_per < p->blocks;) p->log_per++;
    }
    bool ok = TT_LAUNCH(tt_key(TT_FAMILY_batch_sums, what, variant, dtype, compute, 0, 0, 0), grid, 1, TT_CUDA_THREADS,
                        0, *p) &&
              (!parts || p->counters ||
               tt_cuda_join_parts(TT_RED_sum, compute, parts, p->blocks, last ? sums : sums * p->channels,
                                  last ? p->channels : 1, compute, out));
    if (parts) tt_free(parts);
    return ok;
}

bool tt_cuda_batch_statistics(const tt_batch_norm_work *v, const tt_batch_statistics_work *w) {
    int dtype = v->x->dtype, compute = w->stats->dtype;
    int64_t n = v->outer * v->inner, bytes = v->channels * tt_itemsizes[compute];
    tt_array *const *running = w->running, *either = running[0] ? running[0] : running[1];
    tt_plain x = {0};
    bool ok = tt_plain_take(&x, v->x, dtype);
    if (ok) {
        tt_batch_sums_args s = {.x = tt_plain_data(&x), .channels = v->channels, .inner = v->inner, .n = n};
        tt_batch_running_args p = {.stats = w->stats->data,
                                   .running_mean = running[0] ? running[0]->data : NULL,
                                   .running_var = running[1] ? running[1]->data : NULL,
                                   .channels = v->channels,
                                   .n = n,
                                   .kept = 1 - w->momentum,
                                   .momentum = w->momentum,
                                   .eps = w->eps,
                                   .freedom = (double)n / (double)(n > 1 ? n - 1 : 1)};
        ok = sum_up(TT_BATCH_SUM, &s, dtype, compute, w->stats->data);
        s.mean = w->stats->data;
        ok = ok && sum_up(TT_BATCH_DEVSQ, &s, dtype, compute, w->stats->data + bytes) &&
             TT_LAUNCH(
                 tt_key(TT_FAMILY_batch_running, 0, either != NULL, either ? either->dtype : compute, compute, 0, 0, 0),
                 (v->channels + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, p);
    }
    tt_plain_done(&x, 1);
    return ok;
}

static bool apply(const tt_batch_norm_work *w, tt_batch_norm_args *p, int compute) {
    int dtype = w->out->dtype, log = 4, op = !w->g ? 0 : w->of_weight ? 1 : 2;
    int64_t along = w->inner > 1 ? w->inner : w->channels, all = (intptr_t)p->x | (intptr_t)p->out | (intptr_t)p->g;
    while (log > 0 &&
           (tt_itemsizes[dtype] << log > 16 || along % ((int64_t)1 << log) || all & ((tt_itemsizes[dtype] << log) - 1)))
        log--;
    int variant = log | (p->numel >= NARROW ? TT_BATCH_WIDE : 0) | (w->inner == 1 ? TT_BATCH_LAST : 0) |
                  (w->weight ? TT_BATCH_WEIGHT : 0) | (w->bias ? TT_BATCH_BIAS : 0);
    int64_t tile = (int64_t)TT_CUDA_THREADS << log, several = tile * TT_BATCH_MOST_ROUNDS;
    if (w->inner == 1 && tile % w->channels == 0 && p->numel >= several * TT_CUDA_ENOUGH) {
        variant |= TT_BATCH_ROUNDS;
        tile = several;
    }
    return TT_LAUNCH(tt_key(TT_FAMILY_batch_norm, op, variant, dtype, compute, w->weight ? w->weight->dtype : compute,
                            w->bias ? w->bias->dtype : compute, 0),
                     (p->numel + tile - 1) / tile, 1, TT_CUDA_THREADS, 0, *p);
}

enum { X, G, WEIGHT, BIAS, MEAN, RSTD, OPERANDS };

static bool take(tt_plain *in, const tt_batch_norm_work *w, int compute) {
    tt_array *all[OPERANDS] = {w->x, w->g, w->weight, w->bias, w->mean, w->rstd};
    for (int k = 0; k < OPERANDS; k++)
        if (!tt_plain_take(&in[k], all[k], !all[k] ? 0 : k < MEAN ? all[k]->dtype : compute)) return false;
    return true;
}

bool tt_cuda_batch_norm_sums(const tt_batch_norm_work *w) {
    int compute = w->sums->dtype;
    tt_plain in[OPERANDS] = {{0}};
    bool ok = take(in, w, compute);
    if (ok) {
        tt_batch_sums_args p = {.g = tt_plain_data(&in[G]),
                                .x = tt_plain_data(&in[X]),
                                .mean = tt_plain_data(&in[MEAN]),
                                .channels = w->channels,
                                .inner = w->inner,
                                .n = w->outer * w->inner};
        ok = sum_up(TT_BATCH_GRADIENT, &p, w->x->dtype, compute, w->sums->data);
    }
    tt_plain_done(in, OPERANDS);
    return ok;
}

bool tt_cuda_batch_norm(const tt_batch_norm_work *w) {
    int compute = tt_compute_dtype(w->x->dtype);
    tt_plain in[OPERANDS] = {{0}};
    tt_batch_norm_work sums = *w;
    bool ok = take(in, w, compute);
    if (ok && w->of_weight) {
        sums.x = in[X].array;
        sums.g = in[G].array;
        ok = (sums.sums = tt_cuda_temporary(compute, 2 * w->channels)) && tt_cuda_batch_norm_sums(&sums);
    }
    if (ok) {
        tt_batch_norm_args p = {.x = tt_plain_data(&in[X]),
                                .g = tt_plain_data(&in[G]),
                                .out = w->out->data,
                                .of_weight = w->of_weight ? w->of_weight->data : NULL,
                                .of_bias = w->of_bias ? w->of_bias->data : NULL,
                                .weight = tt_plain_data(&in[WEIGHT]),
                                .bias = tt_plain_data(&in[BIAS]),
                                .mean = tt_plain_data(&in[MEAN]),
                                .rstd = tt_plain_data(&in[RSTD]),
                                .sums = sums.sums ? sums.sums->data : NULL,
                                .numel = w->out->numel,
                                .channels = w->channels,
                                .inner = w->inner,
                                .n = w->outer * w->inner,
                                .by_inner = divider(w->inner),
                                .by_channels = divider(w->channels)};
        ok = apply(w, &p, compute);
    }
    if (sums.sums) tt_free(sums.sums);
    tt_plain_done(in, OPERANDS);
    return ok;
}
