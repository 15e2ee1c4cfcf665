/* Decompositions of small matrices, each by a thread block that has it in shared memory. The variant: TT_SMALL_.... */
#pragma once
#include "cuda/device/reflectors.cuh"
#include "cuda/device/stack_args.h"
#define TT_ARGS tt_small_args
#define TASK (TT_VARIANT % TT_SMALL_LANES)
static TT_DEVICE void read(T *to, const T *from, int64_t numel) {
    for (int64_t e = threadIdx.x; e < numel; e += blockDim.x) to[e] = from[e];
    __syncthreads();
}
static TT_DEVICE void write(T *to, const T *from, int64_t numel) {
    __syncthreads();
    for (int64_t e = threadIdx.x; e < numel; e += blockDim.x) to[e] = from[e];
}

/* Triangular systems, op(A) X = B. A triangle has ld rows; (row, column) of op(A) is at row * down + column * right. */
struct triangle {
    const T *a;
    int n, down, right;
    bool lower, unit, conjugate;
    TT_DEVICE T at(int i, int j) const {
        const T x = a[i * down + j * right];
        return conjugate ? conj_of(x) : x;
    }
};
static TT_DEVICE triangle triangle_of(const T *a, int n, int ld, bool lower, bool unit, int trans) {
    triangle t;
    t.a = a;
    t.n = n;
    t.down = trans ? ld : 1;
    t.right = trans ? 1 : ld;
    t.lower = trans ? !lower : lower;
    t.unit = unit;
    t.conjugate = trans == 2;
    return t;
}
/* A column of b, which is at row * down + column * right, is a team's, and a lane has each row that is one more
 * multiple of their number further. */
#define OWN (LANES == WARP ? 4 : 1)
template <bool lower> static TT_DEVICE void solve_by(const triangle &t, T *b, int cols, int down, int right) {
    for (int first = 0; first < cols; first += TEAMS) {
        const int c = first + TEAM, n = c < cols ? t.n : 0;
        T *const x = b + c * right;
        T own[OWN];
#pragma unroll
        for (int q = 0; q < OWN; q++) own[q] = LANE + q * LANES < n ? x[(LANE + q * LANES) * down] : number(0);
#pragma unroll
        for (int step = 0; step < OWN; step++) {
            const int r = lower ? step : OWN - 1 - step, left = t.n - r * LANES, lanes = left < LANES ? left : LANES;
            for (int l = 0; l < lanes; l++) {
                const int lane = lower ? l : lanes - 1 - l, k = lane + r * LANES;
                T pivot = lane_of(own[r], lane);
                if (!t.unit) pivot = pivot / t.at(k, k);
                if (LANE == lane) own[r] = pivot;
#pragma unroll
                for (int q = lower ? r : 0; q < (lower ? OWN : r + 1); q++) {
                    const int i = LANE + q * LANES;
                    if ((lower ? i > k : i < k) && i < n) own[q] = minus_product(own[q], t.at(i, k), pivot);
                }
            }
        }
#pragma unroll
        for (int q = 0; q < OWN; q++)
            if (LANE + q * LANES < n) x[(LANE + q * LANES) * down] = own[q];
    }
}
static TT_DEVICE void solve(const triangle &t, T *b, int cols, int down, int right) {
    if (t.lower) solve_by<true>(t, b, cols, down, right);
    else solve_by<false>(t, b, cols, down, right);
    __syncthreads();
}

/* The lower factor of a in its place; 0, or the order of the first minor that is not positive. */
static TT_DEVICE int cholesky(T *a, int n) {
    for (int k = 0; k < n; k++) {
        const R pivot = real_of(a[k + k * n]);
        if (!(pivot > 0)) return k + 1;
        const R root = root_of(pivot);
        __syncthreads();
        for (int i = k + threadIdx.x; i < n; i += blockDim.x)
            a[i + k * n] = i == k ? number(root) : scaled(a[i + k * n], 1 / root);
        __syncthreads();
        EACH_COLUMN(j, k + 1, n) {
            const T by = conj_of(a[j + k * n]);
            EACH_ROW(i, j, n) a[i + j * n] = minus_product(a[i + j * n], a[i + k * n], by);
        }
        __syncthreads();
    }
    return 0;
}

/* a = P L U in its place; 0, or the number of the first pivot that is zero. pivots: in shared memory. */
static TT_DEVICE int lu(T *a, int m, int n, int *pivots, bool in_order) {
    const int most = m < n ? m : n;
    int failed = 0;
    for (int k = 0; k < most; k++) {
        if (threadIdx.x < WARP) { /* its teams alike */
            R best = -1;
            int row = k;
            EACH_ROW(i, k, in_order ? k + 1 : m) {
                const R here = size_of(a[i + k * m]), size = here == here ? here : (R)TT_INF_F32; /* NaN is no zero */
                if (size > best) {
                    best = size;
                    row = i;
                }
            }
            for (int by = LANES / 2; by; by /= 2) {
                const R size = __shfl_xor_sync(~0u, best, by);
                const int other = __shfl_xor_sync(~0u, row, by);
                if (size > best || (size == best && other < row)) {
                    best = size;
                    row = other;
                }
            }
            if (threadIdx.x == 0) pivots[k] = row;
        }
        __syncthreads();
        const int row = pivots[k];
        const T pivot = a[row + k * m];
        __syncthreads();
        for (int j = threadIdx.x; j < n && row != k; j += blockDim.x) {
            const T x = a[k + j * m];
            a[k + j * m] = a[row + j * m];
            a[row + j * m] = x;
        }
        __syncthreads();
        if (is_zero(pivot)) {
            if (!failed) failed = k + 1;
            continue;
        }
        for (int i = k + 1 + threadIdx.x; i < m; i += blockDim.x) a[i + k * m] = a[i + k * m] / pivot;
        __syncthreads();
        EACH_COLUMN(j, k + 1, n) {
            const T by = a[k + j * m];
            EACH_ROW(i, k + 1, m) a[i + j * m] = minus_product(a[i + j * m], a[i + k * m], by);
        }
        __syncthreads();
    }
    return failed;
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(room);
    __shared__ int pivots[TT_CUDA_THREADS];
    const int m = p.m, n = p.n, k = m < n ? m : n;
    T *const a = (T *)room, *const b = (T *)(p.b + blockIdx.x * p.step_b),
             *const c = (T *)(p.c + blockIdx.x * p.step_c);
    int info = 0;
#if TASK == TT_SMALL_LU_SOLVE || TASK == TT_SMALL_TRIANGLE
    int64_t at = 0, rest = blockIdx.x;
    for (int d = p.nbatch - 1; d >= 0; rest /= p.batch[d--]) at += rest % p.batch[d] * p.a_strides[d];
    const T *const given = (const T *)(p.a + at * p.step_a);
    const bool right = TASK == TT_SMALL_TRIANGLE && p.option & TT_SMALL_RIGHT;
    const int first = blockIdx.y * p.at_once, left = p.cols - first, cols = left < p.at_once ? left : p.at_once;
    const int down = right ? cols : 1, along = right ? 1 : n; /* of b in shared memory: n by cols, or cols by n */
    T *const x = a + n * n;
    read(a, given, (int64_t)n * n);
    for (int e = threadIdx.x; e < n * cols; e += blockDim.x)
        x[e] = right ? b[first + e % cols + (int64_t)(e / cols) * p.cols] : b[(int64_t)first * n + e];
#if TASK == TT_SMALL_LU_SOLVE
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        const int pivot = p.pivots[at * n + i];
        const bool valid = pivot >= 1 && pivot <= n;
        if (!valid) tt_report(p.fault, TT_FAULT_PIVOT, pivot, n, 0);
        pivots[i] = valid ? pivot - 1 : i;
    }
    __syncthreads();
    for (int j = threadIdx.x; j < cols && !p.option; j += blockDim.x)
        for (int i = 0; i < n; i++) {
            const T before = x[i + j * n];
            x[i + j * n] = x[pivots[i] + j * n];
            x[pivots[i] + j * n] = before;
        }
    __syncthreads();
    const triangle l = triangle_of(a, n, n, true, true, p.option), u = triangle_of(a, n, n, false, false, p.option);
    solve(p.option ? u : l, x, cols, 1, n);
    solve(p.option ? l : u, x, cols, 1, n);
    __syncthreads();
    for (int j = threadIdx.x; j < cols && p.option; j += blockDim.x)
        for (int i = n - 1; i >= 0; i--) {
            const T before = x[i + j * n];
            x[i + j * n] = x[pivots[i] + j * n];
            x[pivots[i] + j * n] = before;
        }
#else
    /* X op(A) = B is op(A)^T X^T = B^T. */
    const bool transposed = p.option & TT_SMALL_TRANSPOSED;
    __syncthreads();
    solve(triangle_of(a, n, n, !(p.option & TT_SMALL_UPPER), p.option & TT_SMALL_UNIT, transposed != right), x, cols,
          down, along);
#endif
    __syncthreads();
    for (int e = threadIdx.x; e < n * cols; e += blockDim.x) {
        if (right) b[first + e % cols + (int64_t)(e / cols) * p.cols] = x[e];
        else b[(int64_t)first * n + e] = x[e];
    }
    if (blockIdx.y) return;
#elif TASK == TT_SMALL_CHOLESKY
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) {
        const int row = e % n, col = e / n;
        a[e] = p.option ? conj_of(b[col + row * n]) : b[e];
    }
    __syncthreads();
    info = cholesky(a, n);
    __syncthreads();
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) {
        const int row = e % n, col = e / n;
        const T x = p.option ? conj_of(a[col + row * n]) : a[e];
        b[e] = (p.option ? row <= col : row >= col) ? x : number(0);
    }
#elif TASK == TT_SMALL_CHOLESKY_INVERSE
    T *const x = a + n * n;
    read(a, b, n * n);
    for (int i = n - 1; i >= 0; i--) info = is_zero(a[i + i * n]) ? i + 1 : info;
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) x[e] = number(e % n == e / n ? 1 : 0);
    __syncthreads();
    solve(triangle_of(a, n, n, !p.option, false, p.option ? 2 : 0), x, n, 1, n);
    solve(triangle_of(a, n, n, !p.option, false, p.option ? 0 : 2), x, n, 1, n);
    write(b, x, n * n);
#elif TASK == TT_SMALL_LU
    read(a, b, m * n);
    info = lu(a, m, n, pivots, p.option);
    write(b, a, m * n);
    for (int i = threadIdx.x; i < k; i += blockDim.x) p.pivots[blockIdx.x * (int64_t)k + i] = pivots[i] + 1;
#elif TASK == TT_SMALL_INV
    T *const x = a + n * n;
    read(a, (const T *)(p.a + blockIdx.x * p.step_a), n * n);
    info = lu(a, n, n, pivots, false);
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) x[e] = number(e % n == e / n ? 1 : 0);
    __syncthreads();
    for (int j = threadIdx.x; j < n; j += blockDim.x)
        for (int i = 0; i < n; i++) {
            const T before = x[i + j * n];
            x[i + j * n] = x[pivots[i] + j * n];
            x[pivots[i] + j * n] = before;
        }
    __syncthreads();
    solve(triangle_of(a, n, n, true, true, 0), x, n, 1, n);
    solve(triangle_of(a, n, n, false, false, 0), x, n, 1, n);
    write(b, x, n * n);
#else
    __shared__ T factors[TT_CUDA_THREADS];
    const bool in_place = TASK == TT_SMALL_GEQRF;
    read(a, in_place ? b : (const T *)(p.a + blockIdx.x * p.step_a), m * n);
    factor(a, m, n, factors);
    __syncthreads();
    if (in_place) {
        write(b, a, m * n);
        for (int i = threadIdx.x; i < k; i += blockDim.x) c[i] = factors[i];
    } else {
        EACH_COLUMN(j, 0, n) EACH_ROW(i, 0, p.cols) c[i + j * p.cols] = i <= j && i < k ? a[i + j * m] : number(0);
    }
#if TASK == TT_SMALL_QR
    __syncthreads();
    become_q(a, m, k, factors, p.cols);
    write(b, a, m * p.cols);
#endif
#endif
    if (threadIdx.x == 0) p.info[blockIdx.x] = info;
}
