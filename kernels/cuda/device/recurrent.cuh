/* The gates of a recurrent layer for one step, and their derivatives: a thread for each number of the state. TT_D0: f32
 * or f64. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/recurrent_args.h"
#define TT_ARGS tt_recurrent_args
#define OF(name) TT_JOIN2(TT_JOIN2(name, _), TT_D0)
typedef TT_TYPE(TT_D0) T;
#include "scalar/gates.h"

#define TT_BACK (TT_OP >= TT_RECURRENT_BACK)
#define TT_KIND (TT_OP % TT_RECURRENT_BACK) /* 0, 1: rnn_tanh, rnn_relu; 2: lstm; 3: gru */
#define TT_GATES (TT_KIND < 2 ? 1 : TT_KIND == 2 ? 4 : 3)

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t at = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (at >= p.rows * p.hidden) return;
    const int64_t row = at / p.hidden, k = at - row * p.hidden, h = p.hidden;
    T *const y = (T *)p.y + at, *const c = (T *)p.c + at;
    T *const gates = (T *)p.gates + row * 4 * h + k;
#if TT_KIND >= 2
    const T before = ((const T *)(row < p.known ? p.before : p.first))[at];
#endif
#if !TT_BACK
    const T *const x = (const T *)p.x + row * TT_GATES * h + k, *const b = (const T *)p.b + k;
    const T *const product = (const T *)p.product + row * TT_GATES * h + k;
#if TT_KIND == 0
    *y = OF(tt_tanh)(x[0] + (product[0] + b[0]));
#elif TT_KIND == 1
    const T s = x[0] + (product[0] + b[0]);
    *y = s <= 0 ? 0 : s;
#elif TT_KIND == 2
    *y = OF(tt_lstm)(x, product, b, h, h, before, gates, c);
#else
    *y = OF(tt_gru)(x, product, b, h, h, before, gates);
#endif
#else
    const T sum = (p.g ? ((const T *)p.g)[at] : (T)0) + (row < p.shared ? ((const T *)p.product)[at] : (T)0);
    T *const of_x = (T *)p.of_x + row * TT_GATES * h + k;
#if TT_KIND == 0
    *of_x = sum * (1 - *y * *y);
#elif TT_KIND == 1
    *of_x = *y <= 0 ? 0 : sum;
#elif TT_KIND == 2
    const T g_c = p.g_c ? ((const T *)p.g_c)[at] : (T)0;
    OF(tt_lstm_back)(sum, g_c, before, *c, gates, h, (T *)p.of_first + at, of_x);
#else
    T *const first = (T *)p.of_first + at;
    OF(tt_gru_back)(*first + sum, before, gates, h, first, of_x, (T *)p.of_h + row * 3 * h + k);
#endif
#endif
}
