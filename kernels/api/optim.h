/* Optimisers: one call updates all parameters of a group. */
#pragma once
#include "api/core.h"

/* A step by one of TT_UPDATE_RULES. Arrays of n handles: parameters, their gradients, and the rule's states, of the
 * parameters' shapes and dtypes; NULL for those that it lacks. `steps` are arrays of one floating element each, which
 * the call counts up, or NULL. Where fresh[k] is set, a momentum starts as the gradient. flags: of TT_UPDATE_FLAGS;
 * what the numbers mean stands at the rules (kernels/scalar/optim_rules.h). `skip`: a float32 number on the parameters'
 * device, which all are on, or NULL: where it is not 0 nothing changes, neither do counts, which are on the device,
 * too. Everything written has its version bumped once. -1: nothing was written. */
int tt_optimize(int rule, int n, tt_array **params, tt_array **grads, tt_array **s0, tt_array **s1, tt_array **s2,
                tt_array **steps, const char *fresh, int maximize, int writer, double lr, int flags, double lr_decay,
                double beta1, double decay, double a, double b, double c, double root, double ahead, double eps,
                tt_array *skip);
