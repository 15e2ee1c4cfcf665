/* The optimisers' update rules for one element, in the order of operations of torch's single-tensor implementations. The
   loops of the CPU and the kernels of CUDA call them with constant flags. */
#ifndef TT_SCALAR_OPTIM_H
#define TT_SCALAR_OPTIM_H

#include "math_f64.h"

#define TT_UPDATE_OPERANDS 5 /* parameter, gradient, up to three states */

/* The meaning of the flags and of the numbers is each rule's own. */
enum { TT_DECAY = 1, TT_DECOUPLED = 2, TT_AMSGRAD = 4 };
enum { TT_MOMENTUM = 2, TT_NESTEROV = 4, TT_FRESH = 8 };
enum { TT_CENTERED = 4 };

/* X(name): the rules, and their numbers. */
#define TT_UPDATE_RULES(X) X(sgd) X(adam) X(rmsprop) X(adagrad)
#define TT_UPDATE_RULE_ENUM(name) TT_RULE_##name,
enum { TT_UPDATE_RULES(TT_UPDATE_RULE_ENUM) TT_NUM_RULES };

/* sign: of the gradient, -1 to maximise; decay: weight decay, or the factor it leaves of the parameter when decoupled;
   rate: what the step is multiplied with, negative */
typedef struct {
    float sign, decay, rate, a, b, c, root, eps;
} tt_rates_f32;
typedef struct {
    double sign, decay, rate, a, b, c, root, eps;
} tt_rates_f64;

/* Of step number `step`: see the rules. */
TT_FN double tt_rate_of(int rule, double lr, double beta1, double lr_decay, double step) {
    if (rule == TT_RULE_adam) return -(lr / (1 - tt_pow_f64(beta1, step)));
    if (rule == TT_RULE_adagrad) return -(lr / (1 + (step - 1) * lr_decay));
    return -lr;
}
TT_FN double tt_root_of(int rule, double beta2, double step) {
    return rule == TT_RULE_adam ? tt_sqrt_f64(1 - tt_pow_f64(beta2, step)) : 0;
}

/* start + weight * (end - start), from the nearer side. */
#define TT_LERP(T, start, end, w)                                                                                      \
    ((w) < (T)0.5 ? (start) + (w) * ((end) - (start)) : (end) + ((w) - 1) * ((end) - (start)))

#define T float
#define OF(name) name##_f32
#include "optim_rules.h"
#define T double
#define OF(name) name##_f64
#include "optim_rules.h"

#endif
