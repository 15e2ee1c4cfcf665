/* Householder's reflectors 1 - tau v v^H, as LAPACK has them, of a matrix in shared memory. */
#pragma once
#include "cuda/device/warps.cuh"

/* The k-th reflector, of a's column k from row k on: its factor tau, alike in all threads. v is below, v[k] = 1. */
static TT_DEVICE T reflector(T *a, int m, int k) {
    __shared__ T factor;
    if (threadIdx.x < WARP) { /* its teams alike, but that the first one writes */
        T *const x = a + k * m;
        R most = 0, below = 0;
        EACH_ROW(i, k, m) most = size_of(x[i]) > most ? size_of(x[i]) : most;
        most = most_of_lanes(most);
        const R scale = most > 0 && most * 0 == 0 ? 1 / most : 1;
        EACH_ROW(i, k + 1, m) below += square_of(scaled(x[i], scale));
        below = sum_of_lanes(below);
        const T first = x[k];
        const R size = square_of(scaled(first, scale)), re = real_of(first);
        if (below == 0 && size == real_of(scaled(first, scale)) * real_of(scaled(first, scale))) {
            if (threadIdx.x == 0) factor = number(0);
        } else {
            R beta = root_of(size + below) / scale;
            beta = re < 0 ? beta : -beta;
            const T by = number(1) / (first - number(beta));
            __syncwarp();
            EACH_ROW(i, k + 1, TEAM ? 0 : m) x[i] = x[i] * by;
            if (threadIdx.x == 0) {
                factor = scaled(number(beta) - first, 1 / beta);
                x[k] = number(beta);
            }
        }
    }
    __syncthreads();
    const T tau = factor;
    __syncthreads();
    return tau;
}

/* (1 - tau v v^H) c: to the columns of c, which has m rows, from `begin` on; the k-th reflector of a. */
static TT_DEVICE void reflect(const T *a, int m, int k, T tau, T *c, int begin, int end) {
    const T *const v = a + k * m;
    for (int j = begin + TEAM; j - TEAM < end; j += TEAMS) {
        T *const x = c + j * m;
        const int rows = j < end ? m : 0;
        T sum = number(0);
        EACH_ROW(i, k, rows) sum = plus_product(sum, i == k ? number(1) : conj_of(v[i]), x[i]);
        sum = sum_of_lanes(sum) * tau;
        EACH_ROW(i, k, rows) x[i] = minus_product(x[i], i == k ? number(1) : v[i], sum);
    }
    __syncthreads();
}

static TT_DEVICE void factor(T *a, int m, int n, T *factors) {
    const int most = m < n ? m : n;
    for (int k = 0; k < most; k++) {
        const T tau = reflector(a, m, k);
        if (threadIdx.x == 0) factors[k] = tau;
        reflect(a, m, k, conj_of(tau), a, k + 1, n);
    }
}

/* The first `cols` columns of the product of k reflectors of a, in its place, which has room for them. */
static TT_DEVICE void become_q(T *a, int m, int k, const T *factors, int cols) {
    for (int e = m * k + threadIdx.x; e < m * cols; e += blockDim.x) a[e] = number(e % m == e / m ? 1 : 0);
    __syncthreads();
    for (int i = k - 1; i >= 0; i--) {
        const T tau = factors[i];
        reflect(a, m, i, tau, a, i + 1, cols);
        T *const x = a + i * m;
        for (int r = threadIdx.x; r < m; r += blockDim.x)
            x[r] = r < i ? number(0) : r == i ? number(1) - tau : number(0) - tau * x[r];
        __syncthreads();
    }
}
