/* Note [Attention's tiles]
 * A thread block has some rows of one operand in shared memory (queries, or keys in attention_key.cuh), the tile's
 * rows; it walks over the other operand's, the tile's columns. Of the scores of rows with columns a thread has TT_R by
 * TT_C in registers, of the result its rows' part. A warp has all columns of its rows, so that a row's largest score is
 * found by the lanes that share it, TT_GROUP of them. Which numbers are whose, and how they are multiplied, say
 * attention_fma.cuh (a thread multiplies small blocks in registers: float64) and attention_mma.cuh (tensor cores).
 * Hopper has kernels of its own for half types' derivatives: attention_wgmma.cuh.
 *
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

#define TT_SIZE ((int)sizeof(number))
#define TT_TENSOR (TT_VARIANT & TT_ATTENTION_TENSOR ? 1 : 0)
#if TT_IS(TT_D0, f32)
#define TT_SPLIT TT_TENSOR /* operands are sums: attention_mma.cuh */
#else
#define TT_SPLIT 0
#endif
#define TT_E (((TT_VARIANT >> TT_ATTENTION_WIDTH & 7) + 1) * 32)
#define TT_V (((TT_VARIANT >> TT_ATTENTION_OUT_WIDTH & 7) + 1) * 32)
#define TT_WARPS (1 << (TT_VARIANT >> TT_ATTENTION_WARPS & 3))
#define TT_MASKED (TT_VARIANT >> TT_ATTENTION_MASK & 3)
#define TT_GROUP TT_ATTENTION_GROUP(TT_TENSOR)
#define TT_STAGES TT_ATTENTION_STAGES(TT_TENSOR)
#define TT_THREADS (32 * TT_WARPS)
#define TT_STEP (32 / TT_GROUP) /* from a thread's row to its next */
#define TT_ROWS (TT_STEP * TT_R * TT_WARPS)
#define TT_COLS (TT_GROUP * TT_C)
#define TT_PACK TT_ATTENTION_PACK((int)sizeof(stored_type))
#define TT_STRIDE(width) ((width) + (TT_TENSOR ? TT_PACK : TT_ATTENTION_PAD))
typedef tt_pack<stored_type, TT_PACK> stored_pack;

#define TT_MINUS_INF (-(number)TT_INF_F32)

/* Scores are multiples of 1 / TT_UNITS, of which `exponential` is the power. */
#if TT_IS(TT_D1, f64)
#define TT_UNITS 1.0
static TT_DEVICE number fused(number a, number b, number c) { return fma(a, b, c); }
static TT_DEVICE number larger(number a, number b) { return b > a ? b : a; } /* a NaN is passed over */
static TT_DEVICE number exponential(number x) { return tt_exp_f64(x); }
static TT_DEVICE number logarithm(number x) { return tt_log_f64(x); }
#else
#define TT_UNITS TT_LOG2E_F32
static TT_DEVICE number fused(number a, number b, number c) { return fmaf(a, b, c); }
static TT_DEVICE number larger(number a, number b) { return fmaxf(a, b); }
static TT_DEVICE number logarithm(number x) { return tt_log_f32(x); }
#ifdef __CUDACC_RTC__
static TT_DEVICE number exponential(number x) { /* by the special function unit, to 2 ulp */
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#else
static TT_DEVICE number exponential(number x) { return tt_exp2_f32(x); }
#endif
#endif

/* Where a thread is in its block. */
struct place {
    int row; /* its first row of the tile; the others are TT_STEP apart */
    int lane; /* of those that share its rows */
};
static TT_DEVICE place place_of() {
    const int lane = threadIdx.x & 31;
    const place t = {(int)threadIdx.x / 32 * TT_STEP * TT_R + lane / TT_GROUP, lane % TT_GROUP};
    return t;
}

/* The thread's k-th column of those that its group shares in pieces of so many neighbours. */
template <int piece> static TT_DEVICE int column(const place &t, int k) {
    return (k / piece * TT_GROUP + t.lane) * piece + k % piece;
}

static TT_DEVICE stored_type *head_of(const tt_heads &h, int64_t n, int64_t head) {
    return (stored_type *)h.data + n * h.batch + head * h.head;
}

/* Zeros. */
template <int columns> static TT_DEVICE void clear(number (&x)[TT_R][columns]) {
#pragma unroll
    for (int i = 0; i < TT_R; i++)
#pragma unroll
        for (int c = 0; c < columns; c++) x[i][c] = 0;
}

#if TT_TENSOR
#include "cuda/device/attention_mma.cuh"
#else
#include "cuda/device/attention_fma.cuh"
#endif

/* work(i, stage) of tiles of columns, of which fetch(i, stage) loads the i-th to that place. */
template <typename F, typename W> static TT_DEVICE void walk(int tiles, F fetch, W work) {
#if TT_STAGES == 2
    if (tiles > 0) fetch(0, 0);
    for (int i = 0; i < tiles; i++) {
        await();
        __syncthreads();
        if (i + 1 < tiles) fetch(i + 1, (i + 1) & 1);
        work(i, i & 1);
    }
#else
    for (int i = 0; i < tiles; i++) {
        __syncthreads();
        fetch(i, 0);
        __syncthreads();
        work(i, 0);
    }
#endif
}

/* The thread's part of a row of a result, times `by`. */
template <int columns>
static TT_DEVICE void write(const place &t, stored_type *row, const number (&x)[columns], int width, number by) {
    typedef tt_pack<stored_type, TT_PIECE> piece;
#pragma unroll
    for (int k = 0; k < columns; k += TT_PIECE) {
        const int c = column<TT_PIECE>(t, k);
        piece y;
#pragma unroll
        for (int i = 0; i < TT_PIECE; i++) y.at[i] = (stored_type)TT_CONVERT(TT_D1, TT_D0, x[k + i] * by);
#if TT_VARIANT & TT_ATTENTION_PACKS
        if (c < width) *(piece *)(row + c) = y;
#else
#pragma unroll
        for (int i = 0; i < TT_PIECE; i++)
            if (c + i < width) row[c + i] = y.at[i];
#endif
    }
}

/* Over a row's lanes. */
static TT_DEVICE number sum_of_row(number x) {
#pragma unroll
    for (int h = TT_GROUP / 2; h > 0; h /= 2) x += __shfl_xor_sync(0xffffffffu, x, h);
    return x;
}

/* f(i, j, query, key) of each of the thread's scores. */
template <bool rows_are_keys, typename F> static TT_DEVICE void each(const place &t, int row, int col, F f) {
#pragma unroll
    for (int i = 0; i < TT_R; i++)
#pragma unroll
        for (int j = 0; j < TT_C; j++) {
            const int r = row + t.row + TT_STEP * i, c = col + column<TT_SCORES>(t, j);
            f(i, j, rows_are_keys ? c : r, rows_are_keys ? r : c);
        }
}

/* Products become scores: those that the mask and the order of time hide minus infinity, as those of keys beyond the
 * last. `row` and `col`: of the tile. */
template <bool rows_are_keys>
static TT_DEVICE void mask(const TT_ARGS &p, const place &t, int64_t n, int64_t head, int row, int col,
                           number (&s)[TT_R][TT_C]) {
    const number scale = (number)(p.scale * TT_UNITS);
    each<rows_are_keys>(t, row, col, [&](int i, int j, int, int) { s[i][j] *= scale; });
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
        s[i][j] = fused(((const number *)p.mask)[from], (number)TT_UNITS, s[i][j]);
#endif
    });
#endif
}

#if TT_VARIANT & TT_ATTENTION_DROPS
/* f(k, what the weight is multiplied by) of weights at + offset(k) of all of them; `stream`: where the run has put it.
 * As offset(k + per) = offset(k) + 16, a block of the stream has the numbers of several: Note [Random streams]. */
template <int n, int per, typename O, typename F>
static TT_DEVICE void draw(const TT_ARGS &p, const tt_stream &stream, int64_t at, O offset, F f) {
    const TT_JOIN2(tt_random_, TT_D1) r = {0, (number)p.kept, 0, 0, 0, 0, p.threshold};
#pragma unroll
    for (int first = 0; first < per && first < n; first++) {
        const int64_t element = at + offset(first), group = element / TT_PHILOX_GROUP;
        const int lane = (int)(element % TT_PHILOX_LANES);
        int word = (int)(element % TT_PHILOX_GROUP) / TT_PHILOX_LANES;
        tt_word w[4];
        tt_words_of_lane(stream, group, lane, w);
#pragma unroll
        for (int k = first; k < n; k += per) {
            f(k, TT_JOIN2(tt_random_mask_, TT_D1)(word == 0 ? w[0] : word == 1 ? w[1] : word == 2 ? w[2] : w[3], &r));
            if (++word == 4 && k + per < n) {
                word = 0;
                tt_words_of_lane(stream, group + 1, lane, w);
            }
        }
    }
}

/* f(i, j, factor) of the thread's scores; weights of row i of the tile begin with at(i). */
template <typename A, typename F>
static TT_DEVICE void draw_rows(const TT_ARGS &p, const tt_stream &stream, const place &t, A at, F f) {
#pragma unroll
    for (int i = 0; i < TT_R; i++)
        draw<TT_C, 16 / TT_GROUP>(
            p, stream, at(t.row + TT_STEP * i), [&](int j) { return column<TT_SCORES>(t, j); },
            [&](int j, number factor) { f(i, j, factor); });
}
#endif
