/* Iteration over several operands together, in blocks of contiguous elements. */
#pragma once
#include "backend/iterator.h"

/* n elements `step` bytes apart, to elements `to_step` bytes apart */
void tt_move(void *to, int64_t to_step, const void *from, int64_t step, int64_t n, int size);

/* Iterator over one strided operand; strides in bytes. */
typedef struct {
    int ndim, size;
    const int64_t *shape, *strides;
    char *data;
} tt_strided_iter;
/* n elements from the row-major position `at` on, between the operand and a contiguous buffer */
void tt_strided_move(const tt_strided_iter *w, int64_t at, int64_t n, char *buffer, bool gather);

typedef void (*tt_loop)(char **p, int64_t n); /* p[0] = output, p[1...] = inputs, all contiguous */
typedef void (*tt_cast_loop)(void *out, const void *in, int64_t n);
/* n elements as they are read: where they need a cast, in `room`. */
static inline const void *tt_as_read(const char *from, void *room, int64_t n, tt_cast_loop cast) {
    if (!cast) return from;
    cast(room, from, n);
    return room;
}
void tt_iter_run(const tt_iter *it, tt_loop loop, int64_t grain);
