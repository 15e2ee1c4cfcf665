/* Functions whose results are stored as half numbers. The special function unit's, of float32, have errors that are
 * known: where all that a result may be rounds to one half number, that is stored, and only elsewhere the function
 * itself is computed. So the bits are the CPU's. (A fused kernel computes the functions themselves.) */
#pragma once
#include "cuda/device/approximate.cuh"

#if TT_CUDA /* two in one instruction, the first of them in the lower half */
static TT_DEVICE uint32_t tt_both_f16(float a, float b) {
    uint32_t both;
    asm("cvt.rn.f16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
    return both;
}
static TT_DEVICE uint32_t tt_both_bf16(float a, float b) {
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(b), "f"(a));
    return both;
}
#else
static TT_DEVICE uint32_t tt_both_f16(float a, float b) { return tt_f32_to_f16(a) | (uint32_t)tt_f32_to_f16(b) << 16; }
static TT_DEVICE uint32_t tt_both_bf16(float a, float b) {
    return tt_f32_to_bf16(a) | (uint32_t)tt_f32_to_bf16(b) << 16;
}
#endif

/* y[v] = exact(v), which lies between the two that bounds(v, low, high) finds; `both` of the half type. */
template <int many, typename H, typename B, typename F>
static TT_DEVICE tt_pack<uint16_t, many> tt_rounded(H both, B bounds, F exact) {
    union {
        uint32_t two[many / 2];
        tt_pack<uint16_t, many> all;
    } y;
    uint32_t differ[many / 2], any = 0;
#pragma unroll
    for (int k = 0; k < many / 2; k++) {
        float low[2], high[2];
        bounds(2 * k, low[0], high[0]);
        bounds(2 * k + 1, low[1], high[1]);
        y.two[k] = both(low[0], low[1]);
        any |= differ[k] = y.two[k] ^ both(high[0], high[1]);
    }
    if (any)
#pragma unroll
        for (int k = 0; k < many / 2; k++) {
            if (differ[k] & 0xffff) y.two[k] = (y.two[k] & 0xffff0000) | exact(2 * k);
            if (differ[k] >> 16) y.two[k] = (y.two[k] & 0xffff) | (uint32_t)exact(2 * k + 1) << 16;
        }
    return y.all;
}

/* gelu is right - tail, tail = a Phi(-a), and log2(Phi(-a)) a polynomial, our own minimax fit for a <= 5.75 to 2^-22.3.
 * There the tail has a relative error below 2^-21 + 2^-22 a; beyond it float16 has none, and bfloat16 asks for gelu. */
static TT_DEVICE void tt_bounds_of_gelu(float x, float &low, float &high) {
    const float size = tt_abs_f32(x), a = fminf(size, 5.75f);
    const float right = TT_CUDA ? fmaxf(x, -0.0f) : x >= 0.0f ? x : -0.0f; /* a GPU's 0 is larger than -0 */
    float p = -1.4852495e-8f;
    p = tt_fma_f32(p, a, 4.8476477e-7f);
    p = tt_fma_f32(p, a, -6.7592291e-6f);
    p = tt_fma_f32(p, a, 5.0573831e-5f);
    p = tt_fma_f32(p, a, -1.8484390e-4f);
    p = tt_fma_f32(p, a, -2.1141119e-4f);
    p = tt_fma_f32(p, a, 7.2284970e-3f);
    p = tt_fma_f32(p, a, -5.2652430e-2f);
    p = tt_fma_f32(p, a, -0.45914209f);
    p = tt_fma_f32(p, a, -1.1511153f);
    p = tt_fma_f32(p, a, -0.99999976f);
    const float tail = a * tt_unit_exp2(p);
    low = tt_fma_f32(-tail, tt_fma_f32(size, 0x1.5p-22f, 1.0f + 0x1.5p-21f), right * (1.0f - 0x1p-22f));
    high = tt_fma_f32(-tail, tt_fma_f32(size, -0x1.5p-22f, 1.0f - 0x1.5p-21f), right * (1.0f + 0x1p-22f));
    if (TT_CODE(TT_D1) == TT_CODE_bf16 && x < -5.75f) high = TT_NAN_F32;
}
