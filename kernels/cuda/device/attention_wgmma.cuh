/* Attention's derivatives of half types on Hopper's matrix unit: by the queries, or by keys, values, or both, as the
 * variant says. As in Note [Attention's tiles], a thread block has rows of one side and walks over tiles of the other
 * one's, so each sum is one thread's, in order. It has two groups of warps, each of 64 rows; what the unit multiplies
 * for one is hidden behind the other's exponentials, so they take turns to give it work: a batch is the sums with the
 * last tile's weights, and the next tile's scores.
 *
 * The kernel by the queries is the first; it leaves of each of them for the others the logarithm of its sum (of powers
 * of 2) and the sum of g times out. */
#pragma once
#include "cuda/device/stream.cuh"
#include "cuda/device/attention_args.h"
typedef TT_TYPE(TT_D0) stored_type;
typedef tt_pack<float, 2> of_query; /* lse, delta */
#include "cuda/device/wgmma.cuh"

#define TT_ARGS tt_attention_args
#define TT_OF_VALUES (TT_VARIANT & TT_ATTENTION_OF_VALUES ? 1 : 0)
#define TT_KEYS (TT_VARIANT & (TT_ATTENTION_OF_KEYS | TT_ATTENTION_OF_VALUES) ? 1 : 0) /* are the rows keys? */
#define TT_SLOPES                                                                                                      \
    (!TT_KEYS || TT_VARIANT & TT_ATTENTION_OF_KEYS) /* are scores' derivatives wanted, for queries or keys? */
#define TT_WIDTH TT_ATTENTION_WGMMA_WIDTH(TT_VARIANT)
#define TT_PARTS (TT_WIDTH / 64) /* of a row: tiles have 64 columns */
#define TT_COLS TT_ATTENTION_WGMMA_COLS(TT_VARIANT)
#define TT_ROWS TT_ATTENTION_WGMMA_ROWS
#define TT_STAGES                                                                                                      \
    TT_ATTENTION_WGMMA_STAGES /* tiles in shared memory; copied are those from the third one after this on */
#define TT_STAGE TT_ATTENTION_WGMMA_STAGE(TT_VARIANT)
#define TT_TILE (TT_COLS * TT_TILE_ROW)
#define TT_BOTH (TT_PARTS * TT_TILE) /* from keys to values, or queries to g */
#define TT_THREADS (2 * TT_GROUP_THREADS)

struct place {
    int lane, group, row; /* row: the thread's first of its group's 64; the other is 8 behind */
};

struct place_of_tile {
    int64_t head;
    int at; /* its first column */
};

static TT_DEVICE const stored_type *head_of(const tt_heads &h, int64_t n, int64_t head) {
    return (const stored_type *)h.data + n * h.batch + head * h.head;
}

/* A left operand, of which the thread's rows are `first` and `first` + 8. */
static TT_DEVICE void load_rows(fragment (&f)[TT_WIDTH / 16], const place &t, const tt_heads &h, const stored_type *x,
                                int first, int end, int width) {
#pragma unroll
    for (int k = 0; k < TT_WIDTH / 16; k++)
#pragma unroll
        for (int j = 0; j < 4; j++) {
            const int r = first + j % 2 * 8, c = k * 16 + j / 2 * 8 + t.lane % 4 * 2;
            f[k].at[j] = r < end && c < width ? *(const uint32_t *)(x + r * h.row + c) : 0;
        }
}

/* Rows of a head to tiles, one for each part: the thread's, every TT_STEP-th from its first on, from `from` on; zeros
 * beyond `left` of them and `width`. */
#define TT_STEP (TT_THREADS / 8) /* the swizzle's pattern is as long as 8 rows */
static TT_DEVICE void load_tile(address to, const stored_type *from, int64_t row, int left, int width) {
#pragma unroll
    for (int u = 0; u < TT_COLS / TT_STEP; u++) {
#pragma unroll
        for (int part = 0; part < TT_PARTS; part++)
            copy_pack(to + part * TT_TILE + u * TT_STEP * TT_TILE_ROW, from + 64 * part,
                      u * TT_STEP < left && 64 * part < width);
        from += TT_STEP * row;
    }
}

/* s = a x', where x has TT_COLS rows */
static TT_DEVICE void scores(float (&s)[TT_COLS / 64][32], const fragment (&a)[TT_WIDTH / 16], address x) {
#pragma unroll
    for (int h = 0; h < TT_COLS / 64; h++)
#pragma unroll
        for (int k = 0; k < TT_WIDTH / 16; k++)
            multiply<true>(s[h], a[k], x + k / 4 * TT_TILE + h * 64 * TT_TILE_ROW, k % 4, k > 0);
}
/* to += w x */
static TT_DEVICE void product(float (&to)[TT_PARTS][32], const fragment (&w)[TT_COLS / 16], address x) {
#pragma unroll
    for (int part = 0; part < TT_PARTS; part++)
#pragma unroll
        for (int k = 0; k < TT_COLS / 16; k++) multiply<false>(to[part], w[k], x + part * TT_TILE, k, true);
}
template <int n> static TT_DEVICE void hold(float (&x)[n][32]) {
#pragma unroll
    for (int h = 0; h < n; h++) hold(x[h]);
}
template <int n> static TT_DEVICE void clear(float (&x)[n][32]) {
#pragma unroll
    for (int h = 0; h < n; h++)
#pragma unroll
        for (int e = 0; e < 32; e++) x[h][e] = 0;
    hold(x);
}

#ifdef __CUDACC_RTC__
static TT_DEVICE float power_of_two(float x) { /* to 2 ulp */
    float y;
    asm("ex2.approx.ftz.f32 %0, %1;" : "=f"(y) : "f"(x));
    return y;
}
#else
static float power_of_two(float x) { return tt_exp2_f32(x); }
#endif

/* The thread's two rows of a result, times `by`. */
static TT_DEVICE void write(const place &t, const tt_heads &h, stored_type *x, int first, int end, int width,
                            const float (&sums)[TT_PARTS][32], float by) {
#pragma unroll
    for (int e = 0; e < 32 * TT_PARTS; e += 2) {
        const int r = first + e / 2 % 2 * 8, c = e / 4 * 8 + t.lane % 4 * 2;
        const float *const both = &sums[e / 32][e % 32];
        if (r < end && c < width) *(uint32_t *)(x + r * h.row + c) = two(both[0] * by, both[1] * by);
    }
}

extern "C" __global__ void __launch_bounds__(TT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(shared);
    const address tiles_at = (address_of(shared) + TT_TILE_ALIGN - 1) / TT_TILE_ALIGN * TT_TILE_ALIGN;
    const address barriers = tiles_at + TT_STAGES * TT_STAGE;
    const auto stage = [&](int i) { return tiles_at + i % TT_STAGES * TT_STAGE; };
    /* of a stage: it has its tile; the tile is no longer wanted */
    const auto filled = [&](int i) { return barriers + i % TT_STAGES * 8; };
    const auto emptied = [&](int i) { return barriers + (TT_STAGES + i % TT_STAGES) * 8; };
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const place t = {lane, warp / 4, warp % 4 * 16 + lane / 4};

    const int heads = TT_KEYS ? p.heads / p.group : p.heads, block = blockIdx.x % p.blocks;
    const int64_t n = blockIdx.x / p.blocks / heads, head = blockIdx.x / p.blocks % heads;
    /* with `causal` those that have most to do come first */
    const int first = (TT_KEYS ? block : p.blocks - 1 - block) * TT_ROWS, of_group = first + 64 * t.group;
    const int row = of_group + t.row, rows = TT_KEYS ? p.keys : p.rows, cols = TT_KEYS ? p.rows : p.keys;

    /* Tiles of columns: of the keys one head's; of the queries, of one head that has these keys after the other. */
    const int begins = TT_KEYS && p.causal ? first / TT_COLS * TT_COLS : 0;
    const int ends = !TT_KEYS && p.causal && first + TT_ROWS < cols ? first + TT_ROWS : cols;
    const int each = ends > begins ? (ends - begins + TT_COLS - 1) / TT_COLS : 0;
    const int tiles = TT_KEYS ? each * p.group : each;
    const place_of_tile start = {TT_KEYS ? head * p.group : head / p.group, begins};
    const auto advance = [&](place_of_tile &x) {
        x.at += TT_COLS;
        if (TT_KEYS && x.at >= ends) x.at = begins, x.head++;
    };
    place_of_tile fetched = start, weighed = start; /* the next one to be */
    /* Of a tile the thread copies pack c of rows r, r + TT_STEP, ... */
    const int r = threadIdx.x / 8, c = threadIdx.x % 8;
    const tt_heads &of_x = TT_KEYS ? p.query : p.key, &of_y = TT_KEYS ? p.g : p.value;
    const stored_type *x = head_of(of_x, n, start.head) + (begins + r) * of_x.row + c * 8;
    const stored_type *y = head_of(of_y, n, start.head) + (begins + r) * of_y.row + c * 8;
    const auto fetch = [&](int i) {
        const address to = stage(i) + r * TT_TILE_ROW + ((c ^ (r & 7)) << 4);
        load_tile(to, x, of_x.row, cols - fetched.at - r, p.width - c * 8);
        load_tile(to + TT_BOTH, y, of_y.row, cols - fetched.at - r, p.out_width - c * 8);
        if (TT_KEYS && threadIdx.x < TT_COLS) {
            const int at = fetched.at + threadIdx.x;
            const of_query *const of_queries = (const of_query *)p.delta + (n * p.heads + fetched.head) * cols;
            copy_pair(stage(i) + 2 * TT_BOTH + threadIdx.x * 8, of_queries + at, at < cols);
        }
        x += TT_COLS * of_x.row, y += TT_COLS * of_y.row;
        advance(fetched);
        if (TT_KEYS && fetched.at == begins) /* the next head */
            x += of_x.head - each * TT_COLS * of_x.row, y += of_y.head - each * TT_COLS * of_y.row;
    };

    if (threadIdx.x == 0)
        for (int i = 0; i < 2 * TT_STAGES; i++) init_barrier(filled(0) + 8 * i, TT_THREADS / 32);
#pragma unroll
    for (int i = 0; i < TT_STAGES; i++) {
        if (i < tiles) fetch(i);
        commit_copies();
    }
    /* keys and values, or queries and g */
    fragment a[TT_WIDTH / 16];
    const tt_heads &of_a = TT_KEYS ? p.key : p.query;
    load_rows(a, t, of_a, head_of(of_a, n, head), row, rows, p.width);
#if TT_SLOPES
    fragment b[TT_WIDTH / 16];
    const tt_heads &of_b = TT_KEYS ? p.value : p.g;
    load_rows(b, t, of_b, head_of(of_b, n, head), row, rows, p.out_width);
#endif
    const float scale = (float)(p.scale * TT_LOG2E_F32);
#if !TT_KEYS
    float lse[2], delta[2] = {0, 0};
    {
        fragment out[TT_WIDTH / 16];
        load_rows(out, t, p.out, head_of(p.out, n, head), row, rows, p.out_width);
#pragma unroll
        for (int k = 0; k < TT_WIDTH / 16; k++)
#pragma unroll
            for (int j = 0; j < 8; j++)
                delta[j / 2 % 2] =
                    fmaf(half_of(out[k].at[j / 2], j % 2), half_of(b[k].at[j / 2], j % 2), delta[j / 2 % 2]);
#pragma unroll
        for (int i = 0; i < 2; i++) {
            const int r = row + 8 * i;
            const int64_t at = (n * p.heads + head) * p.rows + r;
#pragma unroll
            for (int h = 2; h > 0; h /= 2) delta[i] += __shfl_xor_sync(0xffffffffu, delta[i], h);
            lse[i] = r < rows ? ((const float *)p.lse)[at] * TT_LOG2E_F32 : TT_INF_F32;
            if (r < rows && lane % 4 == 0) ((of_query *)p.delta)[at] = {lse[i], delta[i]};
        }
    }
#endif

    float s[TT_COLS / 64][32];
    clear(s);
#if TT_SLOPES
    float dp[TT_COLS / 64][32], sums[TT_PARTS][32];
    fragment w[TT_COLS / 16];
    clear(dp), clear(sums);
#endif
#if TT_OF_VALUES
    float sums_of_values[TT_PARTS][32];
    fragment w_of_values[TT_COLS / 16];
    clear(sums_of_values);
#endif

    const auto multiply_scores = [&](int i) {
        scores(s, a, stage(i));
        commit_products();
#if TT_SLOPES
        scores(dp, b, stage(i) + TT_BOTH);
        commit_products();
#endif
    };
    const auto multiply_weights = [&](int i) {
#if TT_OF_VALUES
        product(sums_of_values, w_of_values, stage(i) + TT_BOTH);
#endif
#if TT_SLOPES
        product(sums, w, stage(i));
#endif
        commit_products();
    };
    const auto tell_filled = [&](int i) { /* with the copies of this warp */
                                          __syncwarp();
                                          if (lane == 0) arrive(filled(i));
    };
    /* The scores of tile i become weights. Meanwhile the stage of the last tile but one is filled again. */
    const auto weigh = [&](int i) {
        await_products<1 + TT_SLOPES>();
        hold(s);
        if (i > 1) {
            if (i - 2 + TT_STAGES < tiles) {
                await(emptied(i - 2), (i - 2) / TT_STAGES & 1);
                fetch(i - 2 + TT_STAGES);
            }
            commit_copies();
        }
        const int at = weighed.at, col = at + t.lane % 4 * 2;
        advance(weighed);
        float e[TT_COLS / 2];
#if TT_KEYS
        float4 of_queries[TT_COLS / 8]; /* of two: lse, delta */
#pragma unroll
        for (int j = 0; j < TT_COLS / 8; j++)
            of_queries[j] = loaded_pack(stage(i) + 2 * TT_BOTH + (8 * j + t.lane % 4 * 2) * 8);
        const bool hides = p.causal && at < of_group + 63;
#else
        const bool hides = at + TT_COLS > p.keys || (p.causal && at + TT_COLS - 1 > of_group);
#endif
#pragma unroll
        for (int k = 0; k < TT_COLS / 2; k++) {
#if TT_KEYS
            const float of = k % 2 ? of_queries[k / 4].z : of_queries[k / 4].x;
#else
            const float of = lse[k / 2 % 2];
#endif
            e[k] = power_of_two(fmaf(s[k / 32][k % 32], scale, -of));
        }
        if (hides)
#pragma unroll
            for (int k = 0; k < TT_COLS / 2; k++) {
                const int r = row + k / 2 % 2 * 8, c = col + k / 4 * 8 + k % 2;
                if (TT_KEYS ? r > c : c >= p.keys || (p.causal && c > r)) e[k] = 0;
            }
        await_products<0>();
#if TT_SLOPES
        hold(sums), hold(w);
#endif
#if TT_OF_VALUES
        hold(sums_of_values), hold(w_of_values);
#endif
        if (i > 0) {
            __syncwarp();
            if (lane == 0) arrive(emptied(i - 1));
        }
#if TT_OF_VALUES
#pragma unroll
        for (int k = 0; k < TT_COLS / 2; k += 2) w_of_values[k / 8].at[k / 2 % 4] = two(e[k], e[k + 1]);
#endif
#if TT_SLOPES
        hold(dp);
#pragma unroll
        for (int k = 0; k < TT_COLS / 2; k += 2) {
#if TT_KEYS
            const float first_delta = of_queries[k / 4].y, second_delta = of_queries[k / 4].w;
#else
            const float first_delta = delta[k / 2 % 2], second_delta = first_delta;
#endif
            w[k / 8].at[k / 2 % 4] =
                two(e[k] * (dp[k / 32][k % 32] - first_delta), e[k + 1] * (dp[k / 32][k % 32 + 1] - second_delta));
        }
#endif
    };

    if (tiles > 0) {
        await_copies<TT_STAGES - 1>();
        __syncthreads(); /* barriers are there, too */
        tell_filled(0);
        await(filled(0), 0);
        begin_products();
        multiply_scores(0);
        commit_products(); /* no weights yet */
        if (tiles > 1) {
            await_copies<TT_STAGES - 2>();
            tell_filled(1);
        }
        weigh(0);
        for (int i = 1; i < tiles; i++) {
            await(filled(i), i / TT_STAGES & 1);
            begin_products();
            multiply_scores(i);
            multiply_weights(i - 1);
            if (i + 1 < tiles) {
                if (i == 1) await_copies<TT_STAGES - 3>();
                else await_copies<TT_STAGES - 4>();
                tell_filled(i + 1);
            }
            weigh(i);
        }
        begin_products();
        multiply_weights(tiles - 1);
        await_products<0>();
    }
#if TT_SLOPES
    hold(sums);
    const tt_heads &of_sums = TT_KEYS ? p.of_key : p.of_query;
    write(t, of_sums, (stored_type *)head_of(of_sums, n, head), row, rows, p.width, sums, (float)p.scale);
#endif
#if TT_OF_VALUES
    hold(sums_of_values);
    write(t, p.of_value, (stored_type *)head_of(p.of_value, n, head), row, rows, p.out_width, sums_of_values, 1);
#endif
}
