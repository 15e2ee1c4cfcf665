/* The update loops of the optimisers: what optim.c asks of simd/optim.c. */
#pragma once
#include "tt.h"

#define TT_UPDATE_OPERANDS 5 /* parameter, gradient, up to three states */

/* The meaning of the flags and of the numbers is each rule's own: see simd/optim.c. */
enum { TT_DECAY = 1, TT_DECOUPLED = 2, TT_AMSGRAD = 4 };
enum { TT_MOMENTUM = 2, TT_NESTEROV = 4, TT_FRESH = 8 };
enum { TT_CENTERED = 4 };

typedef struct {
    int flags;
    double sign;  /* of the gradient: -1 to maximise */
    double decay; /* weight decay, or the factor it leaves of the parameter when decoupled */
    double rate;  /* what the step is multiplied with: negative */
    double a, b, c, root, eps;
} tt_update;

typedef void (*tt_update_loop)(char **p, int64_t n, const tt_update *u);

typedef struct {
    tt_update_loop sgd[2], adam[2], rmsprop[2], adagrad[2]; /* float32, float64 */
} tt_optim_loops;
