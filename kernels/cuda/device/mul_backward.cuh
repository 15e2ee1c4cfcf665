/* g * b and g * a, the gradients of a * b, by one launch. TT_D0: as stored, TT_D1: computed in. All lie alike, one
 * element after the other; with variant TT_MUL_BACKWARD_VECTORS in whole vectors of 16 bytes, but for the end. */
#pragma once
#include "cuda/device/prelude.cuh"

#define TT_ARGS tt_mul_backward_args
typedef TT_TYPE(TT_D0) stored_type;
typedef TT_TYPE(TT_D1) value_type;
#define TT_V (TT_VARIANT & TT_MUL_BACKWARD_VECTORS ? 16 / (int)sizeof(stored_type) : 1)

static TT_DEVICE stored_type product(stored_type x, stored_type y) {
    return (stored_type)TT_CONVERT(TT_D1, TT_D0,
                                   (value_type)TT_CONVERT(TT_D0, TT_D1, x) * (value_type)TT_CONVERT(TT_D0, TT_D1, y));
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    typedef tt_pack<stored_type, TT_V> pack;
    const int64_t first = ((int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x) * TT_V;
    if (first + TT_V <= p.numel) {
        const pack g = *(const pack *)(p.g + first * sizeof(stored_type));
        const pack a = *(const pack *)(p.a + first * sizeof(stored_type));
        const pack b = *(const pack *)(p.b + first * sizeof(stored_type));
        pack of_a, of_b;
#pragma unroll
        for (int v = 0; v < TT_V; v++) {
            of_a.at[v] = product(g.at[v], b.at[v]);
            of_b.at[v] = product(g.at[v], a.at[v]);
        }
        *(pack *)(p.of_a + first * sizeof(stored_type)) = of_a;
        *(pack *)(p.of_b + first * sizeof(stored_type)) = of_b;
        return;
    }
    for (int64_t i = first; i < p.numel; i++) {
        const stored_type g = ((const stored_type *)p.g)[i];
        ((stored_type *)p.of_a)[i] = product(g, ((const stored_type *)p.b)[i]);
        ((stored_type *)p.of_b)[i] = product(g, ((const stored_type *)p.a)[i]);
    }
}
