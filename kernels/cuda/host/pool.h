/* Blocks of device memory: segments that Python allocates, split into blocks for tensors and merged again.
 *
 * Note [Memory of devices]
 * Blocks belong to an arena: a device, one of its streams and, for graphs, a private pool. A block that a tensor gives
 * back is free at once for the next tensor of its own stream: what is launched there later also runs later. Where other
 * streams used it too (tt_record_stream), it is free when an event of each of them has come.
 *
 * As in PyTorch, tensors of up to 1 MiB share segments of 2 MiB, larger ones those of 20 MiB; from 10 MiB on a segment
 * is made to measure. The best fitting free block is taken, and what is left of it is a block again; free neighbours
 * within a segment are one block.
 *
 * Page-locked memory of the CPU comes from here too, as that of a device HOST without streams.
 *
 * The setting "cuda_caching" at 0 serves tools that look for accesses beyond a tensor's end: each tensor has an
 * allocation of the driver's that is its own, of just the bytes asked for, and before the next one all that is unused
 * goes back to the driver. In the books it is a segment of one block, of the usual rounded size: more than it really
 * has, so it is never handed out a second time, whatever the setting is by then. Page-locked memory and private pools
 * stay as they are.
 *
 * One mutex guards everything here. No function of Python's is called while it is held: segments, events and frees are
 * Python's affair, and any of them may run other Python code, which may want memory. */
#pragma once
#include "cuda/host/cuda.h"
#include <pthread.h>

#define TT_HOST (-1) /* as a device: page-locked memory */

typedef struct tt_block tt_block;
typedef struct tt_arena tt_arena;
typedef struct tt_segment tt_segment;

#define TT_NUM_BINS 160

typedef struct {
    uint64_t filled[(TT_NUM_BINS + 63) / 64]; /* which bins are not empty */
    tt_block *bins[TT_NUM_BINS];              /* by size; each in order of size */
} tt_free_blocks;

struct tt_arena {
    int device, stream, private;
    tt_free_blocks free[3]; /* of small segments, of large ones, and of those for one tensor: nobody looks there */
    tt_arena *next;         /* of the same device and stream */
};

struct tt_segment {
    int device;
    bool small;
    int list; /* of the arena's: where its free blocks are */
    int64_t bytes;
    tt_arena *arena;
    tt_block *first;
    tt_segment *previous, *next;
};

enum { TT_FREE, TT_IN_USE, TT_WAITING /* given back, but a stream may still use it */ };

struct tt_block {
    char *data;
    int64_t bytes, asked;
    tt_segment *segment;
    tt_block *before, *after;   /* its neighbours in the segment */
    tt_block *previous, *next;  /* in a bin; `next` in a list of those that wait */
    int state, events;          /* events that have not come yet */
    uint64_t streams;           /* others that used it */
};

/* What is counted, for small segments, large ones and both: the statistics of torch.cuda.memory_stats. */
enum {
    TT_ALLOCATION,
    TT_SEGMENT,
    TT_ACTIVE,
    TT_INACTIVE_SPLIT,
    TT_ALLOCATED_BYTES,
    TT_RESERVED_BYTES,
    TT_ACTIVE_BYTES,
    TT_INACTIVE_SPLIT_BYTES,
    TT_REQUESTED_BYTES,
    TT_NUM_COUNTS
};
typedef struct {
    int64_t current, peak, up, down;
} tt_count;
typedef struct {
    tt_count counts[TT_NUM_COUNTS][3]; /* all, small, large */
    int64_t retries, ooms;
} tt_pool_stats;

typedef struct {
    tt_arena *arenas[TT_CUDA_STREAMS];
    tt_segment *segments;
    tt_pool_stats stats;
    int64_t limit; /* of reserved bytes; 0: none */
} tt_device_pool;

/* All of these with tt_pool_lock held. NULL without an error: no memory for descriptors. */
extern pthread_mutex_t tt_pool_lock;
tt_device_pool *tt_pool_of(int device);
tt_arena *tt_arena_of(int device, int stream, int private);
bool tt_is_small(int64_t bytes);                     /* does a block come from small segments? */
int64_t tt_block_bytes(int device, int64_t asked);   /* rounded up as blocks are */
int64_t tt_segment_bytes(int device, int64_t bytes); /* of the segment made for a block */
tt_block *tt_block_take(tt_arena *arena, int64_t bytes, int64_t asked); /* NULL: none is free that large */
tt_block *tt_block_take_whole(tt_block *b, int64_t asked); /* a free one, which is a whole segment */
void tt_block_give(tt_block *b); /* no longer used by a tensor: waits, as far as statistics go */
void tt_block_put(tt_block *b);  /* free for others, merged with its neighbours */
tt_block *tt_segment_add(tt_arena *arena, bool small, bool single, char *data, int64_t bytes); /* its one block, free */
bool tt_segment_is_free(const tt_segment *s);
void tt_segment_remove(tt_segment *s); /* takes a free one out and forgets it */
