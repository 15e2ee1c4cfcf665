/* Elementwise operators: promotion, broadcasting, allocation and the loop in one call. */
#include "backend/backend.h"
#include "backend/now.h"
#include "fuse/fuse.h"
#include "cpu/simd.h"
#include "ops/elementwise.h"
#include "ops/promote.h"
#include <string.h>

bool tt_must_fit(int op, int dtype, int k) {
    if (op == TT_OP_where) return !tt_is_half(dtype) && dtype != TT_C32; /* its numbers become float32 first */
    if (op == TT_OP_pow) return k == 1 && dtype != TT_F32 && !tt_is_complex(dtype);
    return op == TT_OP_clamp || op == TT_OP_maximum || op == TT_OP_minimum;
}

static bool numbers_fit(int op, int dtype, int n, tt_array *const *in) {
    for (int k = 0; k < n; k++)
        if (in[k]->flags & TT_FLAG_WEAK && tt_must_fit(op, dtype, k) && !tt_number_fits(in[k], dtype)) {
            tt_fail(TT_RUNTIME_ERROR, "%s: value cannot be converted to type %s without overflow", tt_ops[op].name,
                    tt_dtype_names[dtype]);
            return false;
        }
    return true;
}

/* The dtype the operator computes in, before halves become float32; -1 and an error when it has none. */
static int common_dtype(int op, int n, tt_array *const *in) {
    int skip = tt_ops[op].rule == TT_SELECT; /* the condition takes no part */
    int dtype = tt_common_type(n - skip, in + skip);
    if (dtype < 0) return -1;
    if (op == TT_OP_where && in[1]->flags & in[2]->flags & TT_FLAG_WEAK && dtype == TT_U64 &&
        in[1]->dtype != in[2]->dtype)
        return tt_no_promotion(in[1]->dtype, in[2]->dtype);
    if (tt_ops[op].domain == TT_FLT && tt_is_integral(dtype)) dtype = tt_default_dtype;
    if (tt_ops[op].domain == TT_REAL) { /* a Python float does not make integers floating here */
        tt_array *tensors[3];
        int count = 0;
        for (int k = 0; k < n; k++)
            if (!(in[k]->flags & TT_FLAG_WEAK)) tensors[count++] = in[k];
        if (count && tt_is_integral(tt_common_type(count, tensors))) dtype = tt_common_type(count, tensors);
    }
    if (n > 1 && op == TT_OP_pow && tt_is_integral(dtype) && in[1]->flags & TT_FLAG_WEAK &&
        tt_kind_of(in[1]->dtype) == TT_KIND_INT) {
        int64_t exponent;
        tt_isa->casts[in[1]->dtype][TT_I64](&exponent, in[1]->data, 1);
        if (exponent < 0) {
            tt_fail(TT_RUNTIME_ERROR, "pow: Integers to negative integer powers are not allowed.");
            return -1;
        }
    }
    if (!numbers_fit(op, dtype, n, in)) return -1;
    for (int k = 0; op == TT_OP_sub && k < 2; k++)
        if (in[k]->dtype == TT_BOOL) {
            tt_fail(TT_RUNTIME_ERROR, "sub: Subtraction, the `-` operator, with a bool tensor is not supported. If you "
                                      "are trying to invert a mask, use the `~` or `logical_not()` operator instead.");
            return -1;
        }
    if (op == TT_OP_neg && dtype == TT_BOOL) {
        tt_fail(TT_RUNTIME_ERROR,
                "neg: Negation, the `-` operator, on a bool tensor is not supported. If you are trying "
                "to invert a mask, use the `~` or `logical_not()` operator instead.");
        return -1;
    }
    if (!tt_isa->ops[op][tt_compute_dtype(dtype)]) {
        tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for '%s'", tt_ops[op].name, tt_dtype_names[dtype]);
        return -1;
    }
    if (skip && in[0]->dtype != TT_BOOL) {
        tt_fail(TT_RUNTIME_ERROR, "%s: expected condition to be a boolean tensor, but got a tensor with dtype %s",
                tt_ops[op].name, tt_dtype_names[in[0]->dtype]);
        return -1;
    }
    return dtype;
}

int tt_op_result_type(int op, tt_array *a, tt_array *b, tt_array *c) {
    int dtype = common_dtype(op, tt_ops[op].arity, (tt_array *[]){a, b, c});
    return dtype >= 0 ? tt_result_dtype(op, dtype) : dtype;
}

static bool broadcast(const char *op, int n, tt_array *const *in, int *ndim, int64_t *shape) {
    char left[TT_SHAPE_TEXT], right[TT_SHAPE_TEXT];
    *ndim = in[0]->ndim;
    memcpy(shape, in[0]->shape, sizeof(int64_t) * (size_t)*ndim);
    for (int k = 1; k < n; k++) {
        const tt_array *b = in[k];
        int64_t joined[TT_MAX_NDIM];
        int nd = b->ndim > *ndim ? b->ndim : *ndim;
        for (int d = 1; d <= nd; d++) {
            int64_t x = d <= *ndim ? shape[*ndim - d] : 1, y = d <= b->ndim ? b->shape[b->ndim - d] : 1;
            if (x != y && x != 1 && y != 1) {
                tt_fail(TT_RUNTIME_ERROR,
                        "%s: The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                        "non-singleton dimension %d: shapes %s and %s do not broadcast",
                        op, (long long)x, (long long)y, nd - d, tt_shape_text(left, *ndim, shape),
                        tt_shape_text(right, b->ndim, b->shape));
                return false;
            }
            joined[nd - d] = x == 1 ? y : x;
        }
        *ndim = nd;
        memcpy(shape, joined, sizeof(int64_t) * (size_t)nd);
    }
    return true;
}

int tt_broadcast(int n, tt_array **in, int64_t *shape) {
    int ndim;
    return broadcast("broadcast", n, in, &ndim, shape) ? ndim : -1;
}

/* Integer division by zero is an error that must be found before anything is written; that of a device's elements,
 * which are not waited for, is found by the kernel. Where the result has no elements nothing is divided. */
static bool divides_by_zero(int op, int dtype, tt_array *b, int ndim, const int64_t *shape) {
    if (!tt_divides_integers(op, dtype) || b->storage->device) return false;
    for (int d = 0; d < ndim; d++)
        if (shape[d] == 0) return false;
    int64_t index[TT_MAX_NDIM];
    int size = tt_itemsizes[b->dtype];
    char element[TT_MAX_ITEMSIZE] __attribute__((aligned(16)));
    for (int d = 0; d < b->ndim; d++) index[d] = 0;
    for (int64_t i = 0; i < b->numel; i++) {
        int64_t at = 0, value;
        for (int d = 0; d < b->ndim; d++) at += index[d] * b->strides[d];
        tt_isa->casts[b->dtype][dtype](element, b->data + at * size, 1); /* 256 is 0 as a uint8 */
        tt_isa->casts[dtype][TT_I64](&value, element, 1);
        if (value == 0) {
            tt_fail(TT_ZERO_DIVISION, "%s: ZeroDivisionError: integer division by zero", tt_ops[op].name);
            return true;
        }
        for (int d = b->ndim - 1; d >= 0 && ++index[d] == b->shape[d]; d--) index[d] = 0;
    }
    return false;
}

/* Which inputs differ from the result in shape or dtype (their gradients must be brought back to them), and the
 * versions of the first two, for messages: Note [Version counters] in tinytorch/autograd/node.py. */
int64_t tt_operands_stamp(const tt_array *out, int n, tt_array *const *in) {
    int64_t bits = 0;
    for (int k = 0; k < n; k++) {
        const tt_array *a = in[k];
        if (a->dtype != out->dtype || a->ndim != out->ndim || a->storage->device != out->storage->device ||
            memcmp(a->shape, out->shape, sizeof(int64_t) * (size_t)out->ndim) != 0)
            bits |= (int64_t)1 << k;
        /* An inference tensor may not be saved: recording must look at it. */
        if (a->flags & ~tt_thread_flags & TT_FLAG_INFERENCE) bits |= 8;
        if (k < 2) bits |= (tt_version(a) & 0x3fffffff) << (4 + 30 * k);
    }
    return bits;
}

/* Must the elements of the second operand be looked at before anything is done? */
static bool looks(int op, int n, tt_array *const *in) {
    if (n != 2 || in[1]->flags & TT_FLAG_WEAK || tt_is_floating(in[1]->dtype)) return false;
    return op == TT_OP_pow || op == TT_OP_floor_divide || op == TT_OP_trunc_divide || op == TT_OP_remainder ||
           op == TT_OP_fmod;
}

/* Can the operator be recorded? Else its operands are flushed here: -1 where that failed. */
static int recording(int op, int n, tt_array *const *in) {
    bool can = TT_RECORDING && !looks(op, n, in);
    for (int k = 0; k < n; k++)
        if (can ? !tt_current(in[k]) : !tt_ready(in[k])) return -1;
    return can;
}

/* Are elements repeated along a dimension? */
static bool is_expanded(const tt_array *a) {
    if (a->flags & TT_FLAG_CONTIGUOUS) return false;
    for (int d = 0; d < a->ndim; d++)
        if (a->strides[d] == 0 && a->shape[d] > 1) return true;
    return false;
}

/* The result lies in memory as the first input of its shape does that is not expanded; else it is row-major. */
tt_array *tt_elementwise(int op, int n, tt_array **in) {
    int64_t shape[TT_MAX_NDIM];
    TT_ON_DEVICE_IF(NULL, tt_ops[op].name, true, n, in);
    int ndim, record = recording(op, n, in);
    if (record < 0) return tt_decline();
    int dtype = common_dtype(op, n, in);
    if (dtype < 0 || !broadcast(tt_ops[op].name, n, in, &ndim, shape)) return NULL;
    if (n > 1 && divides_by_zero(op, dtype, in[1], ndim, shape)) return NULL;
    int result = tt_result_dtype(op, dtype);
    tt_array *like = NULL;
    for (int k = 0; k < n && !like; k++)
        if (in[k]->ndim == ndim && !memcmp(in[k]->shape, shape, sizeof(int64_t) * (size_t)ndim) && !is_expanded(in[k]))
            like = in[k];
    bool plain = !like || like->flags & TT_FLAG_CONTIGUOUS; /* it may be a number of the CPU's */
    tt_array *out = plain ? tt_empty(result, ndim, shape) : tt_like(like, result);
    if (!out) return NULL;
    if (out->numel && !(record && tt_record_op(op, dtype, out, n, in))) {
        for (int k = 0; record && k < n; k++)
            if (!tt_ready(in[k])) {
                tt_free(out);
                return tt_decline();
            }
        if (!TT_WORK(tt_ops[op].name, elementwise, op, dtype, out, n, in)) {
            tt_free(out);
            return NULL;
        }
    }
    out->stamp = tt_operands_stamp(out, n, in);
    return out;
}

int tt_power(const tt_array *a, const tt_array *number) {
    static const struct {
        double exponent;
        int op;
    } known[] = {{2, TT_OP_square},      {0.5, TT_OP_sqrt},   {3, TT_OP_cube},
                 {-1, TT_OP_reciprocal}, {-0.5, TT_OP_rsqrt}, {1, TT_OP_positive}};
    double exponent;
    if (tt_is_integral(a->dtype) || tt_is_complex(number->dtype))
        return -1; /* a number may change the dtype of integers */
    tt_isa->casts[number->dtype][TT_F64](&exponent, number->data, 1);
    for (int k = 0; k < (int)(sizeof known / sizeof known[0]); k++)
        if (known[k].exponent == exponent) return known[k].op;
    return -1;
}

/* Into `out`, which may be one of the inputs: the in-place and the out= variants. Bumps out's version. */
int tt_elementwise_out(int op, tt_array *out, tt_array *a, tt_array *b, tt_array *c, int writer) {
    char want[TT_SHAPE_TEXT], have[TT_SHAPE_TEXT];
    tt_array *in[3] = {a, b, c}, *copies[3] = {NULL, NULL, NULL};
    int64_t shape[TT_MAX_NDIM];
    int ndim, n = tt_ops[op].arity, status = -1;
    tt_array *all[4] = {out, a, n > 1 ? b : NULL, n > 2 ? c : NULL};
    int alone = op == TT_OP_pow && b->flags & TT_FLAG_WEAK ? tt_power(a, b) : -1;
    if (alone >= 0) return tt_elementwise_out(alone, out, a, NULL, NULL, writer);
    if (TT_RECORDING ? a == out && !c && tt_record_update(op, out, b) : tt_elementwise_small_into(op, out, n, in)) {
        tt_bump_version(out, writer);
        return 0;
    }
    TT_ON_DEVICE_IF(-1, tt_ops[op].name, true, 4, all);
    if (out->storage->device != tt_device) {
        char there[24];
        tt_fail(TT_RUNTIME_ERROR, "%s: the output is on the CPU, an input on %s", tt_ops[op].name,
                tt_device_text(there, sizeof there, tt_device));
        return -1;
    }
    int record = recording(op, n, in);
    if (record < 0) {
        tt_decline();
        return -1;
    }
    int dtype = common_dtype(op, n, in);
    if (dtype < 0 || !broadcast(tt_ops[op].name, n, in, &ndim, shape)) return -1;
    if (ndim != out->ndim || memcmp(shape, out->shape, sizeof(int64_t) * (size_t)ndim) != 0) {
        tt_fail(TT_RUNTIME_ERROR, "%s: output with shape %s doesn't match the broadcast shape %s", tt_ops[op].name,
                tt_shape_text(have, out->ndim, out->shape), tt_shape_text(want, ndim, shape));
        return -1;
    }
    int result = tt_result_dtype(op, dtype);
    if (a == out && result != dtype && tt_is_complex(dtype) && tt_ops[op].rule == TT_PART) {
        tt_fail(TT_RUNTIME_ERROR, "%s: In-place %s is not supported for complex tensors.", tt_ops[op].name,
                tt_ops[op].name);
        return -1;
    }
    bool cast_ok = tt_kind_of(result) <= tt_kind_of(out->dtype) || (tt_ops[op].rule == TT_BOOL_RESULT);
    if (!cast_ok) {
        tt_fail(TT_RUNTIME_ERROR, "%s: result type %s can't be cast to the desired output type %s", tt_ops[op].name,
                tt_dtype_names[result], tt_dtype_names[out->dtype]);
        return -1;
    }
    if (!tt_may_write(tt_ops[op].name, out) || (n > 1 && divides_by_zero(op, dtype, in[1], ndim, shape))) return -1;
    for (int k = 0; k < n; k++)
        record = record && (in[k]->storage != out->storage || tt_same_layout(in[k], out) || !tt_overlaps(in[k], out));
    if (out->numel && !(record && tt_record_op(op, dtype, out, n, in))) {
        bool ready = tt_ready_to_write(out);
        for (int k = 0; ready && k < n; k++) ready = tt_ready(in[k]);
        if (!ready) {
            tt_decline();
            return -1;
        }

        for (int k = 0; k < n; k++) /* an input that the output partly overlaps is read whole before the first write */
            if (in[k]->storage == out->storage && !tt_same_layout(in[k], out) && tt_overlaps(in[k], out)) {
                if (!(copies[k] = tt_empty_like(in[k], in[k]->dtype)) || tt_copy_now(copies[k], in[k]) < 0) goto done;
                in[k] = copies[k];
            }
        if (!TT_WORK(tt_ops[op].name, elementwise, op, dtype, out, n, in)) goto done;
    }
    tt_bump_version(out, writer);
    status = 0;
done:
    for (int k = 0; k < n; k++)
        if (copies[k]) tt_free(copies[k]);
    return status;
}

bool tt_elementwise_fits(int op, const tt_array *out, int n, tt_array *const *in) {
    int64_t shape[TT_MAX_NDIM];
    int ndim, dtype = common_dtype(op, n, in);
    return dtype >= 0 && tt_result_dtype(op, dtype) == out->dtype && broadcast(tt_ops[op].name, n, in, &ndim, shape) &&
           ndim == out->ndim && !memcmp(shape, out->shape, sizeof(int64_t) * (size_t)ndim);
}
