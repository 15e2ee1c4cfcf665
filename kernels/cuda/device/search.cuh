/* Places in sorted values (TT_OP 0), and whether values occur among sorted keys (1). TT_D0: i64 or f64. */
#pragma once
#define TT_DESCENDING 0
#include "cuda/device/keys.cuh"
#include "cuda/device/counting_args.h"
#define TT_ARGS tt_search_args
typedef TT_TYPE(TT_D0) value;

struct tt_sorted_keys {
    const sort_key *x;
    TT_DEVICE sort_key operator()(int64_t i) const { return x[i]; }
};

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (i >= p.numel) return;
#if TT_OP == 1
    const sort_key key = tt_key_of(((const stored *)p.values)[i]);
    const tt_sorted_keys keys{(const sort_key *)p.sorted};
    const int64_t at = tt_bound(keys, p.n, key);
    const bool found = at < p.n && keys(at) == key && !(TT_FLOATING && key == TT_KEY_ONES);
    ((uint8_t *)p.out)[i] = found != (p.narrow != 0);
#else
    const value x = ((const value *)p.values)[i];
    const int64_t row = p.per_row ? i / p.per_row * p.n : 0;
    const value *sorted = (const value *)p.sorted + row;
    const int64_t *order = p.order ? p.order + row : nullptr;
    int64_t low = 0, high = p.n;
    while (low < high) {
        const int64_t mid = low + (high - low) / 2;
        int64_t from = order ? order[mid] : mid;
        if (from < 0 || from >= p.n) {
            tt_report(p.fault, TT_FAULT_SORTER, from, p.n, 0);
            from = 0;
        }
        const value entry = sorted[from];
        if (p.right ? !(entry > x) : !(entry >= x)) low = mid + 1;
        else high = mid;
    }
    if (p.narrow) ((int32_t *)p.out)[i] = (int32_t)low;
    else ((int64_t *)p.out)[i] = low;
#endif
}
