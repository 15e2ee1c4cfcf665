/* Words of a random stream: Note [Random streams] in kernels/scalar/philox.h. */
#pragma once
#include "cuda/prelude.cuh"
#include "cuda/random_args.h"
#include "scalar/random.h"

/* Where a run of a graph has put the stream. */
static TT_DEVICE tt_stream tt_placed(const tt_stream &s) {
    const tt_stream there = {s.seed + s.place[0], s.draw + s.place[1], 0};
    return there;
}
#define TT_PLACED(s) ((s).place ? tt_placed(s) : (s))

/* The word of element i, of two. */
static TT_DEVICE uint64_t tt_long_word(const tt_stream &s, int64_t i) {
    const int64_t group = i / TT_PHILOX_GROUP;
    const int place = (int)(i % TT_PHILOX_GROUP), lane = place % TT_PHILOX_LANES, word = place / TT_PHILOX_LANES;
    const uint64_t at = 2 * (uint64_t)group * TT_PHILOX_LANES + lane;
    const tt_philox_block a = tt_philox(s.seed, s.draw, at), b = tt_philox(s.seed, s.draw, at + TT_PHILOX_LANES);
    const uint32_t high = word == 0 ? a.x0 : word == 1 ? a.x1 : word == 2 ? a.x2 : a.x3;
    const uint32_t low = word == 0 ? b.x0 : word == 1 ? b.x1 : word == 2 ? b.x2 : b.x3;
    return (uint64_t)high << 32 | low;
}
