/* One pool of worker threads for kernels and BLAS. Small work stays on the calling thread.
 *
 * Work is handed out in chunks by an atomic counter, so that a slow core does not hold up the others; results never
 * depend on who did what. A second thread that wants the pool while it is busy works alone. The first worker, when
 * it has nothing else to do, does the jobs of Note [Asynchronous jobs] in jobs.h. */
#define _GNU_SOURCE
#include "core/jobs.h"
#include "core/fork.h"
#include "core/records.h"
#include <sched.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_THREADS 256
#define SPIN 2000 /* looks at the job counter before a worker sleeps: a few microseconds */
#define LONG_SPIN 20000 /* the same after a job of Note [Asynchronous jobs], until the next training step's; or awake */

static pthread_mutex_t owner = PTHREAD_MUTEX_INITIALIZER; /* held by the thread that uses the pool */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t wake = PTHREAD_COND_INITIALIZER, wake_first = PTHREAD_COND_INITIALIZER;
static int num_threads, num_workers;

static struct {
    tt_range_fn fn;
    void *context;
    int64_t n, chunk, next;
    int64_t serial; /* counts jobs */
    int wanted; /* workers that may join */
    int running; /* workers inside */
} job;
static __thread bool inside;
static int awake; /* threads that are between tt_stay_awake's */

static void drain(void) {
    inside = true;
    for (;;) {
        int64_t begin = __atomic_fetch_add(&job.next, job.chunk, __ATOMIC_RELAXED);
        if (begin >= job.n) break;
        int64_t end = begin + job.chunk;
        job.fn(job.context, begin, end < job.n ? end : job.n);
    }
    inside = false;
}

static bool job_waits(bool is_first) { return is_first && __atomic_load_n(&tt_job_waits, __ATOMIC_ACQUIRE); }

/* The argument: the jobs so far, and whether it is the first worker. */
static void *work(void *argument) {
    bool is_first = (intptr_t)argument & 1;
    int64_t seen = (int64_t)((intptr_t)argument >> 1);
    for (int spin = SPIN;;) {
        for (int i = 0; i < (__atomic_load_n(&awake, __ATOMIC_RELAXED) ? LONG_SPIN : spin); i++) {
            if (__atomic_load_n(&job.serial, __ATOMIC_ACQUIRE) != seen || job_waits(is_first)) break;
#if defined(__x86_64__)
            __builtin_ia32_pause();
#endif
            if (spin > SPIN && tt_on_callers_core()) break;
        }
        spin = SPIN;
        pthread_mutex_lock(&lock);
        while (job.serial == seen && !job_waits(is_first)) pthread_cond_wait(is_first ? &wake_first : &wake, &lock);
        bool join = job.serial != seen && job.wanted > 0;
        seen = job.serial;
        if (join) {
            job.wanted--;
            __atomic_add_fetch(&job.running, 1, __ATOMIC_RELAXED); /* others leave meanwhile, without the lock */
        }
        pthread_mutex_unlock(&lock);
        if (join) {
            int64_t start = __atomic_load_n(&tt_profiling, __ATOMIC_RELAXED) ? tt_now() : 0;
            drain();
            if (start) tt_profile_job(TT_PROFILE_SHARE, start, seen, 0);
            __atomic_sub_fetch(&job.running, 1, __ATOMIC_RELEASE);
        } else if (job_waits(is_first)) {
            inside = true;
            tt_do_job();
            inside = false;
            spin = LONG_SPIN;
        }
    }
    return NULL;
}

/* The lock is held. */
static void hire(void) {
    while (num_workers < tt_get_num_threads() - 1) {
        pthread_t thread;
        if (pthread_create(&thread, NULL, work, (void *)(intptr_t)(2 * job.serial + !num_workers)) != 0) break;
        pthread_detach(thread);
        num_workers++;
    }
}

void tt_wake_worker(void) {
    pthread_mutex_lock(&lock);
    hire();
    pthread_cond_signal(&wake_first);
    pthread_mutex_unlock(&lock);
}

static void at_fork(int phase) {
    if (phase != TT_FORK_CHILD) return;
    /* In the child there are no workers, nor the thread that used the pool: the job is dropped. */
    pthread_mutex_init(&owner, NULL);
    pthread_mutex_init(&lock, NULL);
    pthread_cond_init(&wake, NULL);
    pthread_cond_init(&wake_first, NULL);
    num_workers = 0;
    job.wanted = job.running = 0;
}
TT_AT_FORK(TT_FORK_THREADS, at_fork)

__attribute__((constructor)) static void start(void) {
    cpu_set_t set;
    num_threads = sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : (int)sysconf(_SC_NPROCESSORS_ONLN);
    if (num_threads < 1) num_threads = 1;
    if (num_threads > MAX_THREADS) num_threads = MAX_THREADS;
}

int tt_get_num_threads(void) { return __atomic_load_n(&num_threads, __ATOMIC_RELAXED); }

int tt_set_num_threads(int n) {
    if (n < 1 || n > MAX_THREADS) {
        tt_fail(TT_RUNTIME_ERROR, "set_num_threads: expected 1 to %d threads, got %d", MAX_THREADS, n);
        return -1;
    }
    __atomic_store_n(&num_threads, n, __ATOMIC_RELAXED);
    return 0;
}

void tt_stay_awake(bool yes) { __atomic_add_fetch(&awake, yes ? 1 : -1, __ATOMIC_RELAXED); }

void tt_parallel(int64_t n, int64_t grain, tt_range_fn fn, void *context) {
    if (n <= 0) return;
    int threads = tt_get_num_threads();
    if (n <= grain || threads == 1 || inside || pthread_mutex_trylock(&owner) != 0) {
        fn(context, 0, n);
        return;
    }
    int64_t start = __atomic_load_n(&tt_profiling, __ATOMIC_RELAXED) ? tt_now() : 0;
    int64_t pieces = (n + grain - 1) / grain;
    int64_t per_chunk = pieces / (4 * (int64_t)threads); /* about four chunks a thread */
    pthread_mutex_lock(&lock);
    hire();
    job.fn = fn;
    job.context = context;
    job.n = n;
    job.chunk = grain * (per_chunk > 0 ? per_chunk : 1);
    __atomic_store_n(&job.next, 0, __ATOMIC_RELAXED);
    job.wanted = (int)(pieces - 1 < threads - 1 ? pieces - 1 : threads - 1);
    __atomic_store_n(&job.serial, job.serial + 1, __ATOMIC_RELEASE);
    pthread_cond_signal(&wake_first);
    pthread_cond_broadcast(&wake);
    pthread_mutex_unlock(&lock);
    drain();
    pthread_mutex_lock(&lock);
    job.wanted = 0; /* no worker joins late */
    pthread_mutex_unlock(&lock);
    while (__atomic_load_n(&job.running, __ATOMIC_ACQUIRE) != 0) {
#if defined(__x86_64__)
        __builtin_ia32_pause();
#endif
    }
    if (start) tt_profile_job(TT_PROFILE_JOB, start, job.serial, threads);
    pthread_mutex_unlock(&owner);
}
