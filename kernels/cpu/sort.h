/* Keys: every dtype as unsigned integers in the same order, NaN last, -0 equal to 0. Not seen by Python. */
#pragma once
#include "core/tt.h"

/* One element of a row to be sorted. With keys of at most 32 bits, key and index are one number, key above, and numbers
 * are unique: no order can be unstable. */
typedef uint64_t tt_packed;
typedef struct {
    uint64_t key, index;
} tt_keyed;

bool tt_key_is_narrow(int dtype); /* at most 32 bits */
/* n elements' keys, all bits turned for descending order */
void tt_make_packed(tt_packed *out, const void *x, int dtype, int64_t n, bool descending);
void tt_make_keyed(tt_keyed *out, const void *x, int dtype, int64_t n, bool descending);

/* Subtracts the least key from all; the bits that are left. */
int tt_compact_keys(tt_keyed *x, int64_t n);

/* Stable, into either buffer, which is returned; `bits` of a key count. Parallel for long rows. */
tt_packed *tt_sort_packed(tt_packed *x, tt_packed *spare, int64_t n, int bits);
tt_keyed *tt_sort_keyed(tt_keyed *x, tt_keyed *spare, int64_t n, int bits);
/* Reorders so that the k smallest come first, in order; the rest in any. */
tt_packed *tt_select_packed(tt_packed *x, tt_packed *spare, int64_t n, int64_t k, int bits);
tt_keyed *tt_select_keyed(tt_keyed *x, tt_keyed *spare, int64_t n, int64_t k, int bits);
/* ... so that the k-th smallest is at k */
void tt_nth_packed(tt_packed *x, int64_t n, int64_t k);
void tt_nth_keyed(tt_keyed *x, int64_t n, int64_t k);
