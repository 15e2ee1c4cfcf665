/* Attention's derivative by the queries, and of each of their rows the sum of g times out, which attention_key.cuh
 * wants. */
#pragma once
#define TT_R TT_ATTENTION_R_QUERY(TT_TENSOR, TT_SPLIT, TT_E, TT_V, TT_SIZE)
#define TT_C TT_ATTENTION_C_QUERY(TT_TENSOR, TT_SPLIT, TT_E, TT_V, TT_SIZE)
#include "cuda/device/attention_tile.cuh"

extern "C" __global__ void __launch_bounds__(TT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(shared);
    const int of_key = TT_COLS * TT_STRIDE(TT_E), of_value = TT_COLS * TT_STRIDE(TT_V);
    shared_type *const query = (shared_type *)shared, *const g = query + TT_ROWS * TT_STRIDE(TT_E);
    shared_type *const key = g + TT_ROWS * TT_STRIDE(TT_V), *const value = key + TT_STAGES * of_key;
    shared_type *const slopes = value + TT_STAGES * of_value;
    const int block = p.blocks - 1 - (int)(blockIdx.x % p.blocks);
    const int64_t n = blockIdx.x / p.blocks / p.heads, head = blockIdx.x / p.blocks % p.heads;
    const int64_t at = (n * p.heads + head) * p.rows; /* of the head's first row */
    const int first = block * TT_ROWS;
    const place t = place_of();
    const stored_type *const keys = head_of(p.key, n, head / p.group), *const values =
                                                                           head_of(p.value, n, head / p.group);
#if TT_VARIANT & TT_ATTENTION_DROPS
    const tt_stream stream = TT_PLACED(p.from);
#endif
    load<TT_ROWS, TT_E>(query, head_of(p.query, n, head), p.query.row, first, p.rows, p.width);
    load<TT_ROWS, TT_V>(g, head_of(p.g, n, head), p.g.row, first, p.rows, p.out_width);
    await();
    __syncthreads();

    number lse[TT_R], delta[TT_R], of_query[TT_R][TT_E / TT_GROUP];
    clear(of_query);
    const stored_type *const out = head_of(p.out, n, head);
#pragma unroll
    for (int i = 0; i < TT_R; i++) {
        const int r = t.row + TT_STEP * i, row = first + r;
        number sum = 0;
        if (row < p.rows)
            for (int c = t.lane; c < p.out_width; c += TT_GROUP)
                sum =
                    fused(TT_CONVERT(TT_D0, TT_D1, out[row * p.out.row + c]), loaded(g + r * TT_STRIDE(TT_V) + c), sum);
        delta[i] = sum_of_row(sum);
        lse[i] = row < p.rows ? ((const number *)p.lse)[at + row] * (number)TT_UNITS : (number)TT_INF_F32;
        if (row < p.rows && t.lane == 0) ((number *)p.delta)[at + row] = delta[i];
    }

    const int end = p.causal && first + TT_ROWS < p.keys ? first + TT_ROWS : p.keys;
    const auto fetch = [&](int i, int stage) {
        load<TT_COLS, TT_E>(key + stage * of_key, keys, p.key.row, i * TT_COLS, p.keys, p.width);
        load<TT_COLS, TT_V>(value + stage * of_value, values, p.value.row, i * TT_COLS, p.keys, p.out_width);
    };
    walk((end + TT_COLS - 1) / TT_COLS, fetch, [&](int i, int stage) {
        number s[TT_R][TT_C], dp[TT_R][TT_C];
        scores<TT_E>(t, query, key + stage * of_key, s);
        scores<TT_V>(t, g, value + stage * of_value, dp);
        mask<false>(p, t, n, head, first, i * TT_COLS, s);
#if TT_VARIANT & TT_ATTENTION_DROPS
        draw_rows(
            p, stream, t, [&](int r) { return (at + first + r) * p.keys + i * TT_COLS; },
            [&](int r, int c, number factor) { dp[r][c] *= factor; });
#endif
        each<false>(t, first, i * TT_COLS,
                    [&](int r, int c, int, int) { s[r][c] = exponential(s[r][c] - lse[r]) * (dp[r][c] - delta[r]); });
        product<TT_E>(t, slopes, s, key + stage * of_key, of_query);
    });

    stored_type *const to = head_of(p.of_query, n, head);
#pragma unroll
    for (int i = 0; i < TT_R; i++) {
        const int row = first + t.row + TT_STEP * i;
        if (row < p.rows) write(t, to + row * p.of_query.row, of_query[i], p.width, (number)p.scale);
    }
}
