/* Random numbers: Note [Random streams] in kernels/scalar/philox.h. A thread takes one lane of a group: four elements
 * of 64, sixteen apart. TT_OP: the kind; TT_D0: as stored, TT_D1: as drawn (f32, f64, i64). */
#pragma once
#include "cuda/device/stream.cuh"

#define TT_ARGS tt_random_args

typedef TT_TYPE(TT_D0) stored;

#define TT_NUMBERS TT_JOIN2(tt_random_, TT_D1)
#define TT_PAIR TT_JOIN2(tt_random_normal_, TT_D1)
#define TT_ONE_(kind) TT_JOIN4(tt_random_, kind, _, TT_D1)
#define TT_STORED(x) TT_CONVERT(TT_D1, TT_D0, x)

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t thread = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    const int64_t group = thread / TT_PHILOX_LANES;
    const int lane = (int)(thread % TT_PHILOX_LANES);
    const int64_t first = group * TT_PHILOX_GROUP + lane;
    if (first >= p.numel) return;
    tt_word w[4];
    tt_words_of_lane(TT_PLACED(p.from), group, lane, w);
    stored made[4];
#if TT_OP >= 32
#if TT_IS(TT_D1, i64)
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const uint64_t below =
            TT_OP == TT_RANDOM_SHORT_INTEGERS ? tt_random_short_below(w[k], p.range) : tt_random_below(w[k], p.range);
        made[k] = TT_STORED((int64_t)((uint64_t)p.low + below));
    }
#else
#pragma unroll
    for (int k = 0; k < 4; k++) {
        const int64_t i = first + k * TT_PHILOX_LANES;
        made[k] = TT_STORED(i < p.numel && tt_uniform_f64(w[k]) < p.chance[i] ? 1.0 : 0.0);
    }
#endif
#else
    typedef TT_TYPE(TT_D1) number;
    const TT_NUMBERS r = {(number)p.a, (number)p.b, (number)p.b - (number)p.a, (number)p.rate, p.unit,
                          p.dropped,   p.threshold};
    number x[4];
#if TT_OP == 1 || TT_OP == 2
    TT_PAIR(w[0], w[2], &r, &x[0], &x[2]);
    TT_PAIR(w[1], w[3], &r, &x[1], &x[3]);
#if TT_OP == 2
#pragma unroll
    for (int k = 0; k < 4; k++) x[k] = TT_JOIN2(tt_exp_, TT_D1)(x[k]);
#endif
#else
#pragma unroll
    for (int k = 0; k < 4; k++) x[k] = TT_ONE_(TT_NAME)(w[k], &r);
#endif
#pragma unroll
    for (int k = 0; k < 4; k++) made[k] = TT_STORED(x[k]);
#endif
    stored *out = (stored *)p.out + first;
#pragma unroll
    for (int k = 0; k < 4; k++)
        if (first + k * TT_PHILOX_LANES < p.numel) out[k * TT_PHILOX_LANES] = made[k];
}
