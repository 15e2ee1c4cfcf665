/* Fused mode's recorder: notes operators down in this thread's trace. Note [Fused mode] in fuse.h. */
#include "backend/now.h"
#include "core/jobs.h"
#include "fuse/fuse.h"
#include <stdlib.h>
#include <string.h>

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

static inline int64_t head_of(int kind, int op, int64_t dtype, int n) { return kind | op << 8 | dtype << 16 | n << 24; }

/* Note [Too little to fuse] */
static inline uint16_t place_of(int64_t head, int64_t numel) {
    return (uint16_t)(((uint64_t)head ^ (uint64_t)numel << 32) * 0x9e3779b97f4a7c15u >> 54);
}

static inline bool is_left(tt_trace *t, int64_t head, int64_t numel) {
    if (numel > TT_SMALL || t->little[place_of(head, numel)] < TT_SEEN || t->whole || t->step ||
        tt_fuse_setting(TT_FUSE_OBSERVE) & TT_OBSERVE_RUNS || !tt_fuse_setting(TT_FUSE_WORTH))
        return false;
    int64_t left = t->left + 1;
    __atomic_store_n(&t->left, left, __ATOMIC_RELAXED);
    if (left % TT_LOOK_AGAIN == 0) t->whole = TT_LOOKS;
    return true;
}

bool tt_leaves(int op, int dtype, int n, int64_t numel) {
    return is_left(tt_recorder, head_of(TT_NODE_OP, op, dtype, n), numel);
}

/* Begins a node: where its words go on. */
static inline int64_t *put_node(tt_trace *t, int64_t head, int64_t operands, int64_t modes, int64_t dtypes, int ndim,
                                const int64_t *shape, int64_t numel) {
    bool again = t->ndim == ndim;
    for (int d = 0; again && d < ndim; d++) again = t->shape[d] == shape[d];
    int64_t *w = t->encoding + t->encoded;
    int64_t flags = (again ? 0 : TT_WORD_SHAPE) | modes << 1 | dtypes << 9 | (t->recipe == 2 ? TT_WORD_RECIPE : 0);
    if (t->recipe) t->recipe = 2;
    t->places[t->num_nodes] = place_of(head, numel);
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
                   const int64_t *shape, int64_t mask, int64_t numel) {
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
    int64_t *w = put_node(t, head_of(kind, op, dtype, n), operands, modes, dtypes, ndim, shape, numel);
    if (kind == TT_NODE_REDUCE) *w++ = mask;
    for (int k = 0; k <= n; k++)
        if ((modes >> (2 * k) & 3) == TT_MODE_FULL) w = put_layout(w, k ? in[k - 1] : out, t->storages[ids[k]].origin);
    end_node(t, w);
    return true;
}

/* Note [Memory of others]
 * What NumPy or another library shares (storage->shared) may be written at any time, without our knowing. An operator
 * that is recorded must read what was there when it was called: so it reads a copy, made at once. In a pure function
 * that is the outermost of the mode nobody writes but the function itself, which was promised or seen not to, and the
 * trace ends with the call: there (in_place) the memory itself is read. Shared memory is never written by a trace. */

/* An operand as recording may keep it: flushed if another thread's, copied if others may write it meanwhile. */
static bool take(tt_array **a, tt_array **copy) {
    *copy = NULL;
    if (is_number(*a)) return true;
    tt_storage *s = (*a)->storage;
    tt_lazy *p = tt_lazy_of(s);
    if (p && p->trace != tt_recorder && !tt_flush_storage(s, true, TT_FLUSH_THREAD)) return false;
    if (!tt_is_shared(s) || tt_recorder->in_place) return true;
    *copy = *a = tt_clone_now(*a);
    return *a;
}

/* Complex numbers are recorded on the CPU, by elementwise operators and copies. A Python number that is one, of 16
 * bytes, has no place in the trace. */
static bool leaves_complex(int kind, int n, tt_array *const *in, const tt_array *out) {
    bool any = tt_is_complex(out->dtype), number = false;
    for (int k = 0; k < n; k++) {
        any |= tt_is_complex(in[k]->dtype);
        number |= is_number(in[k]) && tt_is_complex(in[k]->dtype);
    }
    return any && (number || out->storage->device || (kind != TT_NODE_OP && kind != TT_NODE_COPY));
}

/* Are they computed, all but Python numbers? */
static bool are_there(const tt_array *out, int n, tt_array *const *in) {
    bool there = !tt_lazy_of(out->storage);
    for (int k = 0; there && k < n; k++) there = is_number(in[k]) || !tt_lazy_of(in[k]->storage);
    return there;
}

static bool record(int kind, int op, int dtype, tt_array *out, int n, tt_array *const *operands, int ndim,
                   const int64_t *shape, int64_t mask) {
    tt_trace *t = tt_recorder;
    tt_array *in[3], *copies[3] = {NULL, NULL, NULL};
    int64_t numel = kind == TT_NODE_REDUCE ? operands[0]->numel : out->numel;
    int device = out->storage->device;
    if (!device && !t->recipe && are_there(out, n, operands) && is_left(t, head_of(kind, op, dtype, n), numel))
        return false;
    if (leaves_complex(kind, n, operands, out) || tt_is_shared(out->storage) || tt_fuse_running(t) ||
        is_too_deep(ndim, shape))
        return false;
    tt_lazy *p = tt_lazy_of(out->storage);
    if (p && p->trace != t && !tt_flush_storage(out->storage, true, TT_FLUSH_THREAD)) {
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
        ok = (!(full || moves) || tt_trace_run(t, full ? TT_FLUSH_LIMIT : TT_FLUSH_DEVICE));
        if (ok) t->device = device; /* otherwise what is pending stays what it is */
        ok = ok && append(t, kind, op, dtype, out, n, in, ndim, shape, mask, numel);
        int node = t->num_nodes - 1;
        int64_t trace = t->trace;
        tt_trace_unlock(t);
        tt_notify();
        if (ok && tt_fuse_setting(TT_FUSE_OBSERVE) & TT_OBSERVE_LINES) tt_fuse_where(node, trace);
        if (ok && t->step)
            tt_trace_flush(t, TT_FLUSH_STEP); /* if that fails it stays pending, and the reader gets the error */
    }
    tt_flush_failed = false; /* the caller flushes the operands, and reports a failure */
    for (int k = 0; k < n; k++)
        if (copies[k]) tt_free(copies[k]);
    return ok;
}

bool tt_record_op(int op, int dtype, tt_array *out, int n, tt_array *const *in) {
    return record(TT_NODE_OP, op, dtype, out, n, in, out->ndim, out->shape, 0);
}

/* Notes down an operator of at most two operands that are whole and of the result's shape, or numbers; false where
 * there is more to it. The lock is held. */
static bool append_alike(tt_trace *t, int op, int64_t dtype, tt_array *out, int n, tt_array *const *in) {
    if (is_full(t) || is_too_deep(out->ndim, out->shape) || t->encoded + 3 + out->ndim > t->room ||
        (t->num_nodes && t->device) || tt_jobs_of(out->storage))
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
    int64_t head = head_of(TT_NODE_OP, op, dtype, n);
    end_node(t, put_node(t, head, operands, modes, dtypes, out->ndim, out->shape, out->numel));
    t->device = 0;
    return true;
}

bool tt_record_alike(int op, int dtype, tt_array *out, int n, tt_array *const *in) {
    tt_trace *t = tt_recorder;
    if (!(tt_is_complex(dtype) && leaves_complex(TT_NODE_OP, n, in, out)) && !t->step && !tt_fuse_running(t) &&
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

/* The draw's numbers are not part of the program, only their kind is. On a device they are drawn by their own kernel,
 * which might as well be launched now. */
bool tt_record_random(tt_array *out, const tt_draw *draw, int dtype) {
    if (out->storage->device) return false;
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
