/* What the loops of simd/recurrent.c look like to recurrent.c: one row of a step, `n` of the numbers of each gate. */
#pragma once
#include "core/tt.h"

typedef struct {
    int64_t n;
    int64_t hidden, width; /* from one gate to the next: in rows of all numbers, and in `product` */
    const void *x, *product, *b; /* product: h w^T */
    const void *before;          /* c, of gru h, before the step */
    void *gates, *c, *y;
} tt_recurrent_row;

typedef struct {
    int64_t n, hidden;
    const void *g, *g_c, *product; /* product: what later steps find for h by w */
    const void *gates, *c, *y, *before;
    void *first;                   /* what they find for c, of gru for h, past w; this step's in the end */
    void *of_x, *of_h;
} tt_recurrent_row_back;

typedef struct {
    void (*forward[4])(const tt_recurrent_row *r); /* by kind */
    void (*backward[4])(const tt_recurrent_row_back *r);
} tt_recurrent_loops;
typedef struct {
    tt_recurrent_loops f32, f64;
} tt_recurrent_table;
