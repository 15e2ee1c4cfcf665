/* Arrays whose elements are yet to be computed.
 *
 * A storage with `lazy` set is written or read by deferred work, one with `jobs` by work under way on another thread
 * (Note [Asynchronous jobs] in jobs.h). The module that defers work (Note [Fused mode] in fuse/fuse.h) fills
 * tt_deferred, whose functions are called only once there is such work. */
#pragma once
#include "core/devices.h"
#include "core/version.h"

/* What a trace knows of a storage. */
typedef struct tt_lazy {
    struct tt_trace *trace;
    tt_storage *storage; /* NULL once it was freed */
    int64_t nbytes;
    int64_t origin;      /* where its first operand began, in bytes: offsets count from there */
    int32_t id;
    bool held, written;
    bool dying;          /* freed while its program ran, by a destructor that the run called: Note [Launching] */
} tt_lazy;

typedef struct {
    bool (*flush)(const tt_array *a, bool write); /* runs the lazy writers of `a`; write: and its lazy readers */
    /* Before it is freed; false: the lazy work will free it, or, unless `wait`, another thread is at this work. */
    bool (*forget)(tt_storage *s, bool wait);
} tt_deferred_hooks;
extern const tt_deferred_hooks *tt_deferred;

extern __thread bool tt_flush_failed; /* tt_decline then keeps the error that tt_flush left */
static inline bool tt_flush(const tt_array *a, bool write) { return tt_deferred->flush(a, write); }
static inline struct tt_lazy *tt_lazy_of(const tt_storage *s) { return __atomic_load_n(&s->lazy, __ATOMIC_ACQUIRE); }
/* How many jobs read or write it: core/jobs.h */
static inline int tt_jobs_of(const tt_storage *s) { return __atomic_load_n(&s->jobs, __ATOMIC_ACQUIRE); }
/* What this thread did apart from recording: how often it looked at elements or drew random numbers. A call that may be
 * replayed without being promised to be pure did so never: Note [Seen to be pure] in
 * tinytorch/fuse/purity/__init__.py. */
extern __thread int64_t tt_looks;
/* May the array's elements be used, or is that the slow path's affair? Note [Declining] */
static inline bool tt_current(const tt_array *a) {
    return (!(a->flags & TT_SLOW) || a->storage->device == tt_device) &&
           (!(a->flags & TT_FLAG_VIEW) || a->seen_version == tt_version(a));
}
/* ... and are they computed? Runs lazy writers. */
static inline bool tt_ready(const tt_array *a) {
    tt_looks++;
    return tt_current(a) && (!tt_lazy_of(a->storage) || tt_flush(a, false));
}
/* tt_ready for an array about to be written: runs its lazy readers, too. */
static inline bool tt_ready_to_write(const tt_array *a) {
    return (!tt_lazy_of(a->storage) && !tt_jobs_of(a->storage)) || tt_flush(a, true);
}
/* Is any operand, or this thread, on another device than the CPU? */
static inline bool tt_elsewhere(int n, tt_array *const *in) {
    int flags = 0;
    for (int k = 0; k < n; k++)
        if (in[k]) flags |= in[k]->flags;
    return (flags & TT_FLAG_DEVICE) || tt_device;
}
