/* recurrent: what its kernel is handed of a step. Operators: the kinds of backend/recurrent.h, forward and then their
 * derivatives. */
#pragma once
#include "cuda/device/args.h"

#define TT_RECURRENT_BACK 4

/* All of the step's rows, by `hidden` numbers or gates of so many. */
typedef struct {
    int64_t rows, hidden;
    int64_t known;                      /* rows that the step before has, too */
    const char *before, *first;         /* their states there; those of the others */
    const char *x, *product, *b;
    char *gates, *c, *y;
    /* of the derivative */
    int64_t shared;                     /* rows that the step after has, too: `product` is of these */
    const char *g, *g_c;                /* NULL: zeros */
    char *of_first, *of_x, *of_h;
} tt_recurrent_args;
