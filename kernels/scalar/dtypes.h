/* The dtypes: X(code, suffix, type, name, kind, is_signed, compute, dlpack).
 *
 * code     the enumerator TT_<code>, which arrays hold and Python reads from cffi as lib.TT_<code>
 * suffix   of the names of scalar functions, tt_add_<suffix>
 * type     an element's C type: TT_C_<suffix>
 * name     NumPy's and PyTorch's
 * kind     TT_KIND_<kind>: the category, of which promotion takes the higher one
 * compute  the code of the dtype that arithmetic is done in: float32 for the half types, complex64 for complex32
 * dlpack   DLPack's type code
 *
 * The unsigned integers wider than a byte are kept rather than computed with: a few operators have loops over them, the
 * others refuse them, as PyTorch's do, and so does promotion with another integer.
 *
 * All that depends on a dtype follows from this table, here and in tinytorch/dtypes.py. Codes are no order: compare
 * them for equality with an enumerator, else ask a property (tt_is_floating, ...). tests/test_dtypes.py looks for
 * comparisons. */
#pragma once
#include "bits.h"

typedef struct {
    uint16_t re, im; /* two of float16 */
} tt_complex32;
typedef struct {
    float re, im;
} tt_complex64;
typedef struct {
    double re, im;
} tt_complex128;
TT_FN tt_complex32 tt_complex_f16(uint16_t re, uint16_t im) {
    tt_complex32 z;
    z.re = re;
    z.im = im;
    return z;
}
TT_FN tt_complex64 tt_complex_f32(float re, float im) {
    tt_complex64 z;
    z.re = re;
    z.im = im;
    return z;
}
TT_FN tt_complex128 tt_complex_f64(double re, double im) {
    tt_complex128 z;
    z.re = re;
    z.im = im;
    return z;
}

#define TT_DTYPES(X)                                                                                                   \
    X(BOOL, b8, uint8_t, bool, BOOL, 0, BOOL, 6)                                                                       \
    X(U8, u8, uint8_t, uint8, INT, 0, U8, 1)                                                                           \
    X(I8, i8, int8_t, int8, INT, 1, I8, 0)                                                                             \
    X(I16, i16, int16_t, int16, INT, 1, I16, 0)                                                                        \
    X(I32, i32, int32_t, int32, INT, 1, I32, 0)                                                                        \
    X(I64, i64, int64_t, int64, INT, 1, I64, 0)                                                                        \
    X(F16, f16, uint16_t, float16, FLOAT, 1, F32, 2)                                                                   \
    X(BF16, bf16, uint16_t, bfloat16, FLOAT, 1, F32, 4)                                                                \
    X(F32, f32, float, float32, FLOAT, 1, F32, 2)                                                                      \
    X(F64, f64, double, float64, FLOAT, 1, F64, 2)                                                                     \
    X(C64, c64, tt_complex64, complex64, COMPLEX, 1, C64, 5)                                                           \
    X(C128, c128, tt_complex128, complex128, COMPLEX, 1, C128, 5)                                                      \
    X(C32, c32, tt_complex32, complex32, COMPLEX, 1, C64, 5)                                                           \
    X(U16, u16, uint16_t, uint16, INT, 0, U16, 1)                                                                      \
    X(U32, u32, uint32_t, uint32, INT, 0, U32, 1)                                                                      \
    X(U64, u64, uint64_t, uint64, INT, 0, U64, 1)
#define TT_MAX_ITEMSIZE 16

/* The category of a dtype or of a Python number, in the order of promotion. */
#define TT_KINDS(X) X(BOOL) X(INT) X(FLOAT) X(COMPLEX)
#define TT_KIND_ENUM(name) TT_KIND_##name,
enum { TT_KINDS(TT_KIND_ENUM) TT_NUM_KINDS };

#define TT_DTYPE_ENUM(code, ...) TT_##code,
enum { TT_DTYPES(TT_DTYPE_ENUM) TT_NUM_DTYPES };

/* By suffix. */
#define TT_CODE_ENUM(code, suffix, ...) TT_CODE_##suffix = TT_##code,
enum { TT_DTYPES(TT_CODE_ENUM) };
#define TT_C_TYPE(code, suffix, type, ...) typedef type TT_C_##suffix;
TT_DTYPES(TT_C_TYPE)

/* The properties, as constants: a bit or two for each code. */
#define TT_KIND_BITS(code, suffix, type, name, kind, ...) | (uint64_t)TT_KIND_##kind << 2 * TT_##code
#define TT_HALF_BIT(code, suffix, type, name, kind, is_signed, compute, ...) | (TT_##compute != TT_##code) << TT_##code
#define TT_WIDE_UNSIGNED_BIT(code, suffix, type, name, kind, is_signed, ...)                                           \
    | (TT_KIND_##kind == TT_KIND_INT && !(is_signed) && sizeof(type) > 1) << TT_##code
#define TT_INTEGRAL_BIT(code, suffix, type, name, kind, ...) | (TT_KIND_##kind <= TT_KIND_INT) << TT_##code
#define TT_FLOATING_BIT(code, suffix, type, name, kind, ...) | (TT_KIND_##kind == TT_KIND_FLOAT) << TT_##code
#define TT_COMPLEX_BIT(code, suffix, type, name, kind, ...) | (TT_KIND_##kind == TT_KIND_COMPLEX) << TT_##code
enum {
    TT_INTEGRAL_DTYPES = 0 TT_DTYPES(TT_INTEGRAL_BIT), /* bool among them */
    TT_FLOATING_DTYPES = 0 TT_DTYPES(TT_FLOATING_BIT),
    TT_COMPLEX_DTYPES = 0 TT_DTYPES(TT_COMPLEX_BIT),
    TT_HALF_DTYPES = 0 TT_DTYPES(TT_HALF_BIT), /* computed in another dtype, of twice the size */
    TT_WIDE_UNSIGNED_DTYPES = 0 TT_DTYPES(TT_WIDE_UNSIGNED_BIT),
};
TT_FN int tt_kind_of(int dtype) { return (int)((0 TT_DTYPES(TT_KIND_BITS)) >> 2 * dtype & 3); }
TT_FN int tt_is_integral(int dtype) { return TT_INTEGRAL_DTYPES >> dtype & 1; }
TT_FN int tt_is_floating(int dtype) { return TT_FLOATING_DTYPES >> dtype & 1; }
TT_FN int tt_is_complex(int dtype) { return TT_COMPLEX_DTYPES >> dtype & 1; }
TT_FN int tt_is_half(int dtype) { return TT_HALF_DTYPES >> dtype & 1; }
TT_FN int tt_is_wide_unsigned(int dtype) { return TT_WIDE_UNSIGNED_DTYPES >> dtype & 1; }
TT_FN int tt_compute_dtype(int dtype) { return !tt_is_half(dtype) ? dtype : tt_is_complex(dtype) ? TT_C64 : TT_F32; }
TT_FN int tt_is_differentiable(int dtype) { return (TT_FLOATING_DTYPES | TT_COMPLEX_DTYPES) >> dtype & 1; }
/* What a Python number of that kind is as an element, before promotion. */
TT_FN int tt_dtype_of_kind(int kind) {
    return kind == TT_KIND_BOOL ? TT_BOOL : kind == TT_KIND_INT ? TT_I64 : kind == TT_KIND_FLOAT ? TT_F64 : TT_C128;
}
/* The dtype of a complex dtype's parts, and the complex dtype whose parts a floating one's values are; a dtype that has
 * none is its own. */
TT_FN int tt_real_dtype(int dtype) {
    return dtype == TT_C64 ? TT_F32 : dtype == TT_C128 ? TT_F64 : dtype == TT_C32 ? TT_F16 : dtype;
}
TT_FN int tt_complex_dtype(int dtype) {
    return !tt_is_floating(dtype) ? dtype : dtype == TT_F64 ? TT_C128 : dtype == TT_F16 ? TT_C32 : TT_C64;
}
