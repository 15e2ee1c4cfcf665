/* Attention: the result, and the logarithm of each row's sum of exponentials. A thread block has a block of queries, and
 * walks over the keys with each row's largest score and sum so far. */
#pragma once
#define TT_R TT_ATTENTION_R_FORWARD(TT_E, TT_V, TT_SIZE)
#define TT_C TT_ATTENTION_C_FORWARD(TT_E, TT_V, TT_SIZE)
#include "cuda/device/attention_tile.cuh"

struct state {
    number top[TT_R], sum[TT_R], out[TT_R][TT_V / 8]; /* sum: of the thread's columns */
};

/* Scores become exponentials, and the state that of the new largest scores. */
static TT_DEVICE void exponentials(state &x, number (&s)[TT_R][TT_C]) {
#pragma unroll
    for (int i = 0; i < TT_R; i++) {
        number top = x.top[i];
#pragma unroll
        for (int j = 0; j < TT_C; j++) top = s[i][j] > top ? s[i][j] : top;
#pragma unroll
        for (int h = 4; h > 0; h /= 2) {
            const number other = __shfl_xor_sync(0xffffffffu, top, h);
            top = other > top ? other : top;
        }
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
        for (int c = 0; c < TT_V / 8; c++) x.out[i][c] *= by;
    }
}

extern "C" __global__ void __launch_bounds__(TT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(shared);
    number *const query = (number *)shared, *const key = query + TT_ROWS * TT_STRIDE(TT_E);
    number *const value = key + TT_COLS * TT_STRIDE(TT_E), *const weights = value + TT_COLS * TT_STRIDE(TT_V);
    const int block = p.blocks - 1 - (int)(blockIdx.x % p.blocks); /* with `causal` the last have most to do */
    const int64_t n = blockIdx.x / p.blocks / p.heads, head = blockIdx.x / p.blocks % p.heads;
    const int first = block * TT_ROWS;
    const place t = place_of();
    const stored_type *const keys = head_of(p.key, n, head / p.group), *const values =
                                                                           head_of(p.value, n, head / p.group);
#if TT_VARIANT & TT_ATTENTION_DROPS
    const tt_stream stream = TT_PLACED(p.from);
#endif
    load<TT_ROWS, TT_E>(query, head_of(p.query, n, head), p.query.row, first, p.rows, p.width, (number)p.scale);
    state x;
    clear(x.out);
#pragma unroll
    for (int i = 0; i < TT_R; i++) x.top[i] = TT_MINUS_INF, x.sum[i] = 0;

    const int end = p.causal && first + TT_ROWS < p.keys ? first + TT_ROWS : p.keys;
    for (int k = 0; k < end; k += TT_COLS) {
        __syncthreads();
        load<TT_COLS, TT_E>(key, keys, p.key.row, k, p.keys, p.width, 1);
        load<TT_COLS, TT_V>(value, values, p.value.row, k, p.keys, p.out_width, 1);
        __syncthreads();
        number s[TT_R][TT_C];
        scores<TT_E>(t, query, key, s);
        hide<false>(p, t, n, head, first, k, s);
        exponentials(x, s);
#if TT_VARIANT & TT_ATTENTION_DROPS
        each<false>(t, first, k, [&](int i, int j, int row, int col) {
            s[i][j] *= factor_of(p, stream, (n * p.heads + head) * p.rows + row, col);
        });
#endif
        keep(t, weights, s);
        product<TT_V>(t, weights, value, x.out);
    }

    stored_type *const out = head_of(p.out, n, head);
    number *const lse = (number *)p.lse + (n * p.heads + head) * p.rows;
#pragma unroll
    for (int i = 0; i < TT_R; i++) {
        const int row = first + t.row + 4 * i;
        const number sum = sum_of_row(x.sum[i]);
        if (row >= p.rows) continue;
        write(t, out + row * p.out.row, x.out[i], p.out_width, sum == 0 ? (number)0 : 1 / sum);
        if (t.col == 0) lse[row] = sum == 0 ? (number)TT_INF_F32 : x.top[i] + logarithm(sum);
    }
}
