/* Conversions between every two dtypes: the loops over scalar/cast.h. */
#include "cpu/simd.h"
#include "scalar/cast.h"
#if defined __AVX512F__ || defined __F16C__
#include <immintrin.h>
#define BY_INSTRUCTIONS
#define ROUNDING (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)
#endif

#define CAST(F, T)                                                                                                     \
    static void F##_to_##T(void *to, const void *from, int64_t n) {                                                    \
        TT_C_##T *out = to;                                                                                            \
        const TT_C_##F *in = from;                                                                                     \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) out[i] = tt_cast_##F##_##T(in[i]);                                             \
    }
#define FROM(F)                                                                                                        \
    CAST(F, b8)                                                                                                        \
    CAST(F, u8)                                                                                                        \
    CAST(F, i8)                                                                                                        \
    CAST(F, i16)                                                                                                       \
    CAST(F, i32)                                                                                                       \
    CAST(F, i64)                                                                                                       \
    CAST(F, u16)                                                                                                       \
    CAST(F, u32)                                                                                                       \
    CAST(F, u64)                                                                                                       \
    CAST(F, f16) CAST(F, bf16) CAST(F, f32) CAST(F, f64) CAST(F, c64) CAST(F, c128) CAST(F, c32)

#define FROM_DTYPE(code, suffix, ...) FROM(suffix)
TT_DTYPES(FROM_DTYPE)

/* The same dtype is a plain copy: a NaN's payload stays as it is. */
#define COPY(size)                                                                                                     \
    static void copy_##size(void *to, const void *from, int64_t n) { __builtin_memcpy(to, from, (size_t)n *size); }
COPY(1)
COPY(2)
COPY(4)
COPY(8)
COPY(16)

#define TO(F, T) [TT_CODE_##T] = F##_to_##T
#define ROW(F)                                                                                                         \
    [TT_CODE_##F] = {TO(F, b8),  TO(F, u8),  TO(F, i8),  TO(F, i16),  TO(F, i32), TO(F, i64), TO(F, f16), TO(F, bf16), \
                     TO(F, f32), TO(F, f64), TO(F, c64), TO(F, c128), TO(F, c32), TO(F, u16), TO(F, u32), TO(F, u64)},
#define ROW_DTYPE(code, suffix, ...) ROW(suffix)
static const tt_cast_loop copies[] = {
    [1] = copy_1, [2] = copy_2, [4] = copy_4, [8] = copy_8, [16] = copy_16}; /* by size */
tt_cast_loops TT_LOCAL(tt_cast_table)[TT_NUM_DTYPES] = {TT_DTYPES(ROW_DTYPE)};

/* float16 to and from float32 by instructions, which differ from the scalar functions in NaNs alone: where elements
 * done at once have one, nothing is written, and the functions take them. */
#if defined __AVX512F__
enum { AT_ONCE = 32 };

static inline bool some_floats(float *out, const uint16_t *in, int count) {
    uint32_t these = count < 32 ? (1u << count) - 1 : ~0u;
    __mmask16 low = (__mmask16)these, high = (__mmask16)(these >> 16);
    __m512 a = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(low, in));
    __m512 b = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(high, in + 16));
    if (_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q)) return false;
    _mm512_mask_storeu_ps(out, low, a);
    _mm512_mask_storeu_ps(out + 16, high, b);
    return true;
}

static inline bool some_halves(uint16_t *out, const float *in, int count) {
    uint32_t these = count < 32 ? (1u << count) - 1 : ~0u;
    __mmask16 low = (__mmask16)these, high = (__mmask16)(these >> 16);
    __m512 a = _mm512_maskz_loadu_ps(low, in), b = _mm512_maskz_loadu_ps(high, in + 16);
    if (_mm512_cmp_ps_mask(a, b, _CMP_UNORD_Q)) return false;
    _mm256_mask_storeu_epi16(out, low, _mm512_cvtps_ph(a, ROUNDING));
    _mm256_mask_storeu_epi16(out + 16, high, _mm512_cvtps_ph(b, ROUNDING));
    return true;
}
#elif defined __F16C__
enum { AT_ONCE = 16 };

/* The functions take fewer than sixteen. */
static inline bool some_floats(float *out, const uint16_t *in, int count) {
    if (count < AT_ONCE) return false;
    __m256 a = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)in));
    __m256 b = _mm256_cvtph_ps(_mm_loadu_si128((const __m128i *)(in + 8)));
    if (_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q))) return false;
    _mm256_storeu_ps(out, a);
    _mm256_storeu_ps(out + 8, b);
    return true;
}

static inline bool some_halves(uint16_t *out, const float *in, int count) {
    if (count < AT_ONCE) return false;
    __m256 a = _mm256_loadu_ps(in), b = _mm256_loadu_ps(in + 8);
    if (_mm256_movemask_ps(_mm256_cmp_ps(a, b, _CMP_UNORD_Q))) return false;
    _mm_storeu_si128((__m128i *)out, _mm256_cvtps_ph(a, ROUNDING));
    _mm_storeu_si128((__m128i *)(out + 8), _mm256_cvtps_ph(b, ROUNDING));
    return true;
}
#endif

#ifdef BY_INSTRUCTIONS
static void halves_to_floats(void *to, const void *from, int64_t n) {
    float *out = to;
    const uint16_t *in = from;
    for (; n >= AT_ONCE; n -= AT_ONCE, in += AT_ONCE, out += AT_ONCE)
        if (!some_floats(out, in, AT_ONCE)) f16_to_f32(out, in, AT_ONCE);
    if (n && !some_floats(out, in, (int)n)) f16_to_f32(out, in, n);
}

static void floats_to_halves(void *to, const void *from, int64_t n) {
    uint16_t *out = to;
    const float *in = from;
    for (; n >= AT_ONCE; n -= AT_ONCE, in += AT_ONCE, out += AT_ONCE)
        if (!some_halves(out, in, AT_ONCE)) f32_to_f16(out, in, AT_ONCE);
    if (n && !some_halves(out, in, (int)n)) f32_to_f16(out, in, n);
}
#endif

__attribute__((constructor)) static void special_ones(void) {
    tt_cast_loops *table = &TT_LOCAL(tt_cast_table)[0];
    for (int t = 0; t < TT_NUM_DTYPES; t++) table[t][t] = copies[tt_itemsizes[t]];
#ifdef BY_INSTRUCTIONS
    table[TT_F16][TT_F32] = halves_to_floats;
    table[TT_F32][TT_F16] = floats_to_halves;
#endif
}
