/* A random permutation: the one that Fisher and Yates' exchanges make one after the other (tt_randperm in
 * ops/random.c), without making them.
 *
 * Exchange i puts into place i, for good, what place chosen[i] >= i has, and what i had there. So what a place has
 * before exchange i came from the last exchange k < i that chose it, and is what place k had then; before the first
 * such it is the place's own number. Exchanges that chose one place are a list: TT_OP 0 makes the lists, in any order,
 * TT_OP 1 looks for the last exchange in them. A list has one entry on average, a way back log n steps. */
#pragma once
#include "cuda/device/stream.cuh"

#define TT_ARGS tt_permutation_args

/* The last exchange before `i` that chose the place, or -1. */
static TT_DEVICE int64_t last_before(const TT_ARGS &p, int64_t place, int64_t i) {
    int64_t last = -1;
    for (int64_t k = p.heads[place]; k >= 0; k = p.next[k])
        if (k < i && k > last) last = k;
    return last;
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t i = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (i >= p.n) return;
#if TT_OP == 0
    const int64_t chosen = i + (int64_t)tt_random_below(tt_long_word(TT_PLACED(p.from), i), (uint64_t)(p.n - i));
    p.out[i] = chosen;
    p.next[i] = (int64_t)atomicExch((unsigned long long *)&p.heads[chosen], (unsigned long long)i);
#else
    int64_t place = p.out[i], before = i;
    for (int64_t k; (k = last_before(p, place, before)) >= 0;) place = before = k;
    p.out[i] = place;
#endif
}
