/* Attention: the result, and the logarithm of each row's sum of exponentials. A thread block has a block of queries,
 * and walks over the keys with each row's largest score and sum so far. */
#pragma once
#define TT_R TT_ATTENTION_R_FORWARD(TT_TENSOR, TT_SPLIT, TT_E, TT_V, TT_SIZE)
#define TT_C TT_ATTENTION_C_FORWARD(TT_TENSOR, TT_SPLIT, TT_E, TT_V, TT_SIZE)
#include "cuda/device/attention_tile.cuh"

struct state {
    number top[TT_R], sum[TT_R], out[TT_R][TT_V / TT_GROUP]; /* sum: of the thread's columns */
};

/* Scores become exponentials, and the state that of the new largest scores. */
static TT_DEVICE void exponentials(state &x, number (&s)[TT_R][TT_C]) {
#pragma unroll
    for (int i = 0; i < TT_R; i++) {
        number top = x.top[i];
#pragma unroll
        for (int j = 0; j < TT_C; j++) top = larger(top, s[i][j]);
#pragma unroll
        for (int h = TT_GROUP / 2; h > 0; h /= 2) top = larger(top, __shfl_xor_sync(0xffffffffu, top, h));
        const number shift = top == TT_MINUS_INF ? (number)0 : top; /* nothing seen yet: the sum stays 0 */
        const number by = exponential(x.top[i] - shift);
        number sum = 0;
#pragma unroll
        for (int j = 0; j < TT_C; j++) {
            s[i][j] = exponential(s[i][j] - shift);
            sum += s[i][j];
        }
        x.sum[i] = fused(x.sum[i], by, sum);
        x.top[i] = top;
#pragma unroll
        for (int c = 0; c < TT_V / TT_GROUP; c++) x.out[i][c] *= by;
    }
}

extern "C" __global__ void __launch_bounds__(TT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(shared);
    const int of_key = TT_COLS * TT_STRIDE(TT_E), of_value = TT_COLS * TT_STRIDE(TT_V);
    shared_type *const query = (shared_type *)shared, *const key = query + TT_ROWS * TT_STRIDE(TT_E);
    shared_type *const value = key + TT_STAGES * of_key, *const weights = value + TT_STAGES * of_value;
    const int block = p.blocks - 1 - (int)(blockIdx.x % p.blocks); /* with `causal` the last have most to do */
    const int64_t n = blockIdx.x / p.blocks / p.heads, head = blockIdx.x / p.blocks % p.heads;
    const int first = block * TT_ROWS;
    const place t = place_of();
    const stored_type *const keys = head_of(p.key, n, head / p.group), *const values =
                                                                           head_of(p.value, n, head / p.group);
#if TT_VARIANT & TT_ATTENTION_DROPS
    const tt_stream stream = TT_PLACED(p.from);
#endif
    load<TT_ROWS, TT_E>(query, head_of(p.query, n, head), p.query.row, first, p.rows, p.width);
    state x;
    clear(x.out);
#pragma unroll
    for (int i = 0; i < TT_R; i++) x.top[i] = TT_MINUS_INF, x.sum[i] = 0;

    const int end = p.causal && first + TT_ROWS < p.keys ? first + TT_ROWS : p.keys;
    const auto fetch = [&](int i, int stage) {
        load<TT_COLS, TT_E>(key + stage * of_key, keys, p.key.row, i * TT_COLS, p.keys, p.width);
        load<TT_COLS, TT_V>(value + stage * of_value, values, p.value.row, i * TT_COLS, p.keys, p.out_width);
    };
    walk((end + TT_COLS - 1) / TT_COLS, fetch, [&](int i, int stage) {
        number s[TT_R][TT_C];
        scores<TT_E>(t, query, key + stage * of_key, s);
        mask<false>(p, t, n, head, first, i * TT_COLS, s);
        exponentials(x, s);
#if TT_VARIANT & TT_ATTENTION_DROPS
        draw_rows(
            p, stream, t, [&](int r) { return ((n * p.heads + head) * p.rows + first + r) * p.keys + i * TT_COLS; },
            [&](int r, int c, number factor) { s[r][c] *= factor; });
#endif
        product<TT_V>(t, weights, s, value + stage * of_value, x.out);
    });

    stored_type *const out = head_of(p.out, n, head);
    number *const lse = (number *)p.lse + (n * p.heads + head) * p.rows;
#pragma unroll
    for (int i = 0; i < TT_R; i++) {
        const int row = first + t.row + TT_STEP * i;
        const number sum = sum_of_row(x.sum[i]);
        if (row >= p.rows) continue;
        write(t, out + row * p.out.row, x.out[i], p.out_width, sum == 0 ? (number)0 : 1 / sum);
        if (t.lane == 0)
            lse[row] = sum == 0 ? (number)TT_INF_F32 : fused(x.top[i], 1 / (number)TT_UNITS, logarithm(sum));
    }
}
