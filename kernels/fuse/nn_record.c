/* Fused mode: softmax, variances and logsumexp recorded as elementwise operators and reductions.
 *
 * Note [Rows, recorded]
 * What is recorded here and the loops of simd/nn.c do the same arithmetic on every row: the half types are computed in
 * float32 and rounded once, at the end; the operators are the same, in the same order; sums are taken in the tree of
 * Note [The tree of a reduction]. So fused mode's bits are eager mode's, and what comes before and after such an
 * operator, over the same rows, becomes one kernel with it. Whoever changes one side must change the other;
 * tests/fuse/test_rows.py compares them.
 *
 * That pays where the rows are still to be computed, and so need not be written first: see tt_worth_recording. Rows
 * that do not lie in memory one after another (softmax down columns) are left to the eager kernels, and so are
 * normalisation and the losses of nn_loss.c: each is one pass over its rows that keeps them in L1, and recorded they
 * were measured to take up to twice as long. (cross_entropy would also have to raise for a target that is no class.) */
#include "fuse/nn_record.h"
#include "fuse/fuse.h"
#include "backend/now.h"
#include "api/reduce.h"

#define MOST 16

/* One operator's recording under way. Its temporaries are freed at the end: dead then, they need no memory.
 * After a failure all that follows fails. */
typedef struct {
    tt_trace *trace;
    int dtype; /* computed in */
    int64_t mask, n; /* the dimensions of a row, and its elements */
    int64_t shape[TT_MAX_NDIM]; /* of what there is one of for each row */
    int num_made;
    tt_array *made[MOST];
    bool failed;
} recipe;

bool tt_worth_recording(const tt_array *a) {
    if (!TT_RECORDING || !a->numel) return false;
    const tt_lazy *p = tt_lazy_of(a->storage);
    return p && p->written;
}

static recipe begin(const tt_array *a, int64_t mask) {
    recipe r;
    r.trace = tt_recorder;
    r.dtype = tt_compute_dtype(a->dtype);
    r.mask = mask;
    r.n = 1;
    r.num_made = 0;
    r.failed = false;
    for (int d = 0; d < a->ndim; d++) {
        bool in_row = mask >> d & 1;
        if (in_row) r.n *= a->shape[d];
        r.shape[d] = in_row ? 1 : a->shape[d];
    }
    r.trace->recipe = 1;
    return r;
}

static tt_array *temporary(recipe *r, tt_array *a) {
    if (a) r->made[r->num_made++] = a;
    else r->failed = true;
    return a;
}

/* The result, unless something failed. */
static tt_array *end(recipe *r, tt_array *out) {
    r->trace->recipe = 0;
    for (int k = 0; k < r->num_made; k++) tt_free(r->made[k]);
    if (!r->failed) return out;
    if (out) tt_free(out);
    return NULL;
}

/* op(a, b) into `out` or, where that is NULL, into a temporary. The result has the shape of a; b may be NULL. */
static tt_array *apply(recipe *r, int op, tt_array *out, tt_array *a, tt_array *b) {
    if (!r->failed && !out) out = temporary(r, tt_empty(r->dtype, a->ndim, a->shape));
    r->failed = r->failed || !tt_record_op(op, r->dtype, out, b ? 2 : 1, (tt_array *[]){a, b});
    return out;
}

static tt_array *with_number(recipe *r, int op, tt_array *out, tt_array *a, double value) {
    tt_array b;
    char room[TT_MAX_ITEMSIZE];
    return apply(r, op, out, a, tt_element(&b, room, TT_F64, TT_KIND_FLOAT, value, 0));
}

/* Every row reduced; `param`: what the reducer has to know of each, or NULL. */
static tt_array *reduction(recipe *r, int reducer, tt_array *a, tt_array *param) {
    tt_array *out = r->failed ? NULL : temporary(r, tt_empty(r->dtype, a->ndim, r->shape));
    r->failed = r->failed || !tt_record_reduce(reducer, r->dtype, out, a, r->mask, param);
    return out;
}

/* `a` with its rows one after another. */
static tt_array *rows_of(recipe *r, tt_array *a) {
    if (r->failed || a->flags & TT_FLAG_CONTIGUOUS) return a;
    tt_array *out = temporary(r, tt_empty(r->dtype, a->ndim, a->shape));
    r->failed = r->failed || !tt_record_copy(out, a);
    return out;
}

tt_array *tt_record_softmax(tt_array *a, tt_array *y, int dim, bool log) {
    recipe r = begin(a, tt_bit(dim));
    tt_array *out = tt_empty(a->dtype, a->ndim, a->shape);
    r.failed = !out;
    if (y && log) {
        a = rows_of(&r, a);
        tt_array *sum = reduction(&r, TT_RED_sum, a, NULL), *e = apply(&r, TT_OP_exp, NULL, y, NULL);
        apply(&r, TT_OP_sub, out, a, apply(&r, TT_OP_mul, NULL, e, sum));
    } else if (y) {
        tt_array *sum = reduction(&r, TT_RED_sum, apply(&r, TT_OP_mul, NULL, a, y), NULL);
        apply(&r, TT_OP_mul, out, y, apply(&r, TT_OP_sub, NULL, a, sum));
    } else {
        a = rows_of(&r, a);
        tt_array *d = apply(&r, TT_OP_sub, NULL, a, reduction(&r, TT_RED_max, a, NULL)),
                 *e = apply(&r, TT_OP_exp, NULL, d, NULL);
        tt_array *sum = reduction(&r, TT_RED_sum, e, NULL);
        if (log) apply(&r, TT_OP_sub, out, d, apply(&r, TT_OP_log, NULL, sum, NULL));
        else apply(&r, TT_OP_mul, out, e, apply(&r, TT_OP_reciprocal, NULL, sum, NULL));
    }
    return end(&r, out);
}

/* What a reducer has to know of each result lies in the order in which the reduction visits the results only where its
 * operand is contiguous. */
static bool suits(const tt_array *a) { return a->flags & TT_FLAG_CONTIGUOUS && tt_is_floating(a->dtype); }

tt_array *tt_record_var(tt_array *a, int64_t mask, double correction, bool root) {
    recipe r = begin(a, mask);
    tt_array *out = suits(a) ? tt_empty(a->dtype, a->ndim, r.shape) : NULL;
    double n = (double)r.n, freedom = n - correction > 0 ? n - correction : 0;
    r.failed = !out;
    tt_array *mean = with_number(&r, TT_OP_div, NULL, reduction(&r, TT_RED_sum, a, NULL), n);
    tt_array *v = with_number(&r, TT_OP_div, root ? NULL : out, reduction(&r, TT_RED_devsq, a, mean), freedom);
    if (root) apply(&r, TT_OP_sqrt, out, v, NULL);
    return end(&r, out);
}

tt_array *tt_record_logsumexp(tt_array *a, int64_t mask) {
    recipe r = begin(a, mask);
    tt_array *out = suits(a) ? tt_empty(a->dtype, a->ndim, r.shape) : NULL, number;
    char room[TT_MAX_ITEMSIZE];
    tt_array *zero = tt_element(&number, room, TT_F64, TT_KIND_FLOAT, 0, 0);
    r.failed = !out;
    tt_array *top = reduction(&r, TT_RED_max, a, NULL), *infinite = temporary(&r, tt_empty(TT_BOOL, a->ndim, r.shape));
    apply(&r, TT_OP_isinf, infinite, top, NULL);
    tt_array *shift = temporary(&r, tt_empty(r.dtype, a->ndim, r.shape));
    r.failed = r.failed || !tt_record_op(TT_OP_where, r.dtype, shift, 3, (tt_array *[]){infinite, zero, top});
    tt_array *sum = reduction(&r, TT_RED_expsum, a, shift);
    apply(&r, TT_OP_add, out, apply(&r, TT_OP_log, NULL, sum, NULL), shift);
    return end(&r, out);
}
