/* What the C files share: dtypes, flags, errors, threads, loops. Not seen by Python. */
#pragma once
#include "api/core.h"
#include "scalar/dtypes.h"
#include <stdbool.h>
#include <stddef.h>

#define TT_MAX_NDIM 16
#define TT_BLOCK 1024 /* elements a loop runs over at a time: a few operands of it stay in L1 */

extern const int tt_itemsizes[TT_NUM_CODES];
extern const char *const tt_dtype_names[TT_NUM_CODES];
extern int tt_default_dtype;

/* Note [Devices]
 * A storage is on one device: 0 is the CPU, k + 1 is cuda:k. tt_device is where this thread allocates and works; it is
 * the CPU outside of calls. A function that knows other devices begins with TT_ON_DEVICE, which makes its operands'
 * device that of the thread until the function returns; its descriptors, shapes, views and allocations are then those of
 * any device, and where the CPU would run its loops it calls the function of kernels/cuda that launches a kernel
 * instead. For a function without TT_ON_DEVICE an array of another device is never current: it declines, and no code
 * that would look at the elements is reached. Memory of a device is never looked at from C, except through
 * tt_device_read. */
extern __thread int tt_device;
/* May the array's elements be used, or is that the slow path's affair? Note [Declining] */
static inline bool tt_current(const tt_array *a) {
    return (!(a->flags & TT_SLOW) || a->storage->device == tt_device) &&
           (!(a->flags & TT_FLAG_VIEW) || a->seen_version == a->storage->version);
}
static inline void tt_leave_device(int *before) { tt_device = *before; }
static inline bool tt_elsewhere(int n, tt_array *const *in) {
    int flags = 0;
    for (int k = 0; k < n; k++)
        if (in[k]) flags |= in[k]->flags;
    return (flags & TT_FLAG_DEVICE) || tt_device;
}
/* False and an error where the operands are on several devices; `numbers`: arrays without dimensions on the CPU do not
 * count. NULL operands are skipped. */
bool tt_enter_device(const char *op, bool numbers, int n, tt_array *const *in);
#define TT_ON_DEVICE_IF(fails, op, numbers, n, in)                                         \
    __attribute__((cleanup(tt_leave_device), unused)) int tt_device_before = tt_device;    \
    if (tt_elsewhere(n, in) && !tt_enter_device(op, numbers, n, in)) return fails
#define TT_ON_DEVICE(fails, op, n, in) TT_ON_DEVICE_IF(fails, op, false, n, in)
/* ... and are they computed? What is pending is run: Note [Fused mode] in fuse.h. */
extern __thread bool tt_settle_failed; /* tt_decline then keeps the error that tt_settle left */
bool tt_settle(const tt_array *a, bool write);
static inline struct tt_pending *tt_pending_of(const tt_storage *s) {
    return __atomic_load_n(&s->pending, __ATOMIC_ACQUIRE);
}
/* What this thread did apart from recording: how often it looked at elements or drew random numbers. A call that may be
 * replayed without being promised to be pure did so never: Note [Seen to be pure] in tinytorch/fuse/purity.py. */
extern __thread int64_t tt_looks;
static inline bool tt_ready(const tt_array *a) {
    tt_looks++;
    return tt_current(a) && (!tt_pending_of(a->storage) || tt_settle(a, false));
}
/* The same for an array on the CPU, while this thread's device is another. */
bool tt_ready_here(const tt_array *a);
/* Is it on tt_device? If not, an error. */
bool tt_same_device(const char *op, const tt_array *a);
const char *tt_device_text(char *text, size_t size, int device); /* "cpu" or "cuda:0" into text, of at least 16 bytes */
/* tt_ready for an array about to be written: what has still to read it is run first. */
static inline bool tt_settled(const tt_array *a) {
    return (!tt_pending_of(a->storage) && !__atomic_load_n(&a->storage->jobs, __ATOMIC_ACQUIRE)) || tt_settle(a, true);
}
/* Of this thread, in fused mode; NULL otherwise. The record functions give false where they leave the work to the
 * caller, who settles the operands first. `out` is allocated already; its version is the caller's affair. */
extern __thread struct tt_trace *tt_recorder;
extern int tt_fuse_everywhere; /* TINYTORCH_FUSE=1: every thread is */
int tt_fuse_join(void);
#define TT_RECORDING (tt_recorder || (tt_fuse_everywhere && tt_fuse_join()))
bool tt_record_copy(tt_array *out, tt_array *a);
/* A storage with pending operators is about to be freed. False: not yet, whoever runs them will. */
bool tt_forget(tt_storage *s);
/* Work under way reads or writes it, and will end it; false: no longer. Note [Work behind] in jobs.h */
bool tt_left_to_jobs(tt_storage *s);

extern __thread tt_array *tt_second_array; /* what tt_second gives */

/* Sets the thread's error; always returns NULL, so that `return tt_fail(...)` serves in functions that give pointers. */
void *tt_fail(int kind, const char *format, ...) __attribute__((format(printf, 2, 3)));
void *tt_decline(void);
/* "(2, 3)" into buf of at least 16 * 22 bytes. */
const char *tt_shape_text(char *buf, int ndim, const int64_t *shape);
#define TT_SHAPE_TEXT 400

/* storage.c */
extern __thread uint16_t tt_thread_flags; /* of the arrays that this thread makes */
tt_storage *tt_storage_new(int64_t nbytes);
void tt_storage_unref(tt_storage *s);
void tt_storage_end(tt_storage *s); /* nobody has a reference any more */
tt_array *tt_array_new(void); /* an uninitialised descriptor */
void tt_array_recycle(tt_array *a);
bool tt_free_may_wait(const tt_array *a); /* May tt_free call back, or wait for a thread that calls back? */
static inline void tt_storage_ref(tt_storage *s) { __atomic_fetch_add(&s->refs, 1, __ATOMIC_RELAXED); }
void *tt_scratch(int64_t nbytes); /* temporary memory of the CPU's, from the same caches; NULL and an error when there is none */
void tt_scratch_free(void *p);

/* array.c */
int64_t tt_numel(int ndim, const int64_t *shape); /* -1 and an error on overflow or a negative size */
void tt_set_contiguous(tt_array *a);              /* numel and strides from shape */
void tt_update_flags(tt_array *a);
static inline void tt_bump_version(tt_array *a, int writer) {
    __atomic_fetch_add(&a->storage->version, 1, __ATOMIC_RELAXED);
    __atomic_store_n(&a->storage->writer, writer, __ATOMIC_RELAXED);
}
tt_array *tt_show(tt_array *a, int ndim, const int64_t *shape, const int64_t *strides, int64_t start); /* views.c */
tt_array *tt_track(const tt_array *a, tt_array *view);
bool tt_may_write(const char *op, const tt_array *out); /* no internal overlap, not read-only */
bool tt_writable(const char *op, const tt_array *out);  /* that, and what has still to read it was run */
tt_array *tt_like(tt_array *a, int dtype); /* tt_empty_like, on tt_device */
bool tt_overlaps(const tt_array *a, const tt_array *b);
bool tt_same_layout(const tt_array *a, const tt_array *b);
/* copy.c: at once, and from operands that are ready */
int tt_copy_now(tt_array *out, tt_array *a);
tt_array *tt_cast_now(tt_array *a, int dtype);
tt_array *tt_clone_now(tt_array *a);
tt_array *tt_contiguous_now(tt_array *a);
int tt_fill_now(tt_array *out, int kind, double f, int64_t i);
tt_array *tt_full_now(int dtype, int ndim, int64_t *shape, int kind, double f, int64_t i);

/* threads.c: fn runs over [0, n) in chunks of whole multiples of `grain`, on this thread alone when n <= grain. */
typedef void (*tt_range_fn)(void *context, int64_t begin, int64_t end);
void tt_parallel(int64_t n, int64_t grain, tt_range_fn fn, void *context);

/* iterate.c: several operands walked together in blocks of contiguous elements. */
typedef struct {
    int nops, ndim;                     /* operand 0 is the output */
    int64_t numel;
    int64_t shape[TT_MAX_NDIM];         /* coalesced; innermost last */
    int64_t strides[5][TT_MAX_NDIM];    /* in bytes */
    char *data[5];
    int16_t dtype[5];                   /* as stored */
    int16_t compute[5];                 /* as the loop wants it */
} tt_iter;
void tt_iter_coalesce(tt_iter *it);     /* sorts and merges dimensions; call once after filling the fields */

/* n elements `step` bytes apart, to elements `to_step` bytes apart */
void tt_move(void *to, int64_t to_step, const void *from, int64_t step, int64_t n, int size);

/* One operand of a walk; strides in bytes. */
typedef struct {
    int ndim, size;
    const int64_t *shape, *strides;
    char *data;
} tt_walk;
/* n elements from the row-major position `at` on, between the operand and a contiguous buffer */
void tt_walk_move(const tt_walk *w, int64_t at, int64_t n, char *buffer, bool gather);

typedef void (*tt_loop)(char **p, int64_t n); /* p[0] = output, p[1...] = inputs, all contiguous */
typedef void (*tt_cast_loop)(void *out, const void *in, int64_t n);
void tt_iter_run(const tt_iter *it, tt_loop loop, int64_t grain);

/* kernels/cpu/simd: compiled once per instruction set; dispatch.c chooses at load. */
struct tt_isa;
extern const struct tt_isa *tt_isa;
extern int tt_isa_index;

/* A family of kernels with loops of its own in simd/ gathers them in one struct per instruction set, named
 * TT_LOCAL(name); this makes `name[tt_isa_index]` the chosen one. */
#ifdef TT_X86
#define TT_ISA_TABLES(type, name)                                             \
    extern const type name##_baseline, name##_avx2, name##_avx512;            \
    static const type *const name[] = {&name##_baseline, &name##_avx2, &name##_avx512};
#else
#define TT_ISA_TABLES(type, name)                                             \
    extern const type name##_baseline;                                        \
    static const type *const name[] = {&name##_baseline};
#endif
