/* The kernel of those over rows: rows.cuh. */
#pragma once

#define TT_MOST_THREADS (TT_FORM == TT_ROW_WARP ? TT_CUDA_THREADS : TT_INPUTS > 1 ? 512 : 1024)

extern "C" __global__ void __launch_bounds__(TT_MOST_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    row r[TT_U];
    values held[TT_U];
#pragma unroll
    for (int u = 0; u < TT_U; u++) {
        r[u] = row_of(p.rows, p.n, u);
        if (TT_FORM != TT_ROW_LONG) fetch(p, r[u], held[u], r[u].start);
    }
#pragma unroll
    for (int u = 0; u < TT_U; u++) work(p, r[u], held[u]);
}
