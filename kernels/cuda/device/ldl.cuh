/* A = L D L^T, or L D L^H of Hermitian matrices, by Bunch and Kaufman's pivoting (1977, "Some stable methods for
 * calculating inertia and solving symmetric linear systems"), stored as LAPACK's sytrf and hetrf store it, of the lower
 * triangle; and systems of equations from the factors. A matrix is a block's. The variant: TT_LDL_.... */
#pragma once
#include "cuda/device/number.cuh"
#include "cuda/device/stack_args.h"
#define TT_ARGS tt_ldl_args
#define HERMITIAN (TT_VARIANT & TT_LDL_HERMITIAN)
#define AT(i, j) a[(i) + (int64_t)(j) * n]

static TT_DEVICE T turned(T x) { return HERMITIAN ? conj_of(x) : x; }
static TT_DEVICE T diagonal(T x) { return HERMITIAN ? number(real_of(x)) : x; }
static TT_DEVICE R size_of_diagonal(T x) { return size_of(diagonal(x)); }

#if (TT_VARIANT & 1) == TT_LDL_FACTOR
/* The largest size among f(k) for begin <= k < end, and the first k that has it; alike in all threads. */
template <typename F> static TT_DEVICE R largest(int begin, int end, int *where, F f) {
    __shared__ R sizes[TT_CUDA_THREADS];
    __shared__ int places[TT_CUDA_THREADS];
    R best = -1;
    int place = begin;
    for (int k = begin + threadIdx.x; k < end; k += TT_CUDA_THREADS) {
        const R size = size_of(f(k));
        if (size > best || size != size) {
            best = size;
            place = k;
            if (size != size) break;
        }
    }
    __syncthreads();
    sizes[threadIdx.x] = best;
    places[threadIdx.x] = place;
    for (int half = TT_CUDA_THREADS / 2; half; half /= 2) {
        __syncthreads();
        const int other = threadIdx.x + half;
        if (threadIdx.x >= half) continue;
        const R mine = sizes[threadIdx.x], its = sizes[other];
        if (its > mine || (its == mine && places[other] < places[threadIdx.x]) || (its != its && mine == mine)) {
            sizes[threadIdx.x] = its;
            places[threadIdx.x] = places[other];
        }
    }
    __syncthreads();
    if (where) *where = places[0];
    best = sizes[0];
    return best < 0 ? 0 : best;
}

static TT_DEVICE void swap(T &x, T &y) {
    const T before = x;
    x = y;
    y = before;
}

/* Rows and columns kk and kp > kk of the part from column k on. */
static TT_DEVICE void exchange(T *a, int n, int k, int kk, int kp) {
    for (int i = kp + 1 + threadIdx.x; i < n; i += TT_CUDA_THREADS) swap(AT(i, kk), AT(i, kp));
    for (int j = kk + 1 + threadIdx.x; j < kp; j += TT_CUDA_THREADS) {
        const T x = turned(AT(j, kk));
        AT(j, kk) = turned(AT(kp, j));
        AT(kp, j) = x;
    }
    if (threadIdx.x == 0) {
        AT(kp, kk) = turned(AT(kp, kk));
        const T x = diagonal(AT(kk, kk));
        AT(kk, kk) = diagonal(AT(kp, kp));
        AT(kp, kp) = x;
        if (kk > k) swap(AT(kk, k), AT(kp, k));
    }
    __syncthreads();
}

/* What is left, less the product of the columns from k on with those of `w` (at the columns' place when all is
 * done). */
static TT_DEVICE void eliminate_one(T *a, int n, int k) {
    const T pivot = AT(k, k);
    const int left = n - k - 1;
    for (int64_t e = threadIdx.x; e < (int64_t)left * left; e += TT_CUDA_THREADS) {
        const int j = k + 1 + (int)(e / left), i = k + 1 + (int)(e % left);
        if (i < j) continue;
        AT(i, j) = minus_product(AT(i, j), AT(i, k), turned(AT(j, k)) / pivot);
        if (i == j) AT(i, j) = diagonal(AT(i, j));
    }
    __syncthreads();
    for (int i = k + 1 + threadIdx.x; i < n; i += TT_CUDA_THREADS) AT(i, k) = AT(i, k) / pivot;
    __syncthreads();
}

static TT_DEVICE void eliminate_two(T *a, int n, int k) {
    const T d21 = AT(k + 1, k), d11 = AT(k + 1, k + 1) / d21, d22 = AT(k, k) / turned(d21);
    const T by = number(1) / (d11 * d22 - number(1));
    const int left = n - k - 2;
    const auto first = [&](int j) { return by * (d11 * AT(j, k) - AT(j, k + 1)) / turned(d21); };
    const auto second = [&](int j) { return by * (d22 * AT(j, k + 1) - AT(j, k)) / d21; };
    for (int64_t e = threadIdx.x; e < (int64_t)left * left; e += TT_CUDA_THREADS) {
        const int j = k + 2 + (int)(e / left), i = k + 2 + (int)(e % left);
        if (i < j) continue;
        const T x = minus_product(AT(i, j), AT(i, k), turned(first(j)));
        AT(i, j) = minus_product(x, AT(i, k + 1), turned(second(j)));
        if (i == j) AT(i, j) = diagonal(AT(i, j));
    }
    __syncthreads();
    for (int j = k + 2 + threadIdx.x; j < n; j += TT_CUDA_THREADS) {
        const T x = first(j);
        AT(j, k + 1) = second(j);
        AT(j, k) = x;
    }
    __syncthreads();
}

static TT_DEVICE void factor(T *a, int n, int32_t *pivots, int32_t *info) {
    const R alpha = (R)0.6403882032022076; /* (1 + sqrt 17) / 8 */
    int failed = 0;
    for (int k = 0; k < n;) {
        int row = k, step = 1, kp = k;
        const R here = size_of_diagonal(AT(k, k));
        const R below = largest(k + 1, n, &row, [&](int i) { return AT(i, k); });
        const bool useless = !(here > 0 || below > 0) || here != here;
        if (useless && !failed) failed = k + 1;
        if (!useless && !(here >= alpha * below)) {
            const R left = largest(k, row, nullptr, [&](int j) { return AT(row, j); });
            const R right = largest(row + 1, n, nullptr, [&](int i) { return AT(i, row); });
            const R most = left > right ? left : right;
            if (here >= alpha * below * (below / most)) kp = k;
            else if (size_of_diagonal(AT(row, row)) >= alpha * most) kp = row;
            else {
                kp = row;
                step = 2;
            }
        }
        const int kk = k + step - 1;
        __syncthreads();
        if (threadIdx.x == 0) {
            AT(k, k) = diagonal(AT(k, k));
            AT(kk, kk) = diagonal(AT(kk, kk));
        }
        __syncthreads();
        if (kp != kk) exchange(a, n, k, kk, kp);
        if (threadIdx.x == 0) {
            pivots[k] = step == 1 ? kp + 1 : -(kp + 1);
            if (step == 2) pivots[k + 1] = -(kp + 1);
        }
        if (!useless && step == 1) eliminate_one(a, n, k);
        if (step == 2) eliminate_two(a, n, k);
        k += step;
    }
    if (threadIdx.x == 0) *info = failed;
}
#else
/* A column of B, by one thread. */
static TT_DEVICE void solve(const TT_ARGS &p, const T *a, int n, const int32_t *pivots, T *b) {
    const auto place = [&](int k) {
        int pivot = pivots[k] < 0 ? -pivots[k] : pivots[k];
        if (pivot >= 1 && pivot <= n) return pivot - 1;
        tt_report(p.fault, TT_FAULT_PIVOT, pivots[k], n, 0);
        return k;
    };
    const auto exchange = [&](int i, int j) {
        const T before = b[i];
        b[i] = b[j];
        b[j] = before;
    };
    const auto above = [&](int k, int begin) {
        T sum = b[k];
        for (int i = begin; i < n; i++) sum = minus_product(sum, turned(AT(i, k)), b[i]);
        b[k] = sum;
    };
    for (int k = 0; k < n;) {
        const bool two = pivots[k] < 0 && k + 1 < n;
        exchange(two ? k + 1 : k, place(two ? k + 1 : k));
        if (!two) {
            for (int i = k + 1; i < n; i++) b[i] = minus_product(b[i], AT(i, k), b[k]);
            b[k] = b[k] / diagonal(AT(k, k));
            k++;
            continue;
        }
        for (int i = k + 2; i < n; i++) {
            const T x = minus_product(b[i], AT(i, k), b[k]);
            b[i] = minus_product(x, AT(i, k + 1), b[k + 1]);
        }
        const T d21 = AT(k + 1, k), first = diagonal(AT(k, k)) / turned(d21), second = diagonal(AT(k + 1, k + 1)) / d21;
        const T by = first * second - number(1), x = b[k] / turned(d21), y = b[k + 1] / d21;
        b[k] = (second * x - y) / by;
        b[k + 1] = (first * y - x) / by;
        k += 2;
    }
    for (int k = n - 1; k >= 0;) {
        const bool two = pivots[k] < 0 && k > 0;
        above(k, k + 1);
        if (two) above(k - 1, k + 1);
        exchange(k, place(k));
        k -= two ? 2 : 1;
    }
}
#endif

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
#if (TT_VARIANT & 1) == TT_LDL_FACTOR
    factor((T *)(p.a + blockIdx.x * p.step_a), p.n, p.pivots + (int64_t)blockIdx.x * p.n, p.info + blockIdx.x);
#else
    int64_t at = 0, rest = blockIdx.x;
    for (int d = p.nbatch - 1; d >= 0; rest /= p.batch[d--]) at += rest % p.batch[d] * p.a_strides[d];
    const int col = blockIdx.y * TT_CUDA_THREADS + threadIdx.x;
    if (col < p.cols)
        solve(p, (const T *)(p.a + at * p.step_a), p.n, p.pivots + at * p.n,
              (T *)(p.b + blockIdx.x * p.step_b) + (int64_t)col * p.n);
#endif
}
