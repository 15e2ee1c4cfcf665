/* Conversions between every two dtypes: tt_cast_<from>_<to>. A float becomes a narrow integer by way of int32; half types
 * go through float32. (From a dtype to itself a plain copy is meant, which keeps a NaN's payload: loops do not call these
 * for it.) */
#pragma once
#include "arith.h"
#include "half.h"

/* What has no integer becomes the least one, as x86 does it. C leaves that open, and compilers take it differently when
 * they convert a constant: an infinity that a function returned may be one, once the two are compiled together. */
TT_FN int32_t tt_int_of_f32(float x) { return tt_abs_f32(x) < 0x1p31f ? (int32_t)x : -2147483647 - 1; }
TT_FN int32_t tt_int_of_f64(double x) { return tt_abs_f64(x) < 0x1p31 ? (int32_t)x : -2147483647 - 1; }
TT_FN int64_t tt_long_of_f32(float x) { return tt_abs_f32(x) < 0x1p63f ? (int64_t)x : -9223372036854775807 - 1; }
TT_FN int64_t tt_long_of_f64(double x) { return tt_abs_f64(x) < 0x1p63 ? (int64_t)x : -9223372036854775807 - 1; }

/* A bool as 1 or 0: said in this way, a loop that also makes the bool, by a comparison, is vectorised. */
#define TT_INT_OF_BOOL(T, x) ((x) ? (TT_C_##T)1 : (TT_C_##T)0)

/* A stored element as a value to convert from ... */
#define TT_VALUE_b8(x) ((x) ? 1.0f : 0.0f)
#define TT_VALUE_u8(x) (x)
#define TT_VALUE_i8(x) (x)
#define TT_VALUE_i16(x) (x)
#define TT_VALUE_i32(x) (x)
#define TT_VALUE_i64(x) (x)
#define TT_VALUE_f32(x) (x)
#define TT_VALUE_f64(x) (x)
#define TT_VALUE_f16(x) tt_f16_to_f32(x)
#define TT_VALUE_bf16(x) tt_bf16_to_f32(x)
/* ... and a value as an element. */
#define TT_BOOL_OF(T, x) ((uint8_t)((x) != 0))
#define TT_INT_OF_INT(T, x) ((TT_C_##T)(x))
#define TT_INT_OF_FLOAT(T, x) ((TT_C_##T)tt_int_of_f32(x))
#define TT_LONG_OF_FLOAT(T, x) tt_long_of_f32(x)
#define TT_INT_OF_DOUBLE(T, x) ((TT_C_##T)tt_int_of_f64(x))
#define TT_LONG_OF_DOUBLE(T, x) tt_long_of_f64(x)
#define TT_FLOAT_OF(T, x) ((TT_C_##T)(x))
#define TT_F16_OF(T, x) tt_f32_to_f16((float)(x))
#define TT_BF16_OF(T, x) tt_f32_to_bf16((float)(x))

#define TT_CAST(F, T, CONVERT)                                                                                         \
    TT_FN TT_C_##T tt_cast_##F##_##T(TT_C_##F x) { return CONVERT(T, TT_VALUE_##F(x)); }
/* clang-format off */
#define TT_CASTS(F, TO_INT, TO_LONG)                                                                          \
    TT_CAST(F, b8, TT_BOOL_OF) TT_CAST(F, u8, TO_INT) TT_CAST(F, i8, TO_INT) TT_CAST(F, i16, TO_INT)          \
    TT_CAST(F, i32, TO_INT) TT_CAST(F, i64, TO_LONG) TT_CAST(F, f16, TT_F16_OF) TT_CAST(F, bf16, TT_BF16_OF)  \
    TT_CAST(F, f32, TT_FLOAT_OF) TT_CAST(F, f64, TT_FLOAT_OF)
/* clang-format on */
#define TT_CASTS_OF_INT(F) TT_CASTS(F, TT_INT_OF_INT, TT_INT_OF_INT)
#define TT_CASTS_OF_FLOAT(F) TT_CASTS(F, TT_INT_OF_FLOAT, TT_LONG_OF_FLOAT)

TT_CASTS(b8, TT_INT_OF_BOOL, TT_INT_OF_BOOL)
TT_CASTS_OF_INT(u8)
TT_CASTS_OF_INT(i8)
TT_CASTS_OF_INT(i16)
TT_CASTS_OF_INT(i32)
TT_CASTS_OF_INT(i64)
TT_CASTS_OF_FLOAT(f16)
TT_CASTS_OF_FLOAT(bf16)
TT_CASTS_OF_FLOAT(f32)
TT_CASTS(f64, TT_INT_OF_DOUBLE, TT_LONG_OF_DOUBLE)

/* A real number as a complex one has the imaginary part 0; a complex one as a bool is whether it is not 0, as another
 * real number its real part. */
#define TT_CAST_TO_COMPLEX(F)                                                                                          \
    TT_FN tt_complex64 tt_cast_##F##_c64(TT_C_##F x) { return tt_complex_f32(tt_cast_##F##_f32(x), 0.0f); }            \
    TT_FN tt_complex128 tt_cast_##F##_c128(TT_C_##F x) { return tt_complex_f64(tt_cast_##F##_f64(x), 0.0); }
TT_CAST_TO_COMPLEX(b8)
TT_CAST_TO_COMPLEX(u8)
TT_CAST_TO_COMPLEX(i8)
TT_CAST_TO_COMPLEX(i16)
TT_CAST_TO_COMPLEX(i32)
TT_CAST_TO_COMPLEX(i64)
TT_CAST_TO_COMPLEX(f16)
TT_CAST_TO_COMPLEX(bf16)
TT_CAST_TO_COMPLEX(f32)
TT_CAST_TO_COMPLEX(f64)

#define TT_CAST_PART(F, R, T)                                                                                          \
    TT_FN TT_C_##T tt_cast_##F##_##T(TT_C_##F x) { return tt_cast_##R##_##T(x.re); }
#define TT_CAST_COMPLEX(F, R)                                                                                          \
    TT_FN uint8_t tt_cast_##F##_b8(TT_C_##F x) { return (uint8_t)((x.re != 0) | (x.im != 0)); }                        \
    TT_CAST_PART(F, R, u8)                                                                                             \
    TT_CAST_PART(F, R, i8)                                                                                             \
    TT_CAST_PART(F, R, i16)                                                                                            \
    TT_CAST_PART(F, R, i32)                                                                                            \
    TT_CAST_PART(F, R, i64)                                                                                            \
    TT_CAST_PART(F, R, f16)                                                                                            \
    TT_CAST_PART(F, R, bf16)                                                                                           \
    TT_CAST_PART(F, R, f32) TT_CAST_PART(F, R, f64) TT_FN tt_complex64 tt_cast_##F##_c64(TT_C_##F x) {                 \
        return tt_complex_f32((float)x.re, (float)x.im);                                                               \
    }                                                                                                                  \
    TT_FN tt_complex128 tt_cast_##F##_c128(TT_C_##F x) { return tt_complex_f64((double)x.re, (double)x.im); }
TT_CAST_COMPLEX(c64, f32) TT_CAST_COMPLEX(c128, f64)
