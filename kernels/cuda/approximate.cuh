/* exp, log, tanh, sigmoid and silu of float32 by the GPU's special function unit, for the setting "approximate": in a third
 * to a half of the instructions, and not with the CPU's bits. The unit's own errors are NVIDIA's (PTX ISA, ex2.approx,
 * lg2.approx, rcp.approx), those here were measured over all floats on an H200:
 *
 *   exp      2.6 ulp
 *   tanh     2 ulp
 *   sigmoid  5 ulp; silu 6
 *   log      3.4 ulp below 1/2 and above 2, between them 1.8e-7 absolutely
 *
 * Infinities and NaNs go in and come out as they should, denormal results too. What includes scalar/math_f32.h from here on
 * takes these: an eager kernel and a fused one have the same functions, and so the same bits. */
#pragma once

#if TT_CUDA
#define TT_UNIT(name, instruction) \
    TT_FN float tt_unit_##name(float x) { float y; asm(instruction " %0, %1;" : "=f"(y) : "f"(x)); return y; }
TT_UNIT(exp2, "ex2.approx.ftz.f32")
TT_UNIT(log2, "lg2.approx.ftz.f32")
TT_UNIT(inverse, "rcp.approx.ftz.f32")
#undef TT_UNIT
#else
TT_FN float tt_unit_exp2(float x) { return (float)exp2((double)x); }
TT_FN float tt_unit_log2(float x) { return (float)log2((double)x); }
TT_FN float tt_unit_inverse(float x) { return 1.0f / x; }
#endif

/* Where the result is a normal number: 2^p e^r, p = x log2(e) rounded, and r, which is that error, is small. */
#define TT_EXP_NEAR 87.0f
TT_FN float tt_approximate_exp_near_f32(float x) {
    const float p = x * TT_LOG2E_F32, e = tt_unit_exp2(p);
    float r = tt_fma_f32(p, -TT_LN2_HIGH_F32, x);
    r = tt_fma_f32(p, -TT_LN2_LOW_F32, r);
    return tt_fma_f32(e, r, e);
}

/* Beyond, where an exact function costs little because few need it. */
TT_FN float tt_approximate_exp_f32(float x) {
    return tt_abs_f32(x) <= TT_EXP_NEAR ? tt_approximate_exp_near_f32(x) : tt_exp_f32(x);
}

/* The unit takes denormal numbers for 0. */
TT_FN float tt_approximate_log_f32(float x) {
    const int small = x < 0x1p-126f;
    const float y = tt_unit_log2(small ? x * 0x1p24f : x);
    return (small ? y - 24.0f : y) * TT_LN2_HIGH_F32;
}

/* As tt_tanh_f32. From 0.57 on the errors of the unit, made less by the subtraction, are small enough. */
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

/* exp(x) / (1 + exp(x)) on the left, where exp(-x) would overflow. */
TT_FN float tt_approximate_sigmoid_f32(float x) {
    const float e = tt_approximate_exp_f32(-tt_abs_f32(x)), r = tt_unit_inverse(1.0f + e);
    return x < 0.0f ? e * r : r;
}
TT_FN float tt_approximate_silu_f32(float x) { return x < -TT_EXP_NEAR ? tt_silu_f32(x) : x * tt_approximate_sigmoid_f32(x); }

#define tt_exp_f32 tt_approximate_exp_f32
#define tt_log_f32 tt_approximate_log_f32
#define tt_tanh_f32 tt_approximate_tanh_f32
#define tt_sigmoid_f32 tt_approximate_sigmoid_f32
#define tt_silu_f32 tt_approximate_silu_f32
