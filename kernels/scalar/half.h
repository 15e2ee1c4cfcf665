/* float16 and bfloat16 to and from float32: exact one way, round to nearest even the other. NaN stays NaN.
 * For CPUs branch-free on the bits, so that the conversions vectorise on every instruction set. */
#pragma once
#include "bits.h"

TT_FN float tt_bf16_to_f32(uint16_t h) { return tt_float_bits((uint32_t)h << 16); }

#if TT_CUDA /* which has instructions for it */
TT_FN uint16_t tt_f32_to_bf16(float x) {
    uint16_t h;
    asm("cvt.rn.bf16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
TT_FN float tt_f16_to_f32(uint16_t h) {
    float x;
    asm("cvt.f32.f16 %0, %1;" : "=f"(x) : "h"(h));
    return x;
}
TT_FN uint16_t tt_f32_to_f16(float x) {
    uint16_t h;
    asm("cvt.rn.f16.f32 %0, %1;" : "=h"(h) : "f"(x));
    return h;
}
/* The upper of two bfloat16, the lower of which is 0, stands where float32 has it. (What makes one alone is slow.) */
TT_FN float tt_round_bf16_f32(float x) {
    uint32_t both;
    asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(both) : "f"(x), "f"(0.0f));
    return tt_float_bits(both);
}
TT_FN float tt_round_f16_f32(float x) { return tt_f16_to_f32(tt_f32_to_f16(x)); }
#else
TT_FN uint16_t tt_f32_to_bf16(float x) {
    uint32_t u = tt_bits_f32(x);
    uint32_t rounded = (u + 0x7fffu + ((u >> 16) & 1u)) >> 16;
    return (uint16_t)((u & 0x7fffffffu) > 0x7f800000u ? (u >> 16) | 0x40u : rounded);
}

TT_FN float tt_f16_to_f32(uint16_t h) {
    uint32_t sign = ((uint32_t)h & 0x8000u) << 16, rest = (uint32_t)h & 0x7fffu;
    /* The 15 bits, moved into place, are the value times 2^-112; the product is exact, subnormals included. */
    float scaled = tt_float_bits(rest << 13) * 0x1p112f;
    uint32_t u = rest >= 0x7c00u ? (rest << 13) | 0x7f800000u : tt_bits_f32(scaled);
    return tt_float_bits(u | sign);
}

TT_FN uint16_t tt_f32_to_f16(float x) {
    uint32_t u = tt_bits_f32(x), sign = (u >> 16) & 0x8000u, a = u & 0x7fffffffu;
    uint32_t normal = (a + 0xfffu + ((a >> 13) & 1u) - 0x38000000u) >> 13; /* re-biased by 127 - 15 */
    /* Below 2^-14: adding 0.5 aligns the last kept bit with float32's last, and the addition rounds. */
    uint32_t small = tt_bits_f32(tt_float_bits(a) + 0.5f) - 0x3f000000u;
    uint32_t r = a < 0x38800000u ? small : normal;
    r = a >= 0x477ff000u ? 0x7c00u : r;
    r = a > 0x7f800000u ? 0x7e00u : r;
    return (uint16_t)(r | sign);
}

/* There and back: what a half type makes of a float32, for values that stay in registers. In fewer steps than the two
 * conversions, as nothing is moved to 16 bits. */
TT_FN float tt_round_bf16_f32(float x) {
    uint32_t u = tt_bits_f32(x);
    uint32_t rounded = u + 0x7fffu + ((u >> 16) & 1u);
    return tt_float_bits(((u & 0x7fffffffu) > 0x7f800000u ? u | 0x400000u : rounded) & 0xffff0000u);
}

TT_FN float tt_round_f16_f32(float x) {
    uint32_t u = tt_bits_f32(x), sign = u & 0x80000000u, a = u & 0x7fffffffu;
    uint32_t r = (a + 0xfffu + ((a >> 13) & 1u)) & 0xffffe000u;
    r = r > 0x477fe000u ? 0x7f800000u : r; /* beyond the largest */
    /* Below 2^-14: adding 0.5 aligns float32's last bit with the last kept bit. */
    r = a < 0x38800000u ? tt_bits_f32(tt_float_bits(a) + 0.5f - 0.5f) : r;
    r = a > 0x7f800000u ? 0x7fc00000u : r;
    return tt_float_bits(r | sign);
}
#endif
