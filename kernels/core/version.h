/* How often an array's elements were written in place: Note [Version counters] in tinytorch/autograd/node.py. */
#pragma once
#include "api/core.h"

static inline tt_storage *tt_counter(const tt_array *a) { return a->counter ? a->counter : a->storage; }
/* Another thread may write the elements meanwhile: which of the two versions is found is its affair. */
static inline int64_t tt_version(const tt_array *a) {
    return __atomic_load_n(&tt_counter(a)->version, __ATOMIC_RELAXED);
}
