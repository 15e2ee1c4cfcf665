/* Numbers of the distributions from words of a random stream (philox.h), one at a time: shared by the CPU's loops and
 * the kernels of CUDA. */
#ifndef TT_SCALAR_RANDOM_H
#define TT_SCALAR_RANDOM_H

#include "arith.h"
#include "philox.h"

/* X(name, what a and b are) */
#define TT_RANDOM_KINDS(X)                                                                                             \
    X(uniform) /* on [a, b) */                                                                                         \
    X(normal) /* mean a, standard deviation b */                                                                       \
    X(log_normal) /* exp of that */                                                                                    \
    X(exponential) /* rate a */                                                                                        \
    X(cauchy) /* median a, scale b */                                                                                  \
    X(geometric) /* success with probability a */                                                                      \
    X(mask) /* b with probability a, else 0 */

#define TT_RANDOM_ENUM(name) TT_RANDOM_##name,
enum { TT_RANDOM_KINDS(TT_RANDOM_ENUM) TT_NUM_RANDOM_KINDS };

/* What a kind needs besides words. rate: of the logarithm, negative. dropped, unit: a uniform float32 has no more
 * binary digits than the dtype it ends in, for rounding must not make it b; it is a word less `dropped` bits, times
 * unit. */
typedef struct {
    float a, b, width, rate, unit;
    tt_u32 dropped;
    tt_u64 threshold;
} tt_random_f32;
typedef struct {
    double a, b, width, rate, unit;
    tt_u32 dropped;
    tt_u64 threshold;
} tt_random_f64;

TT_FN float tt_uniform_of_f32(tt_u32 w, const tt_random_f32 *r) { return (float)(tt_i32)(w >> r->dropped) * r->unit; }
TT_FN double tt_uniform_of_f64(tt_u64 w, const tt_random_f64 *r) { return (void)r, tt_uniform_f64(w); }
TT_FN tt_u64 tt_high_word_f32(tt_u32 w) { return w; }
TT_FN tt_u64 tt_high_word_f64(tt_u64 w) { return w >> 32; }
TT_FN float tt_at_least_one_f32(float x) { return __builtin_ceilf(x) < 1.0f ? 1.0f : __builtin_ceilf(x); }
TT_FN double tt_at_least_one_f64(double x) { return __builtin_ceil(x) < 1.0 ? 1.0 : __builtin_ceil(x); }
#define TT_RANDOM_SIN_f32 tt_sin_small_f32
#define TT_RANDOM_COS_f32 tt_cos_small_f32
#define TT_RANDOM_SIN_f64 tt_sin_f64
#define TT_RANDOM_COS_f64 tt_cos_f64

/* One number from one word, by the inverse of the distribution function; two normal ones from two words: Box and
 * Muller,
   "A note on the generation of random normal deviates" (1958). */
#define TT_RANDOM_NUMBERS(D, T, WORD)                                                                                  \
    TT_FN T tt_random_uniform_##D(WORD w, const tt_random_##D *r) {                                                    \
        return tt_uniform_of_##D(w, r) * r->width + r->a;                                                              \
    }                                                                                                                  \
    TT_FN T tt_random_exponential_##D(WORD w, const tt_random_##D *r) {                                                \
        return tt_log_##D(tt_uniform_open_##D(w)) / r->rate;                                                           \
    }                                                                                                                  \
    TT_FN T tt_random_cauchy_##D(WORD w, const tt_random_##D *r) {                                                     \
        return r->b * tt_tan_##D((T)3.141592653589793 * (tt_uniform_open_##D(w) - (T)0.5)) + r->a;                     \
    }                                                                                                                  \
    TT_FN T tt_random_geometric_##D(WORD w, const tt_random_##D *r) {                                                  \
        return tt_at_least_one_##D(tt_log_##D(tt_uniform_open_##D(w)) / r->rate);                                      \
    }                                                                                                                  \
    TT_FN T tt_random_mask_##D(WORD w, const tt_random_##D *r) {                                                       \
        return tt_high_word_##D(w) < r->threshold ? r->b : (T)0;                                                       \
    }                                                                                                                  \
    TT_FN void tt_random_normal_##D(WORD radius, WORD turn, const tt_random_##D *r, T *first, T *second) {             \
        T length = tt_sqrt_##D(-2 * tt_log_##D(tt_uniform_open_##D(radius))) * r->b;                                   \
        T angle = tt_uniform_##D(turn) * (T)6.283185307179586;                                                         \
        *first = length * TT_RANDOM_COS_##D(angle) + r->a;                                                             \
        *second = length * TT_RANDOM_SIN_##D(angle) + r->a;                                                            \
    }
TT_RANDOM_NUMBERS(f32, float, tt_u32)
TT_RANDOM_NUMBERS(f64, double, tt_u64)

#if TT_CUDA
TT_FN tt_u64 tt_mulhi_u64(tt_u64 a, tt_u64 b) { return __umul64hi(a, b); }
#else
TT_FN tt_u64 tt_mulhi_u64(tt_u64 a, tt_u64 b) { return (tt_u64)((unsigned __int128)a * b >> 64); }
#endif

/* An integer below `range` (0: of all) from a long, the high word of their product: uniform but for range / 2^64. Of a
   range of up to 33 bits the same by shorter products. */
TT_FN tt_u64 tt_random_short_below(tt_u64 w, tt_u64 range) {
    tt_u64 rest = (w & 0xffffffffu) * range >> 32;
    return ((w >> 32) * range + rest) >> 32;
}
TT_FN tt_u64 tt_random_below(tt_u64 w, tt_u64 range) { return range ? tt_mulhi_u64(w, range) : w; }

#endif
