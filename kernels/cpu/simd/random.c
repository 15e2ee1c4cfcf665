/* Random numbers, a group of 64 at a time. Note [Random streams] in kernels/scalar/philox.h. */
#include "../simd.h"
#include "../random.h"
#include "../../scalar/arith.h"
#include "../../scalar/philox.h"

#define G TT_PHILOX_GROUP
#define HALF (G / 2)

static inline void words_of_group(const tt_draw *d, int64_t group, uint32_t *restrict w) {
    tt_u64 first = (tt_u64)group * TT_PHILOX_LANES;
    TT_INDEPENDENT
    for (int lane = 0; lane < TT_PHILOX_LANES; lane++) {
        tt_philox_block c = tt_philox(d->seed, d->draw, first + (tt_u64)lane);
        w[lane] = c.x0;
        w[TT_PHILOX_LANES + lane] = c.x1;
        w[2 * TT_PHILOX_LANES + lane] = c.x2;
        w[3 * TT_PHILOX_LANES + lane] = c.x3;
    }
}

static inline void longs_of_group(const tt_draw *d, int64_t group, uint64_t *restrict w) {
    uint32_t high[G], low[G];
    words_of_group(d, 2 * group, high);
    words_of_group(d, 2 * group + 1, low);
    TT_INDEPENDENT
    for (int k = 0; k < G; k++) w[k] = (uint64_t)high[k] << 32 | low[k];
}

/* Box and Muller, "A note on the generation of random normal deviates" (1958): the first half of a group gives the
 * radii, the second the angles of 32 points, whose coordinates fill both halves. */
#define NORMAL(T, WORD, SIN, COS)                                                                    \
    static inline void normal_##T(const WORD *restrict w, TT_C_##T *restrict out, TT_C_##T mean, TT_C_##T std) { \
        TT_INDEPENDENT                                                                               \
        for (int k = 0; k < HALF; k++) {                                                             \
            TT_C_##T r = tt_sqrt_##T(-2 * tt_log_##T(tt_uniform_open_##T(w[k]))) * std;              \
            TT_C_##T angle = tt_uniform_##T(w[HALF + k]) * (TT_C_##T)6.283185307179586;              \
            out[k] = r * COS(angle) + mean;                                                          \
            out[HALF + k] = r * SIN(angle) + mean;                                                   \
        }                                                                                            \
    }

static inline float at_least_one_f32(float x) { return __builtin_ceilf(x) < 1.0f ? 1.0f : __builtin_ceilf(x); }
static inline double at_least_one_f64(double x) { return __builtin_ceil(x) < 1.0 ? 1.0 : __builtin_ceil(x); }

/* One number from one word, by the inverse of the distribution function. */
#define EACH(T, expression)                                             \
    TT_INDEPENDENT                                                      \
    for (int k = 0; k < G; k++) {                                       \
        TT_C_##T u = tt_uniform_open_##T(w[k]);                         \
        p[k] = expression;                                              \
    }                                                                   \
    break;

#define FLOATS(T, WORD, WORDS, THRESHOLD)                                                            \
    static void draw_##T(const tt_draw *d, TT_C_##T *out, int64_t first, int64_t groups) {           \
        TT_C_##T a = (TT_C_##T)d->a, b = (TT_C_##T)d->b, width = b - a;                              \
        TT_C_##T rate = d->kind == TT_RANDOM_geometric ? (TT_C_##T)log1p(-d->a) : -a;                \
        uint32_t dropped = 32 - (uint32_t)d->digits;                                                 \
        float unit = 1.0f / (float)(1 << d->digits);                                                 \
        uint64_t threshold = d->kind == TT_RANDOM_mask ? (uint64_t)(d->a * 0x1p32 + 0.5) : 0;        \
        WORD w[G];                                                                                   \
        (void)dropped, (void)unit;                                                                   \
        for (int64_t g = 0; g < groups; g++) {                                                       \
            TT_C_##T *restrict p = out + g * G;                                                      \
            WORDS(d, first + g, w);                                                                  \
            switch (d->kind) {                                                                       \
            case TT_RANDOM_uniform:                                                                  \
                TT_INDEPENDENT                                                                       \
                for (int k = 0; k < G; k++) p[k] = UNIFORM_##T(w[k], dropped, unit) * width + a;                 \
                break;                                                                               \
            case TT_RANDOM_normal: normal_##T(w, p, a, b); break;                                    \
            case TT_RANDOM_log_normal:                                                               \
                normal_##T(w, p, a, b);                                                              \
                TT_INDEPENDENT                                                                       \
                for (int k = 0; k < G; k++) p[k] = tt_exp_##T(p[k]);                                 \
                break;                                                                               \
            case TT_RANDOM_mask:                                                                     \
                TT_INDEPENDENT                                                                       \
                for (int k = 0; k < G; k++) p[k] = THRESHOLD(w[k]) < threshold ? b : 0;              \
                break;                                                                               \
            case TT_RANDOM_exponential: EACH(T, tt_log_##T(u) / rate)                                \
            case TT_RANDOM_cauchy: EACH(T, b * tt_tan_##T((TT_C_##T)3.141592653589793 * (u - (TT_C_##T)0.5)) + a) \
            case TT_RANDOM_geometric: EACH(T, at_least_one_##T(tt_log_##T(u) / rate))             \
            }                                                                                        \
        }                                                                                            \
    }




/* On [0, 1) with no more digits than the dtype has: rounding must not make it 1. */
#define UNIFORM_f32(w, dropped, unit) ((float)(tt_i32)((w) >> (dropped)) * (unit))
#define UNIFORM_f64(w, dropped, unit) tt_uniform_f64(w)

#define SHORT(w) ((uint64_t)(w))
#define LONG(w) ((w) >> 32)

NORMAL(f32, uint32_t, tt_sin_small_f32, tt_cos_small_f32)
NORMAL(f64, uint64_t, tt_sin_f64, tt_cos_f64)
FLOATS(f32, uint32_t, words_of_group, SHORT)
FLOATS(f64, uint64_t, longs_of_group, LONG)

/* The high word of a product of a random long and the range: uniform but for range / 2^64. */
static void draw_i64(const tt_draw *d, int64_t *out, int64_t first, int64_t groups) {
    uint64_t w[G], range = d->range, low = (uint64_t)d->low;
    for (int64_t g = 0; g < groups; g++) {
        int64_t *restrict p = out + g * G;
        longs_of_group(d, first + g, w);
        if (range - 1 < (uint64_t)1 << 32) {
            TT_INDEPENDENT
            for (int k = 0; k < G; k++) {
                uint64_t rest = (w[k] & 0xffffffffu) * range >> 32;
                p[k] = (int64_t)(low + (((w[k] >> 32) * range + rest) >> 32));
            }
        } else
            for (int k = 0; k < G; k++)
                p[k] = (int64_t)(low + (range ? (uint64_t)((unsigned __int128)w[k] * range >> 64) : w[k]));
    }
}

const tt_random_loops TT_LOCAL(tt_random_table) = {draw_f32, draw_f64, draw_i64};
