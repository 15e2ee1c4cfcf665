/* Many tensors times a number, in place: see foreach_args.h. TT_D0: as stored, TT_D1: computed in, TT_D2: the
 * number. */
#pragma once
#include "cuda/device/tensors.cuh"
#include "cuda/device/foreach_args.h"

#define TT_ARGS tt_many_args
typedef TT_TYPE(TT_D0) stored_type;
typedef TT_TYPE(TT_D1) value_type;
#define TT_V (TT_VARIANT & TT_SCALE_VECTORS ? 16 / (int)sizeof(stored_type) : 1)

static TT_DEVICE stored_type scaled(stored_type x, value_type by) {
    return (stored_type)TT_CONVERT(TT_D1, TT_D0, TT_CONVERT(TT_D0, TT_D1, x) * by);
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    typedef tt_pack<stored_type, TT_V> pack;
    const int tensor = tt_tensor_of(p.first, p.n, blockIdx.x);
    const value_type by = TT_CONVERT(TT_D2, TT_D1, *(const TT_TYPE(TT_D2) *)p.by);
    const int64_t begin = (int64_t)(blockIdx.x - p.first[tensor]) * TT_MANY_CHUNK;
    const int64_t end = begin + TT_MANY_CHUNK < p.numel[tensor] ? begin + TT_MANY_CHUNK : p.numel[tensor];
    stored_type *x = (stored_type *)p.data[tensor];
#pragma unroll
    for (int k = 0; k < TT_MANY_CHUNK; k += TT_CUDA_THREADS * TT_V) {
        const int64_t i = begin + k + (int64_t)threadIdx.x * TT_V;
        if (i + TT_V <= end) {
            pack v = *(const pack *)(x + i);
#pragma unroll
            for (int j = 0; j < TT_V; j++) v.at[j] = scaled(v.at[j], by);
            *(pack *)(x + i) = v;
        } else
            for (int64_t j = i; j < end; j++) x[j] = scaled(x[j], by);
    }
}
