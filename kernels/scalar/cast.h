/* Conversions between every two dtypes: tt_cast_<from>_<to>. A float becomes a narrow integer by way of int32; half
 * types go through float32. (From a dtype to itself a plain copy is meant, which keeps a NaN's payload: loops do not
 * call these for it.) */
#pragma once
#include "arith.h"
#include "half.h"

/* What has no integer becomes the least one, as x86 does it. C leaves that open, and compilers take it differently when
 * they convert a constant: an infinity that a function returned may be one, once the two are compiled together. */
TT_FN int32_t tt_int_of_f32(float x) { return tt_abs_f32(x) < 0x1p31f ? (int32_t)x : -2147483647 - 1; }
TT_FN int32_t tt_int_of_f64(double x) { return tt_abs_f64(x) < 0x1p31 ? (int32_t)x : -2147483647 - 1; }
TT_FN int64_t tt_long_of_f32(float x) { return tt_abs_f32(x) < 0x1p63f ? (int64_t)x : -9223372036854775807 - 1; }
TT_FN int64_t tt_long_of_f64(double x) { return tt_abs_f64(x) < 0x1p63 ? (int64_t)x : -9223372036854775807 - 1; }
TT_FN uint64_t tt_ulong_of_f64(double x) {
    return x >= 0x1p63 && x < 0x1p64 ? (uint64_t)x : (uint64_t)tt_long_of_f64(x);
}

/* A bool as 1 or 0: said in this way, a loop that also makes the bool, by a comparison, is vectorised. */
#define TT_INT_OF_BOOL(T, x) ((x) ? (TT_C_##T)1 : (TT_C_##T)0)

/* A stored element as a value to convert from ... */
#define TT_VALUE_b8(x) ((x) ? 1.0f : 0.0f)
#define TT_VALUE_u8(x) (x)
#define TT_VALUE_i8(x) (x)
#define TT_VALUE_i16(x) (x)
#define TT_VALUE_i32(x) (x)
#define TT_VALUE_i64(x) (x)
#define TT_VALUE_u16(x) (x)
#define TT_VALUE_u32(x) (x)
#define TT_VALUE_u64(x) (x)
#define TT_VALUE_f32(x) (x)
#define TT_VALUE_f64(x) (x)
#define TT_VALUE_f16(x) tt_f16_to_f32(x)
#define TT_VALUE_bf16(x) tt_bf16_to_f32(x)
/* ... and a value as an element. */
#define TT_BOOL_OF(T, x) ((uint8_t)((x) != 0))
#define TT_INT_OF_INT(T, x) ((TT_C_##T)(x))
#define TT_INT_OF_FLOAT(T, x) ((TT_C_##T)tt_int_of_f32(x))
#define TT_LONG_OF_FLOAT(T, x) ((TT_C_##T)tt_long_of_f32(x))
#define TT_ULONG_OF_FLOAT(T, x) tt_ulong_of_f64((double)(x))
#define TT_INT_OF_DOUBLE(T, x) ((TT_C_##T)tt_int_of_f64(x))
#define TT_LONG_OF_DOUBLE(T, x) ((TT_C_##T)tt_long_of_f64(x))
#define TT_FLOAT_OF(T, x) ((TT_C_##T)(x))
#define TT_F16_OF(T, x) tt_f32_to_f16((float)(x))
#define TT_BF16_OF(T, x) tt_f32_to_bf16((float)(x))

#define TT_CAST(F, T, CONVERT)                                                                                         \
    TT_FN TT_C_##T tt_cast_##F##_##T(TT_C_##F x) { return CONVERT(T, TT_VALUE_##F(x)); }
/* A real number as a complex one has the imaginary part 0. */
#define TT_CAST_TO_COMPLEX(F)                                                                                          \
    TT_FN tt_complex32 tt_cast_##F##_c32(TT_C_##F x) { return tt_complex_f16(tt_cast_##F##_f16(x), 0); }               \
    TT_FN tt_complex64 tt_cast_##F##_c64(TT_C_##F x) { return tt_complex_f32(tt_cast_##F##_f32(x), 0.0f); }            \
    TT_FN tt_complex128 tt_cast_##F##_c128(TT_C_##F x) { return tt_complex_f64(tt_cast_##F##_f64(x), 0.0); }
/* clang-format off */
#define TT_CASTS(F, TO_INT, TO_LONG, TO_ULONG)                                                                \
    TT_CAST(F, b8, TT_BOOL_OF) TT_CAST(F, u8, TO_INT) TT_CAST(F, i8, TO_INT) TT_CAST(F, i16, TO_INT)          \
    TT_CAST(F, i32, TO_INT) TT_CAST(F, i64, TO_LONG) TT_CAST(F, u16, TO_INT) TT_CAST(F, u32, TO_LONG)         \
    TT_CAST(F, u64, TO_ULONG) TT_CAST(F, f16, TT_F16_OF) TT_CAST(F, bf16, TT_BF16_OF)                         \
    TT_CAST(F, f32, TT_FLOAT_OF) TT_CAST(F, f64, TT_FLOAT_OF) TT_CAST_TO_COMPLEX(F)
/* clang-format on */
#define TT_CASTS_OF_INT(F) TT_CASTS(F, TT_INT_OF_INT, TT_INT_OF_INT, TT_INT_OF_INT)
#define TT_CASTS_OF_FLOAT(F) TT_CASTS(F, TT_INT_OF_FLOAT, TT_LONG_OF_FLOAT, TT_ULONG_OF_FLOAT)

TT_CASTS(b8, TT_INT_OF_BOOL, TT_INT_OF_BOOL, TT_INT_OF_BOOL)
TT_CASTS_OF_INT(u8)
TT_CASTS_OF_INT(i8)
TT_CASTS_OF_INT(i16)
TT_CASTS_OF_INT(i32)
TT_CASTS_OF_INT(i64)
TT_CASTS_OF_INT(u16)
TT_CASTS_OF_INT(u32)
TT_CASTS_OF_INT(u64)
TT_CASTS_OF_FLOAT(f16)
TT_CASTS_OF_FLOAT(bf16)
TT_CASTS_OF_FLOAT(f32)
TT_CASTS(f64, TT_INT_OF_DOUBLE, TT_LONG_OF_DOUBLE, TT_ULONG_OF_FLOAT)

/* A complex number as a bool is whether it is not 0, as another real number its real part. Those of float16 go by way
 * of complex64. */
#define TT_CAST_PART(F, T)                                                                                             \
    TT_FN TT_C_##T tt_cast_##F##_##T(TT_C_##F z) { return TT_CAST_REAL_##F(T, z.re); }
#define TT_CAST_REAL_c64(T, x) tt_cast_f32_##T(x)
#define TT_CAST_REAL_c128(T, x) tt_cast_f64_##T(x)
#define TT_CAST_REAL_c32(T, x) tt_cast_f16_##T(x)
/* clang-format off */
#define TT_CAST_COMPLEX(F)                                                                                    \
    TT_CAST_PART(F, u8) TT_CAST_PART(F, i8) TT_CAST_PART(F, i16) TT_CAST_PART(F, i32) TT_CAST_PART(F, i64)    \
    TT_CAST_PART(F, u16) TT_CAST_PART(F, u32) TT_CAST_PART(F, u64) TT_CAST_PART(F, f16)                       \
    TT_CAST_PART(F, bf16) TT_CAST_PART(F, f32) TT_CAST_PART(F, f64)
/* clang-format on */
TT_CAST_COMPLEX(c64)
TT_CAST_COMPLEX(c128)
TT_CAST_COMPLEX(c32)
#define TT_CAST_PARTS(F)                                                                                               \
    TT_FN uint8_t tt_cast_##F##_b8(TT_C_##F z) { return (uint8_t)((z.re != 0) | (z.im != 0)); }                        \
    TT_FN tt_complex32 tt_cast_##F##_c32(TT_C_##F z) {                                                                 \
        return tt_complex_f16(tt_f32_to_f16((float)z.re), tt_f32_to_f16((float)z.im));                                 \
    }                                                                                                                  \
    TT_FN tt_complex64 tt_cast_##F##_c64(TT_C_##F z) { return tt_complex_f32((float)z.re, (float)z.im); }              \
    TT_FN tt_complex128 tt_cast_##F##_c128(TT_C_##F z) { return tt_complex_f64((double)z.re, (double)z.im); }
TT_CAST_PARTS(c64)
TT_CAST_PARTS(c128)
TT_FN tt_complex64 tt_cast_c32_c64(tt_complex32 z) { return tt_complex_f32(tt_f16_to_f32(z.re), tt_f16_to_f32(z.im)); }
TT_FN tt_complex128 tt_cast_c32_c128(tt_complex32 z) { return tt_cast_c64_c128(tt_cast_c32_c64(z)); }
TT_FN tt_complex32 tt_cast_c32_c32(tt_complex32 z) { return z; }
TT_FN uint8_t tt_cast_c32_b8(tt_complex32 z) { return tt_cast_c64_b8(tt_cast_c32_c64(z)); }
