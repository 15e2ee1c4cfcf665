/* How an operand is cut up for a reduction: Note [The tree of a reduction] in reduction.h. */
#include "backend/reduction.h"
#include "api/reduce.h"

#define SHORT 16    /* so few elements make one result: better gathered across neighbouring results */

#define FACTS(name, reads, flops) {#name, flops},
static const tt_reducer_info facts[TT_NUM_REDUCERS] = {TT_REDUCERS(FACTS)};
const tt_reducer_info *tt_reducer_facts(int reducer) {
    return reducer >= 0 && reducer < TT_NUM_REDUCERS ? &facts[reducer] : NULL;
}

int64_t tt_dims_offset(const tt_dims *d, int64_t i) {
    if (d->n == 0) return 0;
    if (d->n == 1) return i * d->step[0];
    int64_t at = 0;
    for (int k = d->n - 1; k > 0; k--) {
        at += i % d->size[k] * d->step[k];
        i /= d->size[k];
    }
    return at + i * d->step[0];
}

/* Should dimension i lie outside of dimension j? */
static bool outside(const tt_array *a, bool logical, int i, int j) {
    int64_t x = a->strides[i], y = a->strides[j];
    return logical || x == 0 || y == 0 || x == y ? i < j : x > y;
}

/* The dimensions of `mask` larger than 1, outermost first. */
static int sorted(const tt_array *a, int64_t mask, bool logical, int *order) {
    int n = 0;
    for (int d = 0; d < a->ndim; d++) {
        if (!(mask >> d & 1) || a->shape[d] == 1) continue;
        int at = n++;
        while (at > 0 && outside(a, logical, d, order[at - 1])) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = d;
    }
    return n;
}

/* Joined where one continues the other. Returns the number of elements. */
static int64_t coalesced(tt_dims *dims, const tt_array *a, int n, const int *order, int size) {
    int64_t total = 1;
    dims->n = 0;
    for (int m = 0; m < n; m++) {
        int d = order[m], last = dims->n - 1;
        int64_t step = a->strides[d] * size;
        total *= a->shape[d];
        if (last >= 0 && dims->step[last] == step * a->shape[d]) dims->size[last] *= a->shape[d];
        else dims->size[last = dims->n++] = a->shape[d];
        dims->step[last] = step;
    }
    return total;
}

void tt_reduction_plan(tt_reduction *g, const tt_array *a, int64_t mask, int read, int acc_size, bool logical) {
    int order[TT_MAX_NDIM], n;
    g->a = a;
    g->read = read;
    g->stored = tt_itemsizes[a->dtype];
    g->read_size = tt_itemsizes[read];
    g->acc_size = acc_size;
    n = sorted(a, mask, logical, order);
    g->reduced = coalesced(&g->run, a, n, order, g->stored);
    n = sorted(a, ~mask, false, order);
    g->kept = coalesced(&g->outer, a, n, order, g->stored);
    g->in_order = true;
    for (int d = 0; d < a->ndim; d++) g->result_strides[d] = 0;
    int64_t step = 1;
    for (int m = n - 1; m >= 0; m--) {
        g->result_strides[order[m]] = step;
        step *= a->shape[order[m]];
        if (m > 0) g->in_order &= order[m - 1] < order[m];
    }
    g->blocks = (g->reduced + TT_BLOCK - 1) / TT_BLOCK;
    g->inner = g->tiles = g->width = 1;
    g->inner_step = 0;
    g->rows = false;
    if (g->outer.n > 0) {
        int last = g->outer.n - 1;
        int64_t across = g->outer.step[last], along = g->run.n ? g->run.step[g->run.n - 1] : 0;
        g->rows =
            (across > 0 && (along == 0 || across < along)) || (g->reduced <= SHORT && g->outer.size[last] >= SHORT);
        if (g->rows) {
            g->inner = g->outer.size[last];
            g->inner_step = across;
            g->outer.n--;
            g->width = TT_LANE_BYTES / (g->stored > acc_size ? g->stored : acc_size);
            if (g->width > g->inner) g->width = g->inner;
            g->tiles = (g->inner + g->width - 1) / g->width;
        }
    }
}

void tt_reduction_layout(const tt_reduction *g, tt_array *from, const tt_array *out, int64_t mask) {
    bool keepdim = out->ndim == g->a->ndim;
    from->ndim = out->ndim;
    from->shape = out->shape;
    from->numel = out->numel;
    for (int d = 0, n = 0; d < g->a->ndim; d++)
        if (keepdim || !(mask >> d & 1)) from->strides[n++] = g->result_strides[d];
}
