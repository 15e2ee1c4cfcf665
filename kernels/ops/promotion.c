/* The dtype in which an operator computes, from those of its operands. */
#include "ops/promotion.h"
#include "backend/operators.h"
#include "cpu/simd.h"
#include <string.h>

static int no_promotion(int a, int b) {
    tt_fail(TT_RUNTIME_ERROR,
            "Promotion for uint16, uint32, uint64 types is not supported, attempted to promote %s and %s",
            tt_dtype_names[a], tt_dtype_names[b]);
    return -1;
}

/* PyTorch's promotion: within tensors with dimensions, 0-d tensors and Python scalars each the usual lattice; a lower
 * rank counts only when its category (bool < integer < floating) is higher. -1 and an error where the two have none. */
int tt_promote(int a, int b) {
    if (a == b) return a;
    if ((tt_is_wide_unsigned(a) && !tt_is_floating(b)) || (tt_is_wide_unsigned(b) && !tt_is_floating(a)))
        return no_promotion(a, b);
    int kind = tt_kind_of(a), other = tt_kind_of(b);
    if (other > kind) return tt_promote(b, a);
    if (kind > other) return tt_is_complex(a) && tt_is_floating(b) ? tt_promote(a, tt_complex_dtype(b)) : a;
    if (tt_itemsizes[a] != tt_itemsizes[b]) return tt_itemsizes[a] > tt_itemsizes[b] ? a : b;
    return tt_is_integral(a) ? TT_I16
                             : TT_F32; /* uint8 and int8, float16 and bfloat16: none holds the other's values */
}

static int result_type(int n, tt_array *const *args) {
    int rank[3] = {-1, -1, -1}; /* with dimensions, 0-d, Python scalar */
    for (int k = 0; k < n; k++) {
        int r = args[k]->flags & TT_FLAG_WEAK ? 2 : args[k]->ndim == 0 ? 1 : 0;
        int dtype = args[k]->dtype;
        if (r == 2 && dtype == TT_F64) dtype = tt_default_dtype;
        if (r == 2 && dtype == TT_C128) dtype = tt_complex_dtype(tt_default_dtype);
        if (r == 2 && rank[r] == TT_U64 && dtype == TT_I64) continue; /* of two numbers one is too large for int64 */
        if (r == 2 && rank[r] == TT_I64 && dtype == TT_U64) rank[r] = TT_U64;
        if ((rank[r] = rank[r] < 0 ? dtype : tt_promote(rank[r], dtype)) < 0) return -1;
    }
    int result = rank[0];
    for (int r = 1; r < 3; r++)
        if (rank[r] >= 0 && (result < 0 || tt_kind_of(rank[r]) > tt_kind_of(result)))
            result =
                tt_is_complex(rank[r]) && result >= 0 && tt_is_floating(result) ? tt_complex_dtype(result) : rank[r];
    return result;
}

int tt_result_type(tt_array *a, tt_array *b) { return result_type(2, (tt_array *[]){a, b}); }

/* Is the Python integer, as an element of that integer dtype, itself? A negative one wraps in an unsigned dtype. */
static bool fits(const tt_array *number, int dtype) {
    int bits = 8 * tt_itemsizes[dtype], is_unsigned = dtype == TT_U8 || tt_is_wide_unsigned(dtype);
    if (number->dtype == TT_U64) return dtype == TT_U64;
    if (number->dtype != TT_I64 || bits == 64) return true;
    int64_t value, top = (int64_t)1 << (bits - !is_unsigned);
    memcpy(&value, number->data, 8);
    return -top - !is_unsigned < value && value < top;
}

int tt_common_dtype(int op, int n, tt_array *const *in) {
    int skip = tt_ops[op].rule == TT_SELECT; /* the condition takes no part */
    int dtype = result_type(n - skip, in + skip);
    if (dtype < 0) return -1;
    if (tt_ops[op].domain == TT_FLT && tt_is_integral(dtype)) dtype = tt_default_dtype;
    if (tt_ops[op].domain == TT_REAL) { /* a Python float does not make integers floating here */
        tt_array *tensors[3];
        int count = 0;
        for (int k = 0; k < n; k++)
            if (!(in[k]->flags & TT_FLAG_WEAK)) tensors[count++] = in[k];
        if (count && tt_is_integral(result_type(count, tensors))) dtype = result_type(count, tensors);
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
    bool selects = op == TT_OP_where || op == TT_OP_clamp || op == TT_OP_maximum || op == TT_OP_minimum;
    for (int k = 0; selects && tt_is_integral(dtype) && dtype != TT_BOOL && k < n; k++)
        if (in[k]->flags & TT_FLAG_WEAK && !fits(in[k], dtype)) {
            tt_fail(TT_RUNTIME_ERROR, "%s: value cannot be converted to type %s without overflow", tt_ops[op].name,
                    tt_dtype_names[dtype]);
            return -1;
        }
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
    int dtype = tt_common_dtype(op, tt_ops[op].arity, (tt_array *[]){a, b, c});
    return dtype >= 0 ? tt_result_dtype(op, dtype) : dtype;
}
