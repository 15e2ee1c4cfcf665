/* Random numbers, ranges and samples on a device: the kernels' arguments. */
#include "cuda/host/cuda.h"
#include "cuda/device/random_args.h"
#include "backend/now.h"

const char *tt_random_name(int op) {
#define KIND_NAME(name) #name,
    static const char *const names[] = {TT_RANDOM_KINDS(KIND_NAME)};
    return op < TT_NUM_RANDOM_KINDS ? names[op] : op == TT_RANDOM_BERNOULLI ? "bernoulli" : "integers";
}

bool tt_cuda_random(const tt_draw *d, tt_array *out, int compute, const double *chance) {
    tt_random_args p = {.from = {d->seed, d->draw, d->place},
                        .numel = out->numel,
                        .low = d->low,
                        .range = d->range,
                        .a = d->a,
                        .b = d->b,
                        .rate = tt_draw_rate(d),
                        .out = out->data,
                        .chance = chance,
                        .threshold = tt_draw_threshold(d),
                        .unit = 1.0f / (float)(1 << d->digits),
                        .dropped = 32 - (uint32_t)d->digits};
    int op = chance                ? TT_RANDOM_BERNOULLI
             : compute != TT_I64   ? d->kind
             : tt_draw_is_short(d) ? TT_RANDOM_SHORT_INTEGERS
                                   : TT_RANDOM_INTEGERS;
    int64_t threads = (out->numel + TT_PHILOX_GROUP - 1) / TT_PHILOX_GROUP * TT_PHILOX_LANES;
    if (!out->numel) return true;
    return TT_LAUNCH(tt_key(TT_FAMILY_random, op, 0, out->dtype, compute, 0, 0, 0),
                     (threads + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, p);
}

bool tt_cuda_dropout(const tt_draw *d, const tt_array *a, tt_array *out, tt_array *kept) {
    tt_dropout_args p = {.from = {d->seed, d->draw, d->place},
                         .numel = a->numel,
                         .in = a->data,
                         .out = out->data,
                         .kept = (uint8_t *)kept->data,
                         .scale = d->b,
                         .threshold = tt_draw_threshold(d)};
    bool vectors = (((intptr_t)p.in | (intptr_t)p.out | (intptr_t)p.kept) & 15) == 0;
    int64_t each = 4 * (vectors ? 16 / tt_itemsizes[a->dtype] : 1); /* elements of a thread */
    int64_t threads = (p.numel + TT_PHILOX_GROUP - 1) / TT_PHILOX_GROUP * (TT_PHILOX_GROUP / each);
    if (!p.numel) return true;
    return TT_LAUNCH(
        tt_key(TT_FAMILY_dropout, 0, vectors ? TT_DROPOUT_VECTORS : 0, a->dtype, tt_compute_dtype(a->dtype), 0, 0, 0),
        (threads + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, p);
}

bool tt_cuda_range(tt_array *out, const tt_range *r) {
    tt_range_args p = {.numel = r->kind >= TT_RANGE_TRIL ? out->numel / 2 : out->numel,
                       .out = out->data,
                       .start = r->start,
                       .end = r->end,
                       .step = r->step,
                       .base = r->base,
                       .first = r->first,
                       .by = r->by,
                       .rows = r->rows,
                       .cols = r->cols,
                       .offset = r->offset};
    if (!p.numel) return true;
    return TT_LAUNCH(tt_key(TT_FAMILY_range, r->kind, 0, out->dtype, 0, 0, 0, 0),
                     (p.numel + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, p);
}

bool tt_cuda_variates(const tt_draw *d, const tt_array *a, const tt_array *b, tt_array *out) {
    tt_variates_args p = {.from = {d->seed, d->draw, d->place},
                          .numel = out->numel,
                          .a = a->data,
                          .b = b ? b->data : NULL,
                          .out = out->data,
                          .least = d->a};
    if (!p.numel) return true;
    return TT_LAUNCH(tt_key(TT_FAMILY_variates, d->kind, 0, out->dtype, 0, 0, 0, 0),
                     (p.numel + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, p);
}

bool tt_cuda_permutation(const tt_draw *d, tt_array *out) {
    int64_t n = out->numel, blocks = (n + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS;
    if (!n) return true;
    tt_array *heads = tt_full_now(TT_I64, 1, &n, TT_KIND_INT, 0, -1), *next = tt_cuda_temporary(TT_I64, n);
    bool done = heads && next;
    if (done) {
        tt_permutation_args p = {.from = {d->seed, d->draw, d->place},
                                 .n = n,
                                 .out = (int64_t *)out->data,
                                 .heads = (int64_t *)heads->data,
                                 .next = (int64_t *)next->data};
        for (int step = 0; done && step < 2; step++)
            done = TT_LAUNCH(tt_key(TT_FAMILY_permutation, step, 0, 0, 0, 0, 0, 0), blocks, 1, TT_CUDA_THREADS, 0, p);
    }
    if (heads) tt_free(heads);
    if (next) tt_free(next);
    return done;
}

bool tt_cuda_multinomial(const tt_draw *d, const tt_array *weights, tt_array *out, int64_t rows, int replacement) {
    int64_t bad = INT64_MAX;
    tt_array *scratch = tt_cuda_temporary(TT_F64, weights->numel), *verdict = tt_cuda_temporary(TT_I64, 1);
    bool done = scratch && verdict && tt_device_write(verdict->data, &bad, sizeof bad);
    if (done) {
        tt_multinomial_args p = {.from = {d->seed, d->draw, d->place},
                                 .weights = (const double *)weights->data,
                                 .scratch = (double *)scratch->data,
                                 .out = (int64_t *)out->data,
                                 .bad = (int64_t *)verdict->data,
                                 .categories = weights->shape[weights->ndim - 1],
                                 .samples = out->shape[out->ndim - 1]};
        done = TT_LAUNCH(tt_key(TT_FAMILY_multinomial, replacement != 0, 0, 0, 0, 0, 0, 0), rows, 1, TT_CUDA_THREADS, 0,
                         p) &&
               tt_device_read(&bad, verdict->data, sizeof bad);
    }
    if (scratch) tt_free(scratch);
    if (verdict) tt_free(verdict);
    if (!done || bad == INT64_MAX) return done;
    if (bad & 1)
        tt_fail(TT_RUNTIME_ERROR,
                "multinomial: invalid multinomial distribution (sum of probabilities <= 0) in row %lld",
                (long long)(bad / 2));
    else
        tt_fail(TT_RUNTIME_ERROR,
                "multinomial: probability tensor contains either `inf`, `nan` or element < 0 in row %lld",
                (long long)(bad / 2));
    return false;
}
