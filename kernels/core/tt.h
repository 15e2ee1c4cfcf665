/* What the C files share: dtypes, flags, errors, threads, loops. Not seen by Python. */
#pragma once
#include "api/core.h"
#include <stdbool.h>
#include <stddef.h>

#define TT_MAX_NDIM 16
#define TT_BLOCK 1024 /* elements a loop runs over at a time: a few operands of it stay in L1 */

/* In the order of promotion within a category; tinytorch/dtypes.py holds the same numbers. */
enum { TT_BOOL, TT_U8, TT_I8, TT_I16, TT_I32, TT_I64, TT_F16, TT_BF16, TT_F32, TT_F64, TT_NUM_DTYPES };

/* The category of a dtype or of a Python scalar ("kind" in the API). */
enum { TT_KIND_BOOL, TT_KIND_INT, TT_KIND_FLOAT };

enum {
    TT_FLAG_CONTIGUOUS = 1, /* row-major, no gaps */
    TT_FLAG_WEAK = 2,       /* a Python scalar: takes no part in promotion within its category */
    TT_FLAG_VIEW = 4,       /* a tracked view: stale when seen_version != storage->version */
    TT_FLAG_DEVICE = 16,    /* its memory is not the CPU's: Note [Devices] */
    TT_FLAG_READONLY = 32,
    TT_FLAG_INFERENCE = 64, /* made in inference mode */
    TT_FLAG_CREATION = 7 << 8, /* how a tracked view was made: three bits of Python's (autograd/views.py) */
    TT_FLAG_MANY = 2 << 8,     /* that of one of several views: MULTI_OUTPUT there */
    TT_SLOW = TT_FLAG_DEVICE, /* flags that the CPU's kernels cannot work with */
};

enum { TT_DECLINED, TT_VALUE_ERROR, TT_RUNTIME_ERROR, TT_TYPE_ERROR, TT_INDEX_ERROR, TT_OUT_OF_MEMORY,
       TT_ZERO_DIVISION, TT_PYTHON_ERROR /* an exception of a callback, kept by Python */, TT_NOT_IMPLEMENTED };

typedef struct { uint16_t bits; } tt_f16;
typedef struct { uint16_t bits; } tt_bf16;

extern const int tt_itemsizes[TT_NUM_DTYPES];
extern const char *const tt_dtype_names[TT_NUM_DTYPES];
extern int tt_default_dtype;

static inline int tt_kind_of(int dtype) {
    return dtype == TT_BOOL ? TT_KIND_BOOL : dtype < TT_F16 ? TT_KIND_INT : TT_KIND_FLOAT;
}
static inline bool tt_is_half(int dtype) { return dtype == TT_F16 || dtype == TT_BF16; }
/* Half types are computed in float32. */
static inline int tt_compute_dtype(int dtype) { return tt_is_half(dtype) ? TT_F32 : dtype; }
#include "core/errors.h"
#include "core/pending.h"
#include "core/storage.h"
#include "core/array.h"
#include "core/threads.h"

extern __thread tt_array *tt_second_array; /* what tt_second gives */
