/* Attention's derivatives by keys and values. A thread block has a block of keys, and walks over the queries of the heads
 * that it serves. */
#pragma once
#define TT_R TT_ATTENTION_R_KEY(TT_E, TT_V, TT_SIZE)
#define TT_C TT_ATTENTION_C_KEY(TT_E, TT_V, TT_SIZE)
#include "cuda/device/attention_tile.cuh"

extern "C" __global__ void __launch_bounds__(TT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(shared);
    number *const key = (number *)shared, *const value = key + TT_ROWS * TT_STRIDE(TT_E);
    number *const query = value + TT_ROWS * TT_STRIDE(TT_V), *const g = query + TT_COLS * TT_STRIDE(TT_E);
    number *const weights = g + TT_COLS * TT_STRIDE(TT_V);
    const int of_keys = p.heads / p.group;
    const int64_t n = blockIdx.x / p.blocks / of_keys, of = blockIdx.x / p.blocks % of_keys;
    const int first = (int)(blockIdx.x % p.blocks) * TT_ROWS; /* with `causal` the first have most to do */
    const place t = place_of();
#if TT_VARIANT & TT_ATTENTION_DROPS
    const tt_stream stream = TT_PLACED(p.from);
#endif
    load<TT_ROWS, TT_E>(key, head_of(p.key, n, of), p.key.row, first, p.keys, p.width, 1);
    load<TT_ROWS, TT_V>(value, head_of(p.value, n, of), p.value.row, first, p.keys, p.out_width, 1);
    number of_key[TT_R][TT_E / 8], of_value[TT_R][TT_V / 8];
    clear(of_key);
    clear(of_value);

    for (int64_t head = of * p.group; head < (of + 1) * p.group; head++) {
        const int64_t at = (n * p.heads + head) * p.rows;
        for (int q = p.causal ? first / TT_COLS * TT_COLS : 0; q < p.rows; q += TT_COLS) {
            __syncthreads();
            load<TT_COLS, TT_E>(query, head_of(p.query, n, head), p.query.row, q, p.rows, p.width, (number)p.scale);
            load<TT_COLS, TT_V>(g, head_of(p.g, n, head), p.g.row, q, p.rows, p.out_width, 1);
            __syncthreads();
            number s[TT_R][TT_C], dp[TT_R][TT_C], lse[TT_C], delta[TT_C];
#pragma unroll
            for (int j = 0; j < TT_C; j++) {
                const int row = q + t.col + 8 * j;
                lse[j] = row < p.rows ? ((const number *)p.lse)[at + row] : (number)TT_INF_F32; /* weights become 0 */
                delta[j] = row < p.rows ? ((const number *)p.delta)[at + row] : (number)0;
            }
            scores<TT_E>(t, key, query, s);
            scores<TT_V>(t, value, g, dp);
            hide<true>(p, t, n, head, first, q, s);
            number kept[TT_R][TT_C];
            each<true>(t, first, q, [&](int i, int j, int row, int col) {
                s[i][j] = exponential(s[i][j] - lse[j]);
#if TT_VARIANT & TT_ATTENTION_DROPS
                const number factor = factor_of(p, stream, at + row, col);
                kept[i][j] = s[i][j] * factor;
                dp[i][j] *= factor;
#else
                kept[i][j] = s[i][j];
#endif
                s[i][j] *= dp[i][j] - delta[j];
            });
            keep(t, weights, kept);
            product<TT_V>(t, weights, g, of_value);
            keep(t, weights, s);
            product<TT_E>(t, weights, query, of_key);
        }
    }

    stored_type *const to_key = head_of(p.of_key, n, of), *const to_value = head_of(p.of_value, n, of);
#pragma unroll
    for (int i = 0; i < TT_R; i++) {
        const int row = first + t.row + 4 * i;
        if (row >= p.keys) continue;
        write(t, to_key + row * p.of_key.row, of_key[i], p.width, 1);
        write(t, to_value + row * p.of_value.row, of_value[i], p.out_width, 1);
    }
}
