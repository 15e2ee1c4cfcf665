/* norms, scale: many tensors by a fixed number of launches. */
#pragma once
#include "cuda/device/reduce_args.h"

#define TT_MANY 160        /* tensors in one launch, at most */
#define TT_MANY_CHUNK 2048 /* elements that a thread block scales */

/* Variants. norms: as of family reduce, but for bit 0: the parts are joined. scale: elements are taken in whole
 * vectors. */
#define TT_NORMS_JOINED 1
#define TT_SCALE_VECTORS 1

typedef struct {
    int32_t n, unused;
    uint32_t first[TT_MANY]; /* block of each tensor: of TT_BLOCK elements, or TT_MANY_CHUNK */
    int64_t numel[TT_MANY];
    char *data[TT_MANY];
    char *parts; /* what each block gave */
    char *out; /* the norms */
    const char *by;
    uint32_t blocks, unused2;
} tt_many_args;
