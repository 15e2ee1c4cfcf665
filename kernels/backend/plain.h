/* Operands and results as loops and kernels want them. */
#pragma once
#include "core/tt.h"

/* An operand, contiguous and of one dtype: itself, or a copy that tt_plain_done frees. NULL stays NULL. */
typedef struct { tt_array *array, *copy; } tt_plain;
bool tt_plain_take(tt_plain *p, tt_array *a, int dtype);
void tt_plain_done(tt_plain *p, int n);
static inline const char *tt_plain_data(const tt_plain *p) { return p->array ? p->array->data : NULL; }

/* A contiguous result: itself, or an array of another dtype, which is copied to it in the end. */
typedef struct { tt_array *array, *out; } tt_wide;
bool tt_wide_start(tt_wide *w, tt_array *out, int dtype);
bool tt_wide_end(tt_wide *w, bool good);
