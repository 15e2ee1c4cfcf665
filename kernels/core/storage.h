/* Memory: descriptors and storages come from caches and go back to them. */
#pragma once
#include "core/devices.h"

extern __thread uint16_t tt_thread_flags; /* of the arrays that this thread makes */
tt_storage *tt_storage_new(int64_t nbytes); /* on tt_device */
void tt_storage_unref(tt_storage *s);
void tt_storage_end(tt_storage *s); /* after the last reference */
tt_array *tt_array_new(int ndim); /* an uninitialised descriptor, with room for so many dimensions */
void tt_array_recycle(tt_array *a);
/* tt_free, unless it may call back, or wait for a thread that calls back: then nothing is done. */
bool tt_free_at_once(tt_array *a);
static inline void tt_storage_ref(tt_storage *s) { __atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED); }
static inline bool tt_is_shared(const tt_storage *s) { return __atomic_load_n(&s->shared, __ATOMIC_RELAXED); }
void *tt_scratch(
    int64_t nbytes); /* temporary memory of the CPU's, from the same caches; NULL and an error when there is none */
void tt_scratch_free(void *p);

/* Who allocates on tt_device, by its kind; backends set it when they are registered. Variables, so that other
 * functions may take their place for a while: Note [Traffic] in cuda/host/traffic.h. */
#define TT_HIDDEN __attribute__((visibility("hidden")))
extern TT_HIDDEN tt_storage *(*tt_device_storage[TT_DEVICE_KINDS])(int64_t nbytes);
/* The CPU's memory that a device reads and writes by itself (page-locked): for allocations on the CPU while
 * tt_pinning. */
extern TT_HIDDEN tt_storage *(*tt_pinned_storage)(int64_t nbytes);
extern __thread bool tt_pinning;
