/* Work behind the caller's back, on the pool's threads. Not seen by Python.
 *
 * Note [Work behind]
 * A training step computes much that nobody looks at for a while: the gradient of a weight until the optimiser's step,
 * the new weights until the next forward pass. In fused mode, where arrays may be yet to be computed anyway, such a call
 * checks its arguments, makes its result, hands the rest over as a job and returns; a worker of the pool that has nothing
 * else to do works it off meanwhile (threads.c). Which calls those are depends on shapes, dtypes and modes alone, never on
 * how far the jobs before have come; with one thread, in fuse(step=True), and while someone watches, none are.
 * - What a job writes is pending (storage->pending is tt_under_way), so all who look, from any thread, wait for it.
 * - What it reads or writes is counted in storage->jobs, and whoever is to write that waits: tt_settled, record. So no
 *   recording writes what a job reads.
 * - A job holds no references, so that nobody who counts them (the engine, which adopts a gradient that is nobody else's;
 *   a recording, which asks what can still be seen) sees how far it has come. A storage whose last reference goes
 *   meanwhile is left to its jobs, the last of which ends it.
 * - Who submits a job has settled its operands, so that jobs do not depend on each other; or, where they may be under way
 *   themselves, has it begin `after_all` that were submitted before (and none begins until it is done).
 * - Who waits does jobs himself meanwhile. A job can only succeed, takes no lock of a recording, and runs no Python: so a
 *   job waits for nobody.
 * - Jobs are for the CPU's own memory alone: not a device's, nor what others may read and write (storage->shared). */
#pragma once
#include "tt.h"

/* Work to be done, in memory of tt_scratch that it begins; freed when it is done. */
typedef struct tt_job {
    void (*run)(struct tt_job *job);
    int num_out, num;       /* storages that are written, which come first, and all */
    bool after_all;
    tt_storage **storages;
    struct tt_job *next;
} tt_job;

extern struct tt_pending tt_under_way;
bool tt_may_work_behind(void);    /* this thread is in fused mode, there is another one for the work, and nobody
                                   * watches, step by step or as fuse.explain does */
bool tt_work_behind(tt_job *job); /* false: not with these storages, do it yourself */

void tt_finish_jobs(void);        /* all that there are */

void tt_wait_for_jobs(const tt_storage *s, bool write);
/* Until no job writes it, and for who is to write, until none reads it. */
static inline void tt_await(const tt_storage *s, bool write) {
    if (tt_pending_of(s) == &tt_under_way || (write && __atomic_load_n(&s->jobs, __ATOMIC_ACQUIRE)))
        tt_wait_for_jobs(s, write);
}

/* For threads.c */
extern int tt_jobs_waiting;  /* is there one that may begin? Atomic */
bool tt_do_job(void);        /* does one; false: there was none */
void tt_wake_worker(void);   /* there is one now */
