/* Rows of elements of type T; simd/recurrent.c includes this file for each dtype, with OF(name) the function's name. */

static void OF(rnn_tanh)(const tt_recurrent_row *r) {
    const T *x = r->x, *p = r->product, *b = r->b;
    T *y = r->y;
    TT_INDEPENDENT
    for (int64_t k = 0; k < r->n; k++) y[k] = OF(tt_tanh)(x[k] + (p[k] + b[k]));
}

static void OF(rnn_relu)(const tt_recurrent_row *r) {
    const T *x = r->x, *p = r->product, *b = r->b;
    T *y = r->y;
    TT_INDEPENDENT
    for (int64_t k = 0; k < r->n; k++) {
        T s = x[k] + (p[k] + b[k]);
        y[k] = s <= 0 ? 0 : s;
    }
}

static void OF(lstm)(const tt_recurrent_row *r) {
    int64_t h = r->hidden, w = r->width;
    const T *x = r->x, *p = r->product, *b = r->b, *before = r->before;
    T *gates = r->gates, *c = r->c, *y = r->y;
    TT_INDEPENDENT
    for (int64_t k = 0; k < r->n; k++) {
        T i = OF(tt_sigmoid)(x[k] + (p[k] + b[k])), f = OF(tt_sigmoid)(x[h + k] + (p[w + k] + b[h + k]));
        T g = OF(tt_tanh)(x[2 * h + k] + (p[2 * w + k] + b[2 * h + k]));
        T o = OF(tt_sigmoid)(x[3 * h + k] + (p[3 * w + k] + b[3 * h + k]));
        T now = f * before[k] + i * g;
        gates[k] = i;
        gates[h + k] = f;
        gates[2 * h + k] = g;
        gates[3 * h + k] = o;
        c[k] = now;
        y[k] = o * OF(tt_tanh)(now);
    }
}

static void OF(gru)(const tt_recurrent_row *row) {
    int64_t h = row->hidden, w = row->width;
    const T *x = row->x, *p = row->product, *b = row->b, *before = row->before;
    T *gates = row->gates, *y = row->y;
    TT_INDEPENDENT
    for (int64_t k = 0; k < row->n; k++) {
        T r = OF(tt_sigmoid)(x[k] + (p[k] + b[k])), z = OF(tt_sigmoid)(x[h + k] + (p[w + k] + b[h + k]));
        T inner = p[2 * w + k] + b[2 * h + k], n = OF(tt_tanh)(x[2 * h + k] + r * inner);
        gates[k] = r;
        gates[h + k] = z;
        gates[2 * h + k] = n;
        gates[3 * h + k] = inner;
        y[k] = n + z * (before[k] - n);
    }
}

static void OF(rnn_tanh_back)(const tt_recurrent_row_back *r) {
    const T *g = r->g, *p = r->product, *y = r->y;
    T *of_x = r->of_x;
    TT_INDEPENDENT
    for (int64_t k = 0; k < r->n; k++) of_x[k] = (g[k] + p[k]) * (1 - y[k] * y[k]);
}

static void OF(rnn_relu_back)(const tt_recurrent_row_back *r) {
    const T *g = r->g, *p = r->product, *y = r->y;
    T *of_x = r->of_x;
    TT_INDEPENDENT
    for (int64_t k = 0; k < r->n; k++) {
        T s = g[k] + p[k];
        of_x[k] = y[k] <= 0 ? 0 : s;
    }
}

static void OF(lstm_back)(const tt_recurrent_row_back *r) {
    int64_t h = r->hidden;
    const T *pg = r->g, *g_c = r->g_c, *p = r->product, *gates = r->gates, *c = r->c, *before = r->before;
    T *first = r->first, *of_x = r->of_x;
    TT_INDEPENDENT
    for (int64_t k = 0; k < r->n; k++) {
        T i = gates[k], f = gates[h + k], g = gates[2 * h + k], o = gates[3 * h + k], t = OF(tt_tanh)(c[k]);
        T of_h = pg[k] + p[k], of_c = first[k] + g_c[k] + of_h * o * (1 - t * t);
        first[k] = of_c * f;
        of_x[k] = of_c * g * (i * (1 - i));
        of_x[h + k] = of_c * before[k] * (f * (1 - f));
        of_x[2 * h + k] = of_c * i * (1 - g * g);
        of_x[3 * h + k] = of_h * t * (o * (1 - o));
    }
}

static void OF(gru_back)(const tt_recurrent_row_back *row) {
    int64_t h = row->hidden;
    const T *g = row->g, *p = row->product, *gates = row->gates, *before = row->before;
    T *first = row->first, *of_x = row->of_x, *of_h = row->of_h;
    TT_INDEPENDENT
    for (int64_t k = 0; k < row->n; k++) {
        T r = gates[k], z = gates[h + k], n = gates[2 * h + k], all = first[k] + g[k] + p[k];
        T of_n = all * (1 - z) * (1 - n * n), of_r = of_n * gates[3 * h + k] * (r * (1 - r));
        T of_z = all * (before[k] - n) * (z * (1 - z));
        first[k] = all * z;
        of_x[k] = of_h[k] = of_r;
        of_x[h + k] = of_h[h + k] = of_z;
        of_x[2 * h + k] = of_n;
        of_h[2 * h + k] = of_n * r;
    }
}

#undef T
#undef OF
