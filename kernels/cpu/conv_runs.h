/* Correlations by AMX in runs of places: conv_runs.c. */
#pragma once
#include "cpu/conv.h"

bool tt_runs_fit(const tt_correlation *c, int dtype);
void tt_correlate_runs(tt_correlation *c); /* of bfloat16; the weight is packed, as in bf16_conv.c */
bool tt_correlate_parts(
    tt_correlation *c); /* of float32; c->spoiled: something was not finite, and counts for nothing */

/* Of float32, in conv_parts.c. Splits places' channels into parts: `step` elements from a place to the next, `channel`
 * from a channel to the next, of which one is 1. A place has three lines of 32 channels each; the last is filled up. */
void tt_parts_split(const float *from, int64_t step, int64_t channel, int64_t places, int64_t channels, uint16_t *to);
/* Packs 32 rows of 32 columns of a right operand. */
void tt_parts_pack(const float *square, uint16_t *to);
/* As tt_tiles_multiply_rows. */
void tt_parts_multiply(const uint16_t *const rows[2], int64_t step, const int64_t *offsets, const uint16_t *right,
                       bool two, int64_t tiles, float *sums);
/* sums += fresh, of 2 x 2 tiles */
void tt_parts_add(float *sums, const float *fresh);
/* Sums plus bias (or NULL), as numbers; false: some are not finite. */
bool tt_parts_store(const float *sums, int64_t rows, int64_t cols, const float *bias, float *to, int64_t step,
                    int64_t channel);
