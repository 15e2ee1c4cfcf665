/* The queue of jobs: Note [Asynchronous jobs] in jobs.h. */
#define _GNU_SOURCE
#include "core/jobs.h"
#include "core/fork.h"
#include <sched.h>
#include <stdlib.h>

/* Polls of a storage before a waiting thread runs a job that has not begun, or sleeps if it has. The worker's core has
 * the job's memory in its cache: elsewhere it may take four times as long. On that very core polling is of no use,
 * since it keeps the worker from running. */
#define SPIN 2000
#define LONG_SPIN 20000
#define MOST_JOBS 32 /* that are not done: submitting more waits */
#define ORPHAN INT16_MIN /* in storage->jobs: the last reference is gone */

tt_lazy tt_under_way; /* of no trace */
int64_t tt_jobs_submitted;
int tt_job_waits;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static tt_job *first, *last; /* the first of which may have begun */
static int num_jobs;
static bool begun, ended; /* the first job has; the process has */
static int core_of_caller, core_of_worker; /* where a job was submitted last, and done */

/* The next job; NULL: there is none, or one has begun. The lock is held. */
static tt_job *begin(void) {
    if (!first || begun) return NULL;
    __atomic_store_n(&begun, true, __ATOMIC_RELAXED);
    __atomic_store_n(&tt_job_waits, 0, __ATOMIC_RELAXED);
    return first;
}

static void unmark(tt_storage *s) {
    tt_lazy *p = &tt_under_way;
    __atomic_compare_exchange_n(&s->lazy, &p, NULL, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

/* The lock is held, before and after. */
static void perform(tt_job *job) {
    pthread_mutex_unlock(&lock);
    job->run(job);
    pthread_mutex_lock(&lock);
    for (int k = 0; k < job->num; k++) {
        tt_storage *s = job->storages[k];
        if (k < job->num_out) unmark(s);
        if (__atomic_sub_fetch(&s->jobs, 1, __ATOMIC_RELEASE) == ORPHAN) tt_storage_end(s);
    }
    first = job->next;
    num_jobs--;
    __atomic_store_n(&begun, false, __ATOMIC_RELAXED);
    __atomic_store_n(&tt_job_waits, first != NULL, __ATOMIC_RELAXED);
    tt_scratch_free(job);
    if (first) tt_wake_worker(); /* who may have looked while another thread did this one */
    pthread_cond_broadcast(&done);
}

bool tt_on_callers_core(void) { return sched_getcpu() == __atomic_load_n(&core_of_caller, __ATOMIC_RELAXED); }

void tt_do_job(void) {
    __atomic_store_n(&core_of_worker, sched_getcpu(), __ATOMIC_RELAXED);
    pthread_mutex_lock(&lock);
    tt_job *job = begin();
    if (job) perform(job);
    pthread_mutex_unlock(&lock);
}

static bool busy(const tt_storage *s, bool write) { return tt_lazy_of(s) == &tt_under_way || (write && tt_jobs_of(s)); }

void tt_wait_for_jobs(const tt_storage *s, bool write) {
    while (busy(s, write)) {
        bool apart = sched_getcpu() != __atomic_load_n(&core_of_worker, __ATOMIC_RELAXED);
        for (int k = 0; apart && busy(s, write); k++) {
            if (k >= (__atomic_load_n(&begun, __ATOMIC_RELAXED) ? LONG_SPIN : SPIN)) break;
            tt_pause();
        }
        pthread_mutex_lock(&lock);
        tt_job *job = busy(s, write) ? begin() : NULL;
        if (job) perform(job);
        else if (busy(s, write)) pthread_cond_wait(&done, &lock);
        pthread_mutex_unlock(&lock);
    }
}

/* Until at most so many are left. The lock is held. */
static void work_off(int most) {
    while (num_jobs > most) {
        tt_job *job = begin();
        if (job) perform(job);
        else pthread_cond_wait(&done, &lock);
    }
}

/* No job is under way when a process forks, since the workers do not come along. */
static void at_fork(int phase) {
    if (phase == TT_FORK_BEFORE) {
        pthread_mutex_lock(&lock);
        work_off(0);
    }
    if (phase == TT_FORK_CHILD) pthread_cond_init(&done, NULL);
    if (phase != TT_FORK_BEFORE) pthread_mutex_unlock(&lock);
}
TT_AT_FORK(TT_FORK_JOBS, at_fork)

void tt_finish_jobs(void) {
    pthread_mutex_lock(&lock);
    work_off(0);
    pthread_mutex_unlock(&lock);
}

/* Before the libraries that the jobs use are taken down. */
static void process_ends(void) {
    pthread_mutex_lock(&lock);
    ended = true;
    work_off(0);
    pthread_mutex_unlock(&lock);
}

bool tt_left_to_jobs(tt_storage *s) {
    pthread_mutex_lock(&lock);
    bool left = s->jobs;
    if (left) __atomic_fetch_or(&s->jobs, ORPHAN, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&lock);
    return left;
}

/* Marks what the job writes, of which one storage may be there more than once, or undoes that. False: they are not ours
 * alone, or another thread has begun to record with one meanwhile, without waiting for this one. The lock is held. */
static bool mark(const tt_job *job) {
    for (int k = 0; k < job->num; k++) {
        const tt_storage *s = job->storages[k];
        if (s->size_class < 0 || s->device || tt_is_shared(s)) return false;
    }
    for (int k = 0; k < job->num_out; k++) {
        tt_lazy *p = NULL;
        if (!__atomic_compare_exchange_n(&job->storages[k]->lazy, &p, &tt_under_way, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE) &&
            p != &tt_under_way) {
            while (k--) unmark(job->storages[k]);
            return false;
        }
    }
    return true;
}

bool tt_job_submit(tt_job *job) {
    pthread_mutex_lock(&lock);
    work_off(MOST_JOBS - 1);
    bool ok = !ended && mark(job);
    if (ok) {
        for (int k = 0; k < job->num; k++) __atomic_fetch_add(&job->storages[k]->jobs, 1, __ATOMIC_RELAXED);
        job->next = NULL;
        if (first) last->next = job;
        else first = job;
        last = job;
        num_jobs++;
        __atomic_store_n(&core_of_caller, sched_getcpu(), __ATOMIC_RELAXED);
        __atomic_store_n(&tt_job_waits, !begun, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&lock);
    if (!ok) return false;
    static bool registered;
    if (!__atomic_exchange_n(&registered, true, __ATOMIC_RELAXED)) atexit(process_ends);
    tt_wake_worker();
    __atomic_fetch_add(&tt_jobs_submitted, 1, __ATOMIC_RELAXED);
    return true;
}
