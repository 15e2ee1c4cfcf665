/* Scalar functions of an integer type T or of bool; arith.h includes this file for each dtype, with OF(name) the
 * function's name. U: the unsigned type of T's size, undefined for bool; SIGNED: 0 or 1. */
#include "arith_common.h"

TT_FN uint8_t OF(tt_isnan)(T a) {
    (void)a;
    return 0;
}
TT_FN uint8_t OF(tt_isinf)(T a) {
    (void)a;
    return 0;
}
TT_FN uint8_t OF(tt_isfinite)(T a) {
    (void)a;
    return 1;
}
TT_FN T OF(tt_maximum)(T a, T b) { return a > b ? a : b; }
TT_FN T OF(tt_minimum)(T a, T b) { return a < b ? a : b; }
TT_FN T OF(tt_fmax)(T a, T b) { return a > b ? a : b; }
TT_FN T OF(tt_fmin)(T a, T b) { return a < b ? a : b; }
TT_FN T OF(tt_bitwise_and)(T a, T b) { return (T)(a & b); }
TT_FN T OF(tt_bitwise_or)(T a, T b) { return (T)(a | b); }
TT_FN T OF(tt_bitwise_xor)(T a, T b) { return (T)(a ^ b); }

#ifdef U
/* Division by zero is refused before a loop starts; the guards only keep a loop from trapping. MIN / -1 wraps. */
TT_FN T OF(tt_add)(T a, T b) { return (T)((U)a + (U)b); }
TT_FN T OF(tt_sub)(T a, T b) { return (T)((U)a - (U)b); }
TT_FN T OF(tt_mul)(T a, T b) { return (T)(1u * (U)a * (U)b); }
TT_FN T OF(tt_neg)(T a) { return (T)((U)0 - (U)a); }
TT_FN T OF(tt_abs)(T a) { return SIGNED && a < 0 ? OF(tt_neg)(a) : a; }
TT_FN T OF(tt_sign)(T a) { return (T)((a > 0) - (SIGNED && a < 0)); }
TT_FN T OF(tt_sgn)(T a) { return OF(tt_sign)(a); }
TT_FN T OF(tt_square)(T a) { return OF(tt_mul)(a, a); }
TT_FN T OF(tt_relu)(T a) { return a > 0 ? a : (T)0; }
TT_FN T OF(tt_threshold)(T a, T limit, T value) { return a <= limit ? value : a; }
TT_FN T OF(tt_relu_backward)(T g, T out) { return out > 0 ? g : (T)0; }
TT_FN T OF(tt_positive)(T a) { return a; }
TT_FN T OF(tt_floor)(T a) { return a; }
TT_FN T OF(tt_ceil)(T a) { return a; }
TT_FN T OF(tt_round)(T a) { return a; }
TT_FN T OF(tt_trunc)(T a) { return a; }
TT_FN uint8_t OF(tt_signbit)(T a) { return (uint8_t)(SIGNED && a < 0); }
TT_FN T OF(tt_bitwise_not)(T a) { return (T)~a; }
TT_FN T OF(tt_bitwise_left_shift)(T a, T b) { return (uint64_t)b < sizeof(T) * 8 ? (T)((U)a << b) : (T)0; }
TT_FN T OF(tt_bitwise_right_shift)(T a, T b) {
    return (uint64_t)b < sizeof(T) * 8 ? (T)(a >> b) : (T)(SIGNED && a < 0 ? -1 : 0);
}
TT_FN T OF(tt_trunc_divide)(T a, T b) {
    if (b == 0) return 0;
    return SIGNED && b == (T)-1 ? OF(tt_neg)(a) : (T)(a / b);
}
TT_FN T OF(tt_fmod)(T a, T b) { return OF(tt_sub)(a, OF(tt_mul)(OF(tt_trunc_divide)(a, b), b)); }
TT_FN T OF(tt_remainder)(T a, T b) {
    T r = OF(tt_fmod)(a, b);
    return SIGNED && r != 0 && ((r < 0) != (b < 0)) ? OF(tt_add)(r, b) : r;
}
TT_FN T OF(tt_floor_divide)(T a, T b) {
    T q = OF(tt_trunc_divide)(a, b), r = OF(tt_fmod)(a, b);
    return SIGNED && r != 0 && ((r < 0) != (b < 0)) ? OF(tt_sub)(q, (T)1) : q;
}
/* by squaring; a negative exponent gives 0 but for a base of 1 or -1 */
TT_FN T OF(tt_pow)(T a, T b) {
    T result = 1, factor = a;
    if (SIGNED && b < 0) return a == 1 ? (T)1 : a == (T)-1 ? (T)(b & 1 ? -1 : 1) : (T)0;
    for (; b; b = (T)(b >> 1)) {
        if (b & 1) result = OF(tt_mul)(result, factor);
        factor = OF(tt_mul)(factor, factor);
    }
    return result;
}
/* Euclid's algorithm. Not negative, but where |MIN| overflows. */
TT_FN T OF(tt_gcd)(T a, T b) {
    U x = (U)OF(tt_abs)(a), y = (U)OF(tt_abs)(b), rest;
    while (y) {
        rest = (U)(x % y);
        x = y;
        y = rest;
    }
    return (T)x;
}
TT_FN T OF(tt_lcm)(T a, T b) {
    T g = OF(tt_gcd)(a, b);
    return g == 0 ? (T)0 : OF(tt_mul)(OF(tt_abs)(OF(tt_trunc_divide)(a, g)), OF(tt_abs)(b));
}
TT_FN T OF(tt_clamp)(T a, T lo, T hi) { return OF(tt_minimum)(OF(tt_maximum)(a, lo), hi); }
TT_FN T OF(tt_addcmul)(T a, T b, T c) { return OF(tt_add)(a, OF(tt_mul)(b, c)); }
#endif

#undef T
#undef U
#undef SIGNED
#undef OF
