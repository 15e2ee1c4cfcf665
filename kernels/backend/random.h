/* Draws of random numbers of the kinds of scalar/random.h, and sequences of numbers. */
#pragma once
#include "core/tt.h"
#include "scalar/codes.h"
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

/* A sequence, computed in float64 or int64. What is not filled in is 0. */
typedef struct {
    int kind;                      /* TT_RANGE_INTEGERS ... of scalar/codes.h */
    double start, end, step, base;
    int64_t first, by;             /* of integers */
    int64_t rows, cols, offset;    /* of a triangle, whose `out` has two rows of indices */
} tt_range;
/* The columns of a triangle's row: of the lower one 0 to row + offset, of the upper one row + offset to the end. */
static inline void tt_range_row(const tt_range *r, int64_t row, int64_t *begin, int64_t *end) {
    bool upper = r->kind == TT_RANGE_TRIU;
    int64_t at = upper ? row + r->offset : row + r->offset + 1; /* offset has been clamped: no overflow */
    if (at < 0) at = 0;
    if (at > r->cols) at = r->cols;
    *begin = upper ? at : 0;
    *end = upper ? r->cols : at;
}
