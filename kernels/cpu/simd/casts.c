/* Conversions between every two dtypes. A float becomes a narrow integer by way of int32, as the hardware does it;
 * half types go through float32. */
#include "../simd.h"
#include "../../scalar/half.h"

#define C_b8 uint8_t
#define C_u8 uint8_t
#define C_i8 int8_t
#define C_i16 int16_t
#define C_i32 int32_t
#define C_i64 int64_t
#define C_f32 float
#define C_f64 double
#define C_f16 uint16_t
#define C_bf16 uint16_t

/* A stored element as a value to convert from ... */
#define LOAD_b8(x) (x)
#define LOAD_u8(x) (x)
#define LOAD_i8(x) (x)
#define LOAD_i16(x) (x)
#define LOAD_i32(x) (x)
#define LOAD_i64(x) (x)
#define LOAD_f32(x) (x)
#define LOAD_f64(x) (x)
#define LOAD_f16(x) tt_f16_to_f32(x)
#define LOAD_bf16(x) tt_bf16_to_f32(x)
/* ... and a value as an element. */
#define TO_bool(x) ((uint8_t)((x) != 0))
#define INT_OF_INT(T, x) ((C_##T)(x))
#define INT_OF_FLOAT(T, x) ((C_##T)(int32_t)(x))
#define LONG_OF_FLOAT(T, x) ((int64_t)(x))
#define FLT_OF(T, x) ((C_##T)(x))
#define F16_OF(T, x) tt_f32_to_f16((float)(x))
#define BF16_OF(T, x) tt_f32_to_bf16((float)(x))
#define BOOL_OF(T, x) TO_bool(x)

#define CAST(F, T, CONVERT)                                                                \
    static void F##_to_##T(void *to, const void *from, int64_t n) {                        \
        C_##T *out = to;                                                                   \
        const C_##F *in = from;                                                            \
        TT_INDEPENDENT                                                                     \
        for (int64_t i = 0; i < n; i++) out[i] = CONVERT(T, LOAD_##F(in[i]));              \
    }
#define FROM_INT(F)                                                                        \
    CAST(F, b8, BOOL_OF) CAST(F, u8, INT_OF_INT) CAST(F, i8, INT_OF_INT) CAST(F, i16, INT_OF_INT)     \
    CAST(F, i32, INT_OF_INT) CAST(F, i64, INT_OF_INT) CAST(F, f16, F16_OF) CAST(F, bf16, BF16_OF)     \
    CAST(F, f32, FLT_OF) CAST(F, f64, FLT_OF)
#define FROM_FLOAT(F)                                                                      \
    CAST(F, b8, BOOL_OF) CAST(F, u8, INT_OF_FLOAT) CAST(F, i8, INT_OF_FLOAT) CAST(F, i16, INT_OF_FLOAT) \
    CAST(F, i32, INT_OF_FLOAT) CAST(F, i64, LONG_OF_FLOAT) CAST(F, f16, F16_OF) CAST(F, bf16, BF16_OF)  \
    CAST(F, f32, FLT_OF) CAST(F, f64, FLT_OF)

FROM_INT(b8) FROM_INT(u8) FROM_INT(i8) FROM_INT(i16) FROM_INT(i32) FROM_INT(i64)
FROM_FLOAT(f16) FROM_FLOAT(bf16) FROM_FLOAT(f32) FROM_FLOAT(f64)

/* The same dtype is a plain copy: a NaN's payload stays as it is. */
#define COPY(size)                                                                         \
    static void copy_##size(void *to, const void *from, int64_t n) { __builtin_memcpy(to, from, (size_t)n * size); }
COPY(1) COPY(2) COPY(4) COPY(8)

#define TO(F, T) [TT_ENUM_##T] = F##_to_##T
#define ROW(F)                                                                             \
    [TT_ENUM_##F] = {TO(F, b8), TO(F, u8), TO(F, i8), TO(F, i16), TO(F, i32), TO(F, i64), TO(F, f16), \
                     TO(F, bf16), TO(F, f32), TO(F, f64)}
static const tt_cast_loop copies[TT_NUM_DTYPES] = {copy_1, copy_1, copy_1, copy_2, copy_4,
                                                   copy_8, copy_2, copy_2, copy_4, copy_8};
tt_cast_loops TT_LOCAL(tt_cast_table)[TT_NUM_DTYPES] = {
    ROW(b8), ROW(u8), ROW(i8), ROW(i16), ROW(i32), ROW(i64), ROW(f16), ROW(bf16), ROW(f32), ROW(f64)};

__attribute__((constructor)) static void same_dtype(void) {
    for (int t = 0; t < TT_NUM_DTYPES; t++) TT_LOCAL(tt_cast_table)[t][t] = copies[t];
}
