/* Attention's derivatives by keys and values. A thread block has a block of keys, and walks over the queries of the
 * heads that it serves. */
#pragma once
#define TT_R TT_ATTENTION_R_KEY(TT_TENSOR, TT_SPLIT, TT_E, TT_V, TT_SIZE)
#define TT_C TT_ATTENTION_C_KEY(TT_TENSOR, TT_SPLIT, TT_E, TT_V, TT_SIZE)
#include "cuda/device/attention_tile.cuh"

extern "C" __global__ void __launch_bounds__(TT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(shared);
    const int of_query = TT_COLS * TT_STRIDE(TT_E), of_g = TT_COLS * TT_STRIDE(TT_V);
    shared_type *const key = (shared_type *)shared, *const value = key + TT_ROWS * TT_STRIDE(TT_E);
    shared_type *const query = value + TT_ROWS * TT_STRIDE(TT_V), *const g = query + TT_STAGES * of_query;
    shared_type *const weights = g + TT_STAGES * of_g;
    const int of_keys = p.heads / p.group;
    const int64_t n = blockIdx.x / p.blocks / of_keys, of = blockIdx.x / p.blocks % of_keys;
    const int first = (int)(blockIdx.x % p.blocks) * TT_ROWS; /* with `causal` the first have most to do */
    const place t = place_of();
#if TT_VARIANT & TT_ATTENTION_DROPS
    const tt_stream stream = TT_PLACED(p.from);
#endif
    load<TT_ROWS, TT_E>(key, head_of(p.key, n, of), p.key.row, first, p.keys, p.width);
    load<TT_ROWS, TT_V>(value, head_of(p.value, n, of), p.value.row, first, p.keys, p.out_width);
    number of_key[TT_R][TT_E / TT_GROUP], of_value[TT_R][TT_V / TT_GROUP];
    clear(of_key);
    clear(of_value);

    /* The tiles of queries that see these keys, of one head after the other. */
    const int skipped = p.causal ? first / TT_COLS : 0, all = (p.rows + TT_COLS - 1) / TT_COLS;
    const int tiles = all > skipped ? all - skipped : 0;
    const auto fetch = [&](int i, int stage) {
        const int64_t head = of * p.group + i / tiles;
        const int q = (skipped + i % tiles) * TT_COLS;
        load<TT_COLS, TT_E>(query + stage * of_query, head_of(p.query, n, head), p.query.row, q, p.rows, p.width);
        load<TT_COLS, TT_V>(g + stage * of_g, head_of(p.g, n, head), p.g.row, q, p.rows, p.out_width);
    };
    walk(p.group * tiles, fetch, [&](int i, int stage) {
        const int64_t head = of * p.group + i / tiles, at = (n * p.heads + head) * p.rows;
        const int q = (skipped + i % tiles) * TT_COLS;
        number s[TT_R][TT_C], dp[TT_R][TT_C], lse[TT_C], delta[TT_C];
#pragma unroll
        for (int j = 0; j < TT_C; j++) {
            const int row = q + column<TT_SCORES>(t, j);
            /* beyond the last row weights become 0 */
            lse[j] = row < p.rows ? ((const number *)p.lse)[at + row] * (number)TT_UNITS : (number)TT_INF_F32;
            delta[j] = row < p.rows ? ((const number *)p.delta)[at + row] : (number)0;
        }
        scores<TT_E>(t, key, query + stage * of_query, s);
        scores<TT_V>(t, value, g + stage * of_g, dp);
        mask<true>(p, t, n, head, first, q, s);
        number kept[TT_R][TT_C];
#if TT_VARIANT & TT_ATTENTION_DROPS
#pragma unroll
        for (int j = 0; j < TT_C; j++)
            draw<TT_R, 16 / TT_STEP>(
                p, stream, (at + q + column<TT_SCORES>(t, j)) * p.keys + first + t.row,
                [&](int r) { return TT_STEP * r; },
                [&](int r, number factor) { dp[r][j] *= factor, kept[r][j] = factor; });
#else
        each<true>(t, first, q, [&](int r, int c, int, int) { kept[r][c] = 1; });
#endif
        each<true>(t, first, q, [&](int r, int c, int, int) {
            s[r][c] = exponential(s[r][c] - lse[c]);
            kept[r][c] *= s[r][c];
            s[r][c] *= dp[r][c] - delta[c];
        });
        product<TT_V>(t, weights, kept, g + stage * of_g, of_value);
        product<TT_E>(t, weights, s, query + stage * of_query, of_key);
    });

    stored_type *const to_key = head_of(p.of_key, n, of), *const to_value = head_of(p.of_value, n, of);
#pragma unroll
    for (int i = 0; i < TT_R; i++) {
        const int row = first + t.row + TT_STEP * i;
        if (row >= p.keys) continue;
        write(t, to_key + row * p.of_key.row, of_key[i], p.width, (number)p.scale);
        write(t, to_value + row * p.of_value.row, of_value[i], p.out_width, 1);
    }
}
