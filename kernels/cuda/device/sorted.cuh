/* Around a radix sort of long rows: their keys, and what is wanted of the sorted ones.
 *
 * TT_OP: of sort_args.h. The variant: bit 0 descending, 1 makes keys (a thread each), else takes results: for the mode
 * a block a row, for other single elements a thread a row, for several a thread each. */
#pragma once
#define TT_DESCENDING (TT_VARIANT & 1)
#include "cuda/device/keys.cuh"
#define TT_ARGS tt_sort_args

struct tt_global_keys {
    const sort_key *x;
    TT_DEVICE sort_key operator()(int64_t i) const { return x[i]; }
};

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t number = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    int64_t in, out;
#if TT_VARIANT & 2
    if (number >= p.rows * p.n) return;
    const int64_t row = number / p.n;
    tt_row(p, p.first + row, &in, &out);
    ((sort_key *)p.keys)[number] = tt_key_of(*(const stored *)(p.in + in + (number - row * p.n) * p.step));
#elif TT_OP == 3
    __shared__ uint64_t best;
    const int64_t row = blockIdx.x;
    const tt_global_keys keys{(const sort_key *)p.keys + row * p.n};
    if (threadIdx.x == 0) best = 0;
    __syncthreads();
    uint64_t own = 0;
    for (int64_t i = threadIdx.x; i < p.n; i += TT_CUDA_THREADS) {
        const uint64_t run = tt_run(keys, p.n, i);
        if (run > own) own = run;
    }
    atomicMax(&best, own);
    __syncthreads();
    if (threadIdx.x) return;
    tt_row(p, p.first + row, &in, &out);
    tt_write_out(p, in, out, 0, p.order[row * p.n + tt_run_end(best)] - row * p.n);
#else
    if (number >= p.rows * p.out_n) return;
    const int64_t row = number / p.out_n, i = number - row * p.out_n;
    const tt_global_keys keys{(const sort_key *)p.keys + row * p.n};
    int64_t rank = i;
    if (TT_OP < TT_SORT) rank = tt_rank(p, TT_FLOATING && TT_OP != TT_KTH ? p.n - tt_bound(keys, p.n, TT_KEY_ONES) : 0);
    tt_row(p, p.first + row, &in, &out);
    tt_write_out(p, in, out, i, p.order[row * p.n + rank] - row * p.n);
#endif
}
