/* Products of bfloat16 and float16 matrices. */
#pragma once
#include "backend/product.h"

/* A tile of `p`'s product, from those rows of a and columns of b at which the pointers are; its dtype is a half type.
 * `memory`: tt_half_memory bytes to work in. */
void tt_half_product(const tt_product *p, const char *a, const char *b, char *c, int64_t rows, int64_t cols,
                     void *memory);
int64_t tt_half_memory(void);
int tt_half_speed(const tt_product *p); /* beside float32's, about */
