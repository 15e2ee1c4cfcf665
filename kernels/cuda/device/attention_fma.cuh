/* Products by fused multiplications and additions: of the tile's rows a warp's lanes have l / 8, l / 8 + 4, ..., of its
 * columns l % 8, l % 8 + 8, ..., and of the result's rows packs l % 8, l % 8 + 8, ... of four numbers. What a warp
 * reads at once from shared memory then lies in different banks. Weights pass through shared memory to be multiplied
 * again: those of a warp's rows are its own. Included by attention_tile.cuh. */
#pragma once
#define TT_SCORES 1 /* neighbours of a thread's columns of scores, and of a result */
#define TT_PIECE 4
#define TT_WEIGHTS_STRIDE (TT_COLS + TT_ATTENTION_PAD_WEIGHTS)
typedef number shared_type;
typedef tt_pack<number, 4> pack;

static TT_DEVICE void await() {}

/* Rows from `first` on to shared memory; zeros beyond `end` and `width`. */
template <int rows, int padded>
static TT_DEVICE void load(number *to, const stored_type *from, int64_t step, int first, int end, int width) {
    typedef tt_pack<stored_type, 4> raw_pack;
    const int packs = padded / 4, all = rows * packs / TT_THREADS;
    const int at_once = all <= 8 ? all : all % 8 == 0 ? 8 : all % 4 == 0 ? 4 : 1;
#pragma unroll
    for (int u = 0; u < all; u += at_once) {
        raw_pack raw[at_once];
#pragma unroll
        for (int k = 0; k < at_once; k++) {
            const int at = (u + k) * TT_THREADS + threadIdx.x, r = at / packs, c = at % packs * 4;
            const stored_type *const x = from + (first + r) * step + c;
#if TT_VARIANT & TT_ATTENTION_PACKS
            if (first + r < end && c < width) raw[k] = *(const raw_pack *)x;
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
            for (int i = 0; i < 4; i++) y.at[i] = TT_CONVERT(TT_D0, TT_D1, raw[k].at[i]);
            *(pack *)(to + at / packs * TT_STRIDE(padded) + at % packs * 4) = y;
        }
    }
}

static TT_DEVICE number loaded(const number *x) { return *x; }

/* s = the products of the thread's rows of a and its rows of b */
template <int padded>
static TT_DEVICE void scores(const place &t, const number *a, const number *b, number (&s)[TT_R][TT_C]) {
    a += t.row * TT_STRIDE(padded);
    b += t.lane * TT_STRIDE(padded);
    clear(s);
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

/* to += s x, by way of `weights` in shared memory; x has TT_COLS rows */
template <int padded>
static TT_DEVICE void product(const place &t, number *weights, const number (&s)[TT_R][TT_C], const number *x,
                              number (&to)[TT_R][padded / TT_GROUP]) {
    __syncwarp(); /* what was there has been read */
#pragma unroll
    for (int i = 0; i < TT_R; i++)
#pragma unroll
        for (int j = 0; j < TT_C; j++) weights[(t.row + 4 * i) * TT_WEIGHTS_STRIDE + column<TT_SCORES>(t, j)] = s[i][j];
    __syncwarp();
    weights += t.row * TT_WEIGHTS_STRIDE;
    x += t.lane * 4;
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
