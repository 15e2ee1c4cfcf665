/* What becomes of locks when the process forks: Note [Forks] in fork.c. */
#pragma once
#include <pthread.h>

enum { TT_FORK_BEFORE, TT_FORK_PARENT, TT_FORK_CHILD };

/* The order in which a thread takes the locks. */
enum {
    TT_FORK_RECORDINGS,
    TT_FORK_JOBS,
    TT_FORK_PLANS,
    TT_FORK_COMPILED,
    TT_FORK_LIBRARIES,
    TT_FORK_RECORDS,
    TT_FORK_STORAGES,
    TT_FORK_LAUNCHES,
    TT_FORK_TRAFFIC,
    TT_FORK_ACTIVITY,
    TT_FORK_THREADS,
    TT_FORK_ORDER
};

typedef void (*tt_on_fork)(int phase);
void tt_fork_register(int order, tt_on_fork function);

/* Once in each file that has such a lock. */
#define TT_AT_FORK(order, function)                                                                                    \
    __attribute__((constructor)) static void register_at_fork(void) { tt_fork_register(order, function); }

static inline void tt_fork_lock(pthread_mutex_t *lock, int phase) {
    if (phase == TT_FORK_BEFORE) pthread_mutex_lock(lock);
    else pthread_mutex_unlock(lock);
}
