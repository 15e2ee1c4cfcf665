/* What one instruction set provides to draw random numbers. */
#pragma once
#include "backend/random.h"

/* Whole groups of 64 elements from group `first` on. */
typedef struct {
    void (*f32)(const tt_draw *d, float *out, int64_t first, int64_t groups);
    void (*f64)(const tt_draw *d, double *out, int64_t first, int64_t groups);
    void (*i64)(const tt_draw *d, int64_t *out, int64_t first, int64_t groups);
} tt_random_loops;

/* random.c: n numbers from element `at` on; `buffer` has room for 2 groups of 64 more. Where they begin in it. */
void *tt_random_block(const tt_draw *draw, int dtype, void *buffer, int64_t at, int64_t n);
