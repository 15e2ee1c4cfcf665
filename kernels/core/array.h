/* Descriptors: sizes, strides, what may be written. */
#pragma once
#include "core/version.h"
#include <stdbool.h>

extern int64_t tt_no_dims[1]; /* shape and strides without dimensions: not NULL, which memcpy and memcmp do not take */
/* Masks of dimensions. */
static inline int64_t tt_bit(int d) { return (int64_t)((uint64_t)1 << d); }
static inline int64_t tt_first_bits(int n) { return n < 64 ? (int64_t)(((uint64_t)1 << n) - 1) : -1; }
int64_t tt_numel(int ndim, const int64_t *shape); /* -1 and an error on overflow or a negative size */
void tt_set_contiguous(tt_array *a); /* numel and strides from shape */
void tt_update_flags(tt_array *a);
static inline void tt_bump_version(tt_array *a, int writer) {
    tt_storage *s = tt_counter(a);
    __atomic_fetch_add(&s->version, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&s->writer, writer, __ATOMIC_RELAXED);
}
/* The end of a write into `a`: 0 if it was done, which counts unless `writer` is -1 (the array is new); else -1. */
static inline int tt_written(tt_array *a, int writer, bool done) {
    if (done && writer >= 0) tt_bump_version(a, writer);
    return done ? 0 : -1;
}
/* An array on memory of a device (0: the CPU) that `owner` owns until `release` is called with it. */
tt_array *tt_from_owner(int device, int dtype, int ndim, int64_t *shape, int64_t *strides, void *data, int64_t nbytes,
                        void *owner, void (*release)(void *));
tt_array *tt_show(tt_array *a, int ndim, const int64_t *shape, const int64_t *strides, int64_t start); /* views.c */
tt_array *tt_track(const tt_array *a, tt_array *view);
bool tt_may_write(const char *op, const tt_array *out); /* no internal overlap, not read-only */
bool tt_writable(const char *op, const tt_array *out); /* that, and what has still to read it was run */
tt_array *tt_like(tt_array *a, int dtype); /* tt_empty_like, on tt_device */
bool tt_overlaps(const tt_array *a, const tt_array *b);
bool tt_same_layout(const tt_array *a, const tt_array *b);
