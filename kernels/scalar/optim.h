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

/* A rule takes and leaves the parameter and the states s0, s1, s2, as far as its flags use them.
   sgd      s0: momentum buffer.  a: momentum, b: 1 - dampening
   adam     s0, s1, s2: exp_avg, exp_avg_sq, max_exp_avg_sq.  a: 1 - beta1, b: beta2, c: 1 - beta2,
            root: sqrt(1 - beta2^step), rate: -lr / (1 - beta1^step)
   rmsprop  s0, s1, s2: square_avg, grad_avg, momentum buffer.  a: momentum, b: alpha, c: 1 - alpha
   adagrad  s0: sum */
#define TT_RULES(D, T)                                                                                                 \
    TT_FN void tt_sgd_##D(T *x, T grad, T *s0, T *s1, T *s2, const tt_rates_##D *u, int flags) {                       \
        T g = u->sign * grad;                                                                                          \
        (void)s1, (void)s2;                                                                                            \
        if (flags & TT_DECAY) g = g + u->decay * *x;                                                                   \
        if (flags & TT_MOMENTUM) {                                                                                     \
            T m = flags & TT_FRESH ? g : *s0 * u->a + u->b * g;                                                        \
            *s0 = m;                                                                                                   \
            g = flags & TT_NESTEROV ? g + u->a * m : m;                                                                \
        }                                                                                                              \
        *x = *x + u->rate * g;                                                                                         \
    }                                                                                                                  \
    TT_FN void tt_adam_##D(T *x, T grad, T *s0, T *s1, T *s2, const tt_rates_##D *u, int flags) {                      \
        T g = u->sign * grad, from = *x;                                                                               \
        if (flags & TT_DECOUPLED) from = from * u->decay;                                                              \
        else if (flags & TT_DECAY) g = g + u->decay * from;                                                            \
        T m = TT_LERP(T, *s0, g, u->a), v = *s1 * u->b + u->c * g * g;                                                 \
        *s0 = m;                                                                                                       \
        *s1 = v;                                                                                                       \
        if (flags & TT_AMSGRAD) *s2 = v = v != v || v > *s2 ? v : *s2;                                                 \
        *x = from + u->rate * m / (tt_sqrt_##D(v) / u->root + u->eps);                                                 \
    }                                                                                                                  \
    TT_FN void tt_rmsprop_##D(T *x, T grad, T *s0, T *s1, T *s2, const tt_rates_##D *u, int flags) {                   \
        T g = u->sign * grad;                                                                                          \
        if (flags & TT_DECAY) g = g + u->decay * *x;                                                                   \
        T v = *s0 * u->b + u->c * g * g;                                                                               \
        *s0 = v;                                                                                                       \
        if (flags & TT_CENTERED) {                                                                                     \
            T m = TT_LERP(T, *s1, g, u->c);                                                                            \
            *s1 = m;                                                                                                   \
            v = v - m * m;                                                                                             \
        }                                                                                                              \
        T scale = tt_sqrt_##D(v) + u->eps;                                                                             \
        if (flags & TT_MOMENTUM) {                                                                                     \
            T m = *s2 * u->a + g / scale;                                                                              \
            *s2 = m;                                                                                                   \
            *x = *x + u->rate * m;                                                                                     \
        } else *x = *x + u->rate * g / scale;                                                                          \
    }                                                                                                                  \
    TT_FN void tt_adagrad_##D(T *x, T grad, T *s0, T *s1, T *s2, const tt_rates_##D *u, int flags) {                   \
        T g = u->sign * grad;                                                                                          \
        (void)s1, (void)s2;                                                                                            \
        if (flags & TT_DECAY) g = g + u->decay * *x;                                                                   \
        T v = *s0 + g * g;                                                                                             \
        *s0 = v;                                                                                                       \
        *x = *x + u->rate * g / (tt_sqrt_##D(v) + u->eps);                                                             \
    }
TT_RULES(f32, float)
TT_RULES(f64, double)

#endif
