/* Rows of elements of type T; simd/recurrent.c includes this file for each dtype, with OF(name) the function's name. */
#include "scalar/gates.h"

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
    for (int64_t k = 0; k < r->n; k++) y[k] = OF(tt_lstm)(x + k, p + k, b + k, h, w, before[k], gates + k, c + k);
}

static void OF(gru)(const tt_recurrent_row *r) {
    int64_t h = r->hidden, w = r->width;
    const T *x = r->x, *p = r->product, *b = r->b, *before = r->before;
    T *gates = r->gates, *y = r->y;
    TT_INDEPENDENT
    for (int64_t k = 0; k < r->n; k++) y[k] = OF(tt_gru)(x + k, p + k, b + k, h, w, before[k], gates + k);
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
    const T *g = r->g, *g_c = r->g_c, *p = r->product, *gates = r->gates, *c = r->c, *before = r->before;
    T *first = r->first, *of_x = r->of_x;
    TT_INDEPENDENT
    for (int64_t k = 0; k < r->n; k++)
        OF(tt_lstm_back)(g[k] + p[k], g_c[k], before[k], c[k], gates + k, h, first + k, of_x + k);
}

static void OF(gru_back)(const tt_recurrent_row_back *r) {
    int64_t h = r->hidden;
    const T *g = r->g, *p = r->product, *gates = r->gates, *before = r->before;
    T *first = r->first, *of_x = r->of_x, *of_h = r->of_h;
    TT_INDEPENDENT
    for (int64_t k = 0; k < r->n; k++)
        OF(tt_gru_back)(first[k] + g[k] + p[k], before[k], gates + k, h, first + k, of_x + k, of_h + k);
}

#undef T
#undef OF
