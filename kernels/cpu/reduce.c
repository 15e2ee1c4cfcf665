/* Reductions of an array: the walk, what is left to do with accumulators, and the results in the output's layout. */
#include "cpu/cpu.h"
#include "cpu/reduce.h"
#include <math.h>
#include <string.h>

/* Where a reduction leaves its accumulators: in the output itself where that has their dtype and order. */
static char *results_of(const tt_reduction *g, tt_array *out, int acc) {
    return g->in_order && out->dtype == acc ? out->data : tt_scratch(g->kept * g->acc_size);
}

/* ... and from there to the output. */
static bool write_out(const tt_reduction *g, tt_array *out, int acc, char *results, int64_t mask) {
    if (results == out->data) return true;
    static tt_storage here; /* the CPU's */
    int64_t strides[TT_MAX_NDIM];
    tt_array from = {.storage = &here, .data = results, .dtype = (int16_t)acc, .strides = strides};
    tt_reduction_layout(g, &from, out, mask);
    return tt_copy_now(out, &from) == 0;
}

/* Divides by a number, or takes the root of each; half types have float32 accumulators. */
static void divide(char *results, int dtype, int64_t n, double by) {
    float *f = (float *)results, narrow = (float)by;
    double *d = (double *)results;
    if (tt_is_complex(dtype)) n *= 2; /* parts */
    dtype = tt_real_dtype(dtype);
    if (dtype == TT_F32)
        for (int64_t i = 0; i < n; i++) f[i] /= narrow;
    else
        for (int64_t i = 0; i < n; i++) d[i] /= by;
}

static void apply(int op, char *results, int dtype, int64_t n) {
    tt_isa->ops[op][dtype]((char *[]){results, results}, n);
}

static void finish(int then, char *results, int acc, int64_t n, int64_t reduced) {
    if (then == TT_RED_DIVIDE) divide(results, acc, n, (double)reduced);
    if (then == TT_RED_ROOT) apply(TT_OP_sqrt, results, acc, n);
}

bool tt_cpu_reduce(tt_array *out, const tt_array *a, int64_t mask, int reducer, int read, int acc, int then) {
    const tt_reducer *r = tt_get_reducer(reducer, read);
    bool all = mask == tt_first_bits(a->ndim);
    if (all && a->flags & TT_FLAG_CONTIGUOUS && a->numel <= TT_BLOCK && a->dtype == read && acc == out->dtype) {
        r->reduce_block(out->data, a->data, a->numel, NULL);
        finish(then, out->data, acc, 1, a->numel);
        return true;
    }
    tt_reduction g;
    tt_reduction_plan(&g, a, mask, read, tt_itemsizes[acc], false);
    char *results = results_of(&g, out, acc);
    bool ok = results && tt_reduction_run(&g, r, NULL, results, NULL);
    if (ok) finish(then, results, acc, g.kept, g.reduced);
    ok = ok && write_out(&g, out, acc, results, mask);
    if (results && results != out->data) tt_scratch_free(results);
    return ok;
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
    char raw[TT_BLOCK * TT_MAX_ITEMSIZE] __attribute__((aligned(64))),
        read[TT_BLOCK * TT_MAX_ITEMSIZE] __attribute__((aligned(64)));
    for (int64_t k = begin; k < end; k++) {
        const char *value = s->values + k * g->acc_size, *p = raw;
        int64_t block =
            g->blocks == 1 ? 0 : s->table->find[g->read](s->partials + k * g->blocks * g->acc_size, g->blocks, value);
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
    char raw[TT_BLOCK * TT_MAX_ITEMSIZE] __attribute__((aligned(64))),
        read[TT_BLOCK * TT_MAX_ITEMSIZE] __attribute__((aligned(64)));
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

bool tt_cpu_reduce_index(tt_array *out, tt_array *best, const tt_array *a, int64_t mask, bool largest) {
    tt_reduction g;
    int read = tt_compute_dtype(a->dtype);
    tt_reduction_plan(&g, a, mask, read, tt_itemsizes[read], true);
    int64_t parts = g.rows || g.blocks == 1 ? 0 : g.kept * g.blocks;
    char *found = tt_scratch(g.kept * 8 + (g.kept + parts) * g.acc_size);
    if (!found) return false;
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
        ok = write_out(&g, out, TT_I64, indices, mask) && (!best || write_out(&g, best, read, seen, mask));
    }
    tt_scratch_free(found);
    return ok;
}

bool tt_cpu_reduce_var(tt_array *out, const tt_array *a, int64_t mask, double correction, bool root) {
    tt_reduction g;
    int read = tt_compute_dtype(a->dtype);
    tt_reduction_plan(&g, a, mask, read, tt_itemsizes[read], false);
    char *means = tt_scratch(2 * g.kept * g.acc_size);
    bool ok = means && tt_reduction_run(&g, tt_get_reducer(TT_RED_sum, read), NULL, means, NULL);
    if (ok) {
        char *results = means + g.kept * g.acc_size;
        double freedom = (double)g.reduced - correction;
        divide(means, read, g.kept, (double)g.reduced);
        ok = tt_reduction_run(&g, tt_get_reducer(TT_RED_devsq, read), means, results, NULL);
        divide(results, read, ok ? g.kept : 0, freedom > 0 ? freedom : 0);
        if (root) apply(TT_OP_sqrt, results, read, ok ? g.kept : 0);
        ok = ok && write_out(&g, out, read, results, mask);
    }
    if (means) tt_scratch_free(means);
    return ok;
}

/* log sum exp(x) = m + log sum exp(x - m) with m the largest, or 0 where that is infinite. */
bool tt_cpu_reduce_logsumexp(tt_array *out, const tt_array *a, int64_t mask) {
    tt_reduction g;
    int read = tt_compute_dtype(a->dtype);
    tt_reduction_plan(&g, a, mask, read, tt_itemsizes[read], false);
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
        ok = ok && write_out(&g, out, read, results, mask);
    }
    if (largest) tt_scratch_free(largest);
    return ok;
}
