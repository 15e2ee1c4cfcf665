/* Reductions of an array on a device, whose kernels finish and convert what they reduced. */
#include "cuda/host/cuda.h"
#include "backend/now.h"

static tt_array *place_for(const tt_reduction *g, tt_array *out) {
    return g->in_order ? tt_alias(out) : tt_cuda_temporary(out->dtype, g->kept);
}

static bool moved(const tt_reduction *g, tt_array *out, tt_array *results, int64_t mask) {
    if (results->data == out->data) return true;
    int64_t strides[TT_MAX_NDIM];
    tt_array from = {.storage = results->storage,
                     .data = results->data,
                     .dtype = out->dtype,
                     .flags = TT_FLAG_DEVICE,
                     .strides = strides};
    tt_reduction_layout(g, &from, out, mask);
    return tt_copy_now(out, &from) == 0;
}

static bool reduce(tt_reduction *g, int reducer, int acc, int then, double by, const tt_array *param, tt_array *out,
                   int64_t mask) {
    tt_array *results = place_for(g, out);
    bool ok = results && tt_cuda_reduction(g, reducer, acc, then, by, param, out->dtype, results->data, NULL) &&
              moved(g, out, results, mask);
    if (results) tt_free(results);
    return ok;
}

bool tt_cuda_reduce(tt_array *out, const tt_array *a, int64_t mask, int reducer, int read, int acc, int then) {
    tt_reduction g;
    tt_reduction_plan(&g, a, mask, read, tt_itemsizes[acc], false);
    return reduce(&g, reducer, acc, then, (double)g.reduced, NULL, out, mask);
}

/* Places and values are found together. */
bool tt_cuda_reduce_index(tt_array *out, tt_array *best, const tt_array *a, int64_t mask, bool largest) {
    tt_reduction g;
    int read = tt_compute_dtype(a->dtype), dtype = best ? best->dtype : read;
    tt_reduction_plan(&g, a, mask, read, tt_itemsizes[read], true);
    tt_array *index = place_for(&g, out), *values = index && best ? place_for(&g, best) : NULL;
    bool ok = index && (values || !best) &&
              tt_cuda_reduction(&g, largest ? TT_RED_max : TT_RED_min, read, TT_RED_ALONE, 0, NULL, dtype,
                                values ? values->data : NULL, (int64_t *)index->data) &&
              moved(&g, out, index, mask) && (!best || moved(&g, best, values, mask));
    if (index) tt_free(index);
    if (values) tt_free(values);
    return ok;
}

/* Are the results those of rows that kernels over rows take, and long enough to be a warp's each? */
static bool are_rows(const tt_reduction *g) {
    const tt_array *a = g->a;
    bool along = g->run.n == 1 && g->run.step[0] == g->stored,
         kept = g->outer.n <= 1 && (a->flags & TT_FLAG_CONTIGUOUS);
    return g->in_order && along && kept && g->reduced > 1 && tt_cuda_rows_fit(g->kept, g->reduced);
}

/* Two reductions, the second of which has to know the first one's results. */
static bool reduce_twice(tt_reduction *g, int first, int then, double by, int second, int then2, double by2,
                         tt_array *out, int64_t mask) {
    tt_array *param = tt_cuda_temporary(g->read, g->kept);
    bool ok = param && tt_cuda_reduction(g, first, g->read, then, by, NULL, g->read, param->data, NULL) &&
              reduce(g, second, g->read, then2, by2, param, out, mask);
    if (param) tt_free(param);
    return ok;
}

bool tt_cuda_reduce_var(tt_array *out, const tt_array *a, int64_t mask, double correction, bool root) {
    tt_reduction g;
    int read = tt_compute_dtype(a->dtype);
    tt_reduction_plan(&g, a, mask, read, tt_itemsizes[read], false);
    double n = (double)g.reduced, freedom = n - correction > 0 ? n - correction : 0;
    if (are_rows(&g)) return tt_cuda_statistics(root ? TT_STATISTIC_STD : TT_STATISTIC_VAR, out, a, g.reduced, freedom);
    return reduce_twice(&g, TT_RED_sum, TT_RED_DIVIDE, n, TT_RED_devsq, root ? TT_RED_DIVIDE_ROOT : TT_RED_DIVIDE,
                        freedom, out, mask);
}

bool tt_cuda_reduce_logsumexp(tt_array *out, const tt_array *a, int64_t mask) {
    tt_reduction g;
    int read = tt_compute_dtype(a->dtype);
    tt_reduction_plan(&g, a, mask, read, tt_itemsizes[read], false);
    if (are_rows(&g)) return tt_cuda_statistics(TT_STATISTIC_LOGSUMEXP, out, a, g.reduced, 0);
    return reduce_twice(&g, TT_RED_max, TT_RED_FINITE, 0, TT_RED_expsum, TT_RED_LOG_ADD, 0, out, mask);
}
