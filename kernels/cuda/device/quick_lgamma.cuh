/* lgamma of positive floats in a third of the instructions. */
#pragma once
#include "scalar/special_f32.h"

#if TT_CUDA
#define TT_APART __device__ __noinline__
#else
#define TT_APART
#endif
static TT_APART float tt_careful_lgamma_f32(float x) { return tt_lgamma_f32(x); }

/* With fused multiplications and shorter polynomials (minimax fits of our own) the double y = log(Gamma(x)) has a
 * relative error below 2^-37. Where no float's rounding boundary is so near, the float that y rounds to is that of
 * tt_lgamma_f32; where one is, as for one in 2^12 arguments, and for those that are not positive, that is asked.
 *
 * Below 4.5: y = t P(t) -+ log(q), t = x - n, n the nearest integer; q holds the factors between Gamma(x) and Gamma(t +
 * 2). From there on: Stirling's series. */
struct tt_lgamma_parts { /* y = sum + factor log(q) */
    double sum, factor, q;
};

static TT_DEVICE tt_lgamma_parts tt_lgamma_near(double a) {
    tt_lgamma_parts p;
    const double shifted = a + TT_ROUND_F64, t = a - (shifted - TT_ROUND_F64);
    const int n = (int)tt_bits_f64(shifted);
    double sum = -1.2212670869414397e-05;
    sum = tt_fma_f64(sum, t, 2.4466525252659176e-05);
    sum = tt_fma_f64(sum, t, -4.36376610176041e-05);
    sum = tt_fma_f64(sum, t, 9.818282178184471e-05);
    sum = tt_fma_f64(sum, t, -0.00022343972918794356);
    sum = tt_fma_f64(sum, t, 0.000509862604105883);
    sum = tt_fma_f64(sum, t, -0.0011927221201321996);
    sum = tt_fma_f64(sum, t, 0.0028904962494504193);
    sum = tt_fma_f64(sum, t, -0.007385552707383076);
    sum = tt_fma_f64(sum, t, 0.020580808864857882);
    sum = tt_fma_f64(sum, t, -0.06735230101988579);
    sum = tt_fma_f64(sum, t, 0.32246703342026467);
    sum = tt_fma_f64(sum, t, 0.4227843350983581);
    p.sum = sum * t;
    p.factor = n < 2 ? -1.0 : 1.0;
    p.q = n > 2 ? a - 1.0 : a;
    if (n == 0) p.q = tt_fma_f64(a, a, a);
    if (n == 4) p.q *= a - 2.0;
    if (n == 2) p.q = 1.0;
    return p;
}

static TT_DEVICE tt_lgamma_parts tt_lgamma_far(double a) {
    double i = tt_estimated_inverse_f64(a), i2, sum;
    i = tt_fma_f64(tt_fma_f64(-a, i, 1.0), i, i);
    i2 = i * i;
    sum = -0.0005152281787927723;
    sum = tt_fma_f64(sum, i2, 0.0007908464709274867);
    sum = tt_fma_f64(sum, i2, -0.0027777404583027468);
    sum = tt_fma_f64(sum, i2, 0.08333333319818116);
    return {tt_fma_f64(sum, i, 0.91893853320467278 - a), a - 0.5, a};
}

/* y; false: a rounding boundary is near. The logarithm is tt_log_wide's. */
static TT_DEVICE bool tt_lgamma_of(const tt_lgamma_parts &of, float *result) {
    const tt_u64 bits = tt_bits_f64(of.q);
    const tt_u32 high = (tt_u32)(bits >> 32) - 0x3fe6a09eu;
    const double k = (double)((tt_i32)high >> 20);
    const double f = tt_double_bits(bits - ((tt_u64)(high & 0xfff00000u) << 32)) - 1.0, d = 2.0 + f;
    const double r = tt_estimated_inverse_f64(d);
    double s = f * r, z, p;
    s = tt_fma_f64(tt_fma_f64(-d, s, f), r, s);
    z = s * s;
    p = 0.19584177995838428;
    p = tt_fma_f64(p, z, 0.2217618640670894);
    p = tt_fma_f64(p, z, 0.2857210922580788);
    p = tt_fma_f64(p, z, 0.3999999562105604);
    p = tt_fma_f64(p, z, 0.6666666667580377);
    const double log_q = tt_fma_f64(k, TT_LN2_F64, tt_fma_f64(s * z, p, 2.0 * s));
    const double y = tt_fma_f64(of.factor, log_q, of.sum);
    const tt_u32 near = 1u << 16, beyond = ((tt_u32)tt_bits_f64(y) + 0x10000000u + near) & 0x1fffffffu;
    *result = (float)y;
    return beyond >= 2 * near;
}

static TT_DEVICE float tt_quick_lgamma_f32(float x) {
    float y;
    const bool good = tt_lgamma_of(x < 4.5f ? tt_lgamma_near(x) : tt_lgamma_far(x), &y);
    return good && x > 0.0f && x < TT_INF_F32 ? y : tt_careful_lgamma_f32(x);
}

/* Of several arguments at once, which share constants, if all are below 4.5; false: some want tt_quick_lgamma_f32. */
template <int many> static TT_DEVICE bool tt_lgamma_together(const float (&x)[many], float (&y)[many]) {
    bool good = true;
#pragma unroll
    for (int v = 0; v < many; v++) good &= (x[v] > 0.0f) & (x[v] < 4.5f);
    if (good)
#pragma unroll
        for (int v = 0; v < many; v++) good &= tt_lgamma_of(tt_lgamma_near(x[v]), &y[v]);

    return good;
}
