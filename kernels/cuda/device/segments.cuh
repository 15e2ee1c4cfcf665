/* Updates of a table's elements by dense rows, each element's in the order of the index: positions come sorted by the
 * element they mean, equal ones in their order, and whoever has the first of a run goes through it. See index.c.
 *
 * TT_OP: of the scalar functions below. TT_D0: the table's dtype; TT_D1: the rows'. The variant: bits 0-2 the logarithm
 * of a thread's elements, 3 of 64-bit arithmetic, 4 keys of 64 bits, 5 rows of one element that have been sorted
 * themselves,
 * 6 the keys' last digit may have been left unsorted (buckets.cuh). */
#pragma once
#define TT_WIDE (TT_VARIANT & 8)
#include "cuda/device/positions.cuh"
#include "scalar/arith.h"
#define TT_ARGS tt_segment_args

/* Half types are computed in float32 and rounded at the end. */
#if TT_IS(TT_D0, f16) || TT_IS(TT_D0, bf16)
#define TT_K f32
#else
#define TT_K TT_D0
#endif
#if TT_OP == 1
#define TT_UPDATE TT_JOIN4(tt_add, _, TT_K, )
#elif TT_OP == 2
#define TT_UPDATE TT_JOIN4(tt_mul, _, TT_K, )
#elif TT_OP == 3
#define TT_UPDATE TT_JOIN4(tt_maximum, _, TT_K, )
#else
#define TT_UPDATE TT_JOIN4(tt_minimum, _, TT_K, )
#endif
#define TT_V (1 << (TT_VARIANT & 7))
#define TT_AHEAD 4 /* rows loaded before the first is used */

typedef TT_TYPE(TT_D0) stored;
typedef TT_TYPE(TT_D1) given;
typedef TT_TYPE(TT_K) value;
#if TT_VARIANT & 16
typedef uint64_t sort_key;
#else
typedef uint32_t sort_key;
#endif

static TT_DEVICE int64_t row_of(const TT_ARGS &p, int64_t j) { return TT_VARIANT & 32 ? j : p.order[j]; }

/* If a run begins at this position, the updates of its element. */
static TT_DEVICE void go_through(const TT_ARGS &p, int64_t first) {
    const sort_key *keys = (const sort_key *)p.keys;
    if (first >= p.m) return;
    const sort_key key = keys[first];
    if (first && keys[first - 1] == key) return;
    const tt_around &a = p.around;
    const int lanes = 1 << p.lanes_log;
    const int64_t across = a.npost / TT_V;
    for (int64_t work = (int64_t)blockIdx.y * lanes + (threadIdx.x & (lanes - 1)); work < a.npre * across;
         work += (int64_t)gridDim.y * lanes) {
        const int64_t before = a.npre > 1 ? work / across : 0, q = (work - before * across) * TT_V;
        char *element = p.table + (int64_t)key * p.grain + tt_before(a, (tt_place)before) + tt_after(a, (tt_place)q);
        const char *rows = p.rows + (before * p.m * a.npost + q) * p.row_step;
        const int64_t pitch = a.npost * p.row_step;
        tt_pack<stored, TT_V> old = *(tt_pack<stored, TT_V> *)element;
        value sum[TT_V];
#pragma unroll
        for (int v = 0; v < TT_V; v++) sum[v] = TT_CONVERT(TT_D0, TT_K, old.at[v]);
        int64_t j = first;
        for (; j + TT_AHEAD <= p.m && keys[j + TT_AHEAD - 1] == key; j += TT_AHEAD) {
            tt_pack<given, TT_V> next[TT_AHEAD];
#pragma unroll
            for (int u = 0; u < TT_AHEAD; u++)
                next[u] = *(const tt_pack<given, TT_V> *)(rows + row_of(p, j + u) * pitch);
#pragma unroll
            for (int u = 0; u < TT_AHEAD; u++)
#pragma unroll
                for (int v = 0; v < TT_V; v++)
                    sum[v] = TT_UPDATE(sum[v], (value)TT_CONVERT(TT_D1, TT_K, next[u].at[v]));
        }
        for (; j < p.m && keys[j] == key; j++) {
            const tt_pack<given, TT_V> next = *(const tt_pack<given, TT_V> *)(rows + row_of(p, j) * pitch);
#pragma unroll
            for (int v = 0; v < TT_V; v++) sum[v] = TT_UPDATE(sum[v], (value)TT_CONVERT(TT_D1, TT_K, next.at[v]));
        }
#pragma unroll
        for (int v = 0; v < TT_V; v++) old.at[v] = (stored)TT_CONVERT(TT_K, TT_D0, sum[v]);
        *(tt_pack<stored, TT_V> *)element = old;
    }
}

#if TT_VARIANT & TT_SEGMENTS_LEFT
#include "cuda/device/buckets.cuh"
#endif

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t thread = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
#if TT_VARIANT & TT_SEGMENTS_LEFT
    const int64_t own = thread / 32 * TT_OWN;
    if (*p.left) fill_buckets(p, own);
    else
        for (int k = threadIdx.x & 31; k < TT_OWN; k += 32) go_through(p, own + k);
#else
    go_through(p, thread >> p.lanes_log);
#endif
}
