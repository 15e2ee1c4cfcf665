/* Kernels of fused programs, as every backend runs them: what they consist of stands in api/fuse.h. */
#pragma once
#include "api/fuse.h"
#include "backend/random.h"
#include "core/tt.h"
#include <string.h>

#define TT_FUSE_KERNEL_NODES 96
#define TT_FUSE_DIMS 16        /* of a kernel: an operator with more that are not 1 is not recorded */
_Static_assert(sizeof(((tt_access *)0)->strides) == TT_FUSE_DIMS * sizeof(int64_t), "see api/fuse.h");
#define TT_FUSE_LONG_ROW 32768 /* rows up to this are reduced in stages */
#define TT_DRAW_NUMBERS 6      /* recorded numbers that make a draw */

/* What a slot of random numbers draws: the numbers that were recorded with it. */
static inline tt_draw tt_draw_of(const tt_slot *x, const tt_number *numbers) {
    const tt_number *c = numbers + x->index;
    tt_draw draw = {.seed = (uint64_t)c[0].bits,
                    .draw = (uint64_t)c[1].bits,
                    .kind = x->from & 7,
                    .digits = x->from >> 3,
                    .low = c[4].bits,
                    .range = (uint64_t)c[5].bits};
    memcpy(&draw.a, &c[2].bits, 8);
    memcpy(&draw.b, &c[3].bits, 8);
    return draw;
}
