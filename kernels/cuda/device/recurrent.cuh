/* The gates of a recurrent layer for one step, and their derivatives: a thread for each number of the state. The
 * formulas are those of cpu/simd/recurrent_loops.h. TT_D0: f32 or f64. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/recurrent_args.h"
#define TT_ARGS tt_recurrent_args
#define TT_OF(f) TT_JOIN4(tt_, f, _, TT_D0)
typedef TT_TYPE(TT_D0) number;

#define TT_BACK (TT_OP >= TT_RECURRENT_BACK)
#define TT_KIND (TT_OP % TT_RECURRENT_BACK) /* 0, 1: rnn_tanh, rnn_relu; 2: lstm; 3: gru */
#define TT_GATES (TT_KIND < 2 ? 1 : TT_KIND == 2 ? 4 : 3)

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t at = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (at >= p.rows * p.hidden) return;
    const int64_t row = at / p.hidden, k = at - row * p.hidden, h = p.hidden;
    number *const y = (number *)p.y + at, *const c = (number *)p.c + at;
    number *const gates = (number *)p.gates + row * 4 * h + k;
#if TT_KIND >= 2
    const number before = ((const number *)(row < p.known ? p.before : p.first))[at];
#endif
#if !TT_BACK
    const number *const x = (const number *)p.x + row * TT_GATES * h + k, *const b = (const number *)p.b + k;
    const number *const product = (const number *)p.product + row * TT_GATES * h + k;
#if TT_KIND == 0
    *y = TT_OF(tanh)(x[0] + (product[0] + b[0]));
#elif TT_KIND == 1
    const number s = x[0] + (product[0] + b[0]);
    *y = s <= 0 ? 0 : s;
#elif TT_KIND == 2
    const number i = TT_OF(sigmoid)(x[0] + (product[0] + b[0])), f = TT_OF(sigmoid)(x[h] + (product[h] + b[h]));
    const number g = TT_OF(tanh)(x[2 * h] + (product[2 * h] + b[2 * h]));
    const number o = TT_OF(sigmoid)(x[3 * h] + (product[3 * h] + b[3 * h]));
    const number now = f * before + i * g;
    gates[0] = i;
    gates[h] = f;
    gates[2 * h] = g;
    gates[3 * h] = o;
    *c = now;
    *y = o * TT_OF(tanh)(now);
#else
    const number r = TT_OF(sigmoid)(x[0] + (product[0] + b[0])), z = TT_OF(sigmoid)(x[h] + (product[h] + b[h]));
    const number inner = product[2 * h] + b[2 * h], n = TT_OF(tanh)(x[2 * h] + r * inner);
    gates[0] = r;
    gates[h] = z;
    gates[2 * h] = n;
    gates[3 * h] = inner;
    *y = n + z * (before - n);
#endif
#else
    const number sum =
        (p.g ? ((const number *)p.g)[at] : (number)0) + (row < p.shared ? ((const number *)p.product)[at] : (number)0);
    number *const of_x = (number *)p.of_x + row * TT_GATES * h + k;
#if TT_KIND == 0
    *of_x = sum * (1 - *y * *y);
#elif TT_KIND == 1
    *of_x = *y <= 0 ? 0 : sum;
#elif TT_KIND == 2
    number *const first = (number *)p.of_first + at;
    const number i = gates[0], f = gates[h], g = gates[2 * h], o = gates[3 * h], t = TT_OF(tanh)(*c);
    const number of_c = *first + (p.g_c ? ((const number *)p.g_c)[at] : (number)0) + sum * o * (1 - t * t);
    *first = of_c * f;
    of_x[0] = of_c * g * (i * (1 - i));
    of_x[h] = of_c * before * (f * (1 - f));
    of_x[2 * h] = of_c * i * (1 - g * g);
    of_x[3 * h] = sum * t * (o * (1 - o));
#else
    number *const first = (number *)p.of_first + at, *const of_h = (number *)p.of_h + row * 3 * h + k;
    const number r = gates[0], z = gates[h], n = gates[2 * h], all = *first + sum;
    const number of_n = all * (1 - z) * (1 - n * n), of_r = of_n * gates[3 * h] * (r * (1 - r));
    const number of_z = all * (before - n) * (z * (1 - z));
    *first = all * z;
    of_x[0] = of_h[0] = of_r;
    of_x[h] = of_h[h] = of_z;
    of_x[2 * h] = of_n;
    of_h[2 * h] = of_n * r;
#endif
#endif
}
