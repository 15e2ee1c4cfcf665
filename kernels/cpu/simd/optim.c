/* The optimisers' update rules, in the order of operations of torch's single-tensor implementations. Each rule is one
 * function of constant flags; a switch makes a branch-free loop of every combination that occurs. */
#include "../simd.h"
#include "../optim.h"
#include <math.h>

#define BODY static inline __attribute__((always_inline)) void

/* start + weight * (end - start), from the nearer side. */
#define LERP(T, start, end, w) ((w) < (T)0.5 ? (start) + (w) * ((end) - (start)) : (end) + ((w) - 1) * ((end) - (start)))

/* a: momentum, b: 1 - dampening */
#define SGD(T, SQRT)                                                                          \
    BODY sgd_body_##T(char **p, int64_t n, const tt_update *u, const int flags) {             \
        T *param = (T *)p[0], *buf = (T *)p[2];                                               \
        const T *grad = (const T *)p[1];                                                      \
        const T sign = (T)u->sign, decay = (T)u->decay, rate = (T)u->rate, a = (T)u->a, b = (T)u->b; \
        TT_INDEPENDENT                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                     \
            T g = sign * grad[i];                                                             \
            if (flags & TT_DECAY) g = g + decay * param[i];                                   \
            if (flags & TT_MOMENTUM) {                                                        \
                T m = flags & TT_FRESH ? g : buf[i] * a + b * g;                              \
                buf[i] = m;                                                                   \
                g = flags & TT_NESTEROV ? g + a * m : m;                                      \
            }                                                                                 \
            param[i] = param[i] + rate * g;                                                   \
        }                                                                                     \
    }                                                                                         \
    static void sgd_##T(char **p, int64_t n, const tt_update *u) {                            \
        switch (u->flags) {                                                                   \
            CASE(sgd, T, 0) CASE(sgd, T, TT_DECAY)                                            \
            CASE(sgd, T, TT_MOMENTUM) CASE(sgd, T, TT_MOMENTUM | TT_DECAY)                    \
            CASE(sgd, T, TT_MOMENTUM | TT_NESTEROV) CASE(sgd, T, TT_MOMENTUM | TT_NESTEROV | TT_DECAY) \
            CASE(sgd, T, TT_MOMENTUM | TT_FRESH) CASE(sgd, T, TT_MOMENTUM | TT_FRESH | TT_DECAY) \
            CASE(sgd, T, TT_MOMENTUM | TT_NESTEROV | TT_FRESH)                                \
            CASE(sgd, T, TT_MOMENTUM | TT_NESTEROV | TT_FRESH | TT_DECAY)                     \
        }                                                                                     \
    }

/* a: 1 - beta1, b: beta2, c: 1 - beta2, root: sqrt(1 - beta2^step), rate: -lr / (1 - beta1^step) */
#define ADAM(T, SQRT)                                                                         \
    BODY adam_body_##T(char **p, int64_t n, const tt_update *u, const int flags) {            \
        T *param = (T *)p[0], *avg = (T *)p[2], *sq = (T *)p[3], *max = (T *)p[4];            \
        const T *grad = (const T *)p[1];                                                      \
        const T sign = (T)u->sign, decay = (T)u->decay, rate = (T)u->rate, a = (T)u->a, b = (T)u->b, c = (T)u->c, \
                root = (T)u->root, eps = (T)u->eps;                                           \
        TT_INDEPENDENT                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                     \
            T g = sign * grad[i], x = param[i];                                               \
            if (flags & TT_DECOUPLED) x = x * decay;                                          \
            else if (flags & TT_DECAY) g = g + decay * x;                                     \
            T m = LERP(T, avg[i], g, a), v = sq[i] * b + c * g * g;                              \
            avg[i] = m;                                                                       \
            sq[i] = v;                                                                        \
            if (flags & TT_AMSGRAD) max[i] = v = v != v || v > max[i] ? v : max[i];           \
            param[i] = x + rate * m / (SQRT(v) / root + eps);                                 \
        }                                                                                     \
    }                                                                                         \
    static void adam_##T(char **p, int64_t n, const tt_update *u) {                           \
        switch (u->flags) {                                                                   \
            CASE(adam, T, 0) CASE(adam, T, TT_DECAY) CASE(adam, T, TT_DECOUPLED)              \
            CASE(adam, T, TT_AMSGRAD) CASE(adam, T, TT_AMSGRAD | TT_DECAY)                    \
            CASE(adam, T, TT_AMSGRAD | TT_DECOUPLED)                                          \
        }                                                                                     \
    }

/* a: momentum, b: alpha, c: 1 - alpha */
#define RMSPROP(T, SQRT)                                                                      \
    BODY rmsprop_body_##T(char **p, int64_t n, const tt_update *u, const int flags) {         \
        T *param = (T *)p[0], *sq = (T *)p[2], *avg = (T *)p[3], *buf = (T *)p[4];            \
        const T *grad = (const T *)p[1];                                                      \
        const T sign = (T)u->sign, decay = (T)u->decay, rate = (T)u->rate, a = (T)u->a, b = (T)u->b, c = (T)u->c, \
                eps = (T)u->eps;                                                              \
        TT_INDEPENDENT                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                     \
            T g = sign * grad[i];                                                             \
            if (flags & TT_DECAY) g = g + decay * param[i];                                   \
            T v = sq[i] * b + c * g * g;                                                      \
            sq[i] = v;                                                                        \
            if (flags & TT_CENTERED) {                                                        \
                T m = LERP(T, avg[i], g, c);                                                     \
                avg[i] = m;                                                                   \
                v = v - m * m;                                                                \
            }                                                                                 \
            T scale = SQRT(v) + eps;                                                          \
            if (flags & TT_MOMENTUM) {                                                        \
                T m = buf[i] * a + g / scale;                                                 \
                buf[i] = m;                                                                   \
                param[i] = param[i] + rate * m;                                               \
            } else param[i] = param[i] + rate * g / scale;                                    \
        }                                                                                     \
    }                                                                                         \
    static void rmsprop_##T(char **p, int64_t n, const tt_update *u) {                        \
        switch (u->flags) {                                                                   \
            CASE(rmsprop, T, 0) CASE(rmsprop, T, TT_DECAY)                                    \
            CASE(rmsprop, T, TT_MOMENTUM) CASE(rmsprop, T, TT_MOMENTUM | TT_DECAY)            \
            CASE(rmsprop, T, TT_CENTERED) CASE(rmsprop, T, TT_CENTERED | TT_DECAY)            \
            CASE(rmsprop, T, TT_CENTERED | TT_MOMENTUM)                                       \
            CASE(rmsprop, T, TT_CENTERED | TT_MOMENTUM | TT_DECAY)                            \
        }                                                                                     \
    }

#define ADAGRAD(T, SQRT)                                                                      \
    BODY adagrad_body_##T(char **p, int64_t n, const tt_update *u, const int flags) {         \
        T *param = (T *)p[0], *sum = (T *)p[2];                                               \
        const T *grad = (const T *)p[1];                                                      \
        const T sign = (T)u->sign, decay = (T)u->decay, rate = (T)u->rate, eps = (T)u->eps;   \
        TT_INDEPENDENT                                                                        \
        for (int64_t i = 0; i < n; i++) {                                                     \
            T g = sign * grad[i];                                                             \
            if (flags & TT_DECAY) g = g + decay * param[i];                                   \
            T v = sum[i] + g * g;                                                             \
            sum[i] = v;                                                                       \
            param[i] = param[i] + rate * g / (SQRT(v) + eps);                                 \
        }                                                                                     \
    }                                                                                         \
    static void adagrad_##T(char **p, int64_t n, const tt_update *u) {                        \
        switch (u->flags) {                                                                   \
            CASE(adagrad, T, 0) CASE(adagrad, T, TT_DECAY)                                    \
        }                                                                                     \
    }

#define CASE(rule, T, flags) case flags: rule##_body_##T(p, n, u, flags); break;

#define RULES(T, SQRT) SGD(T, SQRT) ADAM(T, SQRT) RMSPROP(T, SQRT) ADAGRAD(T, SQRT)
RULES(float, sqrtf)
RULES(double, sqrt)

const tt_optim_loops TT_LOCAL(tt_optim) = {
    {sgd_float, sgd_double}, {adam_float, adam_double}, {rmsprop_float, rmsprop_double}, {adagrad_float, adagrad_double},
};
