/* The queue of jobs: Note [Work behind] in behind.h. */
#include "behind.h"
#include "fork.h"
#include "fuse.h"
#include <stdlib.h>

#define SPIN 2000    /* looks at a storage before who waits for it sleeps */
#define MOST_JOBS 32 /* that wait or are under way: whoever submits more does some first */
#define ORPHAN INT16_MIN /* in storage->jobs: nobody has a reference any more */

tt_pending tt_under_way; /* of no trace */
int tt_jobs_waiting;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t done = PTHREAD_COND_INITIALIZER;
static tt_job *first, *last;    /* that wait */
static int num_jobs, num_begun; /* unfinished ones, and those of them that have begun */
static bool alone;              /* the one that has begun lets no other begin */

static void pause_a_little(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

/* The lock is held, and something has changed. */
static void changed(void) {
    bool may_begin = first && !alone && !(first->after_all && num_begun);
    __atomic_store_n(&tt_jobs_waiting, may_begin, __ATOMIC_RELEASE);
}

/* The next job that may begin; NULL: there is none. The lock is held. */
static tt_job *take(void) {
    tt_job *job = first;
    if (!tt_jobs_waiting) return NULL;
    first = job->next;
    alone = job->after_all;
    num_begun++;
    changed();
    return job;
}

static void unmark(tt_storage *s) {
    tt_pending *p = &tt_under_way;
    __atomic_compare_exchange_n(&s->pending, &p, NULL, false, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static void perform(tt_job *job) {
    job->run(job);
    pthread_mutex_lock(&lock);
    for (int k = 0; k < job->num; k++) {
        tt_storage *s = job->storages[k];
        if (k < job->num_out) unmark(s);
        if (__atomic_sub_fetch(&s->jobs, 1, __ATOMIC_RELEASE) == ORPHAN) tt_storage_end(s);
    }
    num_jobs--;
    num_begun--;
    alone = false;
    changed();
    bool more = tt_jobs_waiting;
    pthread_cond_broadcast(&done);
    pthread_mutex_unlock(&lock);
    if (more) tt_wake_worker();
    tt_scratch_free(job);
}

bool tt_do_job(void) {
    pthread_mutex_lock(&lock);
    tt_job *job = take();
    pthread_mutex_unlock(&lock);
    if (job) perform(job);
    return job;
}

static bool busy(const tt_storage *s, bool write) {
    return tt_pending_of(s) == &tt_under_way || (write && __atomic_load_n(&s->jobs, __ATOMIC_ACQUIRE));
}

void tt_wait_for_jobs(const tt_storage *s, bool write) {
    while (busy(s, write)) {
        if (tt_do_job()) continue;
        for (int k = 0; k < SPIN && busy(s, write); k++) pause_a_little();
        pthread_mutex_lock(&lock);
        while (busy(s, write) && !tt_jobs_waiting) pthread_cond_wait(&done, &lock);
        pthread_mutex_unlock(&lock);
    }
}

/* Until at most so many are left. The lock is held. */
static void work_off(int most) {
    while (num_jobs > most) {
        tt_job *job = take();
        if (!job) {
            pthread_cond_wait(&done, &lock);
            continue;
        }
        pthread_mutex_unlock(&lock);
        perform(job);
        pthread_mutex_lock(&lock);
    }
}

/* No job is under way when a process forks, since the workers do not come along. */
void tt_fork_jobs(int phase) {
    if (phase == TT_FORK_BEFORE) pthread_mutex_lock(&lock), work_off(0);
    if (phase == TT_FORK_CHILD) pthread_cond_init(&done, NULL);
    if (phase != TT_FORK_BEFORE) pthread_mutex_unlock(&lock);
}

void tt_finish_jobs(void) {
    pthread_mutex_lock(&lock);
    work_off(0);
    pthread_mutex_unlock(&lock);
}

/* Before the libraries that the jobs use are taken down. */
static bool ended;
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

/* Who watches runs sees them one by one, and memory as these alone use it. */
bool tt_may_work_behind(void) {
    return TT_RECORDING && !tt_recorder->step && tt_get_num_threads() > 1 &&
           !(tt_fuse_setting(TT_FUSE_OBSERVE) & TT_OBSERVE_RUNS);
}

/* Marks what the job writes, from the first storage on, of which one may be there more than once, or undoes that. False:
 * another thread has begun to record with it meanwhile, without waiting for this one. */
static bool mark(const tt_job *job) {
    for (int k = 0; k < job->num_out; k++) {
        tt_pending *p = NULL;
        if (!__atomic_compare_exchange_n(&job->storages[k]->pending, &p, &tt_under_way, false, __ATOMIC_ACQ_REL,
                                         __ATOMIC_ACQUIRE) && p != &tt_under_way) {
            while (k--) unmark(job->storages[k]);
            return false;
        }
    }
    return true;
}

bool tt_work_behind(tt_job *job) {
    for (int k = 0; k < job->num; k++) {
        const tt_storage *s = job->storages[k];
        if (s->size_class < 0 || s->device || s->shared) return false;
    }
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
        changed();
    }
    pthread_mutex_unlock(&lock);
    if (!ok) return false;
    static bool registered;
    if (!__atomic_exchange_n(&registered, true, __ATOMIC_RELAXED)) atexit(process_ends);
    tt_wake_worker();
    tt_fuse_count(TT_FUSE_BEHIND, 1);
    return true;
}
