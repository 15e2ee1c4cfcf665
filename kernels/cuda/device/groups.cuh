/* Groups of equal elements, or rows of elements, that have been sorted: unique.
 *
 * TT_OP: of the numbers below. TT_D0: i32 or i64, for keys of 4 or 8 bytes. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/counting_args.h"
#define TT_ARGS tt_group_args

enum { TT_COLUMN, TT_HEADS, TT_ROW_HEADS, TT_NUMBER, TT_COUNTS };
#if TT_IS(TT_D0, i64)
typedef uint64_t sort_key;
#else
typedef uint32_t sort_key;
#endif

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    const sort_key *keys = (const sort_key *)p.keys;
    if (i >= (TT_OP == TT_COUNTS ? p.groups : p.n)) return;
    const int64_t at = TT_OP != TT_COUNTS && p.order ? (int64_t)p.order[i] : i;
    if (TT_OP == TT_COLUMN) ((sort_key *)p.keys_out)[i] = keys[at * p.width + p.column];
    if (TT_OP == TT_HEADS) p.heads[i] = i == 0 || keys[i] != keys[i - 1] || (p.has_nan && keys[i] == p.nan);
    if (TT_OP == TT_ROW_HEADS) {
        bool differs = i == 0;
        const sort_key *own = keys + at * p.width;
        const sort_key *other = i ? keys + (p.order ? (int64_t)p.order[i - 1] : i - 1) * p.width : own;
        for (int64_t c = 0; !differs && c < p.width; c++)
            differs = own[c] != other[c] || (p.has_nan && own[c] == p.nan);
        p.heads[i] = differs;
    }
    if (TT_OP == TT_NUMBER) {
        const int64_t group = p.before[i] + p.heads[i] - 1;
        p.inverse[at] = group;
        if (p.heads[i]) {
            p.first[group] = at;
            p.begin[group] = i;
        }
    }
    if (TT_OP == TT_COUNTS) p.counts[i] = (i + 1 < p.groups ? p.begin[i + 1] : p.n) - p.begin[i];
}
