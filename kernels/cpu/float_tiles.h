/* Numbers of float32 in parts, for AMX: Note [Products in parts] in float_parts.c. */
#pragma once
#include "cpu/amx.h"
#include "cpu/bf16_tiles.h"

#ifdef TT_AMX

#define SCALE 0x1p24f
#define UNSCALE 0x1p-48f
#define PARTS TT_PARTS
#define TILE TT_TILES_SIZE
#define PART (2 * TILE) /* of WIDTH elements of a panel, which is 2 x 16 rows or columns, packed, */
#define STEP (PARTS * PART) /* and all its parts */
#define NOT_FINITE 0x99

/* The bfloat16 nearest to each number, or as near, in its upper half; the rest is taken from the numbers. */
INLINE __m512i part(__m512 *x) {
    __m512i round = _mm512_add_epi32(_mm512_castps_si512(*x), _mm512_set1_epi32(0x8000));
    __m512i top = _mm512_and_si512(round, _mm512_set1_epi32((int)0xffff0000));
    *x = _mm512_sub_ps(*x, _mm512_castsi512_ps(top));
    return top;
}

/* The parts of pairs of numbers, as lines of tiles, `apart` elements from one to the next. */
INLINE void split(__m512 x, __m512 y, uint16_t *to, int64_t apart) {
    x = _mm512_mul_ps(x, _mm512_set1_ps(SCALE));
    y = _mm512_mul_ps(y, _mm512_set1_ps(SCALE));
    for (int p = 0; p < PARTS; p++) {
        __m512i low = p < PARTS - 1 ? part(&x) : _mm512_castps_si512(x);
        __m512i high = p < PARTS - 1 ? part(&y) : _mm512_castps_si512(y);
        _mm512_store_si512(to + p * apart, _mm512_or_si512(_mm512_srli_epi32(low, 16), high));
    }
}

/* Two panels' sums, of m x n tiles; parts are loaded once or, the largest of the right operand, twice. Of the left one
 * 16 rows begin at each of two places. Their lines are `step` bytes apart, their parts `apart` elements, and tile t is
 * offsets[t] elements on, or t STEP. */
INLINE void multiply_parts(const uint16_t *const a[2], int64_t step, int64_t apart, const int64_t *offsets,
                           const uint16_t *b, int64_t tiles, float *sums, bool add, const int m, const int n) {
    load_sums(sums, add, m, n);
#define LEFT(p)                                                                                                        \
    _tile_loadd(4, a[0] + at + (p) * apart, step);                                                                     \
    if (m == 2) _tile_loadd(5, a[1] + at + (p) * apart, step);
#define RIGHT(p)                                                                                                       \
    _tile_loadd(6, b + p * PART, 64);                                                                                  \
    if (n == 2) _tile_loadd(7, b + p * PART + TILE, 64);
#define MULTIPLY                                                                                                       \
    _tile_dpbf16ps(0, 4, 6);                                                                                           \
    if (n == 2) _tile_dpbf16ps(1, 4, 7);                                                                               \
    if (m == 2) _tile_dpbf16ps(2, 5, 6);                                                                               \
    if (m == 2 && n == 2) _tile_dpbf16ps(3, 5, 7);
    for (int64_t t = 0; t < tiles; t++, b += STEP) {
        int64_t at = offsets ? offsets[t] : t * STEP;
        LEFT(2) RIGHT(0) MULTIPLY;
        LEFT(1) MULTIPLY;
        RIGHT(1) MULTIPLY;
        LEFT(0) MULTIPLY;
        RIGHT(2) MULTIPLY;
        RIGHT(0) MULTIPLY;
    }
#undef LEFT
#undef RIGHT
#undef MULTIPLY
    store_sums(sums, m, n);
}

INLINE void multiply_parts_of(bool more, bool two, const uint16_t *const a[2], int64_t step, int64_t apart,
                              const int64_t *offsets, const uint16_t *b, int64_t tiles, float *sums, bool add) {
    if (more && two) multiply_parts(a, step, apart, offsets, b, tiles, sums, add, 2, 2);
    else if (more) multiply_parts(a, step, apart, offsets, b, tiles, sums, add, 2, 1);
    else if (two) multiply_parts(a, step, apart, offsets, b, tiles, sums, add, 1, 2);
    else multiply_parts(a, step, apart, offsets, b, tiles, sums, add, 1, 1);
}
#endif
