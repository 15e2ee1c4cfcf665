/* Fused mode's recorder: Note [Fused mode] in fuse.h. */
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
static int64_t settings[TT_FUSE_SETTINGS] = {[TT_FUSE_HOT_RUNS] = 3};
static int64_t stats[TT_FUSE_STATS];

int64_t tt_fuse_set(int setting, int64_t value) {
    return __atomic_exchange_n(&settings[setting], value, __ATOMIC_RELAXED);
}
int64_t tt_fuse_setting(int setting) { return __atomic_load_n(&settings[setting], __ATOMIC_RELAXED); }
void tt_fuse_count(int what, int64_t by) { __atomic_fetch_add(&stats[what], by, __ATOMIC_RELAXED); }
void tt_fuse_stats(int64_t *out) {
    memcpy(out, stats, sizeof stats);
    out[TT_FUSE_JOBS] = __atomic_load_n(&tt_jobs_submitted, __ATOMIC_RELAXED);
}

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

/* Runs what is pending; on failure it stays pending. The lock is held; call tt_notify without it. */
static bool run(tt_trace *t, int reason) {
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

static bool run_locked(tt_trace *t, int reason) {
    if (tt_fuse_running(t)) return true; /* a destructor, during whose run nothing is recorded */
    tt_trace_lock(t);
    bool ok = run(t, reason);
    tt_trace_unlock(t);
    tt_notify();
    return ok;
}

/* Runs the trace that a storage is lazy in. It may be another thread's, which may run or clear it meanwhile;
 * a trace is never freed, so that its lock can always be taken. */
static bool flush_storage(tt_storage *s, bool write, int reason) {
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
        if (p && p->trace == t && (write || p->written)) ok = run(t, t == tt_recorder ? reason : TT_FLUSH_THREAD);
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
    return flush_storage(a->storage, write, write ? TT_FLUSH_WRITE : TT_FLUSH_OPERATOR);
}

int tt_sync(tt_array *a, int share) {
    tt_looks++;
    if (!flush_storage(a->storage, share, share ? TT_FLUSH_SHARED : TT_FLUSH_VALUE)) {
        tt_flush_failed = false;
        return -1;
    }
    if (share) __atomic_store_n(&a->storage->shared, 1, __ATOMIC_RELAXED);
    return 0;
}

static bool forget(tt_storage *s) {
    for (;;) {
        tt_lazy *p = tt_lazy_of(s);
        if (!p || p == &tt_under_way) return true;
        tt_trace *t = p->trace;
        if (tt_fuse_running(t)) {
            p->dying = true;
            return false;
        }
        tt_trace_lock(t);
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

/* All traces; and those of threads that ended, for others: a trace is never freed, see flush_storage. */
static tt_trace *traces;
static tt_trace *spare[64];
static int num_spare;
static pthread_mutex_t trace_lock = PTHREAD_MUTEX_INITIALIZER;

static void keep(tt_trace *t) {
    pthread_mutex_lock(&trace_lock);
    if (num_spare < 64) spare[num_spare++] = t;
    pthread_mutex_unlock(&trace_lock);
}

/* A thread that ends inside of the mode: what it recorded is run. */
static void thread_ends(void *trace) {
    tt_trace *t = trace;
    tt_trace_lock(t);
    if (!run(t, TT_FLUSH_LEAVE)) clear(t);
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
    t->looks = tt_looks;
    tt_recorder = t;
    return t->depth;
}

int tt_fuse_leave(void) {
    tt_trace *t = mine;
    if (!t || !t->depth) return 0;
    if (--t->depth) return t->depth;
    tt_recorder = NULL;
    t->joined = t->in_place = false;
    return run_locked(t, TT_FLUSH_LEAVE) ? 0 : -1;
}

void tt_fuse_read_in_place(void) {
    if (tt_recorder && tt_recorder->depth == 1 && !tt_fuse_everywhere) tt_recorder->in_place = true;
}

int tt_fuse_step(int on) {
    tt_trace *t = trace_of_thread();
    if (!t) return -1;
    t->step += on;
    return run_locked(t, TT_FLUSH_STEP) ? 0 : -1;
}

int tt_fuse_join(void) { return tt_fuse_enter() > 0 && (mine->joined = true); }

int tt_fuse_set_everywhere(int on) {
    tt_fuse_everywhere = on;
    if (on || !mine || !mine->joined) return 0;
    mine->joined = false;
    return tt_fuse_leave() < 0 ? -1 : 0;
}

int tt_fuse_flush(void) {
    if (mine && !run_locked(mine, TT_FLUSH_ASKED)) return -1;
    tt_finish_jobs();
    return 0;
}
int tt_fuse_depth(void) { return mine ? mine->depth : 0; }
int tt_fuse_pending(void) { return mine ? mine->num_nodes : 0; }

/* Recording. The lock is held from here on. */

bool tt_trace_room(tt_trace *t, int64_t words) {
    if (t->encoded + words <= t->room) return true;
    int64_t room = 2 * t->room + 1024;
    int64_t *more = realloc(t->encoding, (size_t)room * 8);
    if (!more) return false;
    t->encoding = more;
    t->room = room;
    return true;
}

/* The storage's number in this trace; -1: it is lazy in another one, if only since a moment ago. */
static int number_of(tt_trace *t, const tt_array *a, bool whole) {
    tt_storage *s = a->storage;
    tt_lazy *p = tt_lazy_of(s), *none = NULL;
    if (p) return p->trace == t ? p->id : -1;
    int id = t->num_storages;
    p = &t->storages[id];
    if (!p->trace) { /* which stays: a thread that found this place through another storage may look at it even now */
        p->trace = t;
        p->id = id;
    }
    p->storage = s;
    p->nbytes = s->nbytes;
    p->origin = a->data - s->data;
    p->held = !whole;
    p->written = p->dying = false;
    if (!__atomic_compare_exchange_n(&s->lazy, &none, p, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return -1;
    if (!whole) tt_storage_ref(s);
    return t->num_storages++;
}

static int number_of_constant(tt_trace *t, const tt_array *a) {
    tt_number c = {.dtype = a->dtype};
    memcpy(&c.bits, a->data, (size_t)tt_itemsizes[a->dtype]);
    for (int k = t->num_numbers - 1; k >= 0 && k >= t->num_numbers - 8; k--)
        if (t->numbers[k].bits == c.bits && t->numbers[k].dtype == c.dtype) return k;
    t->numbers[t->num_numbers] = c;
    return t->num_numbers++;
}

static bool is_number(const tt_array *a) { return a->flags & TT_FLAG_WEAK; }

/* Has the shape more dimensions than a kernel? */
static inline bool is_too_deep(int ndim, const int64_t *shape) {
    int dims = ndim;
    for (int d = 0; dims > TT_FUSE_DIMS && d < ndim; d++) dims -= shape[d] == 1;
    return dims > TT_FUSE_DIMS;
}

static bool same_shape(const tt_array *a, int ndim, const int64_t *shape) {
    return a->ndim == ndim && memcmp(a->shape, shape, sizeof(int64_t) * (size_t)ndim) == 0;
}

static int64_t *put_layout(int64_t *w, const tt_array *a, int64_t origin) {
    *w++ = a->data - a->storage->data - origin;
    *w++ = a->ndim;
    for (int d = 0; d < a->ndim; d++) *w++ = a->shape[d];
    for (int d = 0; d < a->ndim; d++) *w++ = a->strides[d];
    return w;
}

static bool is_full(const tt_trace *t) {
    return t->num_nodes >= TT_FUSE_NODES || t->num_storages + 4 > TT_FUSE_STORAGES ||
           t->num_numbers + TT_DRAW_NUMBERS > TT_FUSE_CONSTANTS;
}

/* Begins a node: where its words go on. */
static inline int64_t *put_node(tt_trace *t, int64_t head, int64_t operands, int64_t modes, int64_t dtypes, int ndim,
                                const int64_t *shape) {
    bool again = t->ndim == ndim;
    for (int d = 0; again && d < ndim; d++) again = t->shape[d] == shape[d];
    int64_t *w = t->encoding + t->encoded;
    int64_t flags = (again ? 0 : TT_WORD_SHAPE) | modes << 1 | dtypes << 9 | (t->recipe == 2 ? TT_WORD_RECIPE : 0);
    if (t->recipe) t->recipe = 2;
    *w++ = head | flags << 32;
    *w++ = operands;
    if (!again) {
        *w++ = t->ndim = ndim;
        for (int d = 0; d < ndim; d++) *w++ = t->shape[d] = shape[d];
    }
    return w;
}

static inline void end_node(tt_trace *t, const int64_t *w) {
    t->encoded = w - t->encoding;
    t->num_nodes++;
    t->since_enter++;
}

/* Notes a node down. out and in are the operands as they are now, `shape` is that of iteration. */
static bool append(tt_trace *t, int kind, int op, int dtype, tt_array *out, int n, tt_array *const *in, int ndim,
                   const int64_t *shape, int64_t mask) {
    if (!tt_trace_room(t, 3 + TT_MAX_NDIM + 4 * (2 + 2 * TT_MAX_NDIM) + 2)) return false;
    /* Operands first: the storage of the result is numbered after those it is made from. */
    int64_t ids[4] = {0}, modes = 0, dtypes = 0;
    for (int k = 1; k <= n + 1; k++) {
        int which = k <= n ? k : 0;
        const tt_array *a = which ? in[which - 1] : out;
        int64_t mode = TT_MODE_FULL;
        if (which && kind == TT_NODE_RANDOM) {
            ids[which] = t->num_numbers;
            mode = TT_MODE_NUMBER;
            memcpy(&t->numbers[t->num_numbers], a->data, sizeof(tt_number) * TT_DRAW_NUMBERS);
            t->num_numbers += TT_DRAW_NUMBERS;
        } else if (which && is_number(a)) {
            ids[which] = number_of_constant(t, a);
            mode = TT_MODE_NUMBER;
        } else {
            /* A storage that is overwritten whole need not be held: its old elements are dead. */
            bool whole = !which && a->storage->nbytes == a->numel * tt_itemsizes[a->dtype];
            if ((ids[which] = number_of(t, a, whole)) < 0) return false;
            if (a->flags & TT_FLAG_CONTIGUOUS && a->data - a->storage->data == t->storages[ids[which]].origin &&
                same_shape(a, ndim, shape))
                mode = TT_MODE_PLAIN;
        }
        modes |= mode << (2 * which);
        dtypes |= (int64_t)a->dtype << (4 * which);
    }
    t->storages[ids[0]].written = true;
    int64_t operands = ids[0];
    for (int k = 1; k <= n; k++) operands |= ids[k] << (16 * k);
    int64_t *w = put_node(t, kind | op << 8 | dtype << 16 | n << 24, operands, modes, dtypes, ndim, shape);
    if (kind == TT_NODE_REDUCE) *w++ = mask;
    for (int k = 0; k <= n; k++)
        if ((modes >> (2 * k) & 3) == TT_MODE_FULL) w = put_layout(w, k ? in[k - 1] : out, t->storages[ids[k]].origin);
    end_node(t, w);
    return true;
}

/* Note [Memory of others]
 * What NumPy or another library shares (storage->shared) may be written at any time, without our knowing. An operator
 * that is recorded must read what was there when it was called: so it reads a copy, made at once. In a pure function that
 * is the outermost of the mode nobody writes but the function itself, which was promised or seen not to, and the trace
 * ends with the call: there (in_place) the memory itself is read. Shared memory is never written by a trace. */

/* An operand as recording may keep it: flushed if another thread's, copied if others may write it meanwhile. */
static bool take(tt_array **a, tt_array **copy) {
    *copy = NULL;
    if (is_number(*a)) return true;
    tt_storage *s = (*a)->storage;
    tt_lazy *p = tt_lazy_of(s);
    if (p && p->trace != tt_recorder && !flush_storage(s, true, TT_FLUSH_THREAD)) return false;
    if (!tt_is_shared(s) || tt_recorder->in_place) return true;
    *copy = *a = tt_clone_now(*a);
    return *a;
}

/* Complex numbers are computed at once. */
static bool has_complex(const tt_array *out, int n, tt_array *const *in) {
    bool any = tt_is_complex(out->dtype);
    for (int k = 0; k < n; k++) any |= tt_is_complex(in[k]->dtype);
    return any;
}

static bool record(int kind, int op, int dtype, tt_array *out, int n, tt_array *const *operands, int ndim,
                   const int64_t *shape, int64_t mask) {
    tt_trace *t = tt_recorder;
    tt_array *in[3], *copies[3] = {NULL, NULL, NULL};
    if (has_complex(out, n, operands) || tt_is_shared(out->storage) || tt_fuse_running(t) || is_too_deep(ndim, shape))
        return false;
    int device = out->storage->device;
    tt_lazy *p = tt_lazy_of(out->storage);
    if (p && p->trace != t && !flush_storage(out->storage, true, TT_FLUSH_THREAD)) {
        tt_flush_failed = false;
        return false;
    }
    tt_await(out->storage, true);
    bool ok = true;
    for (int k = 0; ok && k < n; k++) {
        in[k] = operands[k];
        /* a number among a device's operands that is no Python number is a matter of the launch */
        ok = (is_number(in[k]) || in[k]->storage->device == device) && take(&in[k], &copies[k]);
    }
    if (ok) {
        tt_trace_lock(t);
        bool full = is_full(t);
        bool moves = t->num_nodes && t->device != device;
        ok = (!(full || moves) || run(t, full ? TT_FLUSH_LIMIT : TT_FLUSH_DEVICE));
        if (ok) t->device = device; /* otherwise what is pending stays what it is */
        ok = ok && append(t, kind, op, dtype, out, n, in, ndim, shape, mask);
        int node = t->num_nodes - 1;
        int64_t trace = t->trace;
        tt_trace_unlock(t);
        tt_notify();
        if (ok && tt_fuse_setting(TT_FUSE_OBSERVE) & TT_OBSERVE_LINES) tt_fuse_where(node, trace);
        if (ok && t->step)
            run_locked(t, TT_FLUSH_STEP); /* if that fails it stays pending, and the reader gets the error */
    }
    tt_flush_failed = false; /* the caller flushes the operands, and reports a failure */
    for (int k = 0; k < n; k++)
        if (copies[k]) tt_free(copies[k]);
    return ok;
}

bool tt_record_op(int op, int dtype, tt_array *out, int n, tt_array *const *in) {
    return record(TT_NODE_OP, op, dtype, out, n, in, out->ndim, out->shape, 0);
}

/* Notes down an operator of at most two operands that are whole and of the result's shape, or numbers; false where there is
 * more to it. The lock is held. */
static bool append_alike(tt_trace *t, int op, int64_t dtype, tt_array *out, int n, tt_array *const *in) {
    if (is_full(t) || is_too_deep(out->ndim, out->shape) || t->encoded + 3 + out->ndim > t->room ||
        (t->num_nodes && t->device) || out->storage->jobs)
        return false;
    int64_t operands = 0, modes = 0, dtypes = out->dtype;
    for (int k = 1; k <= n + 1; k++) {
        const tt_array *a = k <= n ? in[k - 1] : out; /* as in append: the result's storage last */
        int which = k <= n ? k : 0, id;
        if (is_number(a)) {
            id = number_of_constant(t, a);
            modes |= TT_MODE_NUMBER << (2 * which);
        } else {
            const tt_lazy *p = tt_lazy_of(a->storage);
            if ((tt_is_shared(a->storage) && !(which && t->in_place)) ||
                (p && (p->trace != t || p->origin != a->data - a->storage->data)))
                return false;
            if ((id = p ? p->id : number_of(t, a, !which)) < 0) return false;
            if (!which) t->storages[id].written = true;
        }
        operands |= (int64_t)id << (16 * which);
        dtypes |= which ? (int64_t)a->dtype << (4 * which) : 0;
    }
    end_node(t,
             put_node(t, TT_NODE_OP | op << 8 | dtype << 16 | n << 24, operands, modes, dtypes, out->ndim, out->shape));
    t->device = 0;
    return true;
}

bool tt_record_alike(int op, int dtype, tt_array *out, int n, tt_array *const *in) {
    tt_trace *t = tt_recorder;
    if (!tt_is_complex(dtype) && !t->step && !tt_fuse_running(t) &&
        !(tt_fuse_setting(TT_FUSE_OBSERVE) & TT_OBSERVE_LINES)) {
        tt_trace_lock(t);
        bool ok = append_alike(t, op, dtype, out, n, in);
        tt_trace_unlock(t);
        if (ok) return true;
    }
    return tt_record_op(op, dtype, out, n, in);
}

bool tt_record_copy(tt_array *out, tt_array *a) {
    if (!out->numel || (!is_number(a) && tt_same_layout(out, a)))
        return true; /* the end of x[1:] += y: nothing to do */
    if (!is_number(a) && a->storage == out->storage && tt_overlaps(a, out)) return false;
    for (int d = 0; d < out->ndim; d++) /* elements written more than once, in an order of their own */
        if (out->shape[d] > 1 && out->strides[d] == 0) return false;
    return record(TT_NODE_COPY, 0, out->dtype, out, 1, &a, out->ndim, out->shape, 0);
}

/* The draw's numbers are not part of the program, only their kind is. */
bool tt_record_random(tt_array *out, const tt_draw *draw, int dtype) {
    tt_number numbers[TT_DRAW_NUMBERS] = {
        {(int64_t)draw->seed, TT_I64}, {(int64_t)draw->draw, TT_I64}, {0, TT_F64}, {0, TT_F64},
        {draw->low, TT_I64},           {(int64_t)draw->range, TT_I64}};
    memcpy(&numbers[2].bits, &draw->a, 8);
    memcpy(&numbers[3].bits, &draw->b, 8);
    tt_array all = {.data = (char *)numbers,
                    .dtype = (int16_t)dtype,
                    .flags = TT_FLAG_WEAK,
                    .shape = tt_no_dims,
                    .strides = tt_no_dims},
             *in = &all;
    return record(TT_NODE_RANDOM, draw->kind | draw->digits << 3, dtype, out, 1, &in, out->ndim, out->shape, 0);
}

bool tt_record_reduce(int reducer, int read, tt_array *out, tt_array *a, int64_t mask, tt_array *param) {
    /* What NumPy may write is copied, row-major; elements that lie in another order are added up in that order. */
    if (tt_is_shared(a->storage) && !(a->flags & TT_FLAG_CONTIGUOUS) && !tt_recorder->in_place) return false;
    return record(TT_NODE_REDUCE, reducer, read, out, param ? 2 : 1, (tt_array *[]){a, param}, a->ndim, a->shape, mask);
}
