/* What becomes of locks when the process forks: Note [Forks] in fork.c. */
#pragma once
#include <pthread.h>

enum { TT_FORK_BEFORE, TT_FORK_PARENT, TT_FORK_CHILD };

/* Each in the file that has the locks. */
void tt_fork_records(int phase);  /* record.c */
void tt_fork_jobs(int phase);     /* jobs.c */
void tt_fork_plans(int phase);    /* plan.c */
void tt_fork_compiled(int phase); /* compiled.c */
void tt_fork_blas(int phase);     /* openblas.c */
void tt_fork_storages(int phase); /* storage.c */
void tt_fork_launches(int phase); /* launch.c of kernels/cuda */
void tt_fork_traffic(int phase);  /* traffic.c of kernels/cuda */
void tt_fork_activity(int phase); /* activity.c of kernels/cuda */
void tt_fork_threads(int phase);  /* threads.c */
void tt_fork_trace(int phase);    /* trace.c */

static inline void tt_fork_lock(pthread_mutex_t *lock, int phase) {
    if (phase == TT_FORK_BEFORE) pthread_mutex_lock(lock);
    else pthread_mutex_unlock(lock);
}
