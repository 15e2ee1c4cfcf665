/* What the C files share: dtypes, flags, errors, threads, loops. Not seen by Python. */
#pragma once
#include "api/core.h"
#include "scalar/dtypes.h"
#include <stdbool.h>
#include <stddef.h>

#define TT_MAX_NDIM 64 /* dimensions are named by the bits of 64-bit masks */
#define TT_BLOCK 1024 /* elements a loop runs over at a time: a few operands of it stay in L1 */

extern const int tt_itemsizes[TT_NUM_DTYPES];
extern const char *const tt_dtype_names[TT_NUM_DTYPES];
extern int tt_default_dtype;

#include "core/errors.h"
#include "core/lazy.h"
#include "core/storage.h"
#include "core/array.h"
#include "core/threads.h"
