/* Vectors, and the tiles of products that are made of them, in this instruction set's registers. */
#pragma once
#include "core/tt.h"
#include <string.h>
#ifdef TT_X86
#include <immintrin.h>
#endif

#define VECTORS 3 /* of columns in a tile: with TILE_ROWS rows as many sums as registers hold */
#define STEPS 8 /* of a tile that are one stretch of instructions */
#define MOST_FETCHED 4 /* lines in so many steps */
#define STRETCH 64 /* elements of a line that `turn` takes at a time */
#define INLINE static inline __attribute__((always_inline))

/* What is added to a tile's sums: nothing, a number for each row, or a matrix (of one row, if its step is 0). */
enum { NOTHING, OF_ROWS, MATRIX };

/* Bit k goes to bit 2 k. */
INLINE uint32_t spread(uint32_t x) {
    x = (x | x << 8) & 0x00ff00ff;
    x = (x | x << 4) & 0x0f0f0f0f;
    x = (x | x << 2) & 0x33333333;
    return (x | x << 1) & 0x55555555;
}

/* Of `vec`, BYTES wide: every lane the same; a * b + c; the lanes k of a mask from p[k], or from p[2 k], others as they
 * were (which is 0 in AVX2); the lanes of a mask into memory, lane k to p[k], or to p[2 k]. */
#if defined __AVX512F__
#define BYTES 64
#define TILE_ROWS 8
#define SPLAT_f32(x) _mm512_set1_ps(x)
#define SPLAT_f64(x) _mm512_set1_pd(x)
#define FMA_f32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA_f64(a, b, c) _mm512_fmadd_pd(a, b, c)
#define LANES_4(v, mask, p) (vec) _mm512_mask_loadu_ps((__m512)(v), (__mmask16)(mask), p)
#define LANES_8(v, mask, p) (vec) _mm512_mask_loadu_pd((__m512d)(v), (__mmask8)(mask), p)
INLINE __m512 even_lanes_4(__m512 v, uint32_t mask, const void *p) {
    __m512i even = _mm512_setr_epi32(0, 2, 4, 6, 8, 10, 12, 14, 16, 18, 20, 22, 24, 26, 28, 30);
    uint32_t wide = spread(mask);
    __m512 low = _mm512_maskz_loadu_ps((__mmask16)wide, p);
    __m512 high = _mm512_maskz_loadu_ps((__mmask16)(wide >> 16), (const float *)p + 16);
    return _mm512_mask_mov_ps(v, (__mmask16)mask, _mm512_permutex2var_ps(low, even, high));
}
INLINE __m512d even_lanes_8(__m512d v, uint32_t mask, const void *p) {
    __m512i even = _mm512_setr_epi64(0, 2, 4, 6, 8, 10, 12, 14);
    uint32_t wide = spread(mask);
    __m512d low = _mm512_maskz_loadu_pd((__mmask8)wide, p);
    __m512d high = _mm512_maskz_loadu_pd((__mmask8)(wide >> 8), (const double *)p + 8);
    return _mm512_mask_mov_pd(v, (__mmask8)mask, _mm512_permutex2var_pd(low, even, high));
}
#define EVEN_LANES_4(v, mask, p) (vec) even_lanes_4((__m512)(v), mask, p)
#define EVEN_LANES_8(v, mask, p) (vec) even_lanes_8((__m512d)(v), mask, p)
#define STORE_LANES_4(p, mask, v) _mm512_mask_storeu_ps(p, (__mmask16)(mask), (__m512)(v))
#define STORE_LANES_8(p, mask, v) _mm512_mask_storeu_pd(p, (__mmask8)(mask), (__m512d)(v))
INLINE void store_even_lanes_4(void *p, uint32_t mask, __m512 v) {
    __m512i low = _mm512_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3, 4, 4, 5, 5, 6, 6, 7, 7);
    __m512i high = _mm512_add_epi32(low, _mm512_set1_epi32(8));
    uint32_t wide = spread(mask);
    _mm512_mask_storeu_ps(p, (__mmask16)wide, _mm512_permutexvar_ps(low, v));
    _mm512_mask_storeu_ps((float *)p + 16, (__mmask16)(wide >> 16), _mm512_permutexvar_ps(high, v));
}
INLINE void store_even_lanes_8(void *p, uint32_t mask, __m512d v) {
    __m512i low = _mm512_setr_epi64(0, 0, 1, 1, 2, 2, 3, 3), high = _mm512_add_epi64(low, _mm512_set1_epi64(4));
    uint32_t wide = spread(mask);
    _mm512_mask_storeu_pd(p, (__mmask8)wide, _mm512_permutexvar_pd(low, v));
    _mm512_mask_storeu_pd((double *)p + 8, (__mmask8)(wide >> 8), _mm512_permutexvar_pd(high, v));
}
#define STORE_EVEN_LANES_4(p, mask, v) store_even_lanes_4(p, mask, (__m512)(v))
#define STORE_EVEN_LANES_8(p, mask, v) store_even_lanes_8(p, mask, (__m512d)(v))
#elif defined __AVX2__
#define BYTES 32
#define TILE_ROWS 4
#define SPLAT_f32(x) _mm256_set1_ps(x)
#define SPLAT_f64(x) _mm256_set1_pd(x)
#define FMA_f32(a, b, c) _mm256_fmadd_ps(a, b, c)
#define FMA_f64(a, b, c) _mm256_fmadd_pd(a, b, c)
INLINE __m256i wide_mask_4(uint32_t mask) {
    __m256i bits = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    return _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)mask), bits), bits);
}
INLINE __m256i wide_mask_8(uint32_t mask) {
    __m256i bits = _mm256_setr_epi64x(1, 2, 4, 8);
    return _mm256_cmpeq_epi64(_mm256_and_si256(_mm256_set1_epi64x(mask), bits), bits);
}
#define LANES_4(v, mask, p) (vec) _mm256_or_ps((__m256)(v), _mm256_maskload_ps((const float *)(p), wide_mask_4(mask)))
#define LANES_8(v, mask, p) (vec) _mm256_or_pd((__m256d)(v), _mm256_maskload_pd((const double *)(p), wide_mask_8(mask)))
INLINE __m256 even_lanes_4(__m256 v, uint32_t mask, const void *p) {
    uint32_t wide = spread(mask);
    __m256 low = _mm256_maskload_ps(p, wide_mask_4(wide)),
           high = _mm256_maskload_ps((const float *)p + 8, wide_mask_4(wide >> 8));
    __m256d mixed = _mm256_castps_pd(_mm256_shuffle_ps(low, high, _MM_SHUFFLE(2, 0, 2, 0)));
    return _mm256_or_ps(v, _mm256_castpd_ps(_mm256_permute4x64_pd(mixed, _MM_SHUFFLE(3, 1, 2, 0))));
}
INLINE __m256d even_lanes_8(__m256d v, uint32_t mask, const void *p) {
    uint32_t wide = spread(mask);
    __m256d low = _mm256_maskload_pd(p, wide_mask_8(wide)),
            high = _mm256_maskload_pd((const double *)p + 4, wide_mask_8(wide >> 4));
    return _mm256_or_pd(v, _mm256_permute4x64_pd(_mm256_unpacklo_pd(low, high), _MM_SHUFFLE(3, 1, 2, 0)));
}
#define EVEN_LANES_4(v, mask, p) (vec) even_lanes_4((__m256)(v), mask, p)
#define EVEN_LANES_8(v, mask, p) (vec) even_lanes_8((__m256d)(v), mask, p)
#define STORE_LANES_4(p, mask, v) _mm256_maskstore_ps((float *)(p), wide_mask_4(mask), (__m256)(v))
#define STORE_LANES_8(p, mask, v) _mm256_maskstore_pd((double *)(p), wide_mask_8(mask), (__m256d)(v))
INLINE void store_even_lanes_4(float *p, uint32_t mask, __m256 v) {
    uint32_t wide = spread(mask);
    __m256 low = _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(0, 0, 1, 1, 2, 2, 3, 3));
    __m256 high = _mm256_permutevar8x32_ps(v, _mm256_setr_epi32(4, 4, 5, 5, 6, 6, 7, 7));
    _mm256_maskstore_ps(p, wide_mask_4(wide), low);
    _mm256_maskstore_ps(p + 8, wide_mask_4(wide >> 8), high);
}
INLINE void store_even_lanes_8(double *p, uint32_t mask, __m256d v) {
    uint32_t wide = spread(mask);
    _mm256_maskstore_pd(p, wide_mask_8(wide), _mm256_permute4x64_pd(v, _MM_SHUFFLE(1, 1, 0, 0)));
    _mm256_maskstore_pd(p + 4, wide_mask_8(wide >> 4), _mm256_permute4x64_pd(v, _MM_SHUFFLE(3, 3, 2, 2)));
}
#define STORE_EVEN_LANES_4(p, mask, v) store_even_lanes_4((float *)(p), mask, (__m256)(v))
#define STORE_EVEN_LANES_8(p, mask, v) store_even_lanes_8((double *)(p), mask, (__m256d)(v))
#else
#define BYTES 16
#define TILE_ROWS 4
#define SPLAT_f32(x) ((vec){x, x, x, x})
#define SPLAT_f64(x) ((vec){x, x})
#define FMA_f32(a, b, c) ((a) * (b) + (c))
#define FMA_f64(a, b, c) ((a) * (b) + (c))
#define LANES_4(v, mask, p) some_lanes(v, mask, p, 1)
#define LANES_8(v, mask, p) some_lanes(v, mask, p, 1)
#define EVEN_LANES_4(v, mask, p) some_lanes(v, mask, p, 2)
#define EVEN_LANES_8(v, mask, p) some_lanes(v, mask, p, 2)
#define STORE_LANES_4(p, mask, v) store_some(p, mask, v, 1)
#define STORE_LANES_8(p, mask, v) store_some(p, mask, v, 1)
#define STORE_EVEN_LANES_4(p, mask, v) store_some(p, mask, v, 2)
#define STORE_EVEN_LANES_8(p, mask, v) store_some(p, mask, v, 2)
#define LANE_LOOP
#endif
#define SPLAT_i64(x) ((vec){0} + (x))
#define FMA_i64(a, b, c) ((a) * (b) + (c))

/* Lines of four elements, of 4 or of 8 bytes, as columns: to[k width + i] = from[i ld + k]. As many of them as a vector
 * has lanes, or four. */
#ifdef TT_X86
INLINE void turn_4(const void *lines, int64_t ld, void *columns, int64_t width) {
    const float *from = lines;
    float *to = columns;
    __m128 r[4];
    for (int i = 0; i < 4; i++) r[i] = _mm_loadu_ps(from + i * ld);
    _MM_TRANSPOSE4_PS(r[0], r[1], r[2], r[3]);
    for (int k = 0; k < 4; k++) _mm_storeu_ps(to + k * width, r[k]);
}
#ifdef __AVX512F__
#define TURNED 16
INLINE void turn_many(const float *from, int64_t ld, float *to, int64_t width) {
    __m512 r[4];
    for (int i = 0; i < 4; i++) {
        r[i] = _mm512_castps128_ps512(_mm_loadu_ps(from + i * ld));
        r[i] = _mm512_insertf32x4(r[i], _mm_loadu_ps(from + (i + 4) * ld), 1);
        r[i] = _mm512_insertf32x4(r[i], _mm_loadu_ps(from + (i + 8) * ld), 2);
        r[i] = _mm512_insertf32x4(r[i], _mm_loadu_ps(from + (i + 12) * ld), 3);
    }
    __m512d low = (__m512d)_mm512_unpacklo_ps(r[0], r[1]), high = (__m512d)_mm512_unpackhi_ps(r[0], r[1]);
    __m512d low2 = (__m512d)_mm512_unpacklo_ps(r[2], r[3]), high2 = (__m512d)_mm512_unpackhi_ps(r[2], r[3]);
    _mm512_storeu_pd(to, _mm512_unpacklo_pd(low, low2));
    _mm512_storeu_pd(to + width, _mm512_unpackhi_pd(low, low2));
    _mm512_storeu_pd(to + 2 * width, _mm512_unpacklo_pd(high, high2));
    _mm512_storeu_pd(to + 3 * width, _mm512_unpackhi_pd(high, high2));
}
#elif defined __AVX2__
#define TURNED 8
INLINE void turn_many(const float *from, int64_t ld, float *to, int64_t width) {
    __m256 r[4];
    for (int i = 0; i < 4; i++) {
        r[i] = _mm256_castps128_ps256(_mm_loadu_ps(from + i * ld));
        r[i] = _mm256_insertf128_ps(r[i], _mm_loadu_ps(from + (i + 4) * ld), 1);
    }
    __m256d low = (__m256d)_mm256_unpacklo_ps(r[0], r[1]), high = (__m256d)_mm256_unpackhi_ps(r[0], r[1]);
    __m256d low2 = (__m256d)_mm256_unpacklo_ps(r[2], r[3]), high2 = (__m256d)_mm256_unpackhi_ps(r[2], r[3]);
    _mm256_storeu_pd((double *)to, _mm256_unpacklo_pd(low, low2));
    _mm256_storeu_pd((double *)(to + width), _mm256_unpackhi_pd(low, low2));
    _mm256_storeu_pd((double *)(to + 2 * width), _mm256_unpacklo_pd(high, high2));
    _mm256_storeu_pd((double *)(to + 3 * width), _mm256_unpackhi_pd(high, high2));
}
#else
#define TURNED 4
#define turn_many turn_4
#endif
INLINE void turn_8(const void *lines, int64_t ld, void *columns, int64_t width) {
    const double *from = lines;
    double *to = columns;
    for (int i = 0; i < 4; i += 2) {
        const double *first = from + i * ld, *second = first + ld;
        for (int k = 0; k < 4; k += 2) {
            __m128d a = _mm_loadu_pd(first + k), b = _mm_loadu_pd(second + k);
            _mm_storeu_pd(to + k * width + i, _mm_unpacklo_pd(a, b));
            _mm_storeu_pd(to + (k + 1) * width + i, _mm_unpackhi_pd(a, b));
        }
    }
}
#else
#define TURN(bytes, T)                                                                                                 \
    INLINE void turn_##bytes(const void *lines, int64_t ld, void *columns, int64_t width) {                            \
        for (int k = 0; k < 4; k++)                                                                                    \
            for (int i = 0; i < 4; i++)                                                                                \
                memcpy((T *)columns + k * width + i, (const T *)lines + i * ld + k, sizeof(T));                        \
    }
#define TURNED 4
#define turn_many turn_4
TURN(4, uint32_t)
TURN(8, uint64_t)
#undef TURN
#endif
