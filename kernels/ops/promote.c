/* The dtype of operands together, and which Python numbers a dtype has. */
#include "ops/promote.h"
#include "cpu/simd.h"
#include <float.h>
#include <math.h>
#include <string.h>

int tt_no_promotion(int a, int b) {
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
        return tt_no_promotion(a, b);
    int kind = tt_kind_of(a), other = tt_kind_of(b);
    if (other > kind) return tt_promote(b, a);
    if (kind > other) return tt_is_complex(a) && tt_is_floating(b) ? tt_promote(a, tt_complex_dtype(b)) : a;
    if (tt_itemsizes[a] != tt_itemsizes[b]) return tt_itemsizes[a] > tt_itemsizes[b] ? a : b;
    return tt_is_integral(a) ? TT_I16
                             : TT_F32; /* uint8 and int8, float16 and bfloat16: none holds the other's values */
}

int tt_common_type(int n, tt_array *const *args) {
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
    for (int r = 1; r < 3; r++) {
        if (result == TT_BOOL && rank[r] >= 0 && tt_is_wide_unsigned(rank[r])) return tt_no_promotion(result, rank[r]);
        if (rank[r] >= 0 && (result < 0 || tt_kind_of(rank[r]) > tt_kind_of(result)))
            result =
                tt_is_complex(rank[r]) && result >= 0 && tt_is_floating(result) ? tt_complex_dtype(result) : rank[r];
    }
    return result;
}

int tt_result_type(tt_array *a, tt_array *b) { return tt_common_type(2, (tt_array *[]){a, b}); }

/* A Python integer as an element of an integer dtype; a negative one wraps in an unsigned dtype. */
static bool integer_fits(const tt_array *number, int dtype) {
    int bits = 8 * tt_itemsizes[dtype], is_unsigned = dtype == TT_U8 || tt_is_wide_unsigned(dtype);
    if (number->dtype == TT_U64) return dtype == TT_U64;
    if (number->dtype != TT_I64 || bits == 64) return true;
    int64_t value, top = (int64_t)1 << (bits - !is_unsigned);
    memcpy(&value, number->data, 8);
    return -top - !is_unsigned < value && value < top;
}

bool tt_number_fits(const tt_array *number, int dtype) {
    static const double largest[] = {[TT_F16] = 65504.0, [TT_BF16] = 0x1.fep127, [TT_F32] = FLT_MAX};
    if (dtype == TT_BOOL || number->dtype == TT_BOOL) return true;
    if (tt_is_integral(dtype)) return integer_fits(number, dtype);
    int part = dtype == TT_C64 ? TT_F32 : dtype;
    if (part != TT_F16 && part != TT_BF16 && part != TT_F32) return true;
    double parts[2] = {0, 0};
    tt_isa->casts[number->dtype][TT_C128](parts, number->data, 1);
    for (int k = 0; k < 2; k++)
        if (isfinite(parts[k]) && fabs(parts[k]) > largest[part]) return false;
    return true;
}
