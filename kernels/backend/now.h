/* Copies and fills that are done at once, from operands that are ready, on whichever device. */
#pragma once
#include "core/tt.h"

int tt_copy_now(tt_array *out, tt_array *a); /* with broadcasting and casting, from any device to any */
tt_array *tt_cast_now(tt_array *a, int dtype);
tt_array *tt_clone_now(tt_array *a);
tt_array *tt_contiguous_now(tt_array *a);
int tt_fill_now(tt_array *out, int kind, double f, int64_t i);
tt_array *tt_full_now(int dtype, int ndim, int64_t *shape, int kind, double f, int64_t i);

/* The parts of tt_copy_now: does `a` broadcast to `out`, else an error; the copy, of what does not overlap. */
bool tt_copy_fits(const tt_array *out, const tt_array *a);
int tt_copy_unchecked(tt_array *out, tt_array *a);

/* A number in the CPU's memory, from one dtype to another. */
void tt_convert(void *to, int to_dtype, const void *from, int from_dtype);
/* A Python number as an element of `dtype`; and as an array of one element, a descriptor on the stack. */
void tt_set_element(char *p, int dtype, int kind, double f, int64_t i);
tt_array *tt_element(tt_array *one, char *room, int dtype, int kind, double f, int64_t i);
