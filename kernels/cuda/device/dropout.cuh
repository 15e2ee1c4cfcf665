/* Elements times a random mask, and where it is not 0. TT_D0: as stored, TT_D1: as computed and drawn (f32, f64).
 *
 * A thread takes neighbouring lanes of a group (with variant TT_DROPOUT_VECTORS as many as 16 bytes have elements),
 * whose first elements, second ones and so on lie together: Note [Random streams] in kernels/scalar/philox.h. */
#pragma once
#include "cuda/device/stream.cuh"

#define TT_ARGS tt_dropout_args
typedef TT_TYPE(TT_D0) stored_type;
typedef TT_TYPE(TT_D1) value_type;
#define TT_V (TT_VARIANT & TT_DROPOUT_VECTORS ? 16 / (int)sizeof(stored_type) : 1)
typedef tt_pack<stored_type, TT_V> pack;
typedef tt_pack<uint8_t, TT_V> flags;

static TT_DEVICE stored_type product(stored_type x, value_type factor) {
    return (stored_type)TT_CONVERT(TT_D1, TT_D0, (value_type)TT_CONVERT(TT_D0, TT_D1, x) * factor);
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t thread = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    const int64_t group = thread / (TT_PHILOX_LANES / TT_V);
    const int lane = (int)(thread % (TT_PHILOX_LANES / TT_V)) * TT_V;
    const int64_t first = group * TT_PHILOX_GROUP + lane;
    if (first >= p.numel) return;
    const stored_type *in = (const stored_type *)p.in + first;
    stored_type *out = (stored_type *)p.out + first;
    uint8_t *kept = p.kept + first;
    const bool whole = first + 3 * TT_PHILOX_LANES + TT_V <= p.numel;
    pack x[4];
    if (whole) { /* all loads before the words are computed */
#pragma unroll
        for (int k = 0; k < 4; k++) x[k] = *(const pack *)(in + k * TT_PHILOX_LANES);
    }
    const TT_JOIN2(tt_random_, TT_D1) r = {0, (value_type)p.scale, 0, 0, 0, 0, p.threshold};
    const tt_stream from = TT_PLACED(p.from);
    value_type factor[TT_V][4];
#pragma unroll
    for (int v = 0; v < TT_V; v++) {
        tt_word w[4];
        tt_words_of_lane(from, group, lane + v, w);
#pragma unroll
        for (int k = 0; k < 4; k++) factor[v][k] = TT_JOIN2(tt_random_mask_, TT_D1)(w[k], &r);
    }
    if (whole) {
#pragma unroll
        for (int k = 0; k < 4; k++) {
            pack y;
            flags f;
#pragma unroll
            for (int v = 0; v < TT_V; v++) {
                y.at[v] = product(x[k].at[v], factor[v][k]);
                f.at[v] = factor[v][k] != 0;
            }
            *(pack *)(out + k * TT_PHILOX_LANES) = y;
            *(flags *)(kept + k * TT_PHILOX_LANES) = f;
        }
        return;
    }
#pragma unroll
    for (int k = 0; k < 4; k++)
#pragma unroll
        for (int v = 0; v < TT_V; v++) {
            const int i = k * TT_PHILOX_LANES + v;
            if (first + i < p.numel) out[i] = product(in[i], factor[v][k]), kept[i] = factor[v][k] != 0;
        }
}
