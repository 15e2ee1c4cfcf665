/* What the host hands to the kernels that move elements by index tensors: see index.c. */
#pragma once
#include "cuda/device/args.h"
#include "cuda/device/fault.h"

#define TT_INDEX_TENSORS 8

/* The offset into a table of each of m positions: what the position itself adds (gather, scatter), and the entries that
 * its value in each of n index tensors names. Dimensions innermost first; all steps in bytes. */
typedef struct {
    const char *data;
    int64_t total; /* valid values are below it */
    int32_t dtype, dim; /* dim: for the message */
    int32_t first, parts; /* of part_size: the table's dimensions that it counts through, innermost first */
} tt_index_tensor;
typedef struct {
    tt_fault *fault;
    int64_t m;
    int32_t n, ndim, rule, own; /* rule: of TT_FAULT_...; own: does table_step count? */
    int64_t size[TT_CUDA_DIMS];
    tt_divider by[TT_CUDA_DIMS];
    int64_t table_step[TT_CUDA_DIMS];
    int64_t index_step[TT_INDEX_TENSORS][TT_CUDA_DIMS];
    tt_index_tensor of[TT_INDEX_TENSORS];
    int64_t part_size[TT_CUDA_DIMS], part_step[TT_CUDA_DIMS];
} tt_positions;

/* The table's dimensions before and after those indexed: of `size`, the first `pre` are the former's. */
typedef struct {
    int64_t npre, npost;
    int32_t pre, post;
    int64_t size[TT_CUDA_DIMS];
    tt_divider by[TT_CUDA_DIMS], by_npost, by_m;
    int64_t step[TT_CUDA_DIMS];
} tt_around;

/* Slots in which positions that mean one element meet: a number for each element, or (with keys) a hash table. */
typedef struct {
    uint64_t *keys; /* slots of them; all ones: free */
    int32_t *last; /* the last position that came */
    uint64_t mask; /* slots - 1 */
    int64_t grain; /* all offsets are multiples of it */
} tt_claims;

typedef struct {
    char *table, *rows;
    int64_t total, row_step; /* row_step 0: one element for all */
    void *sort_keys;
    tt_claims claims;
    tt_around around;
    tt_positions at;
} tt_index_args;

/* segments: the updates of each element, one after the other in the order of the index */
typedef struct {
    char *table;
    const char *rows;
    int64_t m, row_step, grain;
    const void *keys;
    const uint32_t *order;
    const uint32_t *left; /* with TT_SEGMENTS_LEFT: is the last digit of the keys not sorted? */
    int64_t slots; /* all keys are below it */
    int32_t lanes_log, unused;
    tt_around around;
} tt_segment_args;
#define TT_SEGMENTS_LEFT 64 /* a bit of the variant */
#define TT_OWN 256 /* then a warp has as many positions */

/* radix: a stable sort of up to 2^31 - 1 keys, each with a number */
#define TT_RADIX_PASSES 12 /* eight of a key's bytes, four of a row's number */
typedef struct {
    const void *in; /* elements one after the other, or keys */
    const uint32_t *order; /* their numbers; NULL: 0, 1, 2, ... */
    void *keys[2]; /* what the passes make; the last one's is in [0] */
    uint32_t *numbers[2];
    uint32_t *counts; /* [passes][256] of digits, then how many are below; [passes] tickets, how many blocks have
                            * counted, [passes] what a pass does: all 0 at first */
    void *states[2]; /* of tiles: [tiles][256] */
    char *values; /* sorted elements and their places in their rows, instead of keys and numbers; or NULL */
    int64_t *places;
    int64_t n, row_length;
    int32_t key_passes, passes, pass;
    int32_t
        leaves; /* may the last digit stay unsorted, where keys are spread? Behind the plans it says whether it did */
    tt_divider row; /* passes after those of keys are by digits of number / row */
} tt_radix_args;
