/* Philox4x32-10, the counter-based generator of Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as
   1, 2, 3" (SC 2011): four words that are a function of a counter of four words and a key of two.

   Note [Random streams]
   The key is the seed.  Counter words 2 and 3 are the number of the draw (a generator counts them), words 0 and 1 the
   number of the block within it: so no two draws share a block, and an element's number is a function of seed, draw
   and index alone.  Sixteen consecutive blocks make a group of 64 words, word k of block b at place 16 k + b: vectors
   of up to 16 lanes compute a group and store it without a shuffle.  An element of float32 takes one word; element i
   is word i % 64 of group i / 64.  float64 and int64 take two, from groups 2 (i / 64) and 2 (i / 64) + 1. */
#ifndef TT_SCALAR_PHILOX_H
#define TT_SCALAR_PHILOX_H

#include "bits.h"

#define TT_PHILOX_LANES 16
#define TT_PHILOX_GROUP 64

typedef struct {
    tt_u32 x0, x1, x2, x3;
} tt_philox_block;

TT_FN tt_u32 tt_mulhi_u32(tt_u32 a, tt_u32 b) { return (tt_u32)((tt_u64)a * b >> 32); }

TT_FN tt_philox_block tt_philox(tt_u64 seed, tt_u64 draw, tt_u64 block) {
    tt_philox_block c = {(tt_u32)block, (tt_u32)(block >> 32), (tt_u32)draw, (tt_u32)(draw >> 32)};
    tt_u32 k0 = (tt_u32)seed, k1 = (tt_u32)(seed >> 32);
    int round;
    for (round = 0; round < 10; round++) {
        tt_u32 high0 = tt_mulhi_u32(0xD2511F53u, c.x0), low0 = 0xD2511F53u * c.x0;
        tt_u32 high1 = tt_mulhi_u32(0xCD9E8D57u, c.x2), low1 = 0xCD9E8D57u * c.x2;
        c.x0 = high1 ^ c.x1 ^ k0;
        c.x1 = low1;
        c.x2 = high0 ^ c.x3 ^ k1;
        c.x3 = low0;
        k0 += 0x9E3779B9u;
        k1 += 0xBB67AE85u;
    }
    return c;
}

/* Uniform on [0, 1): every multiple of 2^-24, of 2^-53. */
TT_FN float tt_uniform_f32(tt_u32 w) { return (float)(tt_i32)(w >> 8) * 0x1p-24f; }
TT_FN double tt_uniform_f64(tt_u64 w) { return (double)(tt_i64)(w >> 11) * 0x1p-53; }

/* Uniform on (0, 1], never 0, and finer near it: what a logarithm wants. */
TT_FN float tt_uniform_open_f32(tt_u32 w) {
    float high = (float)(tt_i32)(w >> 16), low = (float)(tt_i32)(w & 0xffffu);
    return (high * 65536.0f + (low + 0.5f)) * 0x1p-32f;
}
TT_FN double tt_uniform_open_f64(tt_u64 w) { return ((double)(tt_i64)(w >> 12) + 0.5) * 0x1p-52; }

#endif
