/* Rows of up to 4096 elements, each sorted by a block in shared memory, and what is wanted of it written.
 *
 * TT_OP: of sort_args.h. The variant: bit 0 descending. */
#pragma once
#define TT_DESCENDING (TT_VARIANT & 1)
#include "cuda/device/keys.cuh"
#define TT_ARGS tt_sort_args

struct tt_shared_keys {
    const tt_bitonic &x;
    TT_DEVICE sort_key operator()(int64_t i) const { return x.key((int)i); }
};

extern "C" __global__ void __launch_bounds__(1024) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(room);
    __shared__ uint64_t best;
    tt_bitonic x = tt_bitonic_in(room, p.padded);
    int64_t in, out;
    tt_row(p, blockIdx.x, &in, &out);
    for (int i = threadIdx.x; i < p.padded; i += blockDim.x) {
        if (i < p.n) x.set(i, tt_key_of(*(const stored *)(p.in + in + i * p.step)), (uint32_t)i);
        else x.pad(i);
    }
    if (threadIdx.x == 0) best = 0;
    tt_bitonic_sort(x, p.padded);
    const tt_shared_keys keys{x};
    if (TT_OP == TT_SORT || TT_OP == TT_TOPK) {
        for (int64_t i = threadIdx.x; i < p.out_n; i += blockDim.x) tt_deliver(p, in, out, i, x.index((int)i));
        return;
    }
    if (TT_OP == TT_MODE) {
        for (int64_t i = threadIdx.x; i < p.n; i += blockDim.x) {
            const uint64_t run = tt_run(keys, p.n, i);
            if (run) atomicMax(&best, run);
        }
        __syncthreads();
        if (threadIdx.x == 0) tt_deliver(p, in, out, 0, x.index((int)tt_run_end(best)));
        return;
    }
    if (threadIdx.x) return;
    const int64_t nans = TT_FLOATING && TT_OP != TT_KTH ? p.n - tt_bound(keys, p.n, TT_KEY_ONES) : 0;
    tt_deliver(p, in, out, 0, x.index((int)tt_rank(p, nans)));
}
