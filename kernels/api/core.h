/* The C side of tinytorch as Python sees it. The headers of this folder are read by the C compiler and, less their
 * preprocessor lines, by cffi.
 *
 * Every function returns NULL (or -1) when it did nothing: either it declined (an operand is a stale view, lives on
 * another device, ...) or it found the input bad; tt_error() then tells which, and the text. A function validates
 * before it writes. See Note [Declining]. */
#pragma once
#include <stdint.h>

/* Note [Declining]
 * The fast path of an operator is one C call on ready-made descriptors. Whatever that call cannot or must not do, it
 * declines, untouched, with error kind TT_DECLINED, and the Python slow path takes over: it refreshes the history of a
 * view whose base was written, moves to another backend, or promotes. An operand is "not ready" when one of the
 * TT_SLOW flags is set, or when it is a tracked view whose storage has been written since it was last looked at. */

typedef struct tt_storage {
    char *data;            /* first byte */
    int64_t nbytes;        /* as asked for */
    int64_t version;       /* one more for every write in place, see tt_version */
    int32_t refs;          /* descriptors on this storage; atomic */
    int32_t writer;        /* Python's number of the operator that wrote last, for messages */
    int16_t size_class;    /* which free list it goes back to;-1: foreign memory, see owner */
    int16_t device;        /* 0: the CPU; k + 1: cuda:k. Note [Devices] in core/devices.h */
    int16_t shared;        /* others (NumPy, another library) may read and write it at any time */
    int16_t jobs;          /* that read or write it; atomic. Note [Asynchronous jobs] in core/jobs.h */
    void *owner;           /* foreign memory: handed to release; in a free list: the next */
    void (*release)(void *);
    struct tt_lazy *lazy;    /* recorded operators will read or write it: Note [Fused mode]. NULL: none */
} tt_storage;

typedef struct tt_array {
    tt_storage *storage;
    tt_storage
        *counter;   /* whose version counts the writes to these elements; NULL: storage's. Note [Version counters] */
    char *data;            /* first element */
    int64_t numel;
    int64_t stamp; /* of an operator's result: bits 0-2: the inputs it broadcast or cast; bit 3: one is an inference
                              tensor; from bit 4 on the versions of the first two inputs, 30 bits each */
    int64_t seen_version; /* of a tracked view: tt_version when its history was last made */
    int32_t ndim;
    int16_t dtype;
    uint16_t flags;
    int64_t *shape, *strides; /* ndim of each; strides in elements. Note [Room for dimensions] in core/storage.c */
} tt_array;

/* of tt_array */
enum {
    TT_FLAG_CONTIGUOUS = 1, /* row-major, no gaps */
    TT_FLAG_WEAK = 2, /* a Python scalar: takes no part in promotion within its category */
    TT_FLAG_VIEW = 4, /* a tracked view: stale when seen_version != tt_version */
    TT_FLAG_DEVICE = 16, /* its memory is not the CPU's: Note [Devices] */
    TT_FLAG_READONLY = 32,
    TT_FLAG_INFERENCE = 64, /* made in inference mode */
    TT_CREATION_SHIFT = 8,
    TT_FLAG_CREATION =
        7 << TT_CREATION_SHIFT, /* how a tracked view was made: three bits of Python's (autograd/views.py) */
    TT_FLAG_MANY = 2 << 8, /* that of one of several views: MULTI_OUTPUT there */
    TT_SLOW = TT_FLAG_DEVICE, /* flags that the CPU's kernels cannot work with */
};

/* dtypes: the enumerators TT_BOOL, ..., and TT_KIND_... are made from scalar/dtypes.h */
typedef struct tt_dtype_info {
    const char *name, *suffix, *c_type; /* "float32", "f32", "float" */
    int itemsize, kind, is_signed, compute, dlpack;
} tt_dtype_info;
const tt_dtype_info *tt_dtype_facts(int dtype); /* NULL: there is no such code */

/* errors: what tt_error_kind gives */
enum {
    TT_DECLINED,
    TT_VALUE_ERROR,
    TT_RUNTIME_ERROR,
    TT_TYPE_ERROR,
    TT_INDEX_ERROR,
    TT_OUT_OF_MEMORY,
    TT_ZERO_DIVISION,
    TT_PYTHON_ERROR /* an exception of a callback, kept by Python */,
    TT_NOT_IMPLEMENTED,
    TT_LINALG_ERROR /* a matrix has no such decomposition */
};
int tt_error_kind(void);
void tt_error_clear(void); /* it has been raised: a call that fails in silence later is not taken for it */
const char *tt_error_text(void);

/* threads */
int tt_get_num_threads(void);
int tt_set_num_threads(int n);
const char *tt_isa_name(void);
int tt_set_isa(const char *name);

/* memory */
void tt_free(tt_array *a);
/* Gives the storage of `a` another size, in its place: 1; 0: there is no room behind it; -1: an error */
int tt_resize_storage(tt_array *a, int64_t nbytes);
void tt_memory_stats(int64_t *out);
void tt_reset_peak(void);
void tt_raise_peak(int64_t allocated, int64_t reserved); /* undoes tt_reset_peak: the peaks were this high before */
void tt_empty_cache(void);
void tt_set_inference(int on); /* marks the arrays that this thread makes from now on */

/* arrays */
tt_array *tt_empty(int dtype, int ndim, int64_t *shape);
tt_array *tt_empty_strided(int dtype, int ndim, int64_t *shape, int64_t *strides);
tt_array *tt_empty_like(tt_array *a, int dtype);
/* A number is (kind, f, i): a float in f, an integer or a bool in i; of a complex number f is the real part, and i the
 * bits of the imaginary one. Where f of an integer is not 0, it is too large for int64_t, and i has the bits of a
 * uint64_t. */
tt_array *tt_full(int dtype, int ndim, int64_t *shape, int kind, double f, int64_t i);
tt_array *tt_arange(int dtype, int64_t n, double fstart, double fstep, int64_t istart, int64_t istep);
tt_array *tt_scalar(int kind, double f, int64_t i);
/* Memory of a device (0: the CPU) that a Python object owns, whose address `owner` is: for owned_memory
 * (python/tensor.c), which holds it. */
tt_array *tt_from_python(int device, int dtype, int ndim, int64_t *shape, int64_t *strides, void *data, int64_t nbytes,
                         intptr_t owner);
/* Memory that processes share: a file's first bytes, mapped, which the system gives its pages at once. `data` is NULL
 * before, `fd` -1 where the descriptor is not ours, or closed. -1: with errno. */
typedef struct tt_shared {
    void *data;
    int64_t nbytes;
    int fd;
} tt_shared;
int tt_shared_map(tt_shared *s, int fd);
void tt_shared_close(tt_shared *s); /* the descriptor, not the memory */
void tt_shared_end(tt_shared *s);
tt_array *tt_alias(tt_array *a);
tt_array *tt_view(tt_array *a, int ndim, int64_t *shape, int64_t *strides, int64_t offset);
tt_array *tt_reshape_view(tt_array *a, int ndim, int64_t *shape);
tt_array *tt_view_dtype(tt_array *a, int dtype);
tt_array *tt_view_as_real(tt_array *a); /* the parts of complex numbers as one more dimension, and back */
tt_array *tt_view_as_complex(tt_array *a);
tt_array *tt_view_part(tt_array *a, int imaginary);
tt_array *tt_cast(tt_array *a, int dtype);
tt_array *tt_contiguous(tt_array *a);
tt_array *tt_clone(tt_array *a);
/* `writer`, here and below: Python's number of the operator that writes, for messages; -1: the write does not count */
int tt_copy(tt_array *out, tt_array *a, int writer);
int tt_fill(tt_array *out, int kind, double f, int64_t i, int writer);
int64_t tt_offset(tt_array *a);
int64_t tt_shape_key(
    tt_array *a); /* ndim << 60 and the sizes, 60 / ndim bits each, first lowest; -1: they do not fit */
int tt_same_shape(tt_array *a, tt_array *b);
int tt_bump(tt_array *a, int writer);
int64_t tt_version_of(tt_array *a);
tt_array *tt_apart(tt_array *a); /* an alias that counts by itself, from 0 */
int tt_keep_counter(tt_array *a, tt_array *old); /* `a` takes the place of `old`, and keeps its count */
int tt_set_default_dtype(int dtype);
int tt_itemsize(int dtype);

/* elementwise */
int tt_op_code(const char *name);
typedef struct tt_op_info { /* of scalar/ops.h */
    const char *name;
    int arity, gives_bool, periodic, flops, cost;
    int pair; /* of TT_PAIRS: both of a pair have its number; 0: of none */
    const char *domain;
    int special; /* is it one of TT_SPECIAL_OPS? */
} tt_op_info;
const tt_op_info *tt_op_facts(int op); /* NULL: there is no such operator */
int tt_result_type(tt_array *a, tt_array *b);
int tt_promote(int a, int b); /* the dtype that holds values of both */
int tt_broadcast(int n, tt_array **in, int64_t *shape); /* the number of dimensions, or -1 */
int tt_op_result_type(int op, tt_array *a, tt_array *b, tt_array *c);
tt_array *tt_unary(int op, tt_array *a);
tt_array *tt_binary(int op, tt_array *a, tt_array *b);
tt_array *tt_mul_backward(tt_array *g, tt_array *a, tt_array *b); /* g * b; tt_second() then gives g * a */
tt_array *tt_second(void);
tt_array *tt_binary_scalar(int op, tt_array *a, int kind, double f, int64_t i, int reflected);
tt_array *tt_ternary(int op, tt_array *a, tt_array *b, tt_array *c);
tt_array *tt_ternary_number(int op, tt_array *a, tt_array *b, double c);
int tt_elementwise_out(int op, tt_array *out, tt_array *a, tt_array *b, tt_array *c, int writer);
