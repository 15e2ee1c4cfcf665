/* Reductions: dtypes, shapes, allocation and the walk in one call. */
#include "cuda/host/cuda.h"
#include "cuda/device/reduce_args.h"
#include "cpu/simd.h"
#include "cpu/reduce.h"
#include "fuse/fuse.h"
#include "api/reduce.h"
#include <math.h>
#include <string.h>

enum { LIKE_SUM, SAME, TRUTH, NUMBER, FLOATING }; /* rules of the result's dtype */
enum { ALONE, DIVIDE, ROOT };                     /* what is left to do with an accumulator */

#define INFO(name, reducer, rule, then, identity) {name, TT_RED_##reducer, rule, then, identity},
static const struct { const char *name; int8_t reducer, rule, then, identity; } ops[] = {TT_REDUCTIONS(INFO)};
#define FACTS(name, reducer, rule, then, identity) {name, TT_RED_##reducer},
static const tt_reduction_info facts[] = {TT_REDUCTIONS(FACTS)};
#define NUM_OPS ((int)(sizeof ops / sizeof ops[0]))

int tt_reduce_code(const char *name) {
    for (int op = 0; op < NUM_OPS; op++)
        if (strcmp(ops[op].name, name) == 0) return op;
    return -1;
}

const tt_reduction_info *tt_reduction_facts(int op) { return op >= 0 && op < NUM_OPS ? &facts[op] : NULL; }

int tt_reducer_of(int op, int *then) {
    *then = ops[op].then == DIVIDE ? TT_RED_DIVIDE : ops[op].then == ROOT ? TT_RED_ROOT : TT_RED_ALONE;
    return ops[op].reducer;
}

/* The bits of the dimensions that `how` and `dims` name. */
static bool dims_mask(const char *op, const tt_array *a, int how, int64_t dims, int64_t *mask) {
    int64_t all = ((int64_t)1 << a->ndim) - 1, n = a->ndim ? a->ndim : 1;
    *mask = how == 0 ? all : dims & all;
    if (how != 1) return true;
    if (dims < -n || dims >= n) {
        tt_fail(TT_INDEX_ERROR, "%s: Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)", op,
                (long long)-n, (long long)n - 1, (long long)dims);
        return false;
    }
    *mask = ((int64_t)1 << (dims < 0 ? dims + n : dims)) & all;
    return true;
}

static int result_shape(const tt_array *a, int64_t mask, int keepdim, int64_t *shape) {
    int n = 0;
    for (int d = 0; d < a->ndim; d++)
        if (!(mask >> d & 1)) shape[n++] = a->shape[d];
        else if (keepdim) shape[n++] = 1;
    return n;
}


/* Are there elements to choose the extreme one from? */
static bool has_elements(const char *op, const tt_array *a, int how, int64_t mask) {
    if (a->numel) return true;
    if (how == 0) {
        tt_fail(op[0] == 'a' && op[1] == 'r' ? TT_INDEX_ERROR : TT_RUNTIME_ERROR, "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                "reduction dim with the 'dim' argument.", op);
        return false;
    }
    for (int d = 0; d < a->ndim; d++)
        if (mask >> d & 1 && a->shape[d] == 0) {
            tt_fail(TT_INDEX_ERROR, "%s(): Expected reduction dim %d to have non-zero size.", op, d);
            return false;
        }
    return true;
}

static void *none_for(const char *op, int dtype) {
    return tt_fail(TT_RUNTIME_ERROR, "%s: not implemented for '%s'", op, tt_dtype_names[dtype]);
}

static void *want_floating(const char *op, int dtype) {
    if (strcmp(op, "mean") == 0)
        return tt_fail(TT_RUNTIME_ERROR, "mean(): could not infer output dtype. Input dtype must be either a floating "
                       "point or complex dtype. Got: %s", tt_dtype_names[dtype]);
    return tt_fail(TT_RUNTIME_ERROR, "%s(): input dtype should be either floating point or complex. Got %s instead.", op,
                   tt_dtype_names[dtype]);
}

/* Where a reduction leaves its accumulators: in the output itself where that has their dtype and order. */
static char *results_of(const tt_reduction *g, tt_array *out, int acc) {
    return g->in_order && out->dtype == acc ? out->data : tt_scratch(g->kept * g->acc_size);
}

/* Results in the plan's order, in the shape of the output. */
static void set_layout(const tt_reduction *g, tt_array *from, const tt_array *out, int64_t mask) {
    bool keepdim = out->ndim == g->a->ndim;
    from->ndim = out->ndim;
    from->numel = out->numel;
    for (int d = 0, n = 0; d < g->a->ndim; d++)
        if (keepdim || !(mask >> d & 1)) from->strides[n++] = g->result_strides[d];
    memcpy(from->shape, out->shape, sizeof(int64_t) * (size_t)out->ndim);
}

/* ... and from there to the output. */
static bool deliver(const tt_reduction *g, tt_array *out, int acc, char *results, int64_t mask) {
    if (results == out->data) return true;
    static tt_storage here; /* the CPU's */
    tt_array from = {.storage = &here, .data = results, .dtype = (int16_t)acc};
    set_layout(g, &from, out, mask);
    return tt_copy_now(out, &from) == 0;
}

/* The same on a device, where kernels finish and convert what they reduced. */
static tt_array *place_for(const tt_reduction *g, tt_array *out) {
    return g->in_order ? tt_alias(out) : tt_cuda_temporary(out->dtype, g->kept);
}

static bool moved(const tt_reduction *g, tt_array *out, tt_array *results, int64_t mask) {
    if (results->data == out->data) return true;
    tt_array from = {.storage = results->storage, .data = results->data, .dtype = out->dtype, .flags = TT_FLAG_DEVICE};
    set_layout(g, &from, out, mask);
    return tt_copy_now(out, &from) == 0;
}

static bool reduce_on_device(tt_reduction *g, int reducer, int acc, int then, double by, const tt_array *param,
                             tt_array *out, int64_t mask) {
    tt_array *results = place_for(g, out);
    bool ok = results && tt_cuda_reduction(g, reducer, acc, then, by, param, out->dtype, results->data, NULL) &&
              moved(g, out, results, mask);
    if (results) tt_free(results);
    return ok;
}

/* Divides by a number, or takes the root of each; half types have float32 accumulators. */
static void divide(char *results, int dtype, int64_t n, double by) {
    float *f = (float *)results, narrow = (float)by;
    double *d = (double *)results;
    if (dtype == TT_F32)
        for (int64_t i = 0; i < n; i++) f[i] /= narrow;
    else
        for (int64_t i = 0; i < n; i++) d[i] /= by;
}

/* Which reducer, what it reads, and its accumulator's dtype. */
typedef struct { int reducer, read, acc; } tt_reducer_use;

static void apply(int op, char *results, int dtype, int64_t n) {
    tt_isa->ops[op][dtype]((char *[]){results, results}, n);
}

/* Fused mode: the reduction, and what is left to do with its results, as nodes of their own. False: not recorded. */
static bool record(int op, const tt_reducer_use *use, tt_array *out, tt_array *a, int64_t mask, int64_t reduced) {
    int then = ops[op].then;
    tt_array *raw = then == ALONE && use->acc == out->dtype ? NULL : tt_empty(use->acc, out->ndim, out->shape);
    if (!raw) return then == ALONE && use->acc == out->dtype && tt_record_reduce(use->reducer, use->read, out, a, mask, NULL);
    bool ok = tt_record_reduce(use->reducer, use->read, raw, a, mask, NULL);
    tt_array *to = use->acc == out->dtype ? out : raw;
    if (then == DIVIDE) {
        double count = (double)reduced;
        tt_array by = {.data = (char *)&count, .dtype = TT_F64, .numel = 1, .flags = TT_FLAG_CONTIGUOUS | TT_FLAG_WEAK};
        ok = ok && tt_record_op(TT_OP_div, use->acc, to, 2, (tt_array *[]){raw, &by});
    } else if (then == ROOT) ok = ok && tt_record_op(TT_OP_sqrt, use->acc, to, 1, &raw);
    if (to == raw) ok = ok && tt_record_copy(out, raw);
    tt_free(raw);
    return ok;
}

tt_array *tt_reduce(int op, tt_array *a, int how, int64_t dims, int keepdim, int dtype) {
    const char *name = ops[op].name;
    int64_t mask, shape[TT_MAX_NDIM];
    TT_ON_DEVICE(NULL, name, 1, &a);
    if (!tt_current(a)) return tt_decline();
    if (!dims_mask(name, a, how, dims, &mask)) return NULL;
    int rule = ops[op].rule, result = dtype >= 0 ? dtype : a->dtype, reducer = ops[op].reducer;
    if (rule == LIKE_SUM && dtype < 0 && tt_is_integral(result)) result = TT_I64;
    else if (rule == TRUTH) result = a->dtype == TT_U8 ? TT_U8 : TT_BOOL;
    else if (rule == NUMBER) result = TT_I64;
    else if (rule == FLOATING && !tt_is_floating(result)) return want_floating(name, result);
    /* what the reducer reads, and its accumulator's dtype */
    int read = tt_compute_dtype(result);
    if (rule == LIKE_SUM && tt_is_integral(read)) read = TT_I64;
    if (rule == TRUTH || rule == NUMBER) read = TT_BOOL;
    if (reducer == TT_RED_nansum && tt_is_integral(read)) reducer = TT_RED_sum;
    int acc = rule == NUMBER ? TT_I64 : read;
    const tt_reducer *r = tt_get_reducer(reducer, read);
    if (!r) return none_for(name, a->dtype);
    if (ops[op].identity < 0 && !has_elements(name, a, how, mask)) return NULL;
    tt_array *out = tt_empty(result, result_shape(a, mask, keepdim, shape), shape);
    if (!out || !out->numel) return out;
    if (!a->numel) {
        double value = ops[op].then == DIVIDE ? NAN : ops[op].identity;
        tt_fill_now(out, TT_KIND_FLOAT, value, 0);
        return out;
    }
    if (TT_RECORDING && record(op, &(tt_reducer_use){reducer, read, acc}, out, a, mask, a->numel / out->numel)) return out;
    if (!tt_ready(a)) {
        tt_free(out);
        return tt_decline();
    }
    if (tt_device) {
        tt_reduction g;
        tt_reduction_plan(&g, a, mask, read, tt_itemsizes[acc], false);
        int then;
        tt_reducer_of(op, &then);
        if (reduce_on_device(&g, reducer, acc, then, (double)g.reduced, NULL, out, mask)) return out;
        tt_free(out);
        return NULL;
    }
    if (how == 0 && a->flags & TT_FLAG_CONTIGUOUS && a->numel <= TT_BLOCK && a->dtype == read && acc == result) {
        r->fold(out->data, a->data, a->numel, NULL);
        if (ops[op].then == DIVIDE) divide(out->data, acc, 1, (double)a->numel);
        if (ops[op].then == ROOT) apply(TT_OP_sqrt, out->data, acc, 1);
        return out;
    }
    tt_reduction g;
    tt_reduction_plan(&g, a, mask, read, tt_itemsizes[acc], false);
    char *results = results_of(&g, out, acc);
    bool ok = results && tt_reduction_run(&g, r, NULL, results, NULL);
    if (ok && ops[op].then == DIVIDE) divide(results, acc, g.kept, (double)g.reduced);
    if (ok && ops[op].then == ROOT) apply(TT_OP_sqrt, results, acc, g.kept);
    ok = ok && deliver(&g, out, acc, results, mask);
    if (results && results != out->data) tt_scratch_free(results);
    if (ok) return out;
    tt_free(out);
    return NULL;
}

/* Indices of extreme values. First the values, by the tree; then where they are: a second look at the one block whose
 * result it was, or, where rows are run over, at all rows from the last to the first. */
typedef struct {
    const tt_reduction *g;
    const tt_reduce_table *table;
    const char *values, *partials;
    int64_t *index;
} search;

static void find_range(void *context, int64_t begin, int64_t end) {
    const search *s = context;
    const tt_reduction *g = s->g;
    char raw[TT_BLOCK * 8] __attribute__((aligned(64))), read[TT_BLOCK * 8] __attribute__((aligned(64)));
    for (int64_t k = begin; k < end; k++) {
        const char *value = s->values + k * g->acc_size, *p = raw;
        int64_t block = g->blocks == 1 ? 0 : s->table->find[g->read](s->partials + k * g->blocks * g->acc_size,
                                                                    g->blocks, value);
        int64_t at = block * TT_BLOCK, n = g->reduced - at < TT_BLOCK ? g->reduced - at : TT_BLOCK;
        tt_dims_gather(raw, g->a->data + tt_dims_offset(&g->outer, k), &g->run, at, n, g->stored);
        if (g->read != g->a->dtype) {
            tt_isa->casts[g->a->dtype][g->read](read, raw, n);
            p = read;
        }
        s->index[k] = at + s->table->find[g->read](p, n, value);
    }
}

static void mark_range(void *context, int64_t begin, int64_t end) {
    const search *s = context;
    const tt_reduction *g = s->g;
    char raw[TT_BLOCK * 8] __attribute__((aligned(64))), read[TT_BLOCK * 8] __attribute__((aligned(64)));
    for (int64_t u = begin; u < end; u++) {
        int64_t outer = u / g->tiles, left = u % g->tiles * g->width;
        int64_t w = g->inner - left < g->width ? g->inner - left : g->width, at = outer * g->inner + left;
        const char *base = g->a->data + tt_dims_offset(&g->outer, outer) + left * g->inner_step;
        for (int64_t row = g->reduced - 1; row >= 0; row--) {
            const char *p = base + tt_dims_offset(&g->run, row);
            if (g->inner_step != g->stored) {
                tt_move(raw, g->stored, p, g->inner_step, w, g->stored);
                p = raw;
            }
            if (g->read != g->a->dtype) {
                tt_isa->casts[g->a->dtype][g->read](read, p, w);
                p = read;
            }
            s->table->mark[g->read](s->index + at, p, s->values + at * g->acc_size, w, row);
        }
    }
}

/* On a device places and values are found together. */
static bool indices_on_device(int largest, tt_array *a, int64_t mask, tt_array *out, tt_array *best) {
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

tt_array *tt_reduce_index(int largest, tt_array *a, int how, int64_t dims, int keepdim, tt_array **values) {
    const char *name = values ? (largest ? "max" : "min") : (largest ? "argmax" : "argmin");
    int64_t mask, shape[TT_MAX_NDIM];
    TT_ON_DEVICE(NULL, name, 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (a->dtype == TT_BOOL && !values) return tt_fail(TT_RUNTIME_ERROR, "%s(): does not support bool input", name);
    if (!dims_mask(name, a, how, dims, &mask) || !has_elements(name, a, how, mask)) return NULL;
    int read = tt_compute_dtype(a->dtype), ndim = result_shape(a, mask, keepdim, shape);
    tt_array *out = tt_empty(TT_I64, ndim, shape), *best = out && values ? tt_empty(a->dtype, ndim, shape) : NULL;
    if (!out || (values && !best)) goto failed;
    if (a->numel && tt_device) {
        if (!indices_on_device(largest, a, mask, out, best)) goto failed;
    } else if (a->numel) {
        tt_reduction g;
        tt_reduction_plan(&g, a, mask, read, tt_itemsizes[read], true);
        int64_t parts = g.rows || g.blocks == 1 ? 0 : g.kept * g.blocks;
        char *found = tt_scratch(g.kept * 8 + (g.kept + parts) * g.acc_size);
        if (!found) goto failed;
        /* Indices may lie in the output itself; values are needed until the search is over. */
        char *indices = g.in_order ? out->data : found;
        char *seen = found + g.kept * 8, *partials = parts ? seen + g.kept * g.acc_size : NULL;
        const tt_reducer *r = tt_get_reducer(largest ? TT_RED_max : TT_RED_min, read);
        bool ok = tt_reduction_run(&g, r, NULL, seen, partials);
        if (ok) {
            search s = {&g, tt_get_reduce_table(), seen, partials, (int64_t *)indices};
            int64_t cost = g.rows ? g.reduced * g.width : TT_BLOCK, grain = 32768 / (cost ? cost : 1);
            if (g.rows) memset(indices, 0, (size_t)g.kept * 8);
            tt_parallel(g.rows ? g.kept / g.inner * g.tiles : g.kept, grain < 1 ? 1 : grain,
                        g.rows ? mark_range : find_range, &s);
            ok = deliver(&g, out, TT_I64, indices, mask) && (!best || deliver(&g, best, read, seen, mask));
        }
        tt_scratch_free(found);
        if (!ok) goto failed;
    }
    if (values) *values = best;
    return out;
failed:
    if (out) tt_free(out);
    if (best) tt_free(best);
    return NULL;
}

/* A result that was recorded with sizes of 1 in the place of what was reduced, in its own shape. */
static tt_array *shaped(tt_array *recorded, const tt_array *a, int64_t mask, int keepdim) {
    recorded->ndim = result_shape(a, mask, keepdim, recorded->shape);
    tt_set_contiguous(recorded);
    return recorded;
}

/* On a device: are the results those of rows that kernels over rows take, and long enough to be a warp's each? */
static bool are_rows(const tt_reduction *g) {
    const tt_array *a = g->a;
    bool along = g->run.n == 1 && g->run.step[0] == g->stored, kept = g->outer.n <= 1 && (a->flags & TT_FLAG_CONTIGUOUS);
    return g->in_order && along && kept && g->reduced > 1 && tt_cuda_rows_fit(g->kept, g->reduced);
}

/* Two reductions, the second of which has to know the first one's results. */
static bool twice_on_device(tt_reduction *g, int first, int then, double by, int second, int then2, double by2,
                            tt_array *out, int64_t mask) {
    tt_array *param = tt_cuda_temporary(g->read, g->kept);
    bool ok = param && tt_cuda_reduction(g, first, g->read, then, by, NULL, g->read, param->data, NULL) &&
              reduce_on_device(g, second, g->read, then2, by2, param, out, mask);
    if (param) tt_free(param);
    return ok;
}

tt_array *tt_reduce_var(tt_array *a, int how, int64_t dims, double correction, int root, int keepdim) {
    const char *name = root ? "std" : "var";
    int64_t mask, shape[TT_MAX_NDIM];
    TT_ON_DEVICE(NULL, name, 1, &a);
    if (!tt_current(a)) return tt_decline();
    if (!dims_mask(name, a, how, dims, &mask)) return NULL;
    if (!tt_is_floating(a->dtype))
        return tt_fail(TT_RUNTIME_ERROR, "%s: std and var only support floating point and complex dtypes, got %s", name,
                       tt_dtype_names[a->dtype]);
    int read = tt_compute_dtype(a->dtype);
    tt_array *out = tt_worth_recording(a) ? tt_record_var(a, mask, correction, root) : NULL;
    if (out) return shaped(out, a, mask, keepdim);
    if (!tt_ready(a)) return tt_decline();
    out = tt_empty(a->dtype, result_shape(a, mask, keepdim, shape), shape);
    if (!out || !out->numel) return out;
    if (!a->numel) {
        tt_fill_now(out, TT_KIND_FLOAT, NAN, 0);
        return out;
    }
    tt_reduction g;
    tt_reduction_plan(&g, a, mask, read, tt_itemsizes[read], false);
    if (tt_device) {
        double n = (double)g.reduced, freedom = n - correction > 0 ? n - correction : 0;
        if (are_rows(&g) ? tt_cuda_statistics(root ? TT_STATISTIC_STD : TT_STATISTIC_VAR, out, a, g.reduced, freedom)
                         : twice_on_device(&g, TT_RED_sum, TT_RED_DIVIDE, n, TT_RED_devsq,
                                           root ? TT_RED_DIVIDE_ROOT : TT_RED_DIVIDE, freedom, out, mask))
            return out;
        tt_free(out);
        return NULL;
    }
    char *means = tt_scratch(2 * g.kept * g.acc_size);
    bool ok = means && tt_reduction_run(&g, tt_get_reducer(TT_RED_sum, read), NULL, means, NULL);
    if (ok) {
        char *results = means + g.kept * g.acc_size;
        double freedom = (double)g.reduced - correction;
        divide(means, read, g.kept, (double)g.reduced);
        ok = tt_reduction_run(&g, tt_get_reducer(TT_RED_devsq, read), means, results, NULL);
        divide(results, read, ok ? g.kept : 0, freedom > 0 ? freedom : 0);
        if (root) apply(TT_OP_sqrt, results, read, ok ? g.kept : 0);
        ok = ok && deliver(&g, out, read, results, mask);
    }
    if (means) tt_scratch_free(means);
    if (ok) return out;
    tt_free(out);
    return NULL;
}

/* log sum exp(x) = m + log sum exp(x - m) with m the largest, or 0 where that is infinite. */
tt_array *tt_reduce_logsumexp(tt_array *a, int how, int64_t dims, int keepdim) {
    int64_t mask, shape[TT_MAX_NDIM];
    TT_ON_DEVICE(NULL, "logsumexp", 1, &a);
    if (!tt_current(a)) return tt_decline();
    if (!dims_mask("logsumexp", a, how, dims, &mask)) return NULL;
    if (!tt_is_floating(a->dtype)) return want_floating("logsumexp", a->dtype);
    int read = tt_compute_dtype(a->dtype);
    tt_array *out = tt_worth_recording(a) ? tt_record_logsumexp(a, mask) : NULL;
    if (out) return shaped(out, a, mask, keepdim);
    if (!tt_ready(a)) return tt_decline();
    out = tt_empty(a->dtype, result_shape(a, mask, keepdim, shape), shape);
    if (!out || !out->numel) return out;
    if (!a->numel) {
        tt_fill_now(out, TT_KIND_FLOAT, -INFINITY, 0);
        return out;
    }
    tt_reduction g;
    tt_reduction_plan(&g, a, mask, read, tt_itemsizes[read], false);
    if (tt_device) {
        if (are_rows(&g) ? tt_cuda_statistics(TT_STATISTIC_LOGSUMEXP, out, a, g.reduced, 0)
                         : twice_on_device(&g, TT_RED_max, TT_RED_FINITE, 0, TT_RED_expsum, TT_RED_LOG_ADD, 0, out, mask))
            return out;
        tt_free(out);
        return NULL;
    }
    char *largest = tt_scratch(2 * g.kept * g.acc_size);
    bool ok = largest && tt_reduction_run(&g, tt_get_reducer(TT_RED_max, read), NULL, largest, NULL);
    if (ok) {
        char *results = largest + g.kept * g.acc_size;
        float *f = (float *)largest;
        double *d = (double *)largest;
        for (int64_t i = 0; i < g.kept; i++) {
            if (read == TT_F32 && isinf(f[i])) f[i] = 0;
            if (read == TT_F64 && isinf(d[i])) d[i] = 0;
        }
        ok = tt_reduction_run(&g, tt_get_reducer(TT_RED_expsum, read), largest, results, NULL);
        apply(TT_OP_log, results, read, ok ? g.kept : 0);
        tt_isa->ops[TT_OP_add][read]((char *[]){results, results, largest}, ok ? g.kept : 0);
        ok = ok && deliver(&g, out, read, results, mask);
    }
    if (largest) tt_scratch_free(largest);
    if (ok) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_sum_to(tt_array *a, int ndim, int64_t *shape) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    int lead = a->ndim - ndim;
    int64_t mask = 0;
    bool fits = lead >= 0;
    for (int d = 0; fits && d < a->ndim; d++) {
        if (d < lead || (shape[d - lead] == 1 && a->shape[d] != 1)) mask |= (int64_t)1 << d;
        else fits = shape[d - lead] == a->shape[d];
    }
    if (!fits)
        return tt_fail(TT_RUNTIME_ERROR, "sum_to_size: size %s is not expandable to size %s",
                       tt_shape_text(want, ndim, shape), tt_shape_text(have, a->ndim, a->shape));
    tt_array *out = tt_reduce(0, a, 2, mask, 1, a->dtype);
    if (!out || lead == 0) return out;
    out->ndim = ndim;
    memmove(out->shape, out->shape + lead, sizeof(int64_t) * (size_t)ndim);
    memmove(out->strides, out->strides + lead, sizeof(int64_t) * (size_t)ndim);
    return out;
}

tt_array *tt_spread(tt_array *a, int ndim, int64_t *shape, int how, int64_t dims, int keepdim) {
    tt_array like = {.ndim = ndim};
    int64_t mask, strides[TT_MAX_NDIM];
    if (!dims_mask("spread", &like, how, dims, &mask)) return NULL;
    int n = 0;
    for (int d = 0; d < ndim; d++) {
        bool gone = mask >> d & 1;
        if (gone) strides[d] = 0;
        if (n < a->ndim && (!gone || keepdim)) {
            if (!gone) strides[d] = shape[d] == 1 ? 0 : a->strides[n];
            n++;
        }
    }
    if (n != a->ndim) return tt_fail(TT_RUNTIME_ERROR, "spread: expected a gradient with %d dimensions, got %d", n, a->ndim);
    return tt_view(a, ndim, shape, strides, tt_offset(a));
}
