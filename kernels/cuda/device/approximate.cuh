/* exp, log, tanh, sigmoid, silu and gelu of float32 by the GPU's special function unit, for the setting "approximate":
 * in far fewer instructions, and not with the CPU's bits. The unit's errors are NVIDIA's (PTX ISA, ex2.approx,
 * lg2.approx, rcp.approx); those here, in ulp, are what tests/gpu/test_approximate.py holds on a sample of all floats,
 * tanh's was also found over all of them on an H200:
 *
 *   exp            2 + 1.2 |x|, as its argument for the unit is rounded
 *   log            4 below 1/2 and above 2, between them 2e-7 absolutely
 *   tanh           2
 *   sigmoid, silu  5 + 1.2 |x|
 *   gelu           16 + 2 x^2, its derivative 1e-6 absolutely; by tanh 6 + 3 |z|, z as in tt_gelu_tanh_f32
 *
 * Infinities and NaNs go in and come out as they should. Denormal numbers count as 0, but not for tanh and gelu. What
 * includes scalar/math_f32.h takes these from here on: an eager kernel and a fused one have the same functions, so the
 * same bits. */
#pragma once

#if TT_CUDA
/* clang-format off */
#define TT_UNIT(name, instruction) \
    TT_FN float tt_unit_##name(float x) { float y; asm(instruction " %0, %1;" : "=f"(y) : "f"(x)); return y; }
/* clang-format on */
TT_UNIT(exp2, "ex2.approx.ftz.f32")
TT_UNIT(log2, "lg2.approx.ftz.f32")
TT_UNIT(inverse, "rcp.approx.ftz.f32")
#undef TT_UNIT
#else
TT_FN float tt_flushed(float x) { return tt_abs_f32(x) < 0x1p-126f ? tt_copysign_f32(0.0f, x) : x; }
TT_FN float tt_unit_exp2(float x) { return tt_flushed((float)exp2((double)x)); }
TT_FN float tt_unit_log2(float x) { return (float)log2((double)tt_flushed(x)); }
TT_FN float tt_unit_inverse(float x) { return tt_flushed(1.0f / tt_flushed(x)); }
#endif

TT_FN float tt_approximate_exp_f32(float x) { return tt_unit_exp2(x * TT_LOG2E_F32); }
TT_FN float tt_approximate_log_f32(float x) { return tt_unit_log2(x) * TT_LN2_HIGH_F32; }

/* Near zero a polynomial, further out 1 - 2 / (exp(2a) + 1): from 0.57 on the errors of the unit, made less by the
 * subtraction, are small enough. */
TT_FN float tt_approximate_tanh_f32(float x) {
    const float a = tt_abs_f32(x), z = x * x;
    const float e = tt_unit_exp2(a * (2.0f * TT_LOG2E_F32));
    const float far = tt_fma_f32(-2.0f, tt_unit_inverse(e + 1.0f), 1.0f);
    float q = 1.6110925e-2f;
    q = tt_fma_f32(q, z, -5.24994321e-2f);
    q = tt_fma_f32(q, z, 1.3318035e-1f);
    q = tt_fma_f32(q, z, -3.33328307e-1f);
    q = tt_fma_f32(q * z, x, x);
    return a >= 0.57f ? tt_float_bits(tt_bits_f32(far) | (tt_bits_f32(x) & 0x80000000u)) : q;
}

TT_FN float tt_approximate_sigmoid_f32(float x) { return tt_unit_inverse(1.0f + tt_unit_exp2(x * -TT_LOG2E_F32)); }
TT_FN float tt_approximate_silu_f32(float x) { return x * tt_approximate_sigmoid_f32(x); }

/* As tt_gelu_f32, with M(a) = t Q(t), t = 1/(a+4), Q a minimax fit of our own for a <= 14.5, to 2^-21. */
TT_FN float tt_approximate_normal_f32(float x, float *a, float *e) {
    const float c = tt_abs_f32(x) > 14.5f ? 14.5f : tt_abs_f32(x), t = tt_unit_inverse(c + 4.0f);
    float q = -1991.40671f;
    q = tt_fma_f32(q, t, 802.937831f);
    q = tt_fma_f32(q, t, 285.929577f);
    q = tt_fma_f32(q, t, 16.9225045f);
    q = tt_fma_f32(q, t, 28.0495594f);
    q = tt_fma_f32(q, t, 5.42239197f);
    q = tt_fma_f32(q, t, 1.61763440f);
    q = tt_fma_f32(q, t, 0.398601029f);
    *a = c;
    *e = tt_unit_exp2(c * c * (-0.5f * TT_LOG2E_F32));
    return t * q;
}
TT_FN float tt_approximate_gelu_f32(float x) {
    float a, e, m = tt_approximate_normal_f32(x, &a, &e);
    return tt_fma_f32(-a * e, m, x > 0.0f ? x : 0.0f * x);
}
TT_FN float tt_approximate_gelu_slope_f32(float x) {
    float a, e, m = tt_approximate_normal_f32(x, &a, &e);
    m = tt_fma_f32(a, -0.398942280f, m);
    return tt_fma_f32(x > 0.0f ? -e : e, m, 0.0f * x + (x > 0.0f ? 1.0f : 0.0f));
}
TT_FN float tt_approximate_gelu_tanh_f32(float x) {
    return x * tt_approximate_sigmoid_f32(x * tt_fma_f32(x * x, 0.0713548163f, 1.59576912f));
}

#ifdef TT_APPROXIMATE
#define tt_exp_f32 tt_approximate_exp_f32
#define tt_log_f32 tt_approximate_log_f32
#define tt_tanh_f32 tt_approximate_tanh_f32
#define tt_sigmoid_f32 tt_approximate_sigmoid_f32
#define tt_silu_f32 tt_approximate_silu_f32
#define tt_gelu_f32 tt_approximate_gelu_f32
#define tt_gelu_slope_f32 tt_approximate_gelu_slope_f32
#define tt_gelu_tanh_f32 tt_approximate_gelu_tanh_f32
#endif
