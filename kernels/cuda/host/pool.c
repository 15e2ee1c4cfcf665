/* Segments and blocks: Note [Memory of devices] in pool.h. Nothing here calls Python or waits. */
#include "cuda/host/pool.h"
#include <stdlib.h>

#define UNIT 512 /* bytes; every block is a multiple */
#define MiB ((int64_t)1 << 20)
#define SMALL MiB           /* the largest block in a small segment */
#define SMALL_SEGMENT (2 * MiB)
#define LARGE_SEGMENT (20 * MiB)
#define OWN_SEGMENT (10 * MiB) /* from here on a segment is made to measure */
#define GRAIN (2 * MiB)

pthread_mutex_t tt_pool_lock = PTHREAD_MUTEX_INITIALIZER;
static tt_device_pool *pools[TT_CUDA_DEVICES + 1];

static void lock_all(void) { pthread_mutex_lock(&tt_pool_lock); }
static void unlock_all(void) { pthread_mutex_unlock(&tt_pool_lock); }
__attribute__((constructor)) static void survive_fork(void) { pthread_atfork(lock_all, unlock_all, unlock_all); }

tt_device_pool *tt_pool_of(int device) {
    tt_device_pool **at = &pools[device + 1];
    if (!*at) *at = calloc(1, sizeof **at);
    return *at;
}

tt_arena *tt_arena_of(int device, int stream, int private) {
    tt_device_pool *pool = tt_pool_of(device);
    if (!pool) return NULL;
    tt_arena **at = &pool->arenas[stream];
    while (*at && (*at)->private != private) at = &(*at)->next;
    if (!*at && (*at = calloc(1, sizeof **at))) {
        (*at)->device = device;
        (*at)->stream = stream;
        (*at)->private = private;
    }
    return *at;
}

static void count(const tt_segment *s, int what, int64_t by) {
    tt_count *counts = pools[s->device + 1]->stats.counts[what];
    tt_count *of[] = {&counts[0], &counts[s->small ? 1 : 2]};
    for (int k = 0; k < 2; k++) {
        tt_count *c = of[k];
        c->current += by;
        if (by > 0) c->up += by;
        else c->down -= by;
        if (c->current > c->peak) c->peak = c->current;
    }
}

/* Bins. Four for each power of two. */

static int bin_of(int64_t bytes) {
    uint64_t units = (uint64_t)bytes / UNIT;
    if (units < 4) return (int)units - 1;
    int top = 63 - __builtin_clzll(units);
    int bin = 4 * (top - 2) + 3 + (int)(units >> (top - 2) & 3);
    return bin < TT_NUM_BINS ? bin : TT_NUM_BINS - 1;
}

static tt_free_blocks *home(const tt_block *b) { return &b->segment->arena->free[b->segment->list]; }

static void insert(tt_block *b) {
    tt_free_blocks *f = home(b);
    int bin = bin_of(b->bytes);
    tt_block *before = NULL, *at = f->bins[bin];
    while (at && at->bytes < b->bytes) {
        before = at;
        at = at->next;
    }
    b->previous = before;
    b->next = at;
    if (at) at->previous = b;
    if (before) before->next = b;
    else f->bins[bin] = b;
    f->filled[bin / 64] |= (uint64_t)1 << bin % 64;
}

static void withdraw(tt_block *b) {
    tt_free_blocks *f = home(b);
    int bin = bin_of(b->bytes);
    if (b->next) b->next->previous = b->previous;
    if (b->previous) b->previous->next = b->next;
    else if (!(f->bins[bin] = b->next)) f->filled[bin / 64] &= ~((uint64_t)1 << bin % 64);
    b->next = b->previous = NULL;
}

/* The smallest block of at least `bytes`. */
static tt_block *best(const tt_free_blocks *f, int64_t bytes) {
    int bin = bin_of(bytes);
    for (tt_block *b = f->bins[bin]; b; b = b->next)
        if (b->bytes >= bytes) return b;
    uint64_t above = ++bin < TT_NUM_BINS ? f->filled[bin / 64] >> bin % 64 << bin % 64 : 0;
    for (int word = bin / 64; word < (TT_NUM_BINS + 63) / 64;
         above = ++word < (TT_NUM_BINS + 63) / 64 ? f->filled[word] : 0)
        if (above) return f->bins[64 * word + __builtin_ctzll(above)];
    return NULL;
}

/* Blocks. */

bool tt_is_small(int64_t bytes) { return bytes <= SMALL; }

static void count_split(const tt_block *b, int by) {
    if (!b->before && !b->after) return;
    count(b->segment, TT_INACTIVE_SPLIT, by);
    count(b->segment, TT_INACTIVE_SPLIT_BYTES, by * b->bytes);
}

/* Page-locked memory is handed out in powers of two: pinning is slow, and the same sizes come again. */
int64_t tt_block_bytes(int device, int64_t asked) {
    if (device == TT_HOST && asked > UNIT) return (int64_t)1 << (64 - __builtin_clzll((uint64_t)asked - 1));
    return asked <= UNIT ? UNIT : (asked + UNIT - 1) / UNIT * UNIT;
}

int64_t tt_segment_bytes(int device, int64_t bytes) {
    if (tt_is_small(bytes)) return SMALL_SEGMENT;
    if (device == TT_HOST) return bytes < GRAIN ? GRAIN : bytes;
    return bytes < OWN_SEGMENT ? LARGE_SEGMENT : (bytes + GRAIN - 1) / GRAIN * GRAIN;
}

/* `b` is in no bin. */
static tt_block *use(tt_block *b, int64_t asked) {
    b->state = TT_IN_USE;
    b->asked = asked;
    count(b->segment, TT_ALLOCATION, 1);
    count(b->segment, TT_ALLOCATED_BYTES, b->bytes);
    count(b->segment, TT_REQUESTED_BYTES, asked);
    count(b->segment, TT_ACTIVE, 1);
    count(b->segment, TT_ACTIVE_BYTES, b->bytes);
    return b;
}

tt_block *tt_block_take_whole(tt_block *b, int64_t asked) {
    withdraw(b);
    return use(b, asked);
}

tt_block *tt_block_take(tt_arena *arena, int64_t bytes, int64_t asked) {
    bool small = tt_is_small(bytes);
    tt_block *b = best(&arena->free[!small], bytes);
    if (!b) return NULL;
    int64_t left = b->bytes - bytes;
    tt_block *rest = NULL;
    if (small ? left >= UNIT : left > SMALL) rest = calloc(1, sizeof *rest); /* without one the block stays whole */
    withdraw(b);
    count_split(b, -1);
    if (rest) {
        *rest =
            (tt_block){.data = b->data + bytes, .bytes = left, .segment = b->segment, .before = b, .after = b->after};
        if (b->after) b->after->before = rest;
        b->after = rest;
        b->bytes = bytes;
        insert(rest);
        count_split(rest, 1);
    }
    return use(b, asked);
}

void tt_block_give(tt_block *b) {
    b->state = TT_WAITING;
    count(b->segment, TT_ALLOCATION, -1);
    count(b->segment, TT_ALLOCATED_BYTES, -b->bytes);
    count(b->segment, TT_REQUESTED_BYTES, -b->asked);
}

/* `b` and the one after it become one; both are free and in no bin. */
static void join(tt_block *b) {
    tt_block *after = b->after;
    b->bytes += after->bytes;
    b->after = after->after;
    if (b->after) b->after->before = b;
    free(after);
}

void tt_block_put(tt_block *b) {
    count(b->segment, TT_ACTIVE, -1);
    count(b->segment, TT_ACTIVE_BYTES, -b->bytes);
    b->state = TT_FREE;
    b->asked = 0;
    if (b->after && b->after->state == TT_FREE) {
        count_split(b->after, -1);
        withdraw(b->after);
        join(b);
    }
    if (b->before && b->before->state == TT_FREE) {
        b = b->before;
        count_split(b, -1);
        withdraw(b);
        join(b);
    }
    insert(b);
    count_split(b, 1);
}

/* Segments. */

tt_block *tt_segment_add(tt_arena *arena, bool small, bool single, char *data, int64_t bytes) {
    tt_segment *s = calloc(1, sizeof *s);
    tt_block *b = calloc(1, sizeof *b);
    if (!s || !b) {
        free(s);
        free(b);
        return NULL;
    }
    tt_device_pool *pool = tt_pool_of(arena->device);
    *s = (tt_segment){.device = arena->device,
                      .small = small,
                      .list = single ? 2 : !small,
                      .bytes = bytes,
                      .arena = arena,
                      .first = b,
                      .next = pool->segments};
    if (s->next) s->next->previous = s;
    pool->segments = s;
    *b = (tt_block){.data = data, .bytes = bytes, .segment = s};
    insert(b);
    count(s, TT_SEGMENT, 1);
    count(s, TT_RESERVED_BYTES, bytes);
    return b;
}

bool tt_segment_is_free(const tt_segment *s) { return s->first->state == TT_FREE && !s->first->after; }

void tt_segment_remove(tt_segment *s) {
    withdraw(s->first);
    free(s->first);
    if (s->next) s->next->previous = s->previous;
    if (s->previous) s->previous->next = s->next;
    else tt_pool_of(s->device)->segments = s->next;
    count(s, TT_SEGMENT, -1);
    count(s, TT_RESERVED_BYTES, -s->bytes);
    free(s);
}
