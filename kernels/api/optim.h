/* Optimisers: one call updates all parameters of a group. */
#pragma once
#include "api/core.h"

/* Arrays of n handles: parameters, their gradients, and state of the parameters' shape and dtype. `steps` are arrays of
 * one floating element each, which the call counts up. Where fresh[k] is set, a momentum starts as the gradient.
 * Everything written has its version bumped once. -1: nothing was written. */
int tt_sgd(int n, tt_array **params, tt_array **grads, tt_array **momenta, const char *fresh, double lr,
           double momentum, double dampening, double weight_decay, int nesterov, int maximize, int writer);
int tt_adam(int n, tt_array **params, tt_array **grads, tt_array **exp_avgs, tt_array **exp_avg_sqs,
            tt_array **max_exp_avg_sqs, tt_array **steps, double lr, double beta1, double beta2, double eps,
            double weight_decay, int decoupled, int maximize, int writer);
int tt_rmsprop(int n, tt_array **params, tt_array **grads, tt_array **square_avgs, tt_array **grad_avgs,
               tt_array **momenta, tt_array **steps, double lr, double alpha, double eps, double weight_decay,
               double momentum, int maximize, int writer);
int tt_adagrad(int n, tt_array **params, tt_array **grads, tt_array **sums, tt_array **steps, double lr,
               double lr_decay, double eps, double weight_decay, int maximize, int writer);
