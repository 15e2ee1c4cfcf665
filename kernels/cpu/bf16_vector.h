/* Products of bfloat16 matrices with vectors, or few of them, by AVX-512 BF16. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

bool tt_has_bf16(void);

/* Products with a vector x, `step` elements apart, of k rows of n numbers; and of two vectors. */
void tt_bf16_rows(const uint16_t *x, int64_t step, const uint16_t *b, int64_t ldb, int64_t k, int64_t n, float *c);
float tt_bf16_dot(const uint16_t *a, const uint16_t *b, int64_t k);
/* c (rows, cols) = a b, or += with `add`, whose rows and columns lie along k. */
void tt_bf16_lines(const uint16_t *a, int64_t lda, const uint16_t *b, int64_t ldb, int64_t k, float *c, int64_t rows,
                   int64_t cols, bool add);
