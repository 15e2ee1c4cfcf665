/* Update rules for elements of type T; optim.h includes this file for each dtype, with OF(name) the function's name. A rule
   takes and leaves the parameter and the states s0, s1, s2, as far as its flags use them.

   sgd      s0: momentum buffer.  a: momentum, b: 1 - dampening
   adam     s0, s1, s2: exp_avg, exp_avg_sq, max_exp_avg_sq.  a: 1 - beta1, b: beta2, c: 1 - beta2,
            root: sqrt(1 - beta2^step), rate: -lr / (1 - beta1^step)
   rmsprop  s0, s1, s2: square_avg, grad_avg, momentum buffer.  a: momentum, b: alpha, c: 1 - alpha
   adagrad  s0: sum */

TT_FN void OF(tt_sgd)(T *x, T grad, T *s0, T *s1, T *s2, const OF(tt_rates) * u, int flags) {
    T g = u->sign * grad;
    (void)s1, (void)s2;
    if (flags & TT_DECAY) g = g + u->decay * *x;
    if (flags & TT_MOMENTUM) {
        T m = flags & TT_FRESH ? g : *s0 * u->a + u->b * g;
        *s0 = m;
        g = flags & TT_NESTEROV ? g + u->a * m : m;
    }
    *x = *x + u->rate * g;
}

TT_FN void OF(tt_adam)(T *x, T grad, T *s0, T *s1, T *s2, const OF(tt_rates) * u, int flags) {
    T g = u->sign * grad, from = *x;
    if (flags & TT_DECOUPLED) from = from * u->decay;
    else if (flags & TT_DECAY) g = g + u->decay * from;
    T m = TT_LERP(T, *s0, g, u->a), v = *s1 * u->b + u->c * g * g;
    *s0 = m;
    *s1 = v;
    if (flags & TT_AMSGRAD) *s2 = v = v != v || v > *s2 ? v : *s2;
    *x = from + u->rate * m / (OF(tt_sqrt)(v) / u->root + u->eps);
}

TT_FN void OF(tt_rmsprop)(T *x, T grad, T *s0, T *s1, T *s2, const OF(tt_rates) * u, int flags) {
    T g = u->sign * grad;
    if (flags & TT_DECAY) g = g + u->decay * *x;
    T v = *s0 * u->b + u->c * g * g;
    *s0 = v;
    if (flags & TT_CENTERED) {
        T m = TT_LERP(T, *s1, g, u->c);
        *s1 = m;
        v = v - m * m;
    }
    T scale = OF(tt_sqrt)(v) + u->eps;
    if (flags & TT_MOMENTUM) {
        T m = *s2 * u->a + g / scale;
        *s2 = m;
        *x = *x + u->rate * m;
    } else *x = *x + u->rate * g / scale;
}

TT_FN void OF(tt_adagrad)(T *x, T grad, T *s0, T *s1, T *s2, const OF(tt_rates) * u, int flags) {
    T g = u->sign * grad;
    (void)s1, (void)s2;
    if (flags & TT_DECAY) g = g + u->decay * *x;
    T v = *s0 + g * g;
    *s0 = v;
    *x = *x + u->rate * g / (OF(tt_sqrt)(v) + u->eps);
}

#undef T
#undef OF
