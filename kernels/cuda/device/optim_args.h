/* optim: many tensors updated by one launch. */
#pragma once
#include "cuda/device/args.h"

#define TT_OPTIM_CHUNK 2048   /* elements of a block */
#define TT_OPTIM_TENSORS 96   /* at most, in one launch */
#define TT_OPTIM_POINTERS 328 /* to all of their operands */

typedef struct {
    double sign, decay, rate, ahead, a, b, c, root, eps;
    int32_t n, fresh;                 /* fresh: TT_FRESH or 0 */
    uint32_t first[TT_OPTIM_TENSORS]; /* block of each tensor */
    int64_t numel[TT_OPTIM_TENSORS];
    const float *skip;   /* NULL, or a number: unless it is 0 nothing is done */
    const double *rates; /* of each tensor: rate and root, where they are counted on the device; else NULL */
    char *data[TT_OPTIM_POINTERS]; /* of the first tensor: parameter, gradient, the states there are; of the next ... */
} tt_optim_args;

/* optim_count: the step counts of the same tensors are counted up, and rates computed. */
typedef struct {
    double lr, lr_decay, beta1, beta2, root;
    double *rates;
    const float *skip;
    int32_t n, unused;
    char *count[TT_OPTIM_TENSORS];
} tt_optim_count_args;
