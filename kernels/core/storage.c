/* Memory: descriptors and storages come from caches and go back to them the moment the last reference goes.
 *
 * A storage's header stands in front of its data, in one block. Blocks fall into size classes: 64-byte steps up to
 * 1 KiB, then four steps per power of two, so at most a fifth is lost. Small classes have a free list per thread (no
 * lock in the hot path), the others one list each behind a lock; of scratch memory a thread keeps one block. Blocks of
 * large classes keep their pages: on Linux touching fresh pages costs several times the arithmetic (16M floats: 18 ms
 * against 4). */
#include "core/tt.h"
#include "core/jobs.h"
#include "core/fork.h"
#include "core/thread_exit.h"
#include "core/records.h"
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* Under AddressSanitizer a block in a cache, and a live one beyond the bytes asked for, may not be touched. */
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#else
#define ASAN_POISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#define ASAN_UNPOISON_MEMORY_REGION(p, n) ((void)(p), (void)(n))
#endif

/* And what nobody has written is NaN, or -1, in a block that was used before, too. TT_FILL_FRESH asks for it alone. */
#if defined(__SANITIZE_ADDRESS__) || defined(TT_FILL_FRESH)
#define FILL_FRESH(p, n) memset(p, 0xFF, (n) < FILLED ? (size_t)(n) : FILLED)
#define FILLED ((size_t)1 << 26) /* pages beyond are zero until they are touched */
#else
#define FILL_FRESH(p, n) ((void)(p), (void)(n))
#endif

#define HEADER 64
#define SMALL_CLASSES 16 /* 64 ... 1024 bytes */
#define NUM_CLASSES (SMALL_CLASSES + 4 * 38)
#define PER_THREAD 64 /* blocks of one class that a thread keeps to itself */
#define HUGE_PAGE ((int64_t)1 << 21)
#define MOST_SPARE ((int64_t)1 << 21) /* bytes of scratch memory that a thread keeps */

_Static_assert(sizeof(tt_storage) <= HEADER, "the header holds the storage");

static struct {
    int64_t allocated, peak, reserved, reserved_peak, allocs, frees, ooms;
} stats;

typedef struct {
    tt_storage *blocks[SMALL_CLASSES];
    int counts[SMALL_CLASSES];
    tt_storage *spare; /* the scratch memory that was freed last */
    tt_array *arrays;
    int num_arrays;
    bool registered; /* it is handed over when the thread ends */
} thread_cache;

static __thread thread_cache cache;
__thread uint16_t tt_thread_flags;
__thread bool tt_pinning;
tt_storage *(*tt_device_storage[TT_DEVICE_KINDS])(int64_t);
tt_storage *(*tt_pinned_storage)(int64_t);

static tt_storage *shared[NUM_CLASSES]; /* changed with the lock held, by set_shared: some look without it */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void raise_to(int64_t *peak, int64_t now) {
    int64_t seen = __atomic_load_n(peak, __ATOMIC_RELAXED);
    while (now > seen && !__atomic_compare_exchange_n(peak, &seen, now, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {}
}

static int class_of(int64_t bytes) {
    if (bytes <= 1024) return bytes <= 64 ? 0 : (int)((bytes - 1) / 64);
    int top = 63 - __builtin_clzll((uint64_t)(bytes - 1));   /* 2^top <= bytes - 1 */
    int quarter = (int)(((bytes - 1) >> (top - 2)) & 3);
    return SMALL_CLASSES + 4 * (top - 10) + quarter;
}

static int64_t class_bytes(int c) {
    if (c < SMALL_CLASSES) return (int64_t)(c + 1) * 64;
    int top = (c - SMALL_CLASSES) / 4 + 10, quarter = (c - SMALL_CLASSES) % 4;
    return (int64_t)(5 + quarter) << (top - 2);
}

static void set_shared(int c, tt_storage *s) { __atomic_store_n(&shared[c], s, __ATOMIC_RELAXED); }

static void release_block(tt_storage *s, int64_t bytes) {
    ASAN_UNPOISON_MEMORY_REGION((char *)s + HEADER, (size_t)bytes);
    if (bytes + HEADER >= HUGE_PAGE) munmap(s, (size_t)(bytes + HEADER));
    else free(s);
    __atomic_fetch_sub(&stats.reserved, bytes, __ATOMIC_RELAXED);
}

static tt_storage *fresh_block(int64_t bytes) {
    tt_storage *s = NULL;
    if (bytes + HEADER >= HUGE_PAGE) {
        void *p = mmap(NULL, (size_t)(bytes + HEADER), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
        if (p != MAP_FAILED) {
            s = p;
#ifdef MADV_HUGEPAGE
            madvise(p, (size_t)(bytes + HEADER), MADV_HUGEPAGE);
#endif
        }
    } else if (posix_memalign((void **)&s, 64, (size_t)(bytes + HEADER)) != 0) s = NULL;
    if (s) raise_to(&stats.reserved_peak, __atomic_add_fetch(&stats.reserved, bytes, __ATOMIC_RELAXED));
    return s;
}

static void share(tt_storage *s) {
    pthread_mutex_lock(&lock);
    s->owner = shared[s->size_class];
    set_shared(s->size_class, s);
    pthread_mutex_unlock(&lock);
}

/* A thread that ends hands what it kept to the shared lists. */
static void flush_thread(void *p) {
    thread_cache *c = p;
    pthread_mutex_lock(&lock);
    for (int k = 0; k < SMALL_CLASSES; k++) {
        while (c->blocks[k]) {
            tt_storage *s = c->blocks[k];
            c->blocks[k] = s->owner;
            s->owner = shared[k];
            set_shared(k, s);
        }
        c->counts[k] = 0;
    }
    pthread_mutex_unlock(&lock);
    while (c->arrays) {
        tt_array *a = c->arrays;
        c->arrays = (tt_array *)a->storage;
        free(a);
    }
    c->num_arrays = 0;
    if (c->spare) share(c->spare);
    c->spare = NULL;
}

TT_AT_THREAD_EXIT(flush_at_exit, flush_thread)

static void register_thread(void) {
    flush_at_exit(&cache);
    cache.registered = true;
}

/* Note [Recorded memory]
 * While the profiler records memory, the peak that host_storage compares with is INT64_MIN, so that every
 * allocation takes the way of one that raises it, to `peaked`; the true peak stands in recorded_peak. What is allocated
 * then has a size class of RECORDED + c, and so ends on the way of foreign memory. Blocks that were there before are
 * seen to end if they are large. Without the profiler it costs nothing. */
#define RECORDED INT16_MIN
#define IS_RECORDED(s) ((s)->size_class < RECORDED + NUM_CLASSES)
static int64_t recorded_peak;
static bool recording;

static __attribute__((noinline, cold)) void peaked(tt_storage *s, int64_t now) {
    pthread_mutex_lock(&lock);
    bool record = recording;
    raise_to(record ? &recorded_peak : &stats.peak, now);
    pthread_mutex_unlock(&lock);
    if (!record) return;
    tt_profile_memory(s->data, class_bytes(s->size_class), now);
    s->size_class += RECORDED;
}

/* Before anyone else can have the block. */
static __attribute__((noinline, cold)) void record_end(tt_storage *s) {
    int64_t bytes = class_bytes(s->size_class), now = __atomic_load_n(&stats.allocated, __ATOMIC_RELAXED);
    if (s->size_class < SMALL_CLASSES) now -= bytes; /* it has not been subtracted yet */
    tt_profile_memory((char *)s + HEADER, -bytes, now);
}

void tt_record_memory(bool on) {
    pthread_mutex_lock(&lock);
    if (on != recording) {
        __atomic_store_n(&recording, on, __ATOMIC_RELAXED);
        if (on) recorded_peak = stats.peak;
        __atomic_store_n(&stats.peak, on ? INT64_MIN : recorded_peak, __ATOMIC_RELAXED);
    }
    pthread_mutex_unlock(&lock);
}

static int64_t *true_peak(void) { return __atomic_load_n(&recording, __ATOMIC_RELAXED) ? &recorded_peak : &stats.peak; }

static void at_fork(int phase) { tt_fork_lock(&lock, phase); }
TT_AT_FORK(TT_FORK_STORAGES, at_fork)

static tt_storage *host_storage(int64_t nbytes) {
    if (nbytes > (int64_t)1 << 46) goto none;
    int c = class_of(nbytes);
    int64_t bytes = class_bytes(c);
    tt_storage *s = NULL;
    if (c < SMALL_CLASSES && cache.blocks[c]) {
        s = cache.blocks[c];
        cache.blocks[c] = s->owner;
        cache.counts[c]--;
    } else if (cache.spare && cache.spare->size_class == c) {
        s = cache.spare;
        cache.spare = NULL;
    } else {
        if (__atomic_load_n(&shared[c], __ATOMIC_RELAXED)) {
            pthread_mutex_lock(&lock);
            s = shared[c];
            if (s) set_shared(c, s->owner);
            pthread_mutex_unlock(&lock);
        }
        if (!s) s = fresh_block(bytes);
        if (!s) {
            tt_empty_cache();
            s = fresh_block(bytes);
        }
        if (!s) goto none;
    }
    __atomic_fetch_add(&stats.allocs, 1, __ATOMIC_RELAXED);
    s->data = (char *)s + HEADER;
    ASAN_POISON_MEMORY_REGION(s->data, (size_t)bytes);
    ASAN_UNPOISON_MEMORY_REGION(s->data, (size_t)nbytes);
    FILL_FRESH(s->data, (size_t)nbytes);
    s->nbytes = nbytes;
    s->version = 0;
    s->refs = 1;
    s->writer = -1;
    s->size_class = (int16_t)c;
    s->device = 0;
    s->shared = 0;
    s->jobs = 0;
    s->lazy = NULL;
    int64_t now = __atomic_add_fetch(&stats.allocated, bytes, __ATOMIC_RELAXED);
    if (now > __atomic_load_n(&stats.peak, __ATOMIC_RELAXED)) peaked(s, now); /* or watched */
    return s;
none:
    __atomic_fetch_add(&stats.ooms, 1, __ATOMIC_RELAXED);
    return tt_fail(TT_OUT_OF_MEMORY, "out of memory: tried to allocate %lld bytes (%lld allocated, %lld reserved)",
                   (long long)nbytes, (long long)stats.allocated, (long long)stats.reserved);
}

tt_storage *tt_storage_new(int64_t nbytes) {
    if (tt_device) return tt_device_storage[tt_device_kind(tt_device)](nbytes);
    return tt_pinning ? tt_pinned_storage(nbytes) : host_storage(nbytes);
}

void tt_storage_unref(tt_storage *s) {
    /* The usual case, one descriptor on its storage, needs no atomic subtraction: no other thread can take a
     * reference. */
    if (__atomic_load_n(&s->refs, __ATOMIC_ACQUIRE) != 1 && __atomic_sub_fetch(&s->refs, 1, __ATOMIC_ACQ_REL) != 0)
        return;
    if (tt_lazy_of(s) && !tt_deferred->forget(s, true)) return;
    if (tt_jobs_of(s) && tt_left_to_jobs(s)) return;
    tt_storage_end(s);
}

/* Ends foreign and recorded memory: Note [Recorded memory]. */
static __attribute__((noinline, cold)) void end_otherwise(tt_storage *s) {
    if (!IS_RECORDED(s)) {
        if (s->release) s->release(s->owner);
        free(s);
        return;
    }
    s->size_class -= RECORDED;
    if (s->size_class < SMALL_CLASSES) record_end(s); /* tt_storage_end records the others */
    tt_storage_end(s);
}

static void count_end(tt_storage *s) {
    int64_t bytes = class_bytes(s->size_class);
    ASAN_POISON_MEMORY_REGION(s->data, (size_t)bytes);
    __atomic_fetch_sub(&stats.allocated, bytes, __ATOMIC_RELAXED);
    __atomic_fetch_add(&stats.frees, 1, __ATOMIC_RELAXED);
}

void tt_storage_end(tt_storage *s) {
    if (s->size_class < 0) {
        end_otherwise(s);
        return;
    }
    int c = s->size_class;
    count_end(s);
    if (c < SMALL_CLASSES && cache.counts[c] < PER_THREAD) {
        if (!cache.registered) register_thread();
        s->owner = cache.blocks[c];
        cache.blocks[c] = s;
        cache.counts[c]++;
        return;
    }
    if (c >= SMALL_CLASSES && __atomic_load_n(&tt_profiling, __ATOMIC_RELAXED) == 2) record_end(s);
    share(s);
}

/* Note [Room for dimensions]
 * A descriptor's sizes and strides follow it in one block, from the start of a cache line on. Those in the cache have
 * room for FEW_DIMS or more; one that was made for more, and still has them when it is freed, goes back to malloc. */
#define FEW_DIMS 8

static tt_array *begun(tt_array *a) {
    a->flags = tt_thread_flags;
    a->stamp = 0;
    a->counter = NULL;
    return a;
}

static __attribute__((noinline, cold)) tt_array *fresh_array(int ndim) {
    size_t room = (size_t)(ndim <= FEW_DIMS ? FEW_DIMS : ndim);
    tt_array *a;
    if (posix_memalign((void **)&a, 64, sizeof *a + 2 * sizeof(int64_t) * room))
        return tt_fail(TT_OUT_OF_MEMORY, "out of memory: no room for an array's descriptor");
    a->shape = (int64_t *)(a + 1);
    a->strides = a->shape + room;
    a->ndim = ndim;
    return begun(a);
}

tt_array *tt_array_new(int ndim) {
    tt_array *a = cache.arrays;
    if (ndim > FEW_DIMS || !a) return fresh_array(ndim);
    cache.arrays = (tt_array *)a->storage;
    cache.num_arrays--;
    return begun(a);
}

void tt_set_inference(int on) { tt_thread_flags = on ? TT_FLAG_INFERENCE : 0; }

void tt_array_recycle(tt_array *a) {
    if (cache.num_arrays >= 4 * PER_THREAD || a->ndim > FEW_DIMS) {
        free(a);
        return;
    }
    if (!cache.registered) register_thread();
    a->storage = (tt_storage *)cache.arrays; /* a free descriptor's storage field is its link */
    cache.arrays = a;
    cache.num_arrays++;
}

void tt_free(tt_array *a) {
    tt_storage_unref(a->storage);
    if (a->counter) tt_storage_unref(a->counter);
    tt_array_recycle(a);
}

/* Gives a reference back, unless it is the last one. */
static bool give_back_one_of_several(tt_storage *s) {
    int refs = __atomic_load_n(&s->refs, __ATOMIC_RELAXED);
    while (refs > 1)
        if (__atomic_compare_exchange_n(&s->refs, &refs, refs - 1, true, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
            return true;
    return false;
}

bool tt_free_at_once(tt_array *a) {
    tt_storage *s = a->storage;
    if (a->counter) return false;
    bool jobs = __atomic_load_n(&s->jobs, __ATOMIC_RELAXED);
    if (jobs || s->size_class < 0 || tt_lazy_of(s)) {
        if (give_back_one_of_several(s)) {
            tt_array_recycle(a);
            return true;
        }
        if (jobs || s->size_class < 0 || !tt_deferred->forget(s, false)) return false;
    }
    tt_free(a);
    return true;
}

int tt_resize_storage(tt_array *a, int64_t nbytes) {
    tt_storage *s = a->storage;
    if (nbytes < 0) {
        tt_fail(TT_RUNTIME_ERROR, "resize_: a storage cannot have %lld bytes", (long long)nbytes);
        return -1;
    }
    int c = IS_RECORDED(s) ? s->size_class - RECORDED : s->size_class;
    if (nbytes > (c < 0 ? s->nbytes : class_bytes(c))) return 0;
    if (c >= 0) {
        ASAN_POISON_MEMORY_REGION(s->data, (size_t)class_bytes(c));
        ASAN_UNPOISON_MEMORY_REGION(s->data, (size_t)nbytes);
    }
    s->nbytes = nbytes;
    return 1;
}

void *tt_scratch(int64_t nbytes) {
    tt_storage *s = host_storage(nbytes);
    return s ? s->data : NULL;
}

/* The next piece of a region wants as much, and finds it in this core's caches: on 16 cores of a Xeon, rfft of 1024
 * rows of 256 takes 20 us; 56 where each piece goes to the shared list for it. */
void tt_scratch_free(void *p) {
    tt_storage *s = p ? (tt_storage *)((char *)p - HEADER) : NULL, *before = cache.spare;
    if (!s) return;
    if (s->size_class < SMALL_CLASSES || s->refs != 1 || class_bytes(s->size_class) > MOST_SPARE ||
        __atomic_load_n(&tt_profiling, __ATOMIC_RELAXED) == 2) {
        tt_storage_unref(s);
        return;
    }
    if (!cache.registered) register_thread();
    count_end(s);
    cache.spare = s;
    if (before) share(before);
}

void tt_empty_cache(void) {
    flush_thread(&cache);
    pthread_mutex_lock(&lock);
    for (int c = 0; c < NUM_CLASSES; c++)
        while (shared[c]) {
            tt_storage *s = shared[c];
            set_shared(c, s->owner);
            release_block(s, class_bytes(c));
        }
    pthread_mutex_unlock(&lock);
}

void tt_memory_stats(int64_t *out) {
    const int64_t *from = &stats.allocated;
    for (size_t k = 0; k < sizeof stats / sizeof *from; k++) out[k] = __atomic_load_n(from + k, __ATOMIC_RELAXED);
    out[1] = __atomic_load_n(true_peak(), __ATOMIC_RELAXED);
}

void tt_reset_peak(void) {
    __atomic_store_n(true_peak(), __atomic_load_n(&stats.allocated, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
    __atomic_store_n(&stats.reserved_peak, __atomic_load_n(&stats.reserved, __ATOMIC_RELAXED), __ATOMIC_RELAXED);
}

void tt_raise_peak(int64_t allocated, int64_t reserved) {
    raise_to(true_peak(), allocated);
    raise_to(&stats.reserved_peak, reserved);
}

#ifndef MAP_POPULATE
#define MAP_POPULATE 0
#endif

int tt_shared_map(tt_shared *s, int fd) {
    void *memory = mmap(NULL, (size_t)s->nbytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    if (memory == MAP_FAILED) return -1;
    s->data = memory;
    return 0;
}

void tt_shared_close(tt_shared *s) {
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}

void tt_shared_end(tt_shared *s) {
    if (s->data) munmap(s->data, (size_t)s->nbytes);
    tt_shared_close(s);
}
