/* Fused mode: operators recorded, planned and run as programs. See Note [Fused mode] in kernels/fuse/fuse.h. */
#pragma once
#include "api/core.h"

/* What a thread records. enter and leave nest; the outermost leave runs what is pending. */
int tt_fuse_enter(void);
int tt_fuse_leave(void);      /* -1 and an error when the pending program could not run */
/* On: every thread is in the mode, from its first operator on. Off: this thread is no longer, others are until they
 * end.
 * -1 and an error when what was pending could not run. */
int tt_fuse_set_everywhere(int on);
int tt_fuse_flush(void); /* runs this thread's pending program now, and waits for asynchronous jobs */
int tt_fuse_depth(void);
int tt_fuse_pending(void); /* operators recorded by this thread and not run yet */

/* Makes the elements of `a` real, and its storage's readers too. `share`: memory that someone outside will read or
 * write from now on; recording then copies instead of looking later, and writes at once. */
int tt_sync(tt_array *a, int share);

/* A program is the plan of one trace: kernels, run one after the other. */

/* What an instruction does to one block of elements. */
enum { TT_INSTR_OP, TT_INSTR_CAST, TT_INSTR_MOVE };

typedef struct tt_instr {
    int16_t kind;
    int16_t op; /* OP: the operator's code */
    int16_t dtype; /* OP: computed in; CAST: from; MOVE: of both */
    int16_t to; /* CAST: to */
    int16_t stage; /* which of the kernel's passes over a row; 0 where there is one */
    int16_t level; /* 1: on elements, 0: on rows (one value each) */
    int16_t out, in[3]; /* slots; -1: none */
    int16_t recompute; /* not 0: compiled functions recompute it in every stage that uses it instead of storing it; the
                          cost in instructions */
    int16_t pair; /* the interpreter does it and the next in one loop: of that number, see TT_PAIRS */
    int32_t node; /* the recorded operator it came from */
} tt_instr;

/* What the interpreter does in the place of some instructions: Note [Superinstructions] in
 * kernels/cpu/superinstructions.h. */
typedef struct tt_step {
    void *run;
    int16_t slot, more, third, to;
} tt_step;
typedef struct tt_superinstruction {
    int16_t first_instr, end_instr;
    int32_t first_step;
    int32_t twice; /* it may do elements again: it writes nothing that it reads */
} tt_superinstruction;

/* Where a value stands while a block is worked on. */
enum {
    TT_SLOT_TEMP, /* an instruction's result */
    TT_SLOT_LOAD, /* an operand in memory */
    TT_SLOT_ONE, /* one element in memory, for all */
    TT_SLOT_CONST, /* a Python number */
    TT_SLOT_ROW, /* a level-0 slot's value, for all elements of its row */
    TT_SLOT_RESULT, /* a reduction's, at level 0 */
    TT_SLOT_RANDOM, /* random numbers, drawn for every block: like an operand in memory */
};

typedef struct tt_slot {
    int16_t kind, dtype;
    int16_t level;
    int16_t stage; /* where it is made: TEMP, RESULT */
    int16_t last; /* the last stage that uses it */
    int16_t from; /* ROW: the level-0 slot */
    int32_t index; /* LOAD, ONE: the access; CONST: the recorded number; RANDOM: the first of them; ROW: 1 if it is
                          one number for a block, which only superinstructions read, as that */
    int32_t buffer; /* its place in the interpreter's arena, in units of 64 bytes; -1: none */
} tt_slot;

/* A stage's work of one level: its instructions, and the slots it uses whose place is another for every block; from
 * `more_use` on those that only compiled functions use, to recompute others. */
typedef struct tt_part {
    int16_t first_instr, end_instr, first_use, more_use, end_use, first_store, end_store, first_super, end_super;
} tt_part;

typedef struct tt_access {
    int32_t storage; /* its number in the trace */
    int16_t dtype;
    int16_t level;
    int16_t flat, one; /* the elements follow each other; it is one element for all */
    int64_t offset; /* of the first element, in bytes */
    int64_t strides[16]; /* in bytes, along the kernel's dimensions */
} tt_access;

typedef struct tt_store {
    int16_t slot, stage;
    int32_t access;
    int32_t late; /* an instruction after the one that makes its value reads what it writes over */
} tt_store;

typedef struct tt_kernel_reduction {
    int16_t reducer, dtype; /* dtype: read */
    int16_t acc; /* the accumulator's dtype */
    int16_t slot, param; /* the operand (EXTERN: an access), and the reducer's parameter for each row: a level-0 slot
                               (ROW_REDUCTION), an access (other patterns), or -1 */
    int16_t out; /* ROW_REDUCTION: a RESULT slot; -1 otherwise, and for a reduction of all rows (a total) */
    int16_t stage;
    int32_t partials; /* ROW_REDUCTION: the blocks' results in the arena, in units of 64 bytes; a total's elements,
                               until they are a block */
    int32_t access; /* the results in memory: of totals, and of patterns other than ROW_REDUCTION; -1 otherwise */
    int32_t node;
} tt_kernel_reduction;

/* A kernel's pattern of iteration. */
enum {
    TT_PATTERN_POINTWISE, /* elements in any order */
    TT_PATTERN_ROW_REDUCTION, /* row after row, each in as many passes (stages) as reductions wait for one another */
    TT_PATTERN_SPLIT_REDUCTION, /* long rows, reduced block by block */
    TT_PATTERN_OUTER_REDUCTION, /* reduced dimensions outside of kept ones */
    TT_PATTERN_EXTERN, /* one reduction, by the eager loop: of another layout; on a device all with nothing to fuse */
};

typedef struct tt_kernel {
    int16_t pattern, ndim;
    int16_t kept; /* number of leading dimensions that are not reduced */
    int16_t num_stages, num_slots, num_instrs, num_accesses, num_stores, num_reductions;
    int16_t weight; /* the cost of an element, in additions */
    int16_t alone; /* of a device: it is one operator, whose eager kernel runs it */
    int64_t numel, shape[16];
    int64_t rows, row; /* of reductions: numbers of rows, and of elements of one; OUTER_REDUCTION: sizes outside of */
    int64_t inner; /* the reduced dimensions, of them, and inside of them */
    int64_t block; /* most elements that are worked on at a time (ROW_REDUCTION: of whole rows, if shorter) */
    int64_t together; /* ROW_REDUCTION: rows that go through a stage before the next one begins */
    int64_t unit_rows; /* ROW_REDUCTION: rows of a thread, in whole blocks where there are totals */
    int64_t arena; /* bytes the interpreter needs for a thread */
    int64_t beside; /* it needs nothing of the kernels before it, back to the last one that does, nor they of it:
                                they run side by side */
    tt_slot *slots;
    tt_instr *instrs; /* in order of stage; within a stage level 1 first */
    tt_part *parts; /* of each stage two: level 1, level 0; and one that has the loads of level 0 */
    int16_t *uses; /* slots, as the parts have them */
    tt_access *accesses;
    tt_store *stores;
    tt_kernel_reduction *reductions;
    int16_t num_superinstructions, num_steps;
    tt_superinstruction *superinstructions; /* the interpreter's */
    tt_step *steps; /* num_steps of them for each instruction set */
    /* The compiled tier: for each stage a function of (slot pointers, number of elements) in the place of its level-1
     * instructions; all of them or none. Set once, by tt_kernel_install. */
    void **compiled;
    int64_t program; /* the number of its program */
    int32_t device; /* as its program's; on a device `compiled` is not used */
    int64_t runs, elements; /* so far */
    int64_t reads, writes; /* bytes of memory one run touches */
    int64_t started, nanoseconds; /* the last observed run: when, by the monotonic clock, and how long */
    int64_t was_compiled; /* in the last run */
    int64_t launch; /* of a device: the number under which Python launches it */
    int64_t detail; /* ... and a launch parameter of its source. POINTWISE: vectors of a thread, 0: one element;
                                ROW_REDUCTION: bytes of shared memory of a row; OUTER_REDUCTION: columns of a thread
                                block */
    int64_t state; /* 0: not wanted; 1: waits for the compiler; 2: compiled; -1: will not be */
} tt_kernel;

typedef struct tt_program {
    int32_t num_kernels, num_nodes, num_storages, num_constants;
    int32_t device; /* where it runs: as tt_storage's */
    tt_kernel *kernels;
    int64_t runs;
    int64_t number; /* counts the programs of this process, from 1 on */
    int64_t reads, writes; /* bytes of memory one run touches */
    int64_t eager_reads, eager_writes; /* and operators run one by one */
    int64_t temporaries; /* bytes of storages that live only while it runs */
    int64_t encoded;
    int64_t *encoding; /* the trace: see kernels/fuse/fuse.h */
} tt_program;

/* The compiled tier asks for work (it waits up to `milliseconds`), and brings it back. */
tt_kernel *tt_kernel_wanted(int milliseconds);
void tt_kernel_wake(void); /* tt_kernel_wanted returns at once, the present call or the next */
int tt_kernel_install(tt_kernel *k, const char *path, const char *prefix); /* functions <prefix>0, <prefix>1, ... */
/* The same for a kernel of a device: Python knows how to launch it under the key of family `fused` and this number. */
void tt_kernel_install_device(tt_kernel *k, int64_t number, int64_t detail);
int64_t tt_fused_key(int64_t number);
int tt_kernel_vectors(const tt_kernel *k); /* POINTWISE, on a device: vectors of each operand that a thread takes */
void tt_kernel_refuse(tt_kernel *k);

/* A pure function's program, kept to be run again on other arguments. */
typedef struct tt_replay tt_replay;
/* From what this thread has recorded since it entered the mode, for a function of `in` that gave `out`. NULL: it cannot
 * be run again without the function (it read values, wrote its arguments, drew random numbers, ...). `promised`: to be
 * pure, by the user; otherwise it must have done nothing but record what depends on `in` alone. */
tt_replay *tt_replay_new(int promised, int num_in, tt_array **in, int num_out, tt_array **out);
/* Do two calls show the same program, on the same constants? Then what was computed without being recorded, if
 * anything, does not depend on the arguments. */
int tt_replay_agrees(tt_replay *a, tt_replay *b);
int tt_replay_may(int promised); /* now, and in this thread? */
/* Until the mode ends, which this thread has just entered, for a pure function: Note [Memory of others] in record.c. */
void tt_fuse_read_in_place(void);
/* 1: ran, and made `out`; 0: it is for other shapes, dtypes or layouts; -1: an error */
int tt_replay_run(tt_replay *r, int num_in, tt_array **in, tt_array **out);
void tt_replay_free(tt_replay *r);

enum {
    TT_FUSE_RECORDED,
    TT_FUSE_PROGRAMS,
    TT_FUSE_HITS,
    TT_FUSE_MISSES,
    TT_FUSE_INTERPRETED,
    TT_FUSE_COMPILED,
    TT_FUSE_JOBS,
    TT_FUSE_REPLAYED,
    TT_FUSE_LEFT,
    TT_FUSE_STATS
};
void tt_fuse_stats(int64_t *out);

/* Settings: of the process. */
enum {
    TT_FUSE_HOT_RUNS, /* runs after which a kernel is wanted compiled; < 0: never, and all are interpreted */
    TT_FUSE_WORTH, /* bytes of memory traffic that fusion is to spare for each kernel; 0: everything is recorded */
    TT_FUSE_OBSERVE, /* the events that Python's listeners get: bits, below */
    TT_FUSE_SETTINGS
};
int64_t tt_fuse_set(int setting, int64_t value); /* the value before */

enum {
    TT_OBSERVE_RUNS = 1, /* every run of a program */
    TT_OBSERVE_LINES = 2, /* every operator recorded: where? */
    TT_OBSERVE_HOT = 4, /* the last two runs before a program's kernels are wanted compiled */
    TT_OBSERVE_DATA = 8
}; /* with the runs, what the memory held before them */

/* From now on every operator of this thread is run as soon as it is recorded (on = 1); undone by on = -1. */
int tt_fuse_step(int on);
/* This thread has not learned yet which operators are left to eager mode: Note [Too little to fuse] in fuse/fuse.h. */
void tt_fuse_forget(void);

/* Why a program ended. */
enum {
    TT_FLUSH_LEAVE,
    TT_FLUSH_ASKED,
    TT_FLUSH_VALUE,
    TT_FLUSH_OPERATOR,
    TT_FLUSH_WRITE,
    TT_FLUSH_LIMIT,
    TT_FLUSH_THREAD,
    TT_FLUSH_SHARED,
    TT_FLUSH_STEP,
    TT_FLUSH_REPLAY,
    TT_FLUSH_DEVICE
};

typedef struct tt_number {
    int64_t bits;
    int32_t dtype;
} tt_number; /* a Python number, as an element of its dtype; no
                                                                        complex one: those operators are not recorded */

/* A run of a program, for listeners; freed when the call returns. */
typedef struct tt_run_record {
    tt_program *program;
    int32_t reason, known; /* known: it had been planned before */
    int64_t trace; /* its number: see tt_fuse_where */
    tt_number *numbers; /* the Python numbers recorded */
    char **before; /* OBSERVE_DATA: of each storage that was there before, its bytes as they were; NULL else */
    int64_t *origins, *sizes; /* OBSERVE_DATA: of each storage, where offsets count from, and its bytes */
    struct tt_run_record *next;
} tt_run_record;
