/* The least elements of long rows, or one of a rank, without sorting them: a block finds the digits of the last key wanted
 * from the highest on, by counting; then those below it are gathered, and of those equal to it the first.
 *
 * TT_OP: of sort_args.h. The variant: bit 0 descending. */
#pragma once
#define TT_DESCENDING (TT_VARIANT & 1)
#include "cuda/device/keys.cuh"
#include "cuda/device/block_sums.cuh"
#define TT_ARGS tt_sort_args
#define TT_WARPS 32

extern "C" __global__ void __launch_bounds__(1024) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(room);
    __shared__ uint32_t counts[256], gathered;
    __shared__ uint32_t found_digit, found_before;
    tt_bitonic x = tt_bitonic_in(room, p.padded);
    int64_t in, out;
    tt_row(p, blockIdx.x, &in, &out);
    const char *row = p.in + in;
    const uint32_t n = (uint32_t)p.n;
    uint32_t want = (uint32_t)p.k; /* so many, the last of them is looked for */
    if (TT_OP != TT_TOPK) {
        int64_t nans = 0;
        if (TT_FLOATING && TT_OP != TT_KTH) {
            uint32_t own = 0;
            for (uint32_t i = threadIdx.x; i < n; i += 1024)
                own += tt_key_of(*(const stored *)(row + i * p.step)) == TT_KEY_ONES;
            uint32_t all;
            tt_block_scan<uint32_t, TT_WARPS>(own, &all);
            nans = all;
        }
        want = (uint32_t)tt_rank(p, nans) + 1;
    }
    sort_key last = 0, known = 0;
    for (int shift = TT_KEY_BITS - 8; shift >= 0; shift -= 8) {
        if (threadIdx.x < 256) counts[threadIdx.x] = 0;
        __syncthreads();
        for (uint32_t i = threadIdx.x; i < n; i += 1024) {
            const sort_key key = tt_key_of(*(const stored *)(row + i * p.step));
            if ((key & known) == last) atomicAdd(&counts[(uint32_t)(key >> shift) & 255], 1u);
        }
        __syncthreads();
        uint32_t all;
        const uint32_t own = threadIdx.x < 256 ? counts[threadIdx.x] : 0,
                       before = tt_block_scan<uint32_t, TT_WARPS>(own, &all);
        if (before < want && want <= before + own) {
            found_digit = threadIdx.x;
            found_before = before;
        }
        __syncthreads();
        last |= (sort_key)found_digit << shift;
        known |= (sort_key)255 << shift;
        want -= found_before;
        __syncthreads();
    }
    if (threadIdx.x == 0) gathered = 0;
    __syncthreads();
    uint32_t seen = 0; /* of those equal to the last */
    for (uint32_t begin = 0; begin < n; begin += 1024) {
        const uint32_t i = begin + threadIdx.x;
        const sort_key key = i < n ? tt_key_of(*(const stored *)(row + i * p.step)) : TT_KEY_ONES;
        const bool equal = i < n && key == last;
        if (TT_OP == TT_TOPK && i < n && key < last) x.set((int)atomicAdd(&gathered, 1u), key, i);
        if (seen < want) { /* the same for all threads */
            uint32_t all;
            const uint32_t before = seen + tt_block_scan<uint32_t, TT_WARPS>(equal, &all);
            if (equal && TT_OP == TT_TOPK && before < want) x.set((int)atomicAdd(&gathered, 1u), key, i);
            if (equal && TT_OP != TT_TOPK && before + 1 == want) tt_deliver(p, in, out, 0, i);
            seen += all;
        }
        if (TT_OP != TT_TOPK && seen >= want) return;
    }
    if (TT_OP != TT_TOPK) return;
    for (int i = (int)p.k + threadIdx.x; i < p.padded; i += 1024) x.pad(i);
    tt_bitonic_sort(x, p.padded);
    for (int64_t i = threadIdx.x; i < p.out_n; i += 1024) tt_deliver(p, in, out, i, x.index((int)i));
}
