/* Scalar functions for the arguments that are usual: the same bits in fewer instructions, and no branches. Where others
 * would take more, `odd` is set, and the result is not to be used: tt_<name>_f32 gives the right one. A kernel tests it
 * once for all that a thread computes.
 *
 * Estimates of zero, infinities, denormals and NaN turn into NaN or zero along the way, so that it often does to look
 * at the result; a comparison with a NaN is false. */
#pragma once
#include "cuda/device/prelude.cuh"

#ifdef TT_APPROXIMATE
static TT_DEVICE float tt_usual_exp_f32(float x, bool &) { return tt_exp_f32(x); }
static TT_DEVICE float tt_usual_log_f32(float x, bool &) { return tt_log_f32(x); }
static TT_DEVICE float tt_exp_down_f32(float x) { return tt_exp_f32(x); }
#else
/* Down to -infinity. 2^25 e^x is a normal number where it is not zero, and the product then rounds once. */
static TT_DEVICE float tt_usual_exp_f32(float x, bool &odd) {
    const float round = TT_ROUND_F32 + 25.0f;
    odd |= !(x <= 70.0f);
    x = x < -104.0f ? -104.0f : x;
    const float t = tt_fma_f32(x, TT_LOG2E_F32, round), n = t - round;
    float r = tt_fma_f32(n, -TT_LN2_HIGH_F32, x);
    r = tt_fma_f32(n, -TT_LN2_LOW_F32, r);
    return tt_float_bits(tt_bits_f32(tt_exp_near_f32(r)) + (tt_bits_f32(t) << 23)) * 0x1p-25f;
}

/* Of numbers that are not positive. The scale is a factor, and not added to an exponent, so that a NaN stays one. */
static TT_DEVICE float tt_exp_down_f32(float x) {
    const float round = TT_ROUND_F32 + 127.0f + 25.0f;
    x = x < -104.0f ? -104.0f : x;
    const float t = tt_fma_f32(x, TT_LOG2E_F32, round), n = t - round;
    float r = tt_fma_f32(n, -TT_LN2_HIGH_F32, x);
    r = tt_fma_f32(n, -TT_LN2_LOW_F32, r);
    return tt_exp_near_f32(r) * tt_float_bits(tt_bits_f32(t) << 23) * 0x1p-25f;
}

/* Positive normal numbers. */
static TT_DEVICE float tt_usual_log_f32(float x, bool &odd) {
    odd |= !(x >= 0x1p-126f) | !(x < TT_INF_F32);
    float k, f = tt_log_split_f32(tt_bits_f32(x), &k);
    return tt_log_of_parts_f32(k, f);
}
#endif

static TT_DEVICE double tt_exp_down_f64(double x) { return tt_exp_f64(x); }
static TT_DEVICE double tt_inverse_f64(double d) { return 1 / d; } /* as tt_inverse_f32 */

static TT_DEVICE float tt_usual_sin_f32(float x, bool &odd) {
    odd |= !(tt_abs_f32(x) <= TT_TRIG_SMALL_F32);
    return tt_sin_small_f32(x);
}

static TT_DEVICE float tt_usual_cos_f32(float x, bool &odd) {
    odd |= !(tt_abs_f32(x) <= TT_TRIG_SMALL_F32);
    return tt_cos_small_f32(x);
}

static TT_DEVICE float tt_usual_reciprocal_f32(float x, bool &odd) {
    const float y = tt_inverse_f32(x);
    odd |= !(tt_abs_f32(y) >= 0x1p-125f);
    return y;
}

/* For the remainder to be exact the dividend must be no smaller. */
static TT_DEVICE float tt_usual_div_f32(float a, float b, bool &odd) {
    const float q = tt_ratio_f32(a, b);
    odd |= !(tt_abs_f32(q) >= 0x1p-100f) | !(tt_abs_f32(a) >= 0x1p-100f);
    return q;
}

#if TT_CUDA
/* The estimate of the root's inverse and one step of Newton's iteration for the root. Both instructions take denormal
 * numbers for 0, so that those give NaN. */
static TT_DEVICE float tt_usual_sqrt_f32(float x, bool &odd) {
    float r, y;
    asm("rsqrt.approx.ftz.f32 %0, %1;" : "=f"(r) : "f"(x));
    asm("mul.rn.ftz.f32 %0, %1, %2;" : "=f"(y) : "f"(x), "f"(r));
    const float e = __fmaf_rn(-y, y, x);
    r = __fmaf_rn(e, __fmul_rn(0.5f, r), y);
    odd |= !(r >= 0x1p-50f);
    return r;
}
#else
static TT_DEVICE float tt_usual_sqrt_f32(float x, bool &odd) {
    odd |= !(x >= 0x1p-100f);
    return tt_sqrt_f32(x);
}
#endif

static TT_DEVICE float tt_usual_rsqrt_f32(float x, bool &odd) { return tt_inverse_f32(tt_usual_sqrt_f32(x, odd)); }
