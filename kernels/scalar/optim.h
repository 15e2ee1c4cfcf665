/* The optimisers' update rules for one element, in the order of operations of torch's single-tensor implementations.
 * The loops of the CPU and the kernels of CUDA call them with constant flags. */
#ifndef TT_SCALAR_OPTIM_H
#define TT_SCALAR_OPTIM_H

#include "math_f64.h"

#define TT_UPDATE_OPERANDS 5 /* parameter, gradient, up to three states */

/* X(name, value): a rule uses some. */
#define TT_UPDATE_FLAGS(X)                                                                                             \
    X(DECAY, 1) X(DECOUPLED, 2) X(AMSGRAD, 4) X(MOMENTUM, 2) X(NESTEROV, 4) X(FRESH, 8) X(CENTERED, 4)
#define TT_UPDATE_FLAG_ENUM(name, value) TT_##name = value,
enum { TT_UPDATE_FLAGS(TT_UPDATE_FLAG_ENUM) };

/* X(name, title, states): the rules, their names in messages, and the states that each has whatever its flags, as
 * bits. */
#define TT_UPDATE_RULES(X)                                                                                             \
    X(sgd, "SGD", 0)                                                                                                   \
    X(adam, "Adam", 3)                                                                                                 \
    X(rmsprop, "RMSprop", 1)                                                                                           \
    X(adagrad, "Adagrad", 1)                                                                                           \
    X(adadelta, "Adadelta", 3)                                                                                         \
    X(adamax, "Adamax", 3) X(asgd, "ASGD", 1) X(nadam, "NAdam", 3) X(radam, "RAdam", 3) X(rprop, "Rprop", 3)
#define TT_UPDATE_RULE_ENUM(name, title, states) TT_RULE_##name,
enum { TT_UPDATE_RULES(TT_UPDATE_RULE_ENUM) TT_NUM_RULES };

/* sign: of the gradient, -1 to maximise; decay: weight decay, or the factor it leaves of the parameter when decoupled;
   rate: what the step is multiplied with, negative */
typedef struct {
    float sign, decay, rate, ahead, a, b, c, root, eps;
} tt_rates_f32;
typedef struct {
    double sign, decay, rate, ahead, a, b, c, root, eps;
} tt_rates_f64;

/* Of step number `step`: see the rules. */
TT_FN double tt_rate_of(int rule, double lr, double beta1, double lr_decay, double step) {
    if (rule == TT_RULE_adam || rule == TT_RULE_adamax || rule == TT_RULE_radam)
        return -(lr / (1 - tt_pow_f64(beta1, step)));
    if (rule == TT_RULE_adagrad) return -(lr / (1 + (step - 1) * lr_decay));
    return -lr;
}
/* given: what the rule was given as root */
TT_FN double tt_root_of(int rule, double given, double beta2, double step) {
    if (rule != TT_RULE_adam && rule != TT_RULE_radam) return given;
    double power = tt_pow_f64(beta2, step), root = tt_sqrt_f64(1 - power);
    if (rule == TT_RULE_adam) return root;
    /* Liu et al. 2020: the length of the average, that in the limit, and what the variance is rectified by */
    double limit = 2 / (1 - beta2) - 1, length = limit - 2 * step * power / (1 - power);
    if (!(length > 5)) return 0;
    return root * tt_sqrt_f64((length - 4) * (length - 2) * limit / ((limit - 4) * (limit - 2) * length));
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
