/* Random numbers, a group of 64 at a time. Note [Random streams] in kernels/scalar/philox.h. */
#include "cpu/simd.h"
#include "cpu/random.h"

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

#define NORMAL(D)                                                                                                      \
    TT_INDEPENDENT                                                                                                     \
    for (int k = 0; k < HALF; k++) tt_random_normal_##D(w[k], w[HALF + k], &r, p + k, p + HALF + k);

#define EACH(kind, D)                                                                                                  \
    case TT_RANDOM_##kind:                                                                                             \
        TT_INDEPENDENT                                                                                                 \
        for (int k = 0; k < G; k++) p[k] = tt_random_##kind##_##D(w[k], &r);                                           \
        break;

/* The first half of a group gives the radii, the second the angles of 32 points, whose coordinates fill both halves. */
/* clang-format off */
#define FLOATS(D, WORD, WORDS)                                                                       \
    static void draw_##D(const tt_draw *d, TT_C_##D *out, int64_t first, int64_t groups) {           \
        const tt_random_##D r = {                                                                    \
            .a = (TT_C_##D)d->a, .b = (TT_C_##D)d->b, .width = (TT_C_##D)d->b - (TT_C_##D)d->a,      \
            .rate = (TT_C_##D)tt_draw_rate(d), .unit = 1.0f / (float)(1 << d->digits),               \
            .dropped = 32 - (uint32_t)d->digits, .threshold = tt_draw_threshold(d)};                 \
        WORD w[G];                                                                                   \
        for (int64_t g = 0; g < groups; g++) {                                                       \
            TT_C_##D *restrict p = out + g * G;                                                      \
            WORDS(d, first + g, w);                                                                  \
            switch (d->kind) {                                                                       \
            case TT_RANDOM_normal: NORMAL(D) break;                                                  \
            case TT_RANDOM_log_normal:                                                               \
                NORMAL(D)                                                                            \
                TT_INDEPENDENT                                                                       \
                for (int k = 0; k < G; k++) p[k] = tt_exp_##D(p[k]);                                 \
                break;                                                                               \
            EACH(uniform, D) EACH(exponential, D) EACH(cauchy, D) EACH(geometric, D) EACH(mask, D)   \
            }                                                                                        \
        }                                                                                            \
    }
/* clang-format on */
FLOATS(f32, uint32_t, words_of_group)
FLOATS(f64, uint64_t, longs_of_group)

static void draw_i64(const tt_draw *d, int64_t *out, int64_t first, int64_t groups) {
    uint64_t w[G], range = d->range, low = (uint64_t)d->low;
    for (int64_t g = 0; g < groups; g++) {
        int64_t *restrict p = out + g * G;
        longs_of_group(d, first + g, w);
        if (tt_draw_is_short(d)) {
            TT_INDEPENDENT
            for (int k = 0; k < G; k++) p[k] = (int64_t)(low + tt_random_short_below(w[k], range));
        } else
            for (int k = 0; k < G; k++) p[k] = (int64_t)(low + tt_random_below(w[k], range));
    }
}

const tt_random_loops TT_LOCAL(tt_random_table) = {draw_f32, draw_f64, draw_i64};
