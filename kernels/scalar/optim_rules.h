/* Update rules for elements of type T; optim.h includes this file for each dtype, with OF(name) the function's name. A
 * rule takes and leaves the parameter and the states s0, s1, s2, as far as its flags use them.

   sgd      s0: momentum buffer.  a: momentum, b: 1 - dampening
   adam     s0, s1, s2: exp_avg, exp_avg_sq, max_exp_avg_sq.  a: 1 - beta1, b: beta2, c: 1 - beta2,
            root: sqrt(1 - beta2^step), rate: -lr / (1 - beta1^step)
   rmsprop  s0, s1, s2: square_avg, grad_avg, momentum buffer.  a: momentum, b: alpha, c: 1 - alpha
   adagrad  s0: sum
   adadelta s0, s1: square_avg, acc_delta.  b: rho, c: 1 - rho
   adamax   s0, s1: exp_avg, exp_inf.  a: 1 - beta1, b: beta2, rate: -lr / (1 - beta1^step)
   asgd     s0: ax.  a: 1 - lambd * eta, b: mu, rate: -eta
   nadam    s0, s1: exp_avg, exp_avg_sq.  a: 1 - beta1, b: beta2, c: 1 - beta2, root: 1 - beta2^step,
            rate: of the gradient, ahead: of exp_avg
   radam    s0, s1: exp_avg, exp_avg_sq.  a: 1 - beta1, b: beta2, c: 1 - beta2, rate: -lr / (1 - beta1^step),
            root: sqrt(1 - beta2^step) times the rectification, or 0 while there is none
   rprop    s0, s1: prev, step_size.  a: etaminus, b: etaplus, c: the least step, root: the largest */

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

TT_FN void OF(tt_adadelta)(T *x, T grad, T *s0, T *s1, T *s2, const OF(tt_rates) * u, int flags) {
    T g = u->sign * grad;
    (void)s2;
    if (flags & TT_DECAY) g = g + u->decay * *x;
    T v = *s0 * u->b + u->c * g * g;
    T delta = OF(tt_sqrt)(*s1 + u->eps) / OF(tt_sqrt)(v + u->eps) * g;
    *s0 = v;
    *s1 = *s1 * u->b + u->c * delta * delta;
    *x = *x + u->rate * delta;
}

TT_FN void OF(tt_adamax)(T *x, T grad, T *s0, T *s1, T *s2, const OF(tt_rates) * u, int flags) {
    T g = u->sign * grad;
    (void)s2;
    if (flags & TT_DECAY) g = g + u->decay * *x;
    T m = TT_LERP(T, *s0, g, u->a), norm = *s1 * u->b, size = (g < 0 ? -g : g) + u->eps;
    norm = norm != norm || norm > size ? norm : size;
    *s0 = m;
    *s1 = norm;
    *x = *x + u->rate * m / norm;
}

TT_FN void OF(tt_asgd)(T *x, T grad, T *s0, T *s1, T *s2, const OF(tt_rates) * u, int flags) {
    T g = u->sign * grad;
    (void)s1, (void)s2;
    if (flags & TT_DECAY) g = g + u->decay * *x;
    T to = *x * u->a + u->rate * g;
    *x = to;
    *s0 = u->b == 1 ? to : *s0 + (to - *s0) * u->b;
}

TT_FN void OF(tt_nadam)(T *x, T grad, T *s0, T *s1, T *s2, const OF(tt_rates) * u, int flags) {
    T g = u->sign * grad, from = *x;
    (void)s2;
    if (flags & TT_DECOUPLED) from = from * u->decay;
    else if (flags & TT_DECAY) g = g + u->decay * from;
    T m = TT_LERP(T, *s0, g, u->a), v = *s1 * u->b + u->c * g * g;
    T scale = OF(tt_sqrt)(v / u->root) + u->eps;
    *s0 = m;
    *s1 = v;
    *x = from + u->rate * g / scale + u->ahead * m / scale;
}

TT_FN void OF(tt_radam)(T *x, T grad, T *s0, T *s1, T *s2, const OF(tt_rates) * u, int flags) {
    T g = u->sign * grad, from = *x;
    (void)s2;
    if (flags & TT_DECOUPLED) from = from * u->decay;
    else if (flags & TT_DECAY) g = g + u->decay * from;
    T m = TT_LERP(T, *s0, g, u->a), v = *s1 * u->b + u->c * g * g;
    *s0 = m;
    *s1 = v;
    T scale = u->root == 0 ? 1 : u->root / (OF(tt_sqrt)(v) + u->eps);
    *x = from + u->rate * m * scale;
}

TT_FN void OF(tt_rprop)(T *x, T grad, T *s0, T *s1, T *s2, const OF(tt_rates) * u, int flags) {
    T g = u->sign * grad, agreement = g * *s0;
    (void)s2, (void)flags;
    T factor = agreement > 0 ? u->b : agreement < 0 ? u->a : agreement == 0 ? 1 : agreement;
    T size = *s1 * factor;
    size = size < u->c ? u->c : size > u->root ? u->root : size;
    if (agreement < 0) g = 0;
    *s0 = g;
    *s1 = size;
    *x = *x - (g > 0 ? 1 : g < 0 ? -1 : g) * size;
}

#undef T
#undef OF
