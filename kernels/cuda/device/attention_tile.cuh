/* Note [Attention's tiles]
 * A thread block has some rows of one operand in shared memory (queries, or keys in attention_key.cuh), the tile's rows; it
 * walks over the other operand's, the tile's columns. Of the scores of rows with columns a thread has TT_R by TT_C in
 * registers, of the result its rows' part. A warp has all columns of its rows: so weights, which pass through shared
 * memory to be multiplied again, are the warp's own, and the largest score of a row is found by its lanes.
 *
 * Lane l has rows l / 8, l / 8 + 4, ... of its warp's, columns l % 8, l % 8 + 8, ... of the tile, and of the result's rows
 * packs l % 8, l % 8 + 8, ... of four numbers: what a warp reads at once from shared memory then lies in different banks.
 * Sums go over the columns in order: bits depend on the shapes alone (Dao, Fu, Ermon, Rudra and Re 2022,
 * arXiv:2205.14135; derivatives as there, but queries' and keys' are found by kernels of their own, so that nothing is
 * added by several).
 *
 * TT_D0: as stored, TT_D1: as computed. Who includes this defines TT_R and TT_C before. */
#pragma once
#include "cuda/device/stream.cuh"
#include "cuda/device/attention_args.h"

#define TT_ARGS tt_attention_args
typedef TT_TYPE(TT_D0) stored_type;
typedef TT_TYPE(TT_D1) number;
typedef tt_pack<number, 4> pack;
typedef tt_pack<stored_type, 4> stored_pack;

#define TT_SIZE ((int)sizeof(number))
#define TT_E (((TT_VARIANT >> TT_ATTENTION_WIDTH & 7) + 1) * 32)
#define TT_V (((TT_VARIANT >> TT_ATTENTION_OUT_WIDTH & 7) + 1) * 32)
#define TT_WARPS (1 << (TT_VARIANT >> TT_ATTENTION_WARPS & 3))
#define TT_MASKED (TT_VARIANT >> TT_ATTENTION_MASK & 3)
#define TT_THREADS (32 * TT_WARPS)
#define TT_ROWS (4 * TT_R * TT_WARPS)
#define TT_COLS (8 * TT_C)
#define TT_STRIDE(width) ((width) + TT_ATTENTION_PAD)
#define TT_WEIGHTS_STRIDE (TT_COLS + TT_ATTENTION_PAD_WEIGHTS)

#define TT_MINUS_INF (-(number)TT_INF_F32)

#if TT_IS(TT_D1, f64)
static TT_DEVICE number fused(number a, number b, number c) { return fma(a, b, c); }
static TT_DEVICE number exponential(number x) { return tt_exp_f64(x); }
static TT_DEVICE number logarithm(number x) { return tt_log_f64(x); }
#else
static TT_DEVICE number fused(number a, number b, number c) { return fmaf(a, b, c); }
static TT_DEVICE number logarithm(number x) { return tt_log_f32(x); }
#ifdef __CUDACC_RTC__
static TT_DEVICE number exponential(number x) { /* by the special function unit, to 2 + 1.2 |x| ulp */
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x * TT_LOG2E_F32));
    return y;
}
#else
static TT_DEVICE number exponential(number x) { return tt_exp_f32(x); }
#endif
#endif

/* Where a thread is in its block. */
struct place {
    int row, col; /* its first row of the tile, the others being 4 apart, and its first column, 8 apart */
};
static TT_DEVICE place place_of() {
    const int lane = threadIdx.x & 31;
    const place t = {(int)threadIdx.x / 32 * 4 * TT_R + lane / 8, lane & 7};
    return t;
}

static TT_DEVICE stored_type *head_of(const tt_heads &h, int64_t n, int64_t head) {
    return (stored_type *)h.data + n * h.batch + head * h.head;
}

/* Rows from `first` on to shared memory, times `by`; zeros beyond `end` and `width`. */
template <int rows, int padded>
static TT_DEVICE void load(number *to, const stored_type *from, int64_t step, int first, int end, int width,
                           number by) {
    const int packs = padded / 4, all = rows * packs / TT_THREADS,
              at_once = all <= 8       ? all
                        : all % 8 == 0 ? 8
                        : all % 4 == 0 ? 4
                                       : 1;
#pragma unroll
    for (int u = 0; u < all; u += at_once) {
        stored_pack raw[at_once];
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            const int at = (u + k) * TT_THREADS + threadIdx.x, r = at / packs, c = at % packs * 4;
            const stored_type *const x = from + (first + r) * step + c;
#if TT_VARIANT & TT_ATTENTION_PACKS
            if (first + r < end && c < width) raw[k] = *(const stored_pack *)x;
            else
#pragma unroll
                for (int i = 0; i < 4; i++) raw[k].at[i] = (stored_type)0;
#else
#pragma unroll
            for (int i = 0; i < 4; i++) raw[k].at[i] = first + r < end && c + i < width ? x[i] : (stored_type)0;
#endif
        }
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            const int at = (u + k) * TT_THREADS + threadIdx.x;
            pack y;
#pragma unroll
            for (int i = 0; i < 4; i++) y.at[i] = TT_CONVERT(TT_D0, TT_D1, raw[k].at[i]) * by;
            *(pack *)(to + at / packs * TT_STRIDE(padded) + at % packs * 4) = y;
        }
    }
}

/* s = the products of the thread's rows of a and its rows of b */
template <int padded>
static TT_DEVICE void scores(const place &t, const number *a, const number *b, number (&s)[TT_R][TT_C]) {
    a += t.row * TT_STRIDE(padded);
    b += t.col * TT_STRIDE(padded);
#pragma unroll
    for (int i = 0; i < TT_R; i++)
#pragma unroll
        for (int j = 0; j < TT_C; j++) s[i][j] = 0;
#pragma unroll 2
    for (int d = 0; d < padded; d += 4) {
        pack x[TT_R], y[TT_C];
#pragma unroll
        for (int i = 0; i < TT_R; i++) x[i] = *(const pack *)(a + 4 * i * TT_STRIDE(padded) + d);
#pragma unroll
        for (int j = 0; j < TT_C; j++) y[j] = *(const pack *)(b + 8 * j * TT_STRIDE(padded) + d);
#pragma unroll
        for (int v = 0; v < 4; v++)
#pragma unroll
            for (int i = 0; i < TT_R; i++)
#pragma unroll
                for (int j = 0; j < TT_C; j++) s[i][j] = fused(x[i].at[v], y[j].at[v], s[i][j]);
    }
}

/* The warp's rows of weights to shared memory, after what it read there before. */
static TT_DEVICE void keep(const place &t, number *weights, const number (&s)[TT_R][TT_C]) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < TT_R; i++)
#pragma unroll
        for (int j = 0; j < TT_C; j++) weights[(t.row + 4 * i) * TT_WEIGHTS_STRIDE + t.col + 8 * j] = s[i][j];
    __syncwarp();
}

/* to += the thread's rows of the weights times x (TT_COLS rows) */
template <int padded>
static TT_DEVICE void product(const place &t, const number *weights, const number *x, number (&to)[TT_R][padded / 8]) {
    weights += t.row * TT_WEIGHTS_STRIDE;
    x += t.col * 4;
#pragma unroll 2
    for (int k = 0; k < TT_COLS; k += 4) {
        pack w[TT_R];
#pragma unroll
        for (int i = 0; i < TT_R; i++) w[i] = *(const pack *)(weights + 4 * i * TT_WEIGHTS_STRIDE + k);
#pragma unroll
        for (int v = 0; v < 4; v++)
#pragma unroll
            for (int j = 0; j < padded / 32; j++) {
                const pack y = *(const pack *)(x + (k + v) * TT_STRIDE(padded) + 32 * j);
#pragma unroll
                for (int i = 0; i < TT_R; i++)
#pragma unroll
                    for (int c = 0; c < 4; c++) to[i][4 * j + c] = fused(w[i].at[v], y.at[c], to[i][4 * j + c]);
            }
    }
}

template <int columns> static TT_DEVICE void clear(number (&x)[TT_R][columns]) {
#pragma unroll
    for (int i = 0; i < TT_R; i++)
#pragma unroll
        for (int c = 0; c < columns; c++) x[i][c] = 0;
}

/* The thread's i-th row of a result, times `by`. */
template <int columns>
static TT_DEVICE void write(const place &t, stored_type *row, const number (&x)[columns], int width, number by) {
#pragma unroll
    for (int j = 0; j < columns / 4; j++) {
        const int c = 32 * j + 4 * t.col;
        stored_pack y;
#pragma unroll
        for (int i = 0; i < 4; i++) y.at[i] = (stored_type)TT_CONVERT(TT_D1, TT_D0, x[4 * j + i] * by);
#if TT_VARIANT & TT_ATTENTION_PACKS
        if (c < width) *(stored_pack *)(row + c) = y;
#else
#pragma unroll
        for (int i = 0; i < 4; i++)
            if (c + i < width) row[c + i] = y.at[i];
#endif
    }
}

/* Over a row's lanes. */
static TT_DEVICE number sum_of_row(number x) {
#pragma unroll
    for (int h = 4; h > 0; h /= 2) x += __shfl_xor_sync(0xffffffffu, x, h);
    return x;
}

/* f(i, j, query, key) of each of the thread's scores. */
template <bool rows_are_keys, typename F> static TT_DEVICE void each(const place &t, int row, int col, F f) {
#pragma unroll
    for (int i = 0; i < TT_R; i++)
#pragma unroll
        for (int j = 0; j < TT_C; j++) {
            const int r = row + t.row + 4 * i, c = col + t.col + 8 * j;
            f(i, j, rows_are_keys ? c : r, rows_are_keys ? r : c);
        }
}

/* Scores that the mask and the order of time hide become minus infinity, as those of keys beyond the last; `row` and
 * `col`: of the tile. */
template <bool rows_are_keys>
static TT_DEVICE void hide(const TT_ARGS &p, const place &t, int64_t n, int64_t head, int row, int col,
                           number (&s)[TT_R][TT_C]) {
    const int first_query = rows_are_keys ? col : row, last_key = rows_are_keys ? row + TT_ROWS - 1 : col + TT_COLS - 1;
    const bool diagonal = p.causal && last_key > first_query;
    if (diagonal || last_key >= p.keys)
        each<rows_are_keys>(t, row, col, [&](int i, int j, int query, int key) {
            if (key >= p.keys || (diagonal && key > query)) s[i][j] = TT_MINUS_INF;
        });
#if TT_MASKED
    const int64_t at = n * p.mask_step[0] + head * p.mask_step[1];
    each<rows_are_keys>(t, row, col, [&](int i, int j, int query, int key) {
        if (query >= p.rows || key >= p.keys) return;
        const int64_t from = at + query * p.mask_step[2] + key * p.mask_step[3];
#if TT_MASKED == TT_ATTENTION_BOOL
        if (!((const uint8_t *)p.mask)[from]) s[i][j] = TT_MINUS_INF;
#else
        s[i][j] += ((const number *)p.mask)[from];
#endif
    });
#endif
}

#if TT_VARIANT & TT_ATTENTION_DROPS
/* What the weight of a query and a key is multiplied by; `stream`: where the run has put it. */
static TT_DEVICE number factor_of(const TT_ARGS &p, const tt_stream &stream, int64_t row, int key) {
    const int64_t at = row * p.keys + key, group = at / TT_PHILOX_GROUP;
    const int place = (int)(at % TT_PHILOX_GROUP), word = place / TT_PHILOX_LANES;
    const TT_JOIN2(tt_random_, TT_D1) r = {0, (number)p.kept, 0, 0, 0, 0, p.threshold};
    tt_word w[4];
    tt_words_of_lane(stream, group, place % TT_PHILOX_LANES, w);
    return TT_JOIN2(tt_random_mask_, TT_D1)(word == 0 ? w[0] : word == 1 ? w[1] : word == 2 ? w[2] : w[3], &r);
}
#endif
