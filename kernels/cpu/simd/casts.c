/* Conversions between every two dtypes: the loops over scalar/cast.h. */
#include "cpu/simd.h"
#include "scalar/cast.h"
#ifdef __AVX512F__
#include <immintrin.h>
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

#ifdef __AVX512F__
/* float16 to and from float32 by instructions, which differ from the scalar functions in NaNs alone: where sixteen
 * elements have one, the functions take them. */
static inline void sixteen_floats(float *out, const uint16_t *in, int count) {
    __mmask16 these = (__mmask16)((1u << count) - 1);
    __m512 made = _mm512_cvtph_ps(_mm256_maskz_loadu_epi16(these, in));
    if (_mm512_cmp_ps_mask(made, made, _CMP_UNORD_Q)) f16_to_f32(out, in, count);
    else _mm512_mask_storeu_ps(out, these, made);
}

static inline void sixteen_halves(uint16_t *out, const float *in, int count) {
    __mmask16 these = (__mmask16)((1u << count) - 1);
    __m512 x = _mm512_maskz_loadu_ps(these, in);
    __m256i made = _mm512_cvtps_ph(x, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC);
    if (_mm512_cmp_ps_mask(x, x, _CMP_UNORD_Q)) f32_to_f16(out, in, count);
    else _mm256_mask_storeu_epi16(out, these, made);
}

static void halves_to_floats(void *to, const void *from, int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) sixteen_floats((float *)to + i, (const uint16_t *)from + i, 16);
    if (i < n) sixteen_floats((float *)to + i, (const uint16_t *)from + i, (int)(n - i));
}

static void floats_to_halves(void *to, const void *from, int64_t n) {
    int64_t i = 0;
    for (; i + 16 <= n; i += 16) sixteen_halves((uint16_t *)to + i, (const float *)from + i, 16);
    if (i < n) sixteen_halves((uint16_t *)to + i, (const float *)from + i, (int)(n - i));
}
#endif

__attribute__((constructor)) static void special_ones(void) {
    tt_cast_loops *table = &TT_LOCAL(tt_cast_table)[0];
    for (int t = 0; t < TT_NUM_DTYPES; t++) table[t][t] = copies[tt_itemsizes[t]];
#ifdef __AVX512F__
    table[TT_F16][TT_F32] = halves_to_floats;
    table[TT_F32][TT_F16] = floats_to_halves;
#endif
}
