/* Fused mode's traces, one of each thread: when they are run, and the modes that say what is recorded. Note [Fused
 * mode] in fuse.h. */
#include "backend/now.h"
#include "core/jobs.h"
#include "core/fork.h"
#include "fuse/fuse.h"
#include "core/thread_exit.h"
#include <sched.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

__thread tt_trace *tt_recorder;
int tt_fuse_everywhere;
static __thread tt_trace *mine; /* kept for the thread's next time */
int64_t tt_fuse_settings[TT_FUSE_SETTINGS] = {[TT_FUSE_HOT_RUNS] = 3, [TT_FUSE_WORTH] = 32768};
static int64_t stats[TT_FUSE_STATS];

int64_t tt_fuse_set(int setting, int64_t value) {
    return __atomic_exchange_n(&tt_fuse_settings[setting], value, __ATOMIC_RELAXED);
}
void tt_fuse_count(int what, int64_t by) { __atomic_fetch_add(&stats[what], by, __ATOMIC_RELAXED); }

/* Not with a listener: it sees runs one by one, and memory as these alone use it. */
bool tt_may_submit_jobs(void) {
    return TT_RECORDING && !tt_recorder->step && tt_get_num_threads() > 1 &&
           !(tt_fuse_setting(TT_FUSE_OBSERVE) & TT_OBSERVE_RUNS);
}

void tt_trace_wait(tt_trace *t) {
    for (int tries = 0; __atomic_exchange_n(&t->locked, 1, __ATOMIC_ACQUIRE); tries++)
        if (tries < 64) sched_yield();
        else nanosleep(&(struct timespec){.tv_nsec = 20000}, NULL);
}

/* Forgets what was recorded; the storages are as they are. The lock is held. */
static void clear(tt_trace *t) {
    for (int k = 0; k < t->num_storages; k++) {
        tt_lazy *p = &t->storages[k];
        if (!p->storage) continue;
        __atomic_store_n(&p->storage->lazy, NULL, __ATOMIC_RELEASE);
        if (p->held) tt_storage_unref(p->storage);
    }
    t->num_nodes = t->num_storages = t->num_numbers = 0;
    t->encoded = 0;
    t->ndim = -1;
    static int64_t traces;
    t->trace = __atomic_add_fetch(&traces, 1, __ATOMIC_RELAXED);
}

bool tt_fuse_running(const tt_trace *t) { return __atomic_load_n(&t->runner, __ATOMIC_RELAXED) == &tt_recorder; }

/* A launch runs Python, which may run any destructor: what was freed meanwhile is ended now. */
static bool run_program(tt_program *p, tt_trace *t) {
    if (!p->device) return tt_program_run(p, t);
    __atomic_store_n(&t->runner, &tt_recorder, __ATOMIC_RELAXED);
    bool ok = tt_program_run(p, t);
    __atomic_store_n(&t->runner, NULL, __ATOMIC_RELAXED);
    for (int k = 0; k < t->num_storages; k++) {
        tt_storage *s = t->storages[k].storage;
        if (!s || !t->storages[k].dying) continue;
        t->storages[k].storage = NULL;
        s->lazy = NULL;
        tt_storage_end(s);
    }
    return ok;
}

/* Was it worth while to record these nodes? Note [Too little to fuse] in fuse.h. */
static void note_worth(tt_trace *t, const tt_program *p) {
    if (p->device) return;
    int64_t spared = p->eager_reads + p->eager_writes - p->reads - p->writes;
    bool little = spared < tt_fuse_setting(TT_FUSE_WORTH) * p->num_kernels;
    for (int k = 0; k < t->num_nodes; k++) {
        uint8_t *seen = &t->little[t->places[k]];
        *seen = little ? *seen + (*seen < TT_SEEN) : 0;
    }
    t->whole -= t->whole > 0;
}

bool tt_trace_run(tt_trace *t, int reason) {
    if (!t->num_nodes) {
        clear(t);
        return true;
    }
    int hit;
    tt_program *p = tt_program_of(t, &hit);
    tt_fuse_count(hit ? TT_FUSE_HITS : TT_FUSE_MISSES, 1);
    if (!p) return false;
    tt_run_record *w = tt_fuse_setting(TT_FUSE_OBSERVE) ? tt_run_record_new(p, t, reason, hit) : NULL;
    bool ok = run_program(p, t);
    if (ok && t == mine) note_worth(t, p);
    if (ok && w) tt_notify_later(w); /* which then does what follows here */
    else {
        if (w) tt_run_record_free(w);
        tt_program_want(p);
        tt_program_done(p);
    }
    if (!ok) return false;
    tt_fuse_count(TT_FUSE_RECORDED, t->num_nodes);
    tt_fuse_count(TT_FUSE_PROGRAMS, 1);
    clear(t);
    return true;
}

bool tt_trace_flush(tt_trace *t, int reason) {
    if (tt_fuse_running(t)) return true; /* a destructor, during whose run nothing is recorded */
    tt_trace_lock(t);
    bool ok = tt_trace_run(t, reason);
    tt_trace_unlock(t);
    tt_notify();
    return ok;
}

/* The trace may be run or cleared by its thread meanwhile; it is never freed, so that its lock can always be taken. */
bool tt_flush_storage(tt_storage *s, bool write, int reason) {
    for (;;) {
        tt_lazy *p = tt_lazy_of(s);
        if (!p || p == &tt_under_way) {
            tt_await(s, write);
            if (!p) return true;
            continue;
        }
        tt_trace *t = p->trace;
        if (tt_fuse_running(t)) {
            tt_fail(TT_RUNTIME_ERROR, "fuse: a destructor used a tensor of the very program whose run called it");
            tt_flush_failed = true;
            return false;
        }
        tt_trace_lock(t);
        bool ok = true;
        p = tt_lazy_of(s); /* once: what is under way may be done at any moment */
        if (p && p->trace == t && (write || p->written))
            ok = tt_trace_run(t, t == tt_recorder ? reason : TT_FLUSH_THREAD);
        else if (p && p->trace == t) {
            tt_trace_unlock(t); /* only read: its elements are there */
            return true;
        }
        tt_trace_unlock(t);
        tt_notify();
        if (!ok) {
            tt_flush_failed = true;
            return false;
        }
    }
}

static bool flush_array(const tt_array *a, bool write) {
    return tt_flush_storage(a->storage, write, write ? TT_FLUSH_WRITE : TT_FLUSH_OPERATOR);
}

int tt_sync(tt_array *a, int share) {
    tt_looks++;
    if (!tt_flush_storage(a->storage, share, share ? TT_FLUSH_SHARED : TT_FLUSH_VALUE)) {
        tt_flush_failed = false;
        return -1;
    }
    if (share) __atomic_store_n(&a->storage->shared, 1, __ATOMIC_RELAXED);
    return 0;
}

static bool forget(tt_storage *s, bool wait) {
    for (;;) {
        tt_lazy *p = tt_lazy_of(s);
        if (!p || p == &tt_under_way) return wait || !p;
        tt_trace *t = p->trace;
        if (tt_fuse_running(t)) {
            p->dying |= wait;
            return false;
        }
        if (wait) tt_trace_lock(t);
        else if (__atomic_exchange_n(&t->locked, 1, __ATOMIC_ACQUIRE)) return false;
        if (s->lazy == p && p->storage == s) {
            p->storage = NULL;
            s->lazy = NULL;
        }
        tt_trace_unlock(t);
    }
}

__attribute__((constructor)) static void defer(void) {
    static const tt_deferred_hooks hooks = {flush_array, forget};
    tt_deferred = &hooks;
}

/* All traces; and those of threads that ended, for others: a trace is never freed, see tt_flush_storage. */
static tt_trace *traces;
static tt_trace *spare[64];
static int num_spare;
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;

void tt_fuse_stats(int64_t *out) {
    memcpy(out, stats, sizeof stats);
    out[TT_FUSE_JOBS] = __atomic_load_n(&tt_jobs_submitted, __ATOMIC_RELAXED);
    pthread_mutex_lock(&trace_lock);
    for (tt_trace *t = traces; t; t = t->next) out[TT_FUSE_LEFT] += __atomic_load_n(&t->left, __ATOMIC_RELAXED);
    pthread_mutex_unlock(&trace_lock);
}

void tt_fuse_forget(void) {
    if (mine) memset(mine->little, 0, sizeof mine->little);
}

static void keep(tt_trace *t) {
    memset(t->little, 0, sizeof t->little); /* the next thread has other work */
    pthread_mutex_lock(&trace_lock);
    if (num_spare < 64) spare[num_spare++] = t;
    pthread_mutex_unlock(&trace_lock);
}

/* A thread that ends inside of the mode: what it recorded is run. */
static void thread_ends(void *trace) {
    tt_trace *t = trace;
    tt_trace_lock(t);
    if (!tt_trace_run(t, TT_FLUSH_LEAVE)) clear(t);
    tt_notify_discard();
    t->depth = t->step = 0;
    t->joined = t->in_place = false;
    tt_trace_unlock(t);
    keep(t);
}

TT_AT_THREAD_EXIT(run_at_exit, thread_ends)

static void at_fork(int phase) {
    if (phase == TT_FORK_BEFORE) tt_fork_lock(&trace_lock, phase); /* before a trace's own, here alone */
    for (tt_trace *t = traces; t; t = t->next) phase == TT_FORK_BEFORE ? tt_trace_lock(t) : tt_trace_unlock(t);
    if (phase != TT_FORK_BEFORE) tt_fork_lock(&trace_lock, phase);
}
TT_AT_FORK(TT_FORK_RECORDINGS, at_fork)

static tt_trace *trace_of_thread(void) {
    if (mine) return mine;
    pthread_mutex_lock(&trace_lock);
    if (num_spare) mine = spare[--num_spare];
    else if ((mine = calloc(1, sizeof *mine))) {
        clear(mine);
        mine->next = traces;
        traces = mine;
    }
    pthread_mutex_unlock(&trace_lock);
    if (!mine) return tt_fail(TT_OUT_OF_MEMORY, "fuse: out of memory: no room for a trace");
    run_at_exit(mine);
    return mine;
}

int tt_fuse_enter(void) {
    tt_trace *t = trace_of_thread();
    if (!t) return -1;
    t->depth++;
    t->since_enter = 0;
    t->looked = tt_looks;
    tt_recorder = t;
    return t->depth;
}

int tt_fuse_leave(void) {
    tt_trace *t = mine;
    if (!t || !t->depth) return 0;
    if (--t->depth) return t->depth;
    tt_recorder = NULL;
    t->joined = t->in_place = false;
    return tt_trace_flush(t, TT_FLUSH_LEAVE) ? 0 : -1;
}

void tt_fuse_read_in_place(void) {
    if (tt_recorder && !tt_recorder->whole) tt_recorder->whole = 1; /* what is to be replayed is recorded */
    if (tt_recorder && tt_recorder->depth == 1 && !tt_fuse_everywhere) tt_recorder->in_place = true;
}

int tt_fuse_step(int on) {
    tt_trace *t = trace_of_thread();
    if (!t) return -1;
    t->step += on;
    return tt_trace_flush(t, TT_FLUSH_STEP) ? 0 : -1;
}

int tt_fuse_join(void) { return tt_fuse_enter() > 0 && (mine->joined = true); }

int tt_fuse_set_everywhere(int on) {
    tt_fuse_everywhere = on;
    if (on || !mine || !mine->joined) return 0;
    mine->joined = false;
    return tt_fuse_leave() < 0 ? -1 : 0;
}

int tt_fuse_flush(void) {
    if (mine && !tt_trace_flush(mine, TT_FLUSH_ASKED)) return -1;
    tt_finish_jobs();
    return 0;
}
int tt_fuse_depth(void) { return mine ? mine->depth : 0; }
int tt_fuse_pending(void) { return mine ? mine->num_nodes : 0; }
