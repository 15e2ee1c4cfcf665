/* The loops of the optimisers' update rules (kernels/scalar/optim.h): a switch makes a branch-free loop of every
 * combination of flags that occurs. */
#include "cpu/simd.h"
#include "cpu/optim.h"

#define BODY(rule, D, T)                                                                                               \
    static inline __attribute__((always_inline)) void rule##_body_##D(char **p, int64_t n, const tt_update *u,         \
                                                                      const int flags) {                               \
        T *param = (T *)p[0], *s0 = (T *)p[2], *s1 = (T *)p[3], *s2 = (T *)p[4];                                       \
        const T *grad = (const T *)p[1];                                                                               \
        const tt_rates_##D r = {(T)u->sign, (T)u->decay, (T)u->rate, (T)u->ahead, (T)u->a,                             \
                                (T)u->b,    (T)u->c,     (T)u->root, (T)u->eps};                                       \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) tt_##rule##_##D(param + i, grad[i], s0 + i, s1 + i, s2 + i, &r, flags);        \
    }

#define CASE(rule, D, flags)                                                                                           \
    case flags: rule##_body_##D(p, n, u, flags); break;

#define LOOP(rule, D, T, CASES)                                                                                        \
    BODY(rule, D, T)                                                                                                   \
    static void rule##_##D(char **p, int64_t n, const tt_update *u) {                                                  \
        switch (u->flags) { CASES(rule, D) }                                                                           \
    }

/* clang-format off */
#define SGD(rule, D)                                                                                     \
    CASE(rule, D, 0) CASE(rule, D, TT_DECAY) CASE(rule, D, TT_MOMENTUM) CASE(rule, D, TT_MOMENTUM | TT_DECAY) \
    CASE(rule, D, TT_MOMENTUM | TT_NESTEROV) CASE(rule, D, TT_MOMENTUM | TT_NESTEROV | TT_DECAY)         \
    CASE(rule, D, TT_MOMENTUM | TT_FRESH) CASE(rule, D, TT_MOMENTUM | TT_FRESH | TT_DECAY)               \
    CASE(rule, D, TT_MOMENTUM | TT_NESTEROV | TT_FRESH) CASE(rule, D, TT_MOMENTUM | TT_NESTEROV | TT_FRESH | TT_DECAY)
/* clang-format on */
#define ADAM(rule, D)                                                                                                  \
    CASE(rule, D, 0)                                                                                                   \
    CASE(rule, D, TT_DECAY)                                                                                            \
    CASE(rule, D, TT_DECOUPLED)                                                                                        \
    CASE(rule, D, TT_AMSGRAD) CASE(rule, D, TT_AMSGRAD | TT_DECAY) CASE(rule, D, TT_AMSGRAD | TT_DECOUPLED)
/* clang-format off */
#define RMSPROP(rule, D)                                                                                 \
    CASE(rule, D, 0) CASE(rule, D, TT_DECAY) CASE(rule, D, TT_MOMENTUM) CASE(rule, D, TT_MOMENTUM | TT_DECAY) \
    CASE(rule, D, TT_CENTERED) CASE(rule, D, TT_CENTERED | TT_DECAY) CASE(rule, D, TT_CENTERED | TT_MOMENTUM) \
    CASE(rule, D, TT_CENTERED | TT_MOMENTUM | TT_DECAY)
/* clang-format on */
#define PLAIN(rule, D) CASE(rule, D, 0)
#define DECAYING(rule, D) CASE(rule, D, 0) CASE(rule, D, TT_DECAY)
#define DECOUPLED(rule, D) CASE(rule, D, 0) CASE(rule, D, TT_DECAY) CASE(rule, D, TT_DECOUPLED)

/* clang-format off */
#define RULES(D, T)                                                                                      \
    LOOP(sgd, D, T, SGD) LOOP(adam, D, T, ADAM) LOOP(rmsprop, D, T, RMSPROP) LOOP(adagrad, D, T, DECAYING) \
    LOOP(adadelta, D, T, DECAYING) LOOP(adamax, D, T, DECAYING) LOOP(asgd, D, T, DECAYING)               \
    LOOP(nadam, D, T, DECOUPLED) LOOP(radam, D, T, DECOUPLED) LOOP(rprop, D, T, PLAIN)
/* clang-format on */
RULES(f32, float)
RULES(f64, double)

#define BOTH(rule, title, states) {rule##_f32, rule##_f64},
const tt_optim_loops TT_LOCAL(tt_optim) = {{TT_UPDATE_RULES(BOTH)}};
