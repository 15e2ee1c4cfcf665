/* Products of bfloat16 matrices with vectors, by AVX-512 BF16: an instruction multiplies 32 pairs of numbers and adds
 * them up in 16 sums of float32; it takes denormal numbers for 0. They wait for memory. Of a few vectors, 6 rows of a
 * and 4 columns of b are read along k, whose 24 sums of 16 lanes stay in registers. */
#include "cpu/bf16_vector.h"

#if defined(TT_X86) && ((defined(__GNUC__) && __GNUC__ >= 10) || (defined(__clang__) && __clang_major__ >= 9))
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,avx512bf16")))
#define INLINE static inline __attribute__((always_inline)) TARGET
#define MR 6
#define NR 4

bool tt_has_bf16(void) { return __builtin_cpu_supports("avx512bf16"); }

/* The sums of the lanes of four accumulators. */
INLINE __m128 lanes4(__m512 a, __m512 b, __m512 c, __m512 d) {
    __m512 ab = _mm512_add_ps(_mm512_unpacklo_ps(a, b), _mm512_unpackhi_ps(a, b));
    __m512 cd = _mm512_add_ps(_mm512_unpacklo_ps(c, d), _mm512_unpackhi_ps(c, d));
    __m512 all = _mm512_add_ps(_mm512_castpd_ps(_mm512_unpacklo_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd))),
                               _mm512_castpd_ps(_mm512_unpackhi_pd(_mm512_castps_pd(ab), _mm512_castps_pd(cd))));
    __m256 half = _mm256_add_ps(_mm512_castps512_ps256(all), _mm512_extractf32x8_ps(all, 1));
    return _mm_add_ps(_mm256_castps256_ps128(half), _mm256_extractf128_ps(half, 1));
}

/* `m` rows by `n` columns: c = a b, or c += a b. */
INLINE void micro(const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb, int64_t k, float *c, int64_t ldc,
                  bool add, const int m, const int n) {
    __m512 sums[MR][NR];
    for (int i = 0; i < m; i++)
        for (int j = 0; j < n; j++) sums[i][j] = _mm512_setzero_ps();
    for (int64_t l = 0; l < k; l += 32) {
        __mmask32 there = k - l >= 32 ? 0xffffffffu : (1u << (k - l)) - 1;
        __m512bh right[NR];
        for (int j = 0; j < n; j++) right[j] = (__m512bh)_mm512_maskz_loadu_epi16(there, b + j * ldb + l);
        for (int i = 0; i < m; i++) {
            __m512bh left = (__m512bh)_mm512_maskz_loadu_epi16(there, a + i * lda + l);
            for (int j = 0; j < n; j++) sums[i][j] = _mm512_dpbf16_ps(sums[i][j], left, right[j]);
        }
    }
    for (int i = 0; i < m; i++) {
        float *to = c + i * ldc;
        if (n == NR) {
            __m128 all = lanes4(sums[i][0], sums[i][1], sums[i][2], sums[i][3]);
            _mm_storeu_ps(to, add ? _mm_add_ps(_mm_loadu_ps(to), all) : all);
        } else
            for (int j = 0; j < n; j++) {
                float all = _mm512_reduce_add_ps(sums[i][j]);
                to[j] = add ? to[j] + all : all;
            }
    }
}

INLINE void columns(const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb, int64_t k, float *c, int64_t ldc,
                    bool add, const int m, int64_t cols) {
    int64_t j = 0;
    for (; j + NR <= cols; j += NR) micro(a, lda, b + j * ldb, ldb, k, c + j, ldc, add, m, NR);
    for (; j < cols; j++) micro(a, lda, b + j * ldb, ldb, k, c + j, ldc, add, m, 1);
}

TARGET void tt_bf16_lines(const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb, int64_t k, float *c,
                          int64_t rows, int64_t cols, bool add) {
    int64_t i = 0;
    for (; i + MR <= rows; i += MR) columns(a + i * lda, lda, b, ldb, k, c + i * cols, cols, add, MR, cols);
    for (; i + 2 <= rows; i += 2) columns(a + i * lda, lda, b, ldb, k, c + i * cols, cols, add, 2, cols);
    if (i < rows) columns(a + i * lda, lda, b, ldb, k, c + i * cols, cols, add, 1, cols);
}

/* Up to 32 v columns: rows two by two, whose elements are paired as the instruction wants them. */
INLINE void add_rows(const uint16_t *x, int64_t step, const uint16_t *b, int64_t ldb, int64_t k, int64_t n, float *c,
                     const int v) {
    __m512 low[4], high[4];
    __mmask32 there[4];
    for (int i = 0; i < v; i++) {
        low[i] = high[i] = _mm512_setzero_ps();
        there[i] = n - 32 * i >= 32 ? 0xffffffffu : n > 32 * i ? (1u << (n - 32 * i)) - 1 : 0;
    }
    for (int64_t l = 0; l < k; l += 2) {
        bool two = l + 1 < k;
        uint32_t pair = x[l * step] | (two ? (uint32_t)x[(l + 1) * step] << 16 : 0);
        __m512bh factor = (__m512bh)_mm512_set1_epi32((int)pair);
        for (int i = 0; i < v; i++) {
            const uint16_t *row = b + l * ldb + 32 * i;
            __m512i one = _mm512_maskz_loadu_epi16(there[i], row);
            __m512i other = two ? _mm512_maskz_loadu_epi16(there[i], row + ldb) : _mm512_setzero_si512();
            low[i] = _mm512_dpbf16_ps(low[i], (__m512bh)_mm512_unpacklo_epi16(one, other), factor);
            high[i] = _mm512_dpbf16_ps(high[i], (__m512bh)_mm512_unpackhi_epi16(one, other), factor);
        }
    }
    __m512i first = _mm512_setr_epi32(0, 1, 2, 3, 16, 17, 18, 19, 4, 5, 6, 7, 20, 21, 22, 23);
    __m512i second = _mm512_add_epi32(first, _mm512_set1_epi32(8));
    for (int i = 0; i < v; i++) {
        _mm512_mask_storeu_ps(c + 32 * i, (__mmask16)there[i], _mm512_permutex2var_ps(low[i], first, high[i]));
        _mm512_mask_storeu_ps(c + 32 * i + 16, (__mmask16)(there[i] >> 16),
                              _mm512_permutex2var_ps(low[i], second, high[i]));
    }
}

TARGET void tt_bf16_rows(const uint16_t *x, int64_t step, const uint16_t *b, int64_t ldb, int64_t k, int64_t n,
                         float *c) {
    int64_t j = 0;
    for (; n - j > 64; j += 128) add_rows(x, step, b + j, ldb, k, n - j, c + j, 4);
    for (; j < n; j += 64) add_rows(x, step, b + j, ldb, k, n - j, c + j, 2);
}

TARGET float tt_bf16_dot(const uint16_t *a, const uint16_t *b, int64_t k) {
    __m512 sums[4];
    for (int i = 0; i < 4; i++) sums[i] = _mm512_setzero_ps();
    int64_t l = 0;
    for (; l + 128 <= k; l += 128)
        for (int i = 0; i < 4; i++)
            sums[i] = _mm512_dpbf16_ps(sums[i], (__m512bh)_mm512_loadu_si512(a + l + 32 * i),
                                       (__m512bh)_mm512_loadu_si512(b + l + 32 * i));
    for (; l < k; l += 32) {
        __mmask32 there = k - l >= 32 ? 0xffffffffu : (1u << (k - l)) - 1;
        sums[0] = _mm512_dpbf16_ps(sums[0], (__m512bh)_mm512_maskz_loadu_epi16(there, a + l),
                                   (__m512bh)_mm512_maskz_loadu_epi16(there, b + l));
    }
    return _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(sums[0], sums[1]), _mm512_add_ps(sums[2], sums[3])));
}

#else

void tt_bf16_rows(const uint16_t *x, int64_t step, const uint16_t *b, int64_t ldb, int64_t k, int64_t n, float *c) {
    (void)x, (void)step, (void)b, (void)ldb, (void)k, (void)n, (void)c;
}

float tt_bf16_dot(const uint16_t *a, const uint16_t *b, int64_t k) {
    (void)a, (void)b, (void)k;
    return 0;
}

bool tt_has_bf16(void) { return false; }

void tt_bf16_lines(const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb, int64_t k, float *c, int64_t rows,
                   int64_t cols, bool add) {
    (void)a, (void)lda, (void)b, (void)ldb, (void)k, (void)c, (void)rows, (void)cols, (void)add;
}

#endif
