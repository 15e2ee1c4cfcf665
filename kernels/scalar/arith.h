/* Scalar functions that need no approximation: arithmetic, comparisons, logic, selection; every dtype.
 * b8 is a bool: a byte that is 0 or 1. Integer overflow wraps, as in NumPy and PyTorch. */
#pragma once
#include "dtypes.h"
#include "math_f32.h"
#include "math_f64.h"

#define TT_UNSIGNED_u8 uint8_t
#define TT_UNSIGNED_i8 uint8_t
#define TT_UNSIGNED_i16 uint16_t
#define TT_UNSIGNED_i32 uint32_t
#define TT_UNSIGNED_i64 uint64_t

TT_FN float tt_zeta_f32(float s, float q) { return (float)tt_zeta_f64((double)s, (double)q); }

/* What reads alike for numbers of every kind. */
#define TT_COMMON(T, C)                                                                                                \
    TT_FN uint8_t tt_eq_##T(C a, C b) { return (uint8_t)(a == b); }                                                    \
    TT_FN uint8_t tt_ne_##T(C a, C b) { return (uint8_t)(a != b); }                                                    \
    TT_FN uint8_t tt_lt_##T(C a, C b) { return (uint8_t)(a < b); }                                                     \
    TT_FN uint8_t tt_le_##T(C a, C b) { return (uint8_t)(a <= b); }                                                    \
    TT_FN uint8_t tt_gt_##T(C a, C b) { return (uint8_t)(a > b); }                                                     \
    TT_FN uint8_t tt_ge_##T(C a, C b) { return (uint8_t)(a >= b); }                                                    \
    TT_FN uint8_t tt_logical_not_##T(C a) { return (uint8_t)(a == 0); }                                                \
    TT_FN uint8_t tt_logical_and_##T(C a, C b) { return (uint8_t)((a != 0) & (b != 0)); }                              \
    TT_FN uint8_t tt_logical_or_##T(C a, C b) { return (uint8_t)((a != 0) | (b != 0)); }                               \
    TT_FN uint8_t tt_logical_xor_##T(C a, C b) { return (uint8_t)((a != 0) != (b != 0)); }                             \
    TT_FN C tt_where_##T(uint8_t c, C a, C b) { return c ? a : b; }                                                    \
    TT_FN C tt_heaviside_##T(C a, C b) { return a == 0 ? b : (C)(a > 0); }

/* clang-format off */
#define TT_INTEGER_OR_BOOL(T, C)                                                              \
    TT_COMMON(T, C)                                                                           \
    TT_FN uint8_t tt_isnan_##T(C a) { (void)a; return 0; }                                    \
    TT_FN uint8_t tt_isinf_##T(C a) { (void)a; return 0; }                                    \
    TT_FN uint8_t tt_isfinite_##T(C a) { (void)a; return 1; }                                 \
    TT_FN C tt_maximum_##T(C a, C b) { return a > b ? a : b; }                                \
    TT_FN C tt_minimum_##T(C a, C b) { return a < b ? a : b; }                                \
    TT_FN C tt_fmax_##T(C a, C b) { return a > b ? a : b; }                                   \
    TT_FN C tt_fmin_##T(C a, C b) { return a < b ? a : b; }                                   \
    TT_FN C tt_bitwise_and_##T(C a, C b) { return (C)(a & b); }                               \
    TT_FN C tt_bitwise_or_##T(C a, C b) { return (C)(a | b); }                                \
    TT_FN C tt_bitwise_xor_##T(C a, C b) { return (C)(a ^ b); }
/* clang-format on */

/* Division by zero is refused before a loop starts; the guards only keep a loop from trapping. MIN / -1 wraps. */
#define TT_INTEGER(T, C, U, SIGNED)                                                                                    \
    TT_INTEGER_OR_BOOL(T, C)                                                                                           \
    TT_FN C tt_add_##T(C a, C b) { return (C)((U)a + (U)b); }                                                          \
    TT_FN C tt_sub_##T(C a, C b) { return (C)((U)a - (U)b); }                                                          \
    TT_FN C tt_mul_##T(C a, C b) { return (C)(1u * (U)a * (U)b); }                                                     \
    TT_FN C tt_neg_##T(C a) { return (C)((U)0 - (U)a); }                                                               \
    TT_FN C tt_abs_##T(C a) { return SIGNED && a < 0 ? tt_neg_##T(a) : a; }                                            \
    TT_FN C tt_sign_##T(C a) { return (C)((a > 0) - (SIGNED && a < 0)); }                                              \
    TT_FN C tt_square_##T(C a) { return tt_mul_##T(a, a); }                                                            \
    TT_FN C tt_relu_##T(C a) { return a > 0 ? a : (C)0; }                                                              \
    TT_FN C tt_relu_backward_##T(C g, C out) { return out > 0 ? g : (C)0; }                                            \
    TT_FN C tt_positive_##T(C a) { return a; }                                                                         \
    TT_FN C tt_floor_##T(C a) { return a; }                                                                            \
    TT_FN C tt_ceil_##T(C a) { return a; }                                                                             \
    TT_FN C tt_round_##T(C a) { return a; }                                                                            \
    TT_FN C tt_trunc_##T(C a) { return a; }                                                                            \
    TT_FN uint8_t tt_signbit_##T(C a) { return (uint8_t)(SIGNED && a < 0); }                                           \
    TT_FN C tt_bitwise_not_##T(C a) { return (C)~a; }                                                                  \
    TT_FN C tt_bitwise_left_shift_##T(C a, C b) { return (uint64_t)b < sizeof(C) * 8 ? (C)((U)a << b) : (C)0; }        \
    TT_FN C tt_bitwise_right_shift_##T(C a, C b) {                                                                     \
        return (uint64_t)b < sizeof(C) * 8 ? (C)(a >> b) : (C)(SIGNED && a < 0 ? -1 : 0);                              \
    }                                                                                                                  \
    TT_FN C tt_trunc_divide_##T(C a, C b) {                                                                            \
        if (b == 0) return 0;                                                                                          \
        return SIGNED && b == (C) - 1 ? tt_neg_##T(a) : (C)(a / b);                                                    \
    }                                                                                                                  \
    TT_FN C tt_fmod_##T(C a, C b) { return tt_sub_##T(a, tt_mul_##T(tt_trunc_divide_##T(a, b), b)); }                  \
    TT_FN C tt_remainder_##T(C a, C b) {                                                                               \
        C r = tt_fmod_##T(a, b);                                                                                       \
        return SIGNED && r != 0 && ((r < 0) != (b < 0)) ? tt_add_##T(r, b) : r;                                        \
    }                                                                                                                  \
    TT_FN C tt_floor_divide_##T(C a, C b) {                                                                            \
        C q = tt_trunc_divide_##T(a, b), r = tt_fmod_##T(a, b);                                                        \
        return SIGNED && r != 0 && ((r < 0) != (b < 0)) ? tt_sub_##T(q, (C)1) : q;                                     \
    }                                                                                                                  \
    /* by squaring; a negative exponent gives 0 but for a base of 1 or -1 */                                           \
    TT_FN C tt_pow_##T(C a, C b) {                                                                                     \
        C result = 1, factor = a;                                                                                      \
        if (SIGNED && b < 0) return a == 1 ? (C)1 : a == (C) - 1 ? (C)(b & 1 ? -1 : 1) : (C)0;                         \
        for (; b; b = (C)(b >> 1)) {                                                                                   \
            if (b & 1) result = tt_mul_##T(result, factor);                                                            \
            factor = tt_mul_##T(factor, factor);                                                                       \
        }                                                                                                              \
        return result;                                                                                                 \
    }                                                                                                                  \
    TT_FN C tt_clamp_##T(C a, C lo, C hi) { return tt_minimum_##T(tt_maximum_##T(a, lo), hi); }                        \
    TT_FN C tt_addcmul_##T(C a, C b, C c) { return tt_add_##T(a, tt_mul_##T(b, c)); }

TT_INTEGER(u8, uint8_t, uint8_t, 0)
TT_INTEGER(i8, int8_t, uint8_t, 1)
TT_INTEGER(i16, int16_t, uint16_t, 1)
TT_INTEGER(i32, int32_t, uint32_t, 1)
TT_INTEGER(i64, int64_t, uint64_t, 1)

TT_INTEGER_OR_BOOL(b8, uint8_t)
TT_FN uint8_t tt_add_b8(uint8_t a, uint8_t b) { return a | b; }
TT_FN uint8_t tt_mul_b8(uint8_t a, uint8_t b) { return a & b; }
TT_FN uint8_t tt_sign_b8(uint8_t a) { return a; }
TT_FN uint8_t tt_signbit_b8(uint8_t a) {
    (void)a;
    return 0;
}
TT_FN uint8_t tt_bitwise_not_b8(uint8_t a) { return !a; }

/* maximum and minimum pass NaN on, fmax and fmin drop it. The derivative of gelu's tanh form
 * follows from t = tanh(sqrt(2/pi) (x + 0.044715 x^3)) (Hendrycks and Gimpel 2016, arXiv:1606.08415). */
#define TT_FLOATING(T, C, S)                                                                                           \
    TT_COMMON(T, C)                                                                                                    \
    TT_FN C tt_add_##T(C a, C b) { return a + b; }                                                                     \
    TT_FN C tt_sub_##T(C a, C b) { return a - b; }                                                                     \
    TT_FN C tt_mul_##T(C a, C b) { return a * b; }                                                                     \
    TT_FN C tt_div_##T(C a, C b) { return a / b; }                                                                     \
    TT_FN C tt_neg_##T(C a) { return -a; }                                                                             \
    TT_FN C tt_sign_##T(C a) { return (C)((a > 0) - (a < 0)); }                                                        \
    TT_FN C tt_square_##T(C a) { return a * a; }                                                                       \
    TT_FN C tt_cube_##T(C a) { return a * a * a; }                                                                     \
    TT_FN C tt_relu_##T(C a) { return a <= 0 ? (C)0 : a; }                                                             \
    TT_FN C tt_relu_backward_##T(C g, C out) { return out <= 0 ? (C)0 : g; }                                           \
    TT_FN C tt_positive_##T(C a) { return a; }                                                                         \
    TT_FN C tt_floor_##T(C a) { return __builtin_floor##S(a); }                                                        \
    TT_FN C tt_ceil_##T(C a) { return __builtin_ceil##S(a); }                                                          \
    TT_FN C tt_round_##T(C a) { return __builtin_rint##S(a); }                                                         \
    TT_FN C tt_trunc_##T(C a) { return __builtin_trunc##S(a); }                                                        \
    TT_FN C tt_frac_##T(C a) { return a - __builtin_trunc##S(a); }                                                     \
    TT_FN uint8_t tt_isnan_##T(C a) { return (uint8_t)(a != a); }                                                      \
    TT_FN uint8_t tt_isinf_##T(C a) { return (uint8_t)(__builtin_fabs##S(a) == (C)__builtin_inff()); }                 \
    TT_FN uint8_t tt_isfinite_##T(C a) { return (uint8_t)(__builtin_fabs##S(a) < (C)__builtin_inff()); }               \
    TT_FN uint8_t tt_signbit_##T(C a) { return (uint8_t)(__builtin_copysign##S((C)1, a) < 0); }                        \
    TT_FN C tt_maximum_##T(C a, C b) { return a != a ? a : b != b ? b : a > b ? a : b; }                               \
    TT_FN C tt_minimum_##T(C a, C b) { return a != a ? a : b != b ? b : a < b ? a : b; }                               \
    TT_FN C tt_fmax_##T(C a, C b) { return a != a ? b : b != b ? a : a > b ? a : b; }                                  \
    TT_FN C tt_fmin_##T(C a, C b) { return a != a ? b : b != b ? a : a < b ? a : b; }                                  \
    TT_FN C tt_trunc_divide_##T(C a, C b) { return __builtin_trunc##S(a / b); }                                        \
    TT_FN C tt_xlogy_##T(C a, C b) { return b != b ? b : a == 0 ? (C)0 : a * tt_log_##T(b); }                          \
    TT_FN C tt_clamp_##T(C a, C lo, C hi) { return tt_minimum_##T(tt_maximum_##T(a, lo), hi); }                        \
    TT_FN C tt_lerp_##T(C a, C b, C w) {                                                                               \
        C d = b - a;                                                                                                   \
        return __builtin_fabs##S(w) < (C)0.5 ? a + w * d : b - d * ((C)1 - w);                                         \
    }                                                                                                                  \
    TT_FN C tt_addcmul_##T(C a, C b, C c) { return a + b * c; }                                                        \
    TT_FN C tt_addcdiv_##T(C a, C b, C c) { return a + b / c; }                                                        \
    TT_FN C tt_masked_scale_##T(uint8_t kept, C a, C scale) { return a * (kept ? scale : (C)0); }                      \
    TT_FN C tt_smooth_l1_##T(C d, C bound) {                                                                           \
        C size = __builtin_fabs##S(d);                                                                                 \
        return size < bound ? (C)0.5 * size * size / bound : size - (C)0.5 * bound;                                    \
    }                                                                                                                  \
    TT_FN C tt_huber_##T(C d, C bound) {                                                                               \
        C size = __builtin_fabs##S(d);                                                                                 \
        return size < bound ? (C)0.5 * size * size : bound * (size - (C)0.5 * bound);                                  \
    }                                                                                                                  \
    TT_FN C tt_smooth_l1_backward_##T(C g, C d, C bound) {                                                             \
        return g * (d <= -bound ? (C) - 1 : d >= bound ? (C)1 : d / bound);                                            \
    }                                                                                                                  \
    TT_FN C tt_huber_backward_##T(C g, C d, C bound) { return g * (d <= -bound ? -bound : d >= bound ? bound : d); }   \
    TT_FN C tt_sigmoid_backward_##T(C g, C out) { return g * ((C)1 - out) * out; }                                     \
    TT_FN C tt_tanh_backward_##T(C g, C out) { return g * ((C)1 - out * out); }                                        \
    TT_FN C tt_silu_backward_##T(C g, C x) {                                                                           \
        C s = tt_sigmoid_##T(x);                                                                                       \
        return g * (s * ((C)1 + x * ((C)1 - s)));                                                                      \
    }                                                                                                                  \
    TT_FN C tt_gelu_backward_##T(C g, C x) { return g * tt_gelu_slope_##T(x); }                                        \
    TT_FN C tt_gelu_tanh_backward_##T(C g, C x) {                                                                      \
        C k = (C)0.79788456080286535588, c = (C)0.044715;                                                              \
        C t = tt_tanh_##T(k * (x + c * x * x * x));                                                                    \
        C slope = k * ((C)1 + (C)3 * c * x * x);                                                                       \
        return g * ((C)0.5 * ((C)1 + t) + (C)0.5 * x * ((C)1 - t * t) * slope);                                        \
    }

TT_FLOATING(f32, float, f)
TT_FLOATING(f64, double, )
