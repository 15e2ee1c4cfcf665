/* What the files that use AMX have in common, Intel's matrix unit since Sapphire Rapids. One of its eight registers, a
 * tile, holds 16 lines of 64 bytes. */
#pragma once
#include "core/tt.h"

#if defined(TT_X86) && defined(__linux__) &&                                                                           \
    ((defined(__clang__) && __clang_major__ >= 12) || (!defined(__clang__) && __GNUC__ >= 11))
#define TT_AMX
#include <immintrin.h>

#define TARGET __attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,amx-tile,amx-bf16")))
#define INLINE static inline __attribute__((always_inline)) TARGET
#define LINES 16 /* of a tile */
#define WIDTH 32 /* elements of a line, of bfloat16 */
#define SUMS (LINES * LINES) /* float32 numbers of a tile */

/* The lowest n of 32 bits. */
static inline uint32_t lowest(int64_t n) { return n >= 32 ? 0xffffffffu : n > 0 ? (1u << n) - 1 : 0; }

/* m x n tiles of sums, the first four registers: from memory, where they lie as 2 x 2, or 0; and back. */
INLINE void load_sums(const float *sums, bool there, const int m, const int n) {
    if (there) {
        _tile_loadd(0, sums, 64);
        if (n == 2) _tile_loadd(1, sums + SUMS, 64);
        if (m == 2) _tile_loadd(2, sums + 2 * SUMS, 64);
        if (m == 2 && n == 2) _tile_loadd(3, sums + 3 * SUMS, 64);
    } else {
        _tile_zero(0);
        _tile_zero(1);
        _tile_zero(2);
        _tile_zero(3);
    }
}

INLINE void store_sums(float *sums, const int m, const int n) {
    _tile_stored(0, sums, 64);
    if (n == 2) _tile_stored(1, sums + SUMS, 64);
    if (m == 2) _tile_stored(2, sums + 2 * SUMS, 64);
    if (m == 2 && n == 2) _tile_stored(3, sums + 3 * SUMS, 64);
}

/* 16 x 16 elements of 4 bytes. */
INLINE void transpose(__m512i r[LINES]) {
    __m512i s[LINES];
    for (int i = 0; i < 16; i += 2) {
        s[i] = _mm512_unpacklo_epi32(r[i], r[i + 1]);
        s[i + 1] = _mm512_unpackhi_epi32(r[i], r[i + 1]);
    }
    for (int i = 0; i < 16; i += 4)
        for (int h = 0; h < 2; h++) {
            r[i + 2 * h] = _mm512_unpacklo_epi64(s[i + h], s[i + 2 + h]);
            r[i + 2 * h + 1] = _mm512_unpackhi_epi64(s[i + h], s[i + 2 + h]);
        }
    for (int i = 0; i < 16; i += 8)
        for (int h = 0; h < 4; h++) {
            s[i + h] = _mm512_shuffle_i32x4(r[i + h], r[i + 4 + h], 0x88);
            s[i + 4 + h] = _mm512_shuffle_i32x4(r[i + h], r[i + 4 + h], 0xdd);
        }
    for (int h = 0; h < 8; h++) {
        r[h] = _mm512_shuffle_i32x4(s[h], s[8 + h], 0x88);
        r[8 + h] = _mm512_shuffle_i32x4(s[h], s[8 + h], 0xdd);
    }
}
#endif
