/* What the gates of a recurrent layer make of one number of the state, and their derivatives, for elements of type T;
 * OF(name) is a function's name. The loops of the CPU and CUDA's kernel include this file.
 *
 * x, p and b: a gate's number of the input, of h by its weight, and of the bias; the next gate's are h elements on, of
 * p w. gates: what the derivative needs, h apart, too. Gradients go to x and, where it has another, to p + b. */

TT_FN T OF(tt_lstm)(const T *x, const T *p, const T *b, int64_t h, int64_t w, T before, T *gates, T *c) {
    T i = OF(tt_sigmoid)(x[0] + (p[0] + b[0])), f = OF(tt_sigmoid)(x[h] + (p[w] + b[h]));
    T g = OF(tt_tanh)(x[2 * h] + (p[2 * w] + b[2 * h]));
    T o = OF(tt_sigmoid)(x[3 * h] + (p[3 * w] + b[3 * h]));
    T now = f * before + i * g;
    gates[0] = i;
    gates[h] = f;
    gates[2 * h] = g;
    gates[3 * h] = o;
    *c = now;
    return o * OF(tt_tanh)(now);
}

TT_FN T OF(tt_gru)(const T *x, const T *p, const T *b, int64_t h, int64_t w, T before, T *gates) {
    T r = OF(tt_sigmoid)(x[0] + (p[0] + b[0])), z = OF(tt_sigmoid)(x[h] + (p[w] + b[h]));
    T inner = p[2 * w] + b[2 * h], n = OF(tt_tanh)(x[2 * h] + r * inner);
    gates[0] = r;
    gates[h] = z;
    gates[2 * h] = n;
    gates[3 * h] = inner;
    return n + z * (before - n);
}

/* first: the gradient of c that later steps have left, and what this step leaves. */
TT_FN void OF(tt_lstm_back)(T of_h, T g_c, T before, T c, const T *gates, int64_t h, T *first, T *of_x) {
    T i = gates[0], f = gates[h], g = gates[2 * h], o = gates[3 * h], t = OF(tt_tanh)(c);
    T of_c = *first + g_c + of_h * o * (1 - t * t);
    *first = of_c * f;
    of_x[0] = of_c * g * (i * (1 - i));
    of_x[h] = of_c * before * (f * (1 - f));
    of_x[2 * h] = of_c * i * (1 - g * g);
    of_x[3 * h] = of_h * t * (o * (1 - o));
}

/* all: the gradient of the new h; first: what this step leaves for the one before it, past the weight. */
TT_FN void OF(tt_gru_back)(T all, T before, const T *gates, int64_t h, T *first, T *of_x, T *of_h) {
    T r = gates[0], z = gates[h], n = gates[2 * h];
    T of_n = all * (1 - z) * (1 - n * n), of_r = of_n * gates[3 * h] * (r * (1 - r));
    T of_z = all * (before - n) * (z * (1 - z));
    *first = all * z;
    of_x[0] = of_h[0] = of_r;
    of_x[h] = of_h[h] = of_z;
    of_x[2 * h] = of_n;
    of_h[2 * h] = of_n * r;
}
