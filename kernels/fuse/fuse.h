/* What the recorder, the planner and the interpreter of fused mode share. Not seen by Python.
 *
 * Note [Fused mode]
 * Below the tape. In fused mode an operator that knows how to (elementwise, copies and casts, fills, reductions)
 * allocates its result as ever and notes down what is to be done (record.c); the tape, shapes, dtypes, versions
 * and errors are those of eager mode. The notes of a thread form one trace. Whoever needs elements calls tt_ready,
 * tt_writable or tt_flush, which run the trace of whatever storage they find lazy:
 *
 *   trace (encoding)  --plan.c-->  program: kernels of instructions  --launch.c, interpret.c-->  memory
 *
 * A trace is a list of 64-bit words that holds no addresses and no numbers of the user's: storages and Python
 * numbers are numbered in order of appearance. So the words, with a bit for each storage that says whether anyone can
 * still see it, are the key under which the program is found again; planning happens once.
 *
 * A storage that a trace mentions points to its tt_lazy. One that was there before is held (a reference);
 * one that the trace made is not: when the last array on it goes, it is freed as ever, and its lazy entry only
 * remembers that its value is dead. Such values live in registers or, if another kernel needs them, in temporary
 * memory.
 *
 * Same bits as eager mode: the same loops (or, compiled, the same scalar functions) over the same values; a half type
 * is rounded after every operator; reductions keep the tree of Note [The tree of a reduction]. */
#pragma once
#include "backend/kernel.h"
#include "backend/operators.h"
#include "backend/random.h"
#include "backend/reduction.h"
#include <pthread.h>

#define TT_FUSE_NODES 1024     /* a trace that gets this long is run */
#define TT_FUSE_STORAGES 4096
#define TT_FUSE_CONSTANTS 2048

/* In Python: tinytorch/fuse/listeners.py. */
void tt_fuse_notify(tt_run_record *w);                /* a program was run */
void tt_fuse_where(int node, int64_t trace);  /* this thread has just recorded its node of that number */

enum { TT_NODE_OP, TT_NODE_COPY, TT_NODE_REDUCE, TT_NODE_RANDOM };

/* Note [Too little to fuse]
 * A step of 13 operators takes 96,000 instructions recorded and interpreted, 88,000 in eager mode, on 64 numbers. So
 * where fusion spares less than TT_FUSE_WORTH bytes of memory traffic for each kernel, because every operator became a
 * kernel of its own or the tensors are small, eager mode computes the same sooner. A thread counts how often in a row
 * it has recorded an operator of a dtype and size (its place in `little`) in vain. From TT_SEEN times on it leaves such
 * operators to eager mode, if they are small and no operand has yet to be computed. After so many as TT_LOOK_AGAIN it
 * records everything for TT_LOOKS programs, to see whether there is more to fuse by now. */
#define TT_SMALL 8192 /* elements, too few for a second thread */
#define TT_SEEN 16
#define TT_LOOK_AGAIN 16384
#define TT_LOOKS 16
#define TT_PLACES 1024

/* What one thread has recorded. */
typedef struct tt_trace {
    int locked;             /* its thread records, any thread may run it or free a storage */
    void *runner;           /* of a device: the thread that runs it just now, see tt_fuse_running */
    int device;             /* of all its nodes, as tt_storage's */
    int depth, step;        /* in the mode; in the mode for steps */
    bool joined;            /* once for tt_fuse_everywhere */
    bool in_place;          /* it reads shared memory where that is: Note [Memory of others] in record.c */
    int32_t since_enter;    /* nodes since the mode was entered last, runs of the trace or not */
    int32_t num_nodes, num_storages, num_numbers;
    int64_t looked;         /* tt_looks as the mode was entered last */
    int64_t encoded, room;
    int64_t *encoding;
    int ndim;               /* of the last node, so that its shape need not be repeated */
    int64_t shape[TT_MAX_NDIM];
    tt_lazy storages[TT_FUSE_STORAGES];
    tt_number numbers[TT_FUSE_CONSTANTS];
    int recipe;             /* 1: the nodes that follow are one operator's; 2: and the first of them is there */
    int64_t trace;      /* its number in this process */
    int64_t left;       /* operators left to eager mode */
    int whole;          /* so many programs are to be recorded whole */
    uint16_t places[TT_FUSE_NODES]; /* of its nodes, in `little` */
    uint8_t little[TT_PLACES];
    struct tt_trace *next;  /* of all there are */
} tt_trace;

/* Note [The encoding of a trace]
 * For each node:
 *   kind | op << 8 | dtype << 16 | operands << 24 | flags << 32      op: operator, reducer, kind of random numbers;
 *                                                                    dtype: computed in, read
 *   out | in0 << 16 | in1 << 32 | in2 << 48                          numbers of storages, or of Python numbers
 *   its shape, where TT_WORD_SHAPE is set: ndim, sizes               broadcast; of a reduction: what is reduced
 *   a reduction's mask of reduced dimensions
 *   for out and every operand whose mode is TT_MODE_FULL: offset in bytes from the storage's
 *     origin, ndim, sizes, strides in elements
 * flags: bit 0 TT_WORD_SHAPE; from bit 1 two bits of mode for out and each operand; from bit 9 four bits of dtype for
 * each; bit 25 TT_WORD_RECIPE: part of the same operator as the node before it (nn_record.c). */
enum {
    TT_MODE_PLAIN, /* contiguous from the storage's origin on, of the node's shape */
    TT_MODE_FULL,
    TT_MODE_NUMBER
};
#define TT_WORD_SHAPE 1
#define TT_WORD_RECIPE (1 << 25)

/* trace.c */
/* Launching runs Python, and Python may run anything: is this thread in the midst of running this very trace? Then its
 * lock is held here already. */
bool tt_fuse_running(const tt_trace *t);
void tt_trace_wait(tt_trace *t);
/* Taken twice for each operator, and hardly ever waited for: one exchange takes it, a plain store gives it back.
 * Whoever has to wait, for a program to run perhaps, yields, and soon sleeps in between. */
static inline void tt_trace_lock(tt_trace *t) {
    if (__atomic_exchange_n(&t->locked, 1, __ATOMIC_ACQUIRE)) tt_trace_wait(t);
}
static inline void tt_trace_unlock(tt_trace *t) { __atomic_store_n(&t->locked, 0, __ATOMIC_RELEASE); }

/* Of this thread, in fused mode; NULL otherwise. The record functions give false where they leave the work to the
 * caller, who flushes the operands first. `out` is allocated already; its version is the caller's affair. */
extern __thread struct tt_trace *tt_recorder;
extern int tt_fuse_everywhere; /* TINYTORCH_FUSE=1: every thread is */
int tt_fuse_join(void);
#define TT_RECORDING (tt_recorder || (tt_fuse_everywhere && tt_fuse_join()))
bool tt_may_submit_jobs(void); /* may a call hand work over as a job? As far as modes and threads go: core/jobs.h */
extern int64_t tt_fuse_settings[TT_FUSE_SETTINGS];
static inline int64_t tt_fuse_setting(int setting) {
    return __atomic_load_n(&tt_fuse_settings[setting], __ATOMIC_RELAXED);
}
void tt_fuse_count(int what, int64_t by);
/* Runs what is pending; on failure it stays pending. The lock is held; call tt_notify without it. */
bool tt_trace_run(tt_trace *t, int reason);
bool tt_trace_flush(tt_trace *t, int reason); /* takes the lock */
/* Runs the trace that a storage is lazy in, which may be another thread's. */
bool tt_flush_storage(tt_storage *s, bool write, int reason);

/* record.c; the lock is held: */
bool tt_trace_room(tt_trace *t, int64_t words);
bool tt_record_copy(tt_array *out, tt_array *a);
bool tt_record_op(int op, int dtype, tt_array *out, int n, tt_array *const *in);
/* The same for the commonest case: all row-major, of one shape and on the CPU, or Python numbers. */
bool tt_record_alike(int op, int dtype, tt_array *out, int n, tt_array *const *in);
/* Is such an operator, whose operands are there, left to eager mode? Then the caller computes it. */
bool tt_leaves(int op, int dtype, int n, int64_t numel);
bool tt_record_random(tt_array *out, const tt_draw *draw, int dtype);
bool tt_record_reduce(int reducer, int read, tt_array *out, tt_array *a, int64_t mask, tt_array *param);

/* plan.c */
tt_program *tt_program_of(tt_trace *t, int *hit); /* found or made; NULL and an error: out of memory */
void tt_program_done(tt_program *p);

/* launch.c */
bool tt_program_run(tt_program *p, tt_trace *t);
bool tt_program_run_on(tt_program *p, char **base, const tt_number *numbers); /* base: of each storage */

/* compiled.c */
void tt_program_want(tt_program *p); /* compiled, those of its kernels that have run often enough */

/* listen.c: a run is noted with the trace's lock held; listeners are notified without it, since that runs Python. */
tt_run_record *tt_run_record_new(tt_program *p, const tt_trace *t, int reason, int known); /* NULL: no listener */
void tt_notify_replay(tt_program *p, tt_number *numbers); /* at once */
void tt_notify_later(tt_run_record *w); /* by this thread's next tt_notify */
void tt_notify(void);
void tt_run_record_free(tt_run_record *w);
void tt_notify_discard(void); /* drops this thread's pending records */
