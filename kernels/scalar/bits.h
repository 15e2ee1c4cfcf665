/* Integer types, bit casts and the few primitive operations on which every scalar function
   of this folder is built.

   TT_FN is what every scalar function is declared with; TT_LONG_FN one that is too long to be
   inlined into every loop.

   The headers here compile as C11 and as CUDA C++ under NVRTC, where no libc header exists:
   so the types have their own names and everything else is a builtin.  They assume
   round-to-nearest, no flushing of denormals and no contraction of a*b+c (-ffp-contract=off;
   under NVRTC --fmad=false, with its default exact division): with that, each function has the
   same bits on every instruction set, each step being one correctly rounded IEEE operation. */
#ifndef TT_SCALAR_BITS_H
#define TT_SCALAR_BITS_H

#if defined(__CUDACC__) || defined(__CUDACC_RTC__)
#define TT_CUDA 1
#define TT_FN static __device__ __forceinline__
#define TT_LONG_FN static __device__ __noinline__
#else
#define TT_CUDA 0
#include <math.h>
#include <string.h>
#define TT_FN static inline __attribute__((always_inline))
#define TT_LONG_FN static __attribute__((noinline, unused))
#endif

typedef int tt_i32;
typedef unsigned int tt_u32;
typedef long long tt_i64;
typedef unsigned long long tt_u64;

/* tt_bits_*: the bits of a number.  tt_float_bits, tt_double_bits: the number of some bits.

   tt_inverse_f32, tt_ratio_f32: 1/d and n/d, correctly rounded, where d and the quotient are
   normal numbers well inside the range, and n is or is zero (of which the sign gets lost).  A GPU
   needs a third of the instructions for it: an estimate good to an ulp and one step of Newton's
   iteration give 1/d, and the remainder, which fma finds exactly, the last bit of n/d (Markstein,
   "Computation of elementary functions on the IBM RISC System/6000 processor", 1990).
   tt_ratio_f64 is the same in double, from an estimate of 1/d of 20 bits, and has no branches. */
#if TT_CUDA
TT_FN tt_u32 tt_bits_f32(float x) { return __float_as_uint(x); }
TT_FN float tt_float_bits(tt_u32 u) { return __uint_as_float(u); }
TT_FN tt_u64 tt_bits_f64(double x) { return (tt_u64)__double_as_longlong(x); }
TT_FN double tt_double_bits(tt_u64 u) { return __longlong_as_double((tt_i64)u); }
TT_FN float tt_fma_f32(float a, float b, float c) { return __fmaf_rn(a, b, c); }
TT_FN double tt_fma_f64(double a, double b, double c) { return __fma_rn(a, b, c); }
TT_FN float tt_sqrt_f32(float x) { return __fsqrt_rn(x); }
TT_FN double tt_sqrt_f64(double x) { return __dsqrt_rn(x); }
TT_FN float tt_inverse_f32(float d) {
    float r;
    asm("rcp.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(d));
    return __fmaf_rn(r, __fmaf_rn(-d, r, 1.0f), r);
}
TT_FN float tt_ratio_f32(float n, float d) {
    float r = tt_inverse_f32(d), q = __fmul_rn(n, r);
    return __fmaf_rn(r, __fmaf_rn(-d, q, n), q);
}
TT_FN double tt_estimated_inverse_f64(double d) {
    double r;
    asm("rcp.approx.ftz.f64 %0, %1;" : "=d"(r) : "d"(d));
    return r;
}
TT_FN double tt_ratio_f64(double n, double d) {
    double r = tt_estimated_inverse_f64(d), e = __fma_rn(-d, r, 1.0), q;
    r = __fma_rn(r, __fma_rn(e, e, e), r);
    r = __fma_rn(r, __fma_rn(-d, r, 1.0), r);
    q = __dmul_rn(n, r);
    return __fma_rn(r, __fma_rn(-d, q, n), q);
}
#else
TT_FN tt_u32 tt_bits_f32(float x) {
    tt_u32 u;
    memcpy(&u, &x, sizeof u);
    return u;
}
TT_FN float tt_float_bits(tt_u32 u) {
    float x;
    memcpy(&x, &u, sizeof x);
    return x;
}
TT_FN tt_u64 tt_bits_f64(double x) {
    tt_u64 u;
    memcpy(&u, &x, sizeof u);
    return u;
}
TT_FN double tt_double_bits(tt_u64 u) {
    double x;
    memcpy(&x, &u, sizeof x);
    return x;
}
TT_FN float tt_fma_f32(float a, float b, float c) { return __builtin_fmaf(a, b, c); }
TT_FN double tt_fma_f64(double a, double b, double c) { return __builtin_fma(a, b, c); }
TT_FN float tt_sqrt_f32(float x) { return __builtin_sqrtf(x); }
TT_FN double tt_sqrt_f64(double x) { return __builtin_sqrt(x); }
TT_FN float tt_inverse_f32(float d) { return 1.0f / d; }
TT_FN double tt_estimated_inverse_f64(double d) { return (float)(1.0 / d); }
TT_FN double tt_ratio_f64(double n, double d) { return n / d; }
TT_FN float tt_ratio_f32(float n, float d) { return n / d; }
#endif

#define TT_INF_F32 tt_float_bits(0x7f800000u)
#define TT_NAN_F32 tt_float_bits(0x7fc00000u)
#define TT_INF_F64 tt_double_bits(0x7ff0000000000000ull)
#define TT_NAN_F64 tt_double_bits(0x7ff8000000000000ull)

#if TT_CUDA /* a modifier of the instruction that takes it, which no compiler makes of the bits */
TT_FN float tt_abs_f32(float x) { return fabsf(x); }
#else
TT_FN float tt_abs_f32(float x) { return tt_float_bits(tt_bits_f32(x) & 0x7fffffffu); }
#endif
TT_FN double tt_abs_f64(double x) { return tt_double_bits(tt_bits_f64(x) & 0x7fffffffffffffffull); }

/* -x, of which no compiler makes a subtraction: gcc 12 contracts a product and a subtraction that stand beside a
 * product and a sum, though it is told not to. */
TT_FN float tt_opposite_f32(float x) { return tt_float_bits(tt_bits_f32(x) ^ 0x80000000u); }
TT_FN double tt_opposite_f64(double x) { return tt_double_bits(tt_bits_f64(x) ^ 0x8000000000000000ull); }

TT_FN float tt_copysign_f32(float x, float s) {
    return tt_float_bits((tt_bits_f32(x) & 0x7fffffffu) | (tt_bits_f32(s) & 0x80000000u));
}
TT_FN double tt_copysign_f64(double x, double s) {
    return tt_double_bits((tt_bits_f64(x) & 0x7fffffffffffffffull) | (tt_bits_f64(s) & 0x8000000000000000ull));
}

#endif
