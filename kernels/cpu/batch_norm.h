/* What the loops of simd/batch_norm.c look like to batch_norm.c: of float32 or float64. */
#pragma once
#include "cpu/simd.h"

#define TT_BATCH_TILE 512 /* bytes of the sums of a thread's columns, of each lane: with both sums, L1 or less */

/* A channel's numbers: the result is shift + x scale, the gradient of x is shift + (x - mean) slope + g scale, or g
 * scale where there is no slope. */
typedef struct {
    const void *mean, *scale, *shift, *slope;
} tt_batch_numbers;

typedef struct {
    /* the sums of g and of g (x - mean), of up to TT_BLOCK elements of a channel */
    void (*sums)(void *sum, void *products, const void *g, const void *x, const void *mean, int64_t n);
    /* the same of w channels, from n rows that are `step` bytes apart: TT_LANES rows of w sums each, of up to
     * TT_BATCH_TILE bytes. `widen`: where g and x are of a half type, what makes float32 of it; else NULL. */
    void (*sums_rows)(void *sum, void *products, const char *g, const char *x, const void *mean, int64_t step,
                      int64_t n, int64_t w, tt_cast_loop widen);
    /* n elements in runs of `inner`, the first of which begins `start` before x; runs are `pitch` elements apart */
    void (*gather)(void *out, const void *x, int64_t start, int64_t inner, int64_t pitch, int64_t n);
    /* rows of so many channels; 0: all of one channel */
    void (*normalize)(void *out, const void *x, const tt_batch_numbers *c, int64_t n, int64_t row);
    void (*gradient)(void *out, const void *g, const void *x, const tt_batch_numbers *c, int64_t n, int64_t row);
    void (*rsqrt)(void *variance, int64_t n, double eps); /* 1 / sqrt(variance + eps) */
    void (*fill)(void *x, const void *value, int64_t n);
    void (*divide)(void *x, int64_t n, double by);
    void (*multiply)(void *x, int64_t n, double by);
    void (*mix)(void *x, const void *value, int64_t n, double part, double factor); /* x += part (value factor) */
    /* weight and bias may be NULL */
    void (*affine)(void *scale, void *shift, const void *weight, const void *bias, const void *mean, const void *rstd,
                   int64_t n);
    /* what the sums say about the gradients of x, weight and bias */
    void (*slopes)(void *scale, void *shift, void *slope, void *of_weight, void *of_bias, const void *weight,
                   const void *rstd, const void *sum, const void *products, int64_t n, double count);
    /* the same of n channels that share statistics; the products become the gradients of weight */
    void (*group_slopes)(void *scale, void *shift, void *slope, void *products, const void *sum, const void *weight,
                         const void *rstd, int64_t n, double count);
} tt_batch_loops;
typedef struct {
    tt_batch_loops f32, f64;
} tt_batch_table;
