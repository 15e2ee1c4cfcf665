/* Words of a random stream: Note [Random streams] in kernels/scalar/philox.h. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/random_args.h"
#include "scalar/random.h"

/* Where a run of a graph has put the stream. */
static TT_DEVICE tt_stream tt_placed(const tt_stream &s) {
    const tt_stream there = {s.seed + s.place[0], s.draw + s.place[1], 0};
    return there;
}
#define TT_PLACED(s) ((s).place ? tt_placed(s) : (s))

/* What an element is drawn from, by TT_D1; the words of a lane's four elements, which are TT_PHILOX_LANES apart. */
#if TT_IS(TT_D1, f32)
typedef uint32_t tt_word;
static TT_DEVICE void tt_words_of_lane(const tt_stream &s, int64_t group, int lane, tt_word *w) {
    const tt_philox_block c = tt_philox(s.seed, s.draw, (uint64_t)group * TT_PHILOX_LANES + lane);
    w[0] = c.x0, w[1] = c.x1, w[2] = c.x2, w[3] = c.x3;
}
#else
typedef uint64_t tt_word;
static TT_DEVICE void tt_words_of_lane(const tt_stream &s, int64_t group, int lane, tt_word *w) {
    const uint64_t at = 2 * (uint64_t)group * TT_PHILOX_LANES + lane;
    const tt_philox_block high = tt_philox(s.seed, s.draw, at), low = tt_philox(s.seed, s.draw, at + TT_PHILOX_LANES);
    w[0] = (uint64_t)high.x0 << 32 | low.x0, w[1] = (uint64_t)high.x1 << 32 | low.x1;
    w[2] = (uint64_t)high.x2 << 32 | low.x2, w[3] = (uint64_t)high.x3 << 32 | low.x3;
}
#endif

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
