/* What every kernel begins with: types, the scalar functions, and the macros that name what the key chose.
 *
 * The source that is compiled (tinytorch/backends/cuda/source.py) defines, before it includes a family's file:
 *   TT_OP          the operator's number; TT_NAME its name, where the family has names
 *   TT_VARIANT     the variant's bits
 *   TT_D0 ... TT_D4  the key's dtypes, as suffixes of the scalar functions: b8, u8, i8, i16, i32, i64, u16, u32, u64,
 * f16, bf16, f32,
 *                  f64, c32, c64, c128
 *   TT_K0 ... TT_K3  of an elementwise operator: the dtypes, likewise, of what the scalar function gives and takes */
#pragma once
#ifdef __CUDACC_RTC__
typedef unsigned char uint8_t;
typedef signed char int8_t;
typedef unsigned short uint16_t;
typedef short int16_t;
typedef unsigned int uint32_t;
typedef int int32_t;
typedef unsigned long long uint64_t;
typedef long long int64_t;
typedef long long intptr_t;
#define INT64_MAX 0x7fffffffffffffffll
#define INT64_MIN (-INT64_MAX - 1)
#define __builtin_floorf floorf
#define __builtin_floor floor
#define __builtin_ceilf ceilf
#define __builtin_ceil ceil
#define __builtin_rintf rintf
#define __builtin_rint rint
#define __builtin_truncf truncf
#define __builtin_trunc trunc
#define __builtin_fabsf fabsf
#define __builtin_fabs fabs
#define __builtin_copysignf copysignf
#define __builtin_copysign copysign
#define __builtin_inff() tt_float_bits(0x7f800000u)
/* dynamic shared memory, of the size that the launch names */
#define TT_DYNAMIC_SHARED(name) extern __shared__ __align__(16) unsigned char name[]
#define TT_DEVICE __device__ __forceinline__
#endif

#include "scalar/cast.h"
#include "cuda/device/args.h"

#define TT_JOIN2_(a, b) a##b
#define TT_JOIN2(a, b) TT_JOIN2_(a, b)
#define TT_JOIN4_(a, b, c, d) a##b##c##d
#define TT_JOIN4(a, b, c, d) TT_JOIN4_(a, b, c, d)

/* The C type of a dtype's suffix, and the conversion between two: a plain copy where they are one. */
#define TT_TYPE(T) TT_JOIN2(TT_C_, T)
#define TT_CAST_NAME(F, T) TT_JOIN4(tt_cast_, F, _, T)
#define TT_CODE(T) TT_JOIN2(TT_CODE_, T)
/* For #if, which knows no enumerators: is T, a macro such as TT_D0, the dtype of that suffix? */
#define TT_IS(T, suffix) TT_JOIN4(TT_IS_, T, _, suffix)
#define TT_IS_b8_b8 1
#define TT_IS_u8_u8 1
#define TT_IS_i8_i8 1
#define TT_IS_i16_i16 1
#define TT_IS_i32_i32 1
#define TT_IS_i64_i64 1
#define TT_IS_u16_u16 1
#define TT_IS_u32_u32 1
#define TT_IS_u64_u64 1
#define TT_IS_f16_f16 1
#define TT_IS_bf16_bf16 1
#define TT_IS_f32_f32 1
#define TT_IS_f64_f64 1
#define TT_IS_c64_c64 1
#define TT_IS_c128_c128 1
#define TT_IS_COMPLEX(T) (TT_IS(T, c64) || TT_IS(T, c128))
#if TT_IS_COMPLEX(TT_D0) || TT_IS_COMPLEX(TT_D1) || TT_IS_COMPLEX(TT_D2)
#include "cuda/device/complex.cuh"
#endif
template <bool same> struct tt_choose {
    template <typename A, typename B> static TT_DEVICE A of(A converted, B) { return converted; }
};
template <> struct tt_choose<true> {
    template <typename A, typename B> static TT_DEVICE B of(A, B plain) { return plain; }
};
#define TT_CONVERT(F, T, x) tt_choose<TT_CODE(F) == TT_CODE(T)>::of(TT_CAST_NAME(F, T)(x), x)

/* Reducing a huge argument by pi costs seven times the rest, and the same bits come without it for others. */
static TT_DEVICE float tt_quick_sin_f32(float x) {
    return tt_abs_f32(x) <= TT_TRIG_SMALL_F32 ? tt_sin_small_f32(x) : tt_sin_f32(x);
}
static TT_DEVICE float tt_quick_cos_f32(float x) {
    return tt_abs_f32(x) <= TT_TRIG_SMALL_F32 ? tt_cos_small_f32(x) : tt_cos_f32(x);
}

#include "cuda/device/quick_lgamma.cuh"

/* V elements in one access of memory. */
template <typename S, int V> struct alignas(sizeof(S) * V) tt_pack {
    S at[V];
};

/* x / d.size for x < 2^31: see tt_divider in args.h. */
static TT_DEVICE uint32_t tt_quotient(uint32_t x, const tt_divider &d) {
    return (uint32_t)((((uint64_t)x * d.magic) >> 32) + x) >> d.shift;
}
