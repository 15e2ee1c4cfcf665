/* What one instruction set provides to draw random numbers of the kinds of kernels/scalar/random.h. */
#pragma once
#include "scalar/random.h"
#include <math.h>
#include <stdint.h>

typedef struct {
    uint64_t seed, draw;
    const uint64_t *place; /* of a device's: two numbers to be added to those, or NULL */
    int kind;
    double a, b;
    int digits;      /* uniform numbers in float32: their binary digits, no more than the dtype they end in has */
    int64_t low;     /* integers: low + a number below range; range 0 stands for 2^64 */
    uint64_t range;
} tt_draw;

/* The parts of tt_random_f32 and tt_random_f64 that take some computing. */
static inline double tt_draw_rate(const tt_draw *d) { return d->kind == TT_RANDOM_geometric ? log1p(-d->a) : -d->a; }
static inline uint64_t tt_draw_threshold(const tt_draw *d) {
    return d->kind == TT_RANDOM_mask ? (uint64_t)(d->a * 0x1p32 + 0.5) : 0;
}
static inline int tt_draw_is_short(const tt_draw *d) { return d->range - 1 < (uint64_t)1 << 32; }

/* Whole groups of 64 elements from group `first` on. */
typedef struct {
    void (*f32)(const tt_draw *d, float *out, int64_t first, int64_t groups);
    void (*f64)(const tt_draw *d, double *out, int64_t first, int64_t groups);
    void (*i64)(const tt_draw *d, int64_t *out, int64_t first, int64_t groups);
} tt_random_loops;
