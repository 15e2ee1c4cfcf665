/* Convolutions on the CPU: what conv.c plans, and the loops of simd/conv.c do.
 *
 * Note [Convolutions as products]
 * The result, and the gradient of input, are correlations: each place of a target is a sum over channels and taps of
 * elements of a source. Of the gradient of input, places that differ by a multiple of the stride form one correlation
 * (a phase), which has stride 1 and some of the taps. So with rows (tap, channel) a correlation is the product of the
 * weight (out x rows) and the unfolded source (rows x places); the gradient of weight is that of the unfolded input
 * (rows x places) and the result's gradient (places x out). Both are sums of small products ("tiles") whose operands
 * are packed: the weight once, the others in panels that stay in a core's caches. Where channels lie next to each
 * other, it is the transpose that is computed; a correlation reads runs of channels where they lie, by a table of
 * pointers (Dukhan, "The Indirect Convolution Algorithm", 2019, arXiv:1907.02129).
 *
 * An element's sum has one order: slices of rows (or of places), one after the other, each summed from 0. It depends on
 * shapes alone, so bits do not depend on the number of threads. */
#pragma once
#include "backend/conv.h"
#include "core/sizes.h"
#include "core/threads.h"

/* One dimension of a correlation. For place q and tap t it is element q step + first + t spacing of the source that
 * counts, 0 if outside [0, size). */
typedef struct {
    int64_t places, step, first, spacing, size;
    int64_t taps, tap, tap_step; /* tap t is the weight's tap + t tap_step */
    int64_t start, stride;       /* place q is the target's start + q stride */
    int64_t source, target, weight; /* elements from one index to the next, in each array */
} tt_conv_axis;

typedef struct {
    tt_conv_axis axis[TT_CONV_DIMS];
    int64_t batch, groups, in, out; /* channels of a group in source and target */
    int64_t taps, places, rows;     /* products of the axes'; rows = taps in */
    int64_t source_batch, source_channel, target_batch, target_channel; /* steps, in elements */
    int64_t weight_group, weight_in, weight_out;
    char *source, *weight, *target, *bias; /* contiguous or channels last; weight: with any strides; bias: or NULL */
    char *packed; /* the weight, in blocks: conv_pack.h. For gradients of weight: parts to be added */
    int64_t packed_by; /* channels of such a block */
    int64_t phases; /* correlations in an array, this one the first, that are computed together, block by block */
    bool last; /* channels lie next to each other */
    bool winograd; /* Note [Fewer multiplications] */
    int64_t slice; /* rows of a slice; of the gradient of weight: places */
    int64_t block, blocks; /* places of a task, and tasks for all places of a group */
    int64_t out_block, out_blocks; /* channels of a task, and tasks for all of a group */
    int64_t in_block, in_blocks, parts; /* of the gradient of weight: likewise for the source's channels; the places' */
    bool failed; /* there was no memory for a task */
    bool spoiled; /* of Note [Fewer multiplications]: something was not finite */
} tt_correlation;

/* Where a place lies: the element at which its taps are counted from, and its coordinates; its element of the
 * target. */
typedef struct {
    int64_t source, target, at[TT_CONV_DIMS];
} tt_conv_place;
/* Places [first, first + n) of (batch, *places) */
void tt_conv_locate(const tt_correlation *c, int64_t first, int64_t n, tt_conv_place *places);
/* The offset of row t's tap in the source, and its indices */
int64_t tt_conv_tap(const tt_correlation *c, int64_t t, int64_t *index);
int64_t tt_conv_weight_tap(const tt_correlation *c, int64_t t); /* ... and that in the weight */

/* Of each tap the offset in the source and the coordinates, relative to a place's. Places within [low, high) along each
 * dimension have all taps within the source. */
typedef struct {
    int64_t offset, at[TT_CONV_DIMS];
} tt_conv_tap_at;
typedef struct {
    int64_t low[TT_CONV_DIMS], high[TT_CONV_DIMS];
    tt_conv_tap_at *tap;
} tt_conv_taps;
void tt_conv_find_taps(const tt_correlation *c, tt_conv_taps *taps); /* fills taps->tap, of c->taps elements, too */
static inline bool tt_conv_has_all(const tt_conv_taps *taps, const tt_conv_place *p) {
    bool all = true;
    for (int d = 0; d < TT_CONV_DIMS; d++) all &= (p->at[d] >= taps->low[d]) & (p->at[d] < taps->high[d]);
    return all;
}
static inline bool tt_conv_has(const tt_correlation *c, const tt_conv_tap_at *tap, const tt_conv_place *p) {
    bool inside = true;
    for (int d = 0; d < TT_CONV_DIMS; d++) inside &= (uint64_t)(p->at[d] + tap->at[d]) < (uint64_t)c->axis[d].size;
    return inside;
}

/* What an instruction set provides, for one type of elements: all are to be shared out by tt_parallel. Of two functions
 * the second is for channels that lie next to each other. */
typedef struct {
    int64_t lanes, tile_rows, tile_columns;
    tt_range_fn pack; /* blocks of the weight: phases x groups x blocks of packed_by */
    tt_range_fn correlate[2]; /* tasks: groups x out_blocks x blocks, of every phase */
    tt_range_fn weigh[2]; /* tasks: parts x groups x in_blocks x out_blocks */
    tt_range_fn add_parts; /* rows of the weight's gradient: groups x out */
    /* groups of one channel: groups; planes x blocks, or blocks of places; parts x groups, or x 4 vectors of them */
    tt_range_fn pack_depthwise, depthwise[2], weigh_depthwise[2];
} tt_conv_loops;

typedef struct {
    tt_conv_loops types[3]; /* float32, float64, int64 */
    /* Note [Fewer multiplications] in simd/conv_winograd.h, of float32: blocks of the weight; lines of tiles;
     * parts of the lines x blocks of the source's channels x blocks of the target's; the source's channels */
    tt_range_fn winograd_weight, winograd, winograd_weigh, winograd_add_parts;
} tt_conv_table;

/* Memory for a task, in n parts of so many bytes, which begin at multiples of 64. To be freed by tt_scratch_free; NULL:
 * there is none. */
static inline char *tt_conv_memory(int n, const int64_t *sizes, char **parts) {
    int64_t all = 64;
    for (int k = 0; k < n; k++) all += (sizes[k] + 63) / 64 * 64;
    char *memory = tt_scratch(all);
    if (!memory) return NULL;
    parts[0] = memory + (64 - (uintptr_t)memory % 64) % 64;
    for (int k = 1; k < n; k++) parts[k] = parts[k - 1] + (sizes[k - 1] + 63) / 64 * 64;
    return memory;
}

/* In tiles, of bfloat16: bf16_conv.c. The gradient of weight is float32. */
bool tt_bf16_conv_fits(const tt_conv_work *w, bool winograd); /* winograd: as float32, it would be */
bool tt_bf16_correlate(tt_correlation *c);
bool tt_bf16_weigh(tt_correlation *c);
