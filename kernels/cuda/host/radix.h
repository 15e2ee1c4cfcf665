/* What the host's files of indexing and sorting share. */
#pragma once
#include "cuda/host/cuda.h"
#include "cuda/device/index_args.h"

/* radix.c: n keys of 4 or 8 bytes, sorted stably with their numbers. Begin; write `keys`; sort; read `keys` and `order`
 * (uint32); end. A sort that failed to begin is ended all the same. */
typedef struct {
    tt_array *keys, *order, *spare_keys, *spare_order, *counts;
    int64_t n;
    bool wide, ordered; /* ordered: `order` holds numbers already */
} tt_radix_sort;
bool tt_radix_sort_begin(tt_radix_sort *s, int64_t n, bool wide);
bool tt_radix_sort_keys(tt_radix_sort *s, int bits);
bool tt_radix_sort_rows(tt_radix_sort *s, int64_t row); /* then by number / row */
void tt_radix_sort_end(tt_radix_sort *s);
