/* Reductions: dtypes, shapes, allocation and the walk in one call. */
#include "fuse/nn_record.h"
#include "backend/backend.h"
#include "backend/now.h"
#include "cpu/reduce.h"
#include "ops/reduce.h"
#include "fuse/fuse.h"
#include "api/reduce.h"
#include <math.h>
#include <string.h>

enum { LIKE_SUM, SAME, TRUTH, NUMBER, FLOATING }; /* rules of the result's dtype */
enum { ALONE, DIVIDE, ROOT, DIVIDE_VALID };       /* what is left to do with an accumulator */

#define INFO(name, reducer, rule, then, identity) {{name, TT_RED_##reducer}, rule, then, identity},
typedef struct {
    tt_reduction_info facts;
    int8_t rule, then, identity;
} reduction;
static const reduction ops[] = {TT_REDUCTIONS(INFO)};
#define NUM_OPS ((int)(sizeof ops / sizeof ops[0]))

int tt_reduce_code(const char *name) {
    for (int op = 0; op < NUM_OPS; op++)
        if (strcmp(ops[op].facts.name, name) == 0) return op;
    return -1;
}

const tt_reduction_info *tt_reduction_facts(int op) { return op >= 0 && op < NUM_OPS ? &ops[op].facts : NULL; }

static const int then_of[] = {TT_RED_ALONE, TT_RED_DIVIDE, TT_RED_ROOT, TT_RED_ALONE};

int tt_reducer_of(int op, int *then) {
    *then = then_of[ops[op].then];
    return ops[op].facts.reducer;
}

/* The bits of the dimensions that `how` and `dims` name. */
static bool dims_mask(const char *op, const tt_array *a, int how, int64_t dims, int64_t *mask) {
    int64_t all = tt_first_bits(a->ndim), n = a->ndim ? a->ndim : 1;
    *mask = how == 0 ? all : dims & all;
    if (how != 1) return true;
    if (dims < -n || dims >= n) {
        tt_fail(TT_INDEX_ERROR, "%s: Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)",
                op, (long long)-n, (long long)n - 1, (long long)dims);
        return false;
    }
    *mask = tt_bit((int)(dims < 0 ? dims + n : dims)) & all;
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
        tt_fail(op[0] == 'a' && op[1] == 'r' ? TT_INDEX_ERROR : TT_RUNTIME_ERROR,
                "%s(): Expected reduction dim to be specified for input.numel() == 0. Specify the "
                "reduction dim with the 'dim' argument.",
                op);
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
    return tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for '%s'", op, tt_dtype_names[dtype]);
}

static void *want_floating(const char *op, int dtype) {
    if (strcmp(op, "mean") == 0)
        return tt_fail(TT_RUNTIME_ERROR,
                       "mean(): could not infer output dtype. Input dtype must be either a floating "
                       "point or complex dtype. Got: %s",
                       tt_dtype_names[dtype]);
    return tt_fail(TT_RUNTIME_ERROR, "%s(): input dtype should be either floating point or complex. Got %s instead.",
                   op, tt_dtype_names[dtype]);
}

/* Which reducer, what it reads, and its accumulator's dtype. */
typedef struct {
    int reducer, read, acc;
} tt_reducer_use;

/* Fused mode: the reduction, and what is left to do with its results, as nodes of their own. False: not recorded. */
static bool record(int then, const tt_reducer_use *use, tt_array *out, tt_array *a, int64_t mask, int64_t reduced) {
    tt_array *raw = then == ALONE && use->acc == out->dtype ? NULL : tt_empty(use->acc, out->ndim, out->shape);
    if (!raw)
        return then == ALONE && use->acc == out->dtype && tt_record_reduce(use->reducer, use->read, out, a, mask, NULL);
    bool ok = tt_record_reduce(use->reducer, use->read, raw, a, mask, NULL);
    tt_array *to = use->acc == out->dtype ? out : raw;
    if (then == DIVIDE) {
        tt_array number;
        char room[TT_MAX_ITEMSIZE];
        tt_array *count = tt_element(&number, room, TT_F64, TT_KIND_FLOAT, (double)reduced, 0);
        ok = ok && tt_record_op(TT_OP_div, use->acc, to, 2, (tt_array *[]){raw, count});
    } else if (then == ROOT) ok = ok && tt_record_op(TT_OP_sqrt, use->acc, to, 1, &raw);
    if (to == raw) ok = ok && tt_record_copy(out, raw);
    tt_free(raw);
    return ok;
}

static tt_array *mean_of_valid(const char *name, tt_array *a, int how, int64_t dims, int keepdim, int dtype);

/* A number everywhere; NaN in both parts of complex numbers. */
static void fill_parts(tt_array *out, double value) {
    int64_t bits = 0;
    if (value != value) memcpy(&bits, &value, 8);
    tt_fill_now(out, tt_is_complex(out->dtype) ? TT_KIND_COMPLEX : TT_KIND_FLOAT, value, bits);
}

static tt_array *reduce(const reduction *op, tt_array *a, int how, int64_t dims, int keepdim, int dtype) {
    const char *name = op->facts.name;
    int64_t mask, shape[TT_MAX_NDIM];
    TT_ON_DEVICE(NULL, name, 1, &a);
    if (!tt_current(a)) return tt_decline();
    if (!dims_mask(name, a, how, dims, &mask)) return NULL;
    int rule = op->rule, result = dtype >= 0 ? dtype : a->dtype, reducer = op->facts.reducer;
    if (rule == LIKE_SUM && dtype < 0 && tt_is_integral(result)) result = TT_I64;
    else if (rule == TRUTH) result = a->dtype == TT_U8 ? TT_U8 : TT_BOOL;
    else if (rule == NUMBER) result = TT_I64;
    else if (rule == FLOATING && !tt_is_differentiable(result)) return want_floating(name, result);
    if (op->then == DIVIDE_VALID) return mean_of_valid(name, a, how, dims, keepdim, result);
    /* what the reducer reads, and its accumulator's dtype */
    int read = tt_compute_dtype(result);
    if (rule == LIKE_SUM && tt_is_integral(read)) read = TT_I64;
    if (rule == TRUTH || rule == NUMBER) read = TT_BOOL;
    if (reducer == TT_RED_nansum && tt_is_integral(read)) reducer = TT_RED_sum;
    int acc = rule == NUMBER ? TT_I64 : read;
    if (!tt_get_reducer(reducer, read)) return none_for(name, a->dtype);
    if (op->identity < 0 && !has_elements(name, a, how, mask)) return NULL;
    tt_array *out = tt_empty(result, result_shape(a, mask, keepdim, shape), shape);
    if (!out || !out->numel) return out;
    if (!a->numel) {
        double value = op->then == DIVIDE ? NAN : op->identity;
        fill_parts(out, value);
        return out;
    }
    if (TT_RECORDING && record(op->then, &(tt_reducer_use){reducer, read, acc}, out, a, mask, a->numel / out->numel))
        return out;
    if (!tt_ready(a)) {
        tt_free(out);
        return tt_decline();
    }
    if (TT_WORK(name, reduce, out, a, mask, reducer, read, acc, then_of[op->then])) return out;
    tt_free(out);
    return NULL;
}

/* The sum of what is not NaN by how many these are. Half types are divided in float32. */
static tt_array *mean_of_valid(const char *name, tt_array *a, int how, int64_t dims, int keepdim, int dtype) {
    int wide = tt_compute_dtype(dtype);
    tt_array *sum = reduce(&(reduction){{name, TT_RED_nansum}, FLOATING, ALONE, 0}, a, how, dims, keepdim, wide),
             *out = NULL;
    tt_array *n =
        sum ? reduce(&(reduction){{name, TT_RED_valid}, FLOATING, ALONE, 0}, a, how, dims, keepdim, wide) : NULL;
    tt_array *mean = n ? tt_binary(TT_OP_div, sum, n) : NULL;
    if (mean) out = wide == dtype ? tt_alias(mean) : tt_cast(mean, dtype);
    if (sum) tt_free(sum);
    if (n) tt_free(n);
    if (mean) tt_free(mean);
    return out;
}

tt_array *tt_reduce(int op, tt_array *a, int how, int64_t dims, int keepdim, int dtype) {
    return reduce(&ops[op], a, how, dims, keepdim, dtype);
}

tt_array *tt_reduce_index(int largest, tt_array *a, int how, int64_t dims, int keepdim, tt_array **values) {
    const char *name = values ? (largest ? "max" : "min") : (largest ? "argmax" : "argmin");
    int64_t mask, shape[TT_MAX_NDIM];
    TT_ON_DEVICE(NULL, name, 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!tt_has_order(name, a->dtype)) return NULL;
    if (a->dtype == TT_BOOL && !values) return tt_fail(TT_RUNTIME_ERROR, "%s(): does not support bool input", name);
    if (!dims_mask(name, a, how, dims, &mask) || !has_elements(name, a, how, mask)) return NULL;
    int ndim = result_shape(a, mask, keepdim, shape);
    tt_array *out = tt_empty(TT_I64, ndim, shape), *best = out && values ? tt_empty(a->dtype, ndim, shape) : NULL;
    if (!out || (values && !best)) goto failed;
    if (a->numel && !TT_WORK(name, reduce_index, out, best, a, mask, largest)) goto failed;
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

tt_array *tt_reduce_var(tt_array *a, int how, int64_t dims, double correction, int root, int keepdim) {
    const char *name = root ? "std" : "var";
    int64_t mask, shape[TT_MAX_NDIM];
    TT_ON_DEVICE(NULL, name, 1, &a);
    if (!tt_current(a)) return tt_decline();
    if (!dims_mask(name, a, how, dims, &mask)) return NULL;
    if (!tt_has_order(name, a->dtype)) return NULL; /* Python adds up those of the parts */
    if (!tt_is_floating(a->dtype))
        return tt_fail(TT_RUNTIME_ERROR, "%s: std and var only support floating point and complex dtypes, got %s", name,
                       tt_dtype_names[a->dtype]);
    tt_array *out = tt_worth_recording(a) ? tt_record_var(a, mask, correction, root) : NULL;
    if (out) return shaped(out, a, mask, keepdim);
    if (!tt_ready(a)) return tt_decline();
    out = tt_empty(a->dtype, result_shape(a, mask, keepdim, shape), shape);
    if (!out || !out->numel) return out;
    if (!a->numel) {
        tt_fill_now(out, TT_KIND_FLOAT, NAN, 0);
        return out;
    }
    if (TT_WORK(name, reduce_var, out, a, mask, correction, root)) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_reduce_logsumexp(tt_array *a, int how, int64_t dims, int keepdim) {
    int64_t mask, shape[TT_MAX_NDIM];
    TT_ON_DEVICE(NULL, "logsumexp", 1, &a);
    if (!tt_current(a)) return tt_decline();
    if (!dims_mask("logsumexp", a, how, dims, &mask)) return NULL;
    if (!tt_has_order("logsumexp", a->dtype)) return NULL;
    if (tt_is_integral(a->dtype)) return want_floating("logsumexp", a->dtype);
    tt_array *out = tt_worth_recording(a) ? tt_record_logsumexp(a, mask) : NULL;
    if (out) return shaped(out, a, mask, keepdim);
    if (!tt_ready(a)) return tt_decline();
    out = tt_empty(a->dtype, result_shape(a, mask, keepdim, shape), shape);
    if (!out || !out->numel) return out;
    if (!a->numel) {
        tt_fill_now(out, TT_KIND_FLOAT, -INFINITY, 0);
        return out;
    }
    if (TT_WORK("logsumexp", reduce_logsumexp, out, a, mask)) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_sum_to(tt_array *a, int ndim, int64_t *shape) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    int lead = a->ndim - ndim;
    int64_t mask = 0;
    bool fits = lead >= 0;
    for (int d = 0; fits && d < a->ndim; d++) {
        if (d < lead || (shape[d - lead] == 1 && a->shape[d] != 1)) mask |= tt_bit(d);
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

tt_array *tt_expand_reduced(tt_array *a, int ndim, int64_t *shape, int how, int64_t dims, int keepdim) {
    tt_array like = {.ndim = ndim};
    int64_t mask, strides[TT_MAX_NDIM];
    TT_ON_DEVICE(NULL, "expand_reduced", 1, &a);
    if (!tt_current(a)) return tt_decline();
    if (!dims_mask("expand_reduced", &like, how, dims, &mask)) return NULL;
    int n = 0;
    for (int d = 0; d < ndim; d++) {
        bool gone = mask >> d & 1;
        if (gone) strides[d] = 0;
        if (n < a->ndim && (!gone || keepdim)) {
            if (!gone) strides[d] = shape[d] == 1 ? 0 : a->strides[n];
            n++;
        }
    }
    if (n != a->ndim)
        return tt_fail(TT_RUNTIME_ERROR, "expand_reduced: expected a gradient with %d dimensions, got %d", n, a->ndim);
    return tt_view(a, ndim, shape, strides, tt_offset(a));
}
