/* What the host's files of indexing and sorting share. */
#pragma once
#include "cuda/host/cuda.h"
#include "cuda/device/index_args.h"

/* radix.c: n elements or keys, sorted stably with their numbers. Begin; then write `keys` and sort them, or sort
 * elements; read `keys` and `numbers` (uint32); end. A sort that failed to begin is ended all the same. */
typedef struct {
    tt_array *keys, *numbers; /* numbers: NULL: 0, 1, 2, ... */
    const uint32_t *carried; /* or NULL: taken in place of numbers */
    tt_array *counts; /* with `leaves` */
    const uint32_t *left; /* ... where on the device it stands whether the keys' last digit was left unsorted */
    int64_t n;
    bool wide, leaves;
} tt_radix_sort;
bool tt_radix_sort_begin(tt_radix_sort *s, int64_t n, bool wide);
/* Room for keys of 4 bytes, or of 8 if wide, that the caller writes. */
bool tt_radix_sort_room(tt_radix_sort *s);
/* By these keys, or if `row` is not 0, those of each `row` neighbours apart. Numbers of a sort before stay with
 * them. */
bool tt_radix_sort_keys(tt_radix_sort *s, int bits, int64_t row);
/* By contiguous elements; if `values`, those and their places in their rows are all that is made. */
bool tt_radix_sort_elements(tt_radix_sort *s, const void *in, int dtype, bool descending, int64_t row, void *values,
                            int64_t *places);
/* Their keys, without numbers. */
bool tt_radix_sort_alone(tt_radix_sort *s, const void *in, int dtype);
void tt_radix_sort_end(tt_radix_sort *s);
