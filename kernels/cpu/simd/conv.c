/* Convolutions: tiles of products, and the panels that they take. Note [Convolutions as products] in cpu/conv.h. */
#include "cpu/conv.h"
#include "cpu/simd.h"
#include <string.h>
#ifdef TT_X86
#include <immintrin.h>
#endif

#define DIMS TT_CONV_DIMS
#define VECTORS 3 /* of columns in a tile: with TILE_ROWS rows as many sums as registers hold */
#define INLINE static inline __attribute__((always_inline))

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

/* What is added to a tile's sums: nothing, a number for each row, or a matrix (of one row, if its step is 0). */
enum { NOTHING, OF_ROWS, MATRIX };

/* The places of a vector's lanes as runs of neighbours in memory: lane k of run r is element at[r] + k. */
typedef struct {
    int n;
    uint32_t lanes[16];
    int64_t at[16];
} runs;

/* Of `vec`, BYTES wide: every lane the same; a * b + c; the lanes of a mask from memory, others as they were. */
#if defined __AVX512F__
#define BYTES 64
#define TILE_ROWS 8
#define SPLAT_f32(x) _mm512_set1_ps(x)
#define SPLAT_f64(x) _mm512_set1_pd(x)
#define FMA_f32(a, b, c) _mm512_fmadd_ps(a, b, c)
#define FMA_f64(a, b, c) _mm512_fmadd_pd(a, b, c)
#define LANES_4(v, mask, p) (vec) _mm512_mask_loadu_ps((__m512)(v), (__mmask16)(mask), p)
#define LANES_8(v, mask, p) (vec) _mm512_mask_loadu_pd((__m512d)(v), (__mmask8)(mask), p)
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
#else
#define BYTES 16
#define TILE_ROWS 4
#define SPLAT_f32(x) ((vec){x, x, x, x})
#define SPLAT_f64(x) ((vec){x, x})
#define FMA_f32(a, b, c) ((a) * (b) + (c))
#define FMA_f64(a, b, c) ((a) * (b) + (c))
#define LANES_4(v, mask, p) some_lanes(v, mask, p)
#define LANES_8(v, mask, p) some_lanes(v, mask, p)
#define LANE_LOOP
#endif
#define SPLAT_i64(x) ((vec){0} + (x))
#define FMA_i64(a, b, c) ((a) * (b) + (c))

#define T float
#define OF(name) name##_f32
#define FMA FMA_f32
#define SPLAT SPLAT_f32
#define LANES_OF LANES_4
#include "cpu/simd/conv_tile.h"
#include "cpu/simd/conv_pack.h"
#include "cpu/simd/conv_loops.h"
#define T double
#define OF(name) name##_f64
#define FMA FMA_f64
#define SPLAT SPLAT_f64
#define LANES_OF LANES_8
#include "cpu/simd/conv_tile.h"
#include "cpu/simd/conv_pack.h"
#include "cpu/simd/conv_loops.h"
#define T uint64_t /* wraps as signed integers do */
#define OF(name) name##_i64
#define FMA FMA_i64
#define SPLAT SPLAT_i64
#define LANES_OF LANES_8
#include "cpu/simd/conv_tile.h"
#include "cpu/simd/conv_pack.h"
#include "cpu/simd/conv_loops.h"

#define LOOPS(D, T)                                                                                                    \
    {.tile_rows = TILE_ROWS,                                                                                           \
     .tile_columns = VECTORS * BYTES / (int)sizeof(T),                                                                 \
     .pack = pack_weight_##D,                                                                                          \
     .correlate = {correlate_##D, correlate_last_##D},                                                                 \
     .weigh = {weigh_##D, weigh_last_##D},                                                                             \
     .add_parts = add_parts_##D}
const tt_conv_table TT_LOCAL(tt_conv_tables) = {{LOOPS(f32, float), LOOPS(f64, double), LOOPS(i64, int64_t)}};
