/* float32 functions of two arguments, through double except where they are exact. */
#ifndef TT_SCALAR_BINARY_F32_H
#define TT_SCALAR_BINARY_F32_H

#include "bits.h"
#include "wide_f32.h"

/* exp(y log|x|) in double, then the special cases of C99 Annex F.  The parity of y is the lowest
   bit of n; from 2^24 on every float is even, and infinities count as such.  sign is the sign
   bit of an odd power; c then makes roots of negative numbers nan. */
TT_FN float tt_pow_f32(float x, float y) {
    double a = (double)tt_abs_f32(x), b = (double)y, l, z, n;
    float c = tt_abs_f32(y) < 0x1p24f ? y : 0.0f, r;
    tt_u32 sign;
    l = tt_log_wide(a);
    l = a == 0.0 ? -TT_INF_F64 : l;
    l = a < TT_INF_F64 ? l : a;
    z = b * l;
    z = z < TT_EXP_NONE_F64 ? TT_EXP_ZERO_F64 : z;
    z = z > 200.0 ? 200.0 : z;
    r = (float)tt_exp_wide(z);
    n = (double)c + TT_ROUND_F64;
    sign = (tt_u32)tt_bits_f64(n) << 31 & tt_bits_f32(x);
    sign = (float)(n - TT_ROUND_F64) == c && tt_abs_f32(c) < 0x1p24f ? sign : 0u; /* beyond, all are even */
    r = tt_float_bits(tt_bits_f32(r) ^ sign);
    c = (float)(n - TT_ROUND_F64) == c ? -0.0f : TT_NAN_F32;
    c = x < 0.0f ? c : -0.0f;
    r = tt_abs_f32(x) < TT_INF_F32 ? r + c : r;
    c = tt_abs_f32(y) == TT_INF_F32 ? 1.0f : r;
    r = tt_abs_f32(x) == 1.0f ? c : r;
    r = x == 1.0f ? 1.0f : r;
    return y == 0.0f ? 1.0f : r;
}

TT_FN float tt_atan2_f32(float y, float x) {
    double a = (double)tt_abs_f32(y), b = (double)tt_abs_f32(x), low, high, r;
    int steep = a > b, equal = a == b;
    low = steep ? b : a;
    high = steep ? a : b;
    low = equal && a == TT_INF_F64 ? 1.0 : low;
    high = equal && (a == 0.0 || a == TT_INF_F64) ? 1.0 : high;
    r = tt_atan_wide(low, high);
    r = steep ? 0.5 * TT_PI_F64 - r : r;
    r = tt_bits_f32(x) >> 31 ? TT_PI_F64 - r : r;
    return tt_copysign_f32((float)r, y);
}

/* The squares are exact and cannot overflow in double. */
TT_FN float tt_hypot_f32(float x, float y) {
    double a = (double)x, b = (double)y;
    float r = (float)tt_sqrt_f64(a * a + b * b);
    return tt_abs_f32(x) == TT_INF_F32 || tt_abs_f32(y) == TT_INF_F32 ? TT_INF_F32 : r;
}

/* max + log1p(exp(min - max)); two equal infinities are their own result. */
TT_FN float tt_logaddexp_f32(float x, float y) {
    double a = (double)x, b = (double)y, d = tt_abs_f64(a - b);
    float r = (float)((a > b ? a : b) + tt_log1p_unit_wide(tt_exp_wide(d > -TT_EXP_NONE_F64 ? TT_EXP_ZERO_F64 : -d)));
    return x == y && tt_abs_f32(x) == TT_INF_F32 ? x : r;
}

/* Likewise of powers of 2. */
TT_FN float tt_logaddexp2_f32(float x, float y) {
    double a = (double)x, b = (double)y, d = tt_abs_f64(a - b);
    double e = tt_exp_wide(d > 151.0 ? TT_EXP_ZERO_F64 : d * -TT_LN2_F64);
    float r = (float)((a > b ? a : b) + tt_log1p_unit_wide(e) * 1.4426950408889634);
    return x == y && tt_abs_f32(x) == TT_INF_F32 ? x : r;
}

/* x 2^y: the power fits in double wherever the result can. */
TT_FN float tt_ldexp_f32(float x, float y) {
    double b = y > 300.0f ? 300.0 : y < -300.0f ? -300.0 : (double)y, e = tt_exp_wide(b * TT_LN2_F64);
    e = y == TT_INF_F32 ? TT_INF_F64 : y == -TT_INF_F32 ? 0.0 : e;
    e = (double)x * e;
    return (float)(tt_abs_f64(e) < 0x1p-150 ? tt_copysign_f64(0.0, e) : e);
}

/* Exact, and hence the same everywhere; a quotient of up to 277 bits leaves no way without a
   loop, so this is the library's. */
TT_FN float tt_fmod_f32(float x, float y) { return fmodf(x, y); }

/* Python's %: the result has the sign of the divisor. */
TT_FN float tt_remainder_f32(float x, float y) {
    float r = tt_fmod_f32(x, y);
    return r != 0.0f && (y < 0.0f) != (r < 0.0f) ? r + y : r;
}

/* Python's //, as in tt_floor_divide_f64. */
TT_FN float tt_floor_divide_f32(float x, float y) {
    float r = tt_fmod_f32(x, y), q = (x - r) / y, f;
    q = r != 0.0f && (y < 0.0f) != (r < 0.0f) ? q - 1.0f : q;
    f = floorf(q);
    f = q - f > 0.5f ? f + 1.0f : f;
    f = q == 0.0f ? tt_copysign_f32(0.0f, x / y) : f;
    return y == 0.0f ? x / y : f;
}

/* The next bit pattern away from or towards zero. */
TT_FN float tt_nextafter_f32(float x, float y) {
    tt_u32 u = tt_bits_f32(x);
    u = (x < y) == (x > 0.0f) ? u + 1u : u - 1u;
    u = x == 0.0f ? (tt_bits_f32(y) & 0x80000000u) | 1u : u;
    u = x == y ? tt_bits_f32(y) : u;
    return x != x || y != y ? x + y : tt_float_bits(u);
}

#endif
