/* Samples of categories, as in kernels/ops/random.c: a block for each row of weights. TT_OP: 1 with replacement. */
#pragma once
#include "cuda/device/stream.cuh"

#define TT_ARGS tt_multinomial_args
#define TILE 1024

/* Element i of a draw of float64s on [0, 1). */
static TT_DEVICE double uniform(const tt_stream &s, int64_t i) { return tt_uniform_f64(tt_long_word(s, i)); }

static TT_DEVICE void complain(const tt_multinomial_args &p, int of_sum) {
    atomicMin((unsigned long long *)p.bad, (unsigned long long)(2 * (int64_t)blockIdx.x + of_sum));
}

static TT_DEVICE bool ahead(double key, int64_t at, double other, int64_t other_at) {
    return key != other ? key > other : at < other_at;
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ double tile[TILE];
    __shared__ double total;
    __shared__ int64_t last;
    const int64_t row = blockIdx.x;
    const tt_stream from = TT_PLACED(p.from);
    const double *weights = p.weights + row * p.categories;
    double *scratch = p.scratch + row * p.categories;
    int64_t *out = p.out + row * p.samples;
    if (threadIdx.x == 0) total = 0, last = -1;
    __syncthreads();
    for (int64_t at = 0; at < p.categories; at += TILE) { /* sums in the order of the categories: one thread adds */
        const int n = (int)(p.categories - at < TILE ? p.categories - at : TILE);
        for (int k = threadIdx.x; k < n; k += TT_CUDA_THREADS) {
            const double x = weights[at + k];
            if (!(x >= 0) || x == TT_INF_F64) complain(p, 0);
            tile[k] = x;
        }
        __syncthreads();
        if (threadIdx.x == 0) {
            double sum = total;
            for (int k = 0; k < n; k++) {
                if (tile[k] > 0) last = at + k;
                tile[k] = sum += tile[k];
            }
            total = sum;
        }
        __syncthreads();
#if TT_OP == 1
        for (int k = threadIdx.x; k < n; k += TT_CUDA_THREADS) scratch[at + k] = tile[k];
        __syncthreads();
#endif
    }
    if (!(total > 0)) {
        if (threadIdx.x == 0) complain(p, 1);
        return;
    }
#if TT_OP == 1
    for (int64_t s = threadIdx.x; s < p.samples; s += TT_CUDA_THREADS) { /* the inverse of the distribution function */
        const double x = uniform(from, row * p.samples + s) * total;
        int64_t low = 0, high = last;
        while (low < high) {
            const int64_t middle = low + (high - low) / 2;
            if (scratch[middle] > x) high = middle;
            else low = middle + 1;
        }
        out[s] = low;
    }
#else
    /* A race: the first arrivals are the samples. Each is looked for among all that are left. */
    __shared__ double keys[TT_CUDA_THREADS / 32];
    __shared__ int64_t places[TT_CUDA_THREADS / 32];
    for (int64_t c = threadIdx.x; c < p.categories; c += TT_CUDA_THREADS) {
        const double time = -tt_log_f64(1.0 - uniform(from, row * p.categories + c));
        scratch[c] = weights[c] / (time > 0x1p-60 ? time : 0x1p-60);
    }
    for (int64_t s = 0; s < p.samples; s++) {
        double key = -2;
        int64_t place = INT64_MAX;
        for (int64_t c = threadIdx.x; c < p.categories; c += TT_CUDA_THREADS) /* the thread's own, in order */
            if (scratch[c] > key) key = scratch[c], place = c;
        for (int by = 16; by; by /= 2) {
            const double other = __shfl_down_sync(~0u, key, by);
            const int64_t other_place = __shfl_down_sync(~0u, place, by);
            if (ahead(other, other_place, key, place)) key = other, place = other_place;
        }
        if (threadIdx.x % 32 == 0) keys[threadIdx.x / 32] = key, places[threadIdx.x / 32] = place;
        __syncthreads();
        for (int w = 0; w < TT_CUDA_THREADS / 32; w++)
            if (ahead(keys[w], places[w], key, place)) key = keys[w], place = places[w];
        if (place % TT_CUDA_THREADS == threadIdx.x) { /* whose it is */
            scratch[place] = -1;
            out[s] = place;
        }
        __syncthreads();
    }
#endif
}
