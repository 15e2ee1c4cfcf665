/* Memory of devices for tensors: allocation, giving back, what to do when there is none. Note [Memory of devices] in
 * pool.h. */
#include "cuda/host/pool.h"
#include "backend/now.h"
#include "cuda/host/traffic.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Python's part, defined in tinytorch/backends/cuda. */
extern int64_t tt_cuda_segment(int,
                               int64_t); /* the address, 0: there is no memory, -1: an exception, which Python keeps */
extern int tt_cuda_segment_free(int, int64_t);
extern int64_t tt_cuda_event(int, int, int, int64_t); /* RECORD: the event or -1; QUERY, WAIT: has it come? */
extern int tt_cuda_memory_info(int, int64_t *);

/* An event that must come before a block is free. Blocks given back while a graph is captured have `event` 0: theirs
 * is recorded afterwards. */
typedef struct awaited {
    struct awaited *next;
    tt_block *block;
    int64_t event;
    int device, stream;
} awaited;

static awaited *waiting, **waiting_end = &waiting; /* in the order of recording */
static int num_awaited; /* these, and those that a thread looks at just now */
static int captures; /* threads that allocate from a private pool */
static bool *retired; /* by private pool */
static int num_pools;
static bool stopped;
int tt_cuda_caching = 1;

static __thread uint8_t streams[TT_CUDA_DEVICES];
static __thread int private_pool;

void tt_cuda_set_stream(int device, int stream) { streams[device] = (uint8_t)stream; }
int tt_cuda_stream(int device) { return streams[device]; }
void tt_cuda_stop(void) { __atomic_store_n(&stopped, true, __ATOMIC_RELEASE); }

/* Blocks that wait for events. */

static void enqueue(awaited *a) {
    a->next = NULL;
    *waiting_end = a;
    waiting_end = &a->next;
}

/* Looks for events that have come, or waits for all of them, and frees their blocks. Not with the lock held. */
static void reap(bool wait) {
    pthread_mutex_lock(&tt_pool_lock);
    awaited *all = captures ? NULL : waiting;
    if (all) {
        waiting = NULL;
        waiting_end = &waiting;
    }
    pthread_mutex_unlock(&tt_pool_lock);
    if (!all) return;
    TT_LEAVE_TO_PYTHON;
    awaited *come = NULL, *left = NULL, **left_end = &left;
    uint64_t busy[TT_CUDA_DEVICES] = {0}; /* streams whose events have not come: later ones have not either */
    for (awaited *a = all, *next; a; a = next) {
        next = a->next;
        if (!a->event) a->event = tt_cuda_event(TT_EVENT_RECORD, a->device, a->stream, 0);
        bool done = false;
        if (wait) done = tt_cuda_event(TT_EVENT_WAIT, a->device, a->stream, a->event) > 0;
        else if (!(busy[a->device] >> a->stream & 1))
            done = a->event > 0 && tt_cuda_event(TT_EVENT_QUERY, a->device, a->stream, a->event) > 0;
        if (done) {
            a->next = come;
            come = a;
            continue;
        }
        busy[a->device] |= (uint64_t)1 << a->stream;
        *left_end = a;
        left_end = &a->next;
    }
    pthread_mutex_lock(&tt_pool_lock);
    if (left) { /* before those that came meanwhile */
        *left_end = waiting;
        if (!waiting) waiting_end = left_end;
        waiting = left;
    }
    while (come) {
        awaited *a = come;
        come = a->next;
        if (--a->block->events == 0 && a->block->state == TT_WAITING) tt_block_put(a->block);
        free(a);
        __atomic_fetch_sub(&num_awaited, 1, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&tt_pool_lock);
}

/* The block is not free before what the stream has been told to do by now is done. False: no memory to note that. */
static bool await(tt_block *b, int device, int stream, bool later) {
    awaited *a = malloc(sizeof *a);
    if (!a) return false;
    *a = (awaited){.block = b, .device = device, .stream = stream};
    TT_LEAVE_TO_PYTHON;
    if (!later && (a->event = tt_cuda_event(TT_EVENT_RECORD, device, stream, 0)) <= 0) {
        free(a);
        return false;
    }
    __atomic_fetch_add(&num_awaited, 1, __ATOMIC_RELAXED);
    pthread_mutex_lock(&tt_pool_lock);
    b->events++;
    enqueue(a);
    pthread_mutex_unlock(&tt_pool_lock);
    return true;
}

/* A storage lets go of its block. Where an event cannot be recorded (the device has failed, or the interpreter is gone)
 * the block is never used again: that is safe. */
static void release(void *owner) {
    tt_block *b = owner;
    pthread_mutex_lock(&tt_pool_lock);
    tt_block_give(b);
    uint64_t others = b->streams;
    bool later = captures > 0;
    b->streams = 0;
    if (!others && !b->events) tt_block_put(b);
    else b->events += others != 0; /* it must not be freed between one event and the next */
    pthread_mutex_unlock(&tt_pool_lock);
    if (!others) return;
    bool known = !__atomic_load_n(&stopped, __ATOMIC_ACQUIRE);
    for (int s = 0; s < TT_CUDA_STREAMS && known; s++)
        if (others >> s & 1) known = await(b, b->segment->device, s, later);
    pthread_mutex_lock(&tt_pool_lock);
    if (known && --b->events == 0) tt_block_put(b);
    pthread_mutex_unlock(&tt_pool_lock);
}

static void release_recorded(void *owner);
/* The cached memory of core/storage.c has no `release`: what lies there is of an earlier owner. */
static bool is_ours(const tt_storage *s) {
    return s->size_class == -1 && (s->release == release || s->release == release_recorded);
}

int tt_record_stream(tt_array *a, int stream) {
    if (!a->storage->device) {
        tt_fail(TT_RUNTIME_ERROR, "record_stream: the tensor is on the CPU, wanted one of a CUDA device");
        return -1;
    }
    if (!is_ours(a->storage)) return 0; /* someone else's memory: theirs to keep */
    tt_block *b = a->storage->owner;
    pthread_mutex_lock(&tt_pool_lock);
    if (stream != b->segment->arena->stream) b->streams |= (uint64_t)1 << stream;
    pthread_mutex_unlock(&tt_pool_lock);
    return 0;
}

/* Allocation. */

static bool unused(const tt_segment *s) {
    int private = s->arena->private;
    return tt_segment_is_free(s) && (!private || retired[private]);
}

int tt_cuda_empty_cache(int device) {
    TT_LEAVE_TO_PYTHON;
    int status = 0;
    reap(false);
    for (;;) {
        int64_t address = 0;
        pthread_mutex_lock(&tt_pool_lock);
        tt_device_pool *pool = tt_pool_of(device);
        tt_segment *s =
            pool && !captures ? pool->segments : NULL; /* freeing waits for the device: not while capturing */
        while (s && !unused(s)) s = s->next;
        if (s) {
            address = (int64_t)(intptr_t)s->first->data;
            tt_segment_remove(s);
        }
        pthread_mutex_unlock(&tt_pool_lock);
        if (!address) return status;
        if (tt_cuda_segment_free(device, address) < 0) {
            tt_fail(TT_PYTHON_ERROR, "memory could not be given back");
            status = -1;
        }
    }
}

typedef enum { DONE, NO_MEMORY, NO_DESCRIPTOR, FAILED } outcome;

static outcome from_cache(tt_arena **arena, int device, int64_t bytes, int64_t asked, tt_block **b) {
    int stream = device == TT_HOST ? 0 : streams[device];
    pthread_mutex_lock(&tt_pool_lock);
    *arena = tt_arena_of(device, stream, device == TT_HOST ? 0 : private_pool);
    *b = *arena ? tt_block_take(*arena, bytes, asked) : NULL;
    pthread_mutex_unlock(&tt_pool_lock);
    return *b ? DONE : *arena ? NO_MEMORY : NO_DESCRIPTOR;
}

/* `single`: a segment for this tensor alone. */
static outcome from_device(tt_arena *arena, int device, int64_t bytes, int64_t asked, bool single, tt_block **b) {
    TT_LEAVE_TO_PYTHON;
    int64_t size = single ? bytes : tt_segment_bytes(device, bytes);
    pthread_mutex_lock(&tt_pool_lock);
    tt_device_pool *pool = tt_pool_of(device);
    bool too_much = pool->limit && pool->stats.counts[TT_RESERVED_BYTES][0].current + size > pool->limit;
    pthread_mutex_unlock(&tt_pool_lock);
    int64_t address = too_much ? 0 : tt_cuda_segment(device, single ? asked : size);
    if (address <= 0) return address ? FAILED : NO_MEMORY;
    pthread_mutex_lock(&tt_pool_lock);
    tt_block *whole = tt_segment_add(arena, tt_is_small(bytes), single, (char *)(intptr_t)address, size);
    *b = !whole ? NULL : single ? tt_block_take_whole(whole, asked) : tt_block_take(arena, bytes, asked);
    pthread_mutex_unlock(&tt_pool_lock);
    if (!whole) tt_cuda_segment_free(device, address);
    return *b ? DONE : whole ? NO_MEMORY : NO_DESCRIPTOR; /* another thread may have taken the new block */
}

static const char *amount(char *text, size_t size, int64_t bytes) {
    if (bytes >= (int64_t)1 << 30) snprintf(text, size, "%.2f GiB", (double)bytes / (1 << 30));
    else if (bytes >= 1 << 20) snprintf(text, size, "%.2f MiB", (double)bytes / (1 << 20));
    else if (bytes >= 1 << 10) snprintf(text, size, "%.2f KiB", (double)bytes / (1 << 10));
    else snprintf(text, size, "%lld bytes", (long long)bytes);
    return text;
}

static void *out_of_memory(int device, int64_t asked) {
    char t[7][32], limit[64] = "";
    int64_t memory[2] = {0}, largest = 0, split = 0;
    TT_LEAVE_TO_PYTHON;
    bool told = device != TT_HOST && tt_cuda_memory_info(device, memory) == 0;
    pthread_mutex_lock(&tt_pool_lock);
    tt_device_pool *pool = tt_pool_of(device);
    pool->stats.ooms++;
    int64_t allocated = pool->stats.counts[TT_ALLOCATED_BYTES][0].current;
    int64_t reserved = pool->stats.counts[TT_RESERVED_BYTES][0].current;
    int64_t blocks = pool->stats.counts[TT_ALLOCATION][0].current;
    for (tt_segment *s = pool->segments; s; s = s->next)
        for (tt_block *b = s->first; b; b = b->after)
            if (b->state == TT_FREE) {
                split += b->bytes;
                if (b->bytes > largest) largest = b->bytes;
            }
    if (pool->limit) snprintf(limit, sizeof limit, " (it is limited to %s)", amount(t[0], sizeof *t, pool->limit));
    pthread_mutex_unlock(&tt_pool_lock);
    if (device == TT_HOST)
        return tt_fail(
            TT_OUT_OF_MEMORY, "out of page-locked memory: tried to allocate %s; %s are allocated, %s reserved",
            amount(t[1], sizeof *t, asked), amount(t[2], sizeof *t, allocated), amount(t[3], sizeof *t, reserved));
    char free_there[96] = "";
    if (told)
        snprintf(free_there, sizeof free_there, " Of the GPU's %s, %s are free.", amount(t[1], sizeof *t, memory[1]),
                 amount(t[2], sizeof *t, memory[0]));
    return tt_fail(
        TT_OUT_OF_MEMORY,
        "CUDA out of memory. Tried to allocate %s (%lld bytes) on cuda:%d.%s This process has "
        "reserved %s%s: %s are allocated in %lld blocks, %s are reserved but unallocated, of which the largest "
        "free block has %s.",
        amount(t[1], sizeof *t, asked), (long long)asked, device, free_there, amount(t[2], sizeof *t, reserved), limit,
        amount(t[3], sizeof *t, allocated), (long long)blocks, amount(t[4], sizeof *t, split),
        amount(t[5], sizeof *t, largest));
}

static void *refused(outcome got) {
    if (got == FAILED) return tt_fail(TT_PYTHON_ERROR, "memory could not be allocated");
    return tt_fail(TT_OUT_OF_MEMORY, "out of memory: no room for a block's header");
}

static void count_retry(int device) {
    pthread_mutex_lock(&tt_pool_lock);
    tt_pool_of(device)->stats.retries++;
    pthread_mutex_unlock(&tt_pool_lock);
}

/* Without the cache. */
static __attribute__((noinline, cold)) tt_block *allocate_single(int device, int64_t bytes, int64_t asked) {
    for (int attempt = 0;; attempt++) {
        tt_block *b = NULL;
        if (tt_cuda_empty_cache(device) < 0) return NULL;
        pthread_mutex_lock(&tt_pool_lock);
        tt_arena *arena = tt_arena_of(device, streams[device], 0);
        pthread_mutex_unlock(&tt_pool_lock);
        outcome got = arena ? from_device(arena, device, bytes, asked, true, &b) : NO_DESCRIPTOR;
        if (got == DONE) return b;
        if (got != NO_MEMORY) return refused(got);
        if (attempt == 1) return out_of_memory(device, asked);
        reap(true);
        count_retry(device);
    }
}

/* NULL and an error when there is no memory, even after the cache is emptied. */
static tt_block *allocate(int device, int64_t asked) {
    if (asked > (int64_t)1 << 46) return out_of_memory(device, asked);
    int64_t bytes = tt_block_bytes(device, asked);
    if (!tt_cuda_caching && device != TT_HOST && !private_pool) return allocate_single(device, bytes, asked);
    tt_arena *arena;
    tt_block *b;
    if (__atomic_load_n(&num_awaited, __ATOMIC_RELAXED)) reap(false);
    for (int attempt = 0;; attempt++) {
        outcome got = from_cache(&arena, device, bytes, asked, &b);
        if (got == NO_MEMORY) got = from_device(arena, device, bytes, asked, false, &b);
        if (got == DONE) return b;
        if (got != NO_MEMORY) return refused(got);
        if (attempt == 2) return out_of_memory(device, asked);
        if (attempt == 0) {
            reap(true);
            continue;
        }
        tt_cuda_empty_cache(device);
        count_retry(device);
    }
}

static tt_storage *storage_on(int device, int64_t nbytes) {
    tt_storage *s = calloc(1, sizeof *s);
    if (!s) return tt_fail(TT_OUT_OF_MEMORY, "out of memory: no room for a storage's header");
    tt_block *b = nbytes || device == TT_HOST ? allocate(device, nbytes ? nbytes : 1) : NULL;
    if (!b && (nbytes || device == TT_HOST)) {
        free(s);
        return NULL;
    }
    *s = (tt_storage){.data = b ? b->data : NULL,
                      .nbytes = nbytes,
                      .refs = 1,
                      .writer = -1,
                      .size_class = -1,
                      .device = (int16_t)(device + 1),
                      .owner = b,
                      .release = b ? release : NULL};
    return s;
}

tt_storage *tt_cuda_storage(int64_t nbytes) { return storage_on(tt_device - 1, nbytes); }
static tt_storage *on_host(int64_t nbytes) { return storage_on(TT_HOST, nbytes); }

__attribute__((constructor)) static void serve(void) { tt_pinned_storage = on_host; }

/* The same while traffic is recorded: Note [Traffic] in traffic.h. */

static void record(int device, const void *address, int64_t size) {
    pthread_mutex_lock(&tt_pool_lock);
    int64_t total = tt_pool_of(device)->stats.counts[TT_ALLOCATED_BYTES][0].current;
    pthread_mutex_unlock(&tt_pool_lock);
    tt_traffic_add(address, size, total, device);
}

static void release_recorded(void *owner) {
    tt_block *b = owner;
    int device = b->segment->device;
    const char *address = b->data;
    int64_t bytes = b->bytes;
    release(b);
    record(device, address, -bytes);
}

static tt_storage *recorded(tt_storage *s) {
    const tt_block *b = s ? s->owner : NULL;
    if (!b) return s;
    record(b->segment->device, b->data, b->bytes);
    s->release = release_recorded;
    return s;
}
static tt_storage *recorded_on_device(int64_t nbytes) { return recorded(tt_cuda_storage(nbytes)); }
static tt_storage *recorded_on_host(int64_t nbytes) { return recorded(on_host(nbytes)); }

void tt_traffic_record(bool on) {
    __atomic_store_n(&tt_device_storage[TT_CUDA_KIND], on ? recorded_on_device : tt_cuda_storage, __ATOMIC_RELAXED);
    __atomic_store_n(&tt_pinned_storage, on ? recorded_on_host : on_host, __ATOMIC_RELAXED);
}

tt_array *tt_cuda_temporary(int dtype, int64_t n) { return tt_empty(dtype, 1, &n); }

/* Page-locked memory. */

tt_array *tt_to_pinned(tt_array *a) {
    if (!tt_ready(a) || tt_device) return tt_decline();
    tt_pinning = true;
    tt_array *out = tt_like(a, a->dtype);
    tt_pinning = false;
    if (out && tt_copy_now(out, a) < 0) {
        tt_free(out);
        return NULL;
    }
    return out;
}

int tt_is_pinned(tt_array *a) { return !a->storage->device && is_ours(a->storage); }

/* The stream of `device` has been told to read or write page-locked memory. */
bool tt_pinned_used(const tt_array *a, int device) {
    if (!tt_is_pinned((tt_array *)a) || await(a->storage->owner, device, streams[device], captures > 0)) return true;
    tt_fail(TT_RUNTIME_ERROR, "CUDA error: no event could be recorded for a copy of page-locked memory");
    return false;
}

/* Private pools. */

int tt_cuda_use_pool(int pool) {
    int before = private_pool;
    pthread_mutex_lock(&tt_pool_lock);
    if (pool >= num_pools) {
        bool *more = realloc(retired, sizeof *retired * (size_t)(2 * pool + 1));
        if (more) {
            memset(more + num_pools, 0, sizeof *more * (size_t)(2 * pool + 1 - num_pools));
            retired = more;
            num_pools = 2 * pool + 1;
        }
    }
    bool known = pool < num_pools || !pool;
    if (known) {
        captures += (pool != 0) - (before != 0);
        private_pool = pool;
        if (pool) retired[pool] = false; /* its last graph may have gone, and this is another */
    }
    pthread_mutex_unlock(&tt_pool_lock);
    if (known) return before;
    tt_fail(TT_OUT_OF_MEMORY, "out of memory: no room for a private pool");
    return -1;
}

bool tt_is_capturing(void) { return private_pool != 0; }

int tt_cuda_retire_pool(int pool) {
    pthread_mutex_lock(&tt_pool_lock);
    if (pool > 0 && pool < num_pools) retired[pool] = true;
    pthread_mutex_unlock(&tt_pool_lock);
    return 0;
}

/* Figures. */

static tt_device_pool *locked_pool(int device) {
    pthread_mutex_lock(&tt_pool_lock);
    tt_device_pool *pool = tt_pool_of(device);
    if (pool) return pool;
    pthread_mutex_unlock(&tt_pool_lock);
    return tt_fail(TT_OUT_OF_MEMORY, "out of memory: no room for a device's statistics");
}

int tt_cuda_memory_limit(int device, int64_t bytes) {
    tt_device_pool *pool = locked_pool(device);
    if (!pool) return -1;
    pool->limit = bytes;
    pthread_mutex_unlock(&tt_pool_lock);
    return 0;
}

int tt_cuda_memory_stats(int device, int64_t *out) {
    _Static_assert(sizeof(tt_pool_stats) == TT_CUDA_STATS * sizeof(int64_t), "the figures are numbers in a row");
    tt_device_pool *pool = locked_pool(device);
    if (!pool) return -1;
    memcpy(out, &pool->stats, sizeof pool->stats);
    pthread_mutex_unlock(&tt_pool_lock);
    return 0;
}

int tt_cuda_reset_stats(int device, int peaks) {
    tt_device_pool *pool = locked_pool(device);
    if (!pool) return -1;
    for (int what = 0; what < TT_NUM_COUNTS; what++)
        for (int k = 0; k < 3; k++) {
            tt_count *c = &pool->stats.counts[what][k];
            if (peaks) c->peak = c->current;
            else c->up = c->down = 0;
        }
    if (!peaks) pool->stats.retries = pool->stats.ooms = 0;
    pthread_mutex_unlock(&tt_pool_lock);
    return 0;
}

int64_t tt_cuda_snapshot(int device, int64_t *out, int64_t rows) {
    tt_device_pool *pool = locked_pool(device);
    int64_t n = 0;
    if (!pool) return -1;
    for (tt_segment *s = pool->segments; s; s = s->next)
        for (tt_block *b = s->first; b; b = b->after, n++) {
            if (n >= rows) continue;
            int64_t row[] = {(int64_t)(intptr_t)s->first->data, s->bytes, s->small, s->arena->stream, s->arena->private,
                             (int64_t)(intptr_t)b->data,        b->bytes, b->state};
            memcpy(out + 8 * n, row, sizeof row);
        }
    pthread_mutex_unlock(&tt_pool_lock);
    return n;
}
