/* Arrays whose elements are yet to be computed.
 *
 * A storage with `pending` set is written or read by work that somebody has put off, one with `jobs` by work under way
 * on another thread (Note [Asynchronous jobs] in jobs.h). Who puts work off (Note [Fused mode] in fuse/fuse.h) fills
 * tt_deferred, whose functions nobody calls before there is such work. */
#pragma once
#include "core/devices.h"

/* What a recording knows of a storage. */
typedef struct tt_pending {
    struct tt_trace *trace;
    tt_storage *storage; /* NULL once it was freed */
    int64_t nbytes;
    int64_t origin;      /* where its first operand began, in bytes: offsets count from there */
    int32_t id;
    bool held, written;
    bool dying;          /* freed while its program ran, by a destructor that the run called: Note [Launching] */
} tt_pending;

typedef struct {
    bool (*settle)(const tt_array *a, bool write); /* does what `a` waits for; write: and what has still to read it */
    bool (*forget)(tt_storage *s);        /* it is about to be freed; false: not yet, whoever does the work will free it */
} tt_deferred_hooks;
extern const tt_deferred_hooks *tt_deferred;

extern __thread bool tt_settle_failed; /* tt_decline then keeps the error that tt_settle left */
static inline bool tt_settle(const tt_array *a, bool write) { return tt_deferred->settle(a, write); }
static inline struct tt_pending *tt_pending_of(const tt_storage *s) {
    return __atomic_load_n(&s->pending, __ATOMIC_ACQUIRE);
}
/* What this thread did apart from recording: how often it looked at elements or drew random numbers. A call that may be
 * replayed without being promised to be pure did so never: Note [Seen to be pure] in tinytorch/fuse/purity/__init__.py. */
extern __thread int64_t tt_looks;
/* May the array's elements be used, or is that the slow path's affair? Note [Declining] */
static inline bool tt_current(const tt_array *a) {
    return (!(a->flags & TT_SLOW) || a->storage->device == tt_device) &&
           (!(a->flags & TT_FLAG_VIEW) || a->seen_version == a->storage->version);
}
/* ... and are they computed? What is pending is run. */
static inline bool tt_ready(const tt_array *a) {
    tt_looks++;
    return tt_current(a) && (!tt_pending_of(a->storage) || tt_settle(a, false));
}
/* tt_ready for an array about to be written: what has still to read it is run first. */
static inline bool tt_settled(const tt_array *a) {
    return (!tt_pending_of(a->storage) && !__atomic_load_n(&a->storage->jobs, __ATOMIC_ACQUIRE)) || tt_settle(a, true);
}
/* Is any operand, or this thread, on another device than the CPU? */
static inline bool tt_elsewhere(int n, tt_array *const *in) {
    int flags = 0;
    for (int k = 0; k < n; k++)
        if (in[k]) flags |= in[k]->flags;
    return (flags & TT_FLAG_DEVICE) || tt_device;
}
