/* Asynchronous jobs, on a thread of the pool. Not seen by Python.
 *
 * Note [Asynchronous jobs]
 * A training step computes much that is not read for a while: the gradient of a weight until the optimiser's step, the
 * new weights until the next forward pass. In fused mode, where arrays may be yet to be computed anyway, such a call
 * checks its arguments, allocates its result, submits the rest as a job and returns; the first worker of the pool runs
 * it meanwhile (threads.c). Which calls submit jobs depends on shapes, dtypes, modes and the number of threads alone,
 * never on how far other jobs have come. With one thread, in fuse(step=True), and while a listener is subscribed, there
 * are none.
 * - The storages that a job writes are lazy (storage->lazy is tt_under_way): every reader, in any thread, waits.
 * - storage->jobs counts the jobs that read or write it, and every writer waits for them: tt_ready_to_write, record.
 *   So no trace writes what a job reads.
 * - A job holds no references, so that reference counts do not depend on its progress (the engine adopts a gradient
 *   without other owner; a trace asks which storages can still be seen). A storage whose last reference goes
 *   meanwhile is left to its jobs, the last of which frees it.
 * - Jobs run one after the other, in the order of submission: one may read what an earlier one writes.
 * - A job can only succeed, takes no lock of a trace, and runs no Python: so it never waits. A thread that waits for
 *   jobs runs them itself if the worker does not come.
 * - Jobs are for the CPU's own memory alone: not a device's, nor shared memory (storage->shared). */
#pragma once
#include "core/tt.h"

/* A job, at the start of a block of tt_scratch, which is freed when it is done. */
typedef struct tt_job {
    void (*run)(struct tt_job *job);
    int num_out, num;       /* storages that are written, which come first, and all */
    tt_storage **storages;
    struct tt_job *next;
} tt_job;

extern tt_lazy tt_under_way;
extern int64_t tt_jobs_submitted; /* so far, in this process */
bool tt_job_submit(tt_job *job); /* false: not with these storages, do it yourself */
void tt_finish_jobs(void);        /* all that there are */
void tt_wait_for_jobs(const tt_storage *s, bool write);
/* Until no job writes it, and for who is to write, until none reads it. */
static inline void tt_await(const tt_storage *s, bool write) {
    if (tt_lazy_of(s) == &tt_under_way || (write && tt_jobs_of(s))) tt_wait_for_jobs(s, write);
}

/* For storage.c: work under way reads or writes it, and will end it; false: no longer */
bool tt_left_to_jobs(tt_storage *s);
/* For threads.c */
extern int tt_job_waits;       /* there is a job, and none has begun; atomic */
void tt_do_job(void);
bool tt_on_callers_core(void); /* where the worker had better sleep when it has nothing to do */
void tt_wake_worker(void);     /* there is a job for the first worker */
