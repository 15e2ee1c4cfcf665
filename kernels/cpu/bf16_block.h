/* A block of a product of bfloat16 matrices, by AVX-512 BF16. */
#pragma once
#include "backend/product.h"

#define TT_BF16_DEPTH 1024 /* elements of a row that are multiplied at a time */
#define TT_BF16_STEP (TT_BF16_DEPTH + 32) /* from one packed row to the next: not a power of two */

bool tt_has_bf16(bool fast); /* is the instruction there, and, if that is asked, fast? */

/* sums (rows, cols) = a b; `left` and `right` have room for the packed rows of a and columns of b. */
void tt_bf16_block(const tt_product *p, const char *a, const char *b, int64_t rows, int64_t cols, float *sums,
                   uint16_t *left, uint16_t *right);
/* Products with a vector x, `step` elements apart, of k rows of n numbers; and of two vectors. */
void tt_bf16_rows(const uint16_t *x, int64_t step, const uint16_t *b, int64_t ldb, int64_t k, int64_t n, float *c);
float tt_bf16_dot(const uint16_t *a, const uint16_t *b, int64_t k);
