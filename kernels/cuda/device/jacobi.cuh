/* Eigenvalues of small Hermitian matrices, by Jacobi's rotations of rows and columns, and singular values of any, by
 * rotations of columns (Hestenes 1958, "Inversion of matrices by biorthogonalization and related results"), each by a
 * thread block that has the matrix in shared memory. In a round the rotations are of disjoint pairs; a sweep's rounds
 * pair every two columns. The variant: TT_JACOBI_.... */
#pragma once
#include "cuda/device/reflectors.cuh"
#include "cuda/device/stack_args.h"
#define TT_ARGS tt_jacobi_args
#define TASK (TT_VARIANT % TT_SMALL_LANES)
#define MOST_SIDE 128
#define HALF (LANES / 2) /* as many lanes for the pairs of as many columns */
#define MOST_SWEEPS 40
#define TINY (sizeof(R) == 4 ? (R)1e-18 : (R)1e-150) /* its square is a normal number */
#define EPSILON (sizeof(R) == 4 ? (R)1.1920929e-7 : (R)2.220446049250313e-16)

/* A rotation of columns p and q: p' = c p - s q e*, q' = s p + c q e*. */
struct rotation {
    R c, s;
    T e;
};
/* The one that makes [[a, d], [d*, b]] diagonal; d is not 0. */
static TT_DEVICE rotation rotation_of(R a, R b, T d) {
    rotation r;
    const R size = sizeof(T) == sizeof(R) ? size_of(d) : root_of(square_of(d));
    const R tau = (b - a) / (2 * size), by = tau < 0 ? -tau : tau;
    const R t = (tau < 0 ? -1 : 1) / (by + root_of(1 + tau * tau));
    r.c = 1 / root_of(1 + t * t);
    r.s = t * r.c;
    r.e = scaled(d, 1 / size);
    return r;
}
static TT_DEVICE void rotate(const rotation &r, T e, T &x, T &y) {
    const T a = x, b = y * e;
    x = scaled(a, r.c) - scaled(b, r.s);
    y = scaled(a, r.s) + scaled(b, r.c);
}

/* The i-th pair of a round, p < q, out of an even number; false: one of them is not there. */
static TT_DEVICE bool pair_of(int round, int i, int n, int *p, int *q) {
    const int even = n + (n & 1), last = even - 1;
    int first = i ? (round + i) % last : last, second = i ? (round + last - i) % last : round;
    if (first > second) {
        const int before = first;
        first = second;
        second = before;
    }
    *p = first;
    *q = second;
    return second < n;
}

/* The largest size among numel elements, alike in all threads; 1 where that is 0. */
static TT_DEVICE R largest(const T *a, int numel) {
    __shared__ R most[TT_CUDA_THREADS];
    R here = 0;
    for (int e = threadIdx.x; e < numel; e += blockDim.x) here = size_of(a[e]) > here ? size_of(a[e]) : here;
    most[threadIdx.x] = here;
    __syncthreads();
    for (int i = 0; i < blockDim.x; i++) here = most[i] > here ? most[i] : here;
    __syncthreads();
    return here > 0 ? here : 1;
}

static TT_DEVICE void set_identity(T *v, int n) {
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) v[e] = number(e % n == e / n ? 1 : 0);
}

/* Which of n values is at each place, in order; of equal ones the first comes first. */
static TT_DEVICE void sort(const R *values, int n, bool descending, int *order) {
    for (int i = threadIdx.x; i < n; i += blockDim.x) {
        int place = 0;
        for (int j = 0; j < n; j++)
            place += (descending ? values[j] > values[i] : values[j] < values[i]) || (values[j] == values[i] && j < i);
        order[place] = i;
    }
    __syncthreads();
}

/* a becomes diagonal, and v its eigenvectors, if it is not NULL; false: it did not converge. */
static TT_DEVICE bool diagonalize(T *a, T *v, int n) {
    __shared__ rotation rotations[MOST_SIDE / 2];
    __shared__ int first[MOST_SIDE / 2], second[MOST_SIDE / 2];
    const int pairs = (n + 1) / 2, rounds = 2 * pairs - 1;
    const R small = EPSILON * (R)0.1 * largest(a, n * n);
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
        bool rotated = false;
        for (int round = 0; round < rounds; round++) {
            bool here = false;
            for (int i = threadIdx.x; i < pairs; i += blockDim.x) {
                int p, q;
                first[i] = -1;
                if (!pair_of(round, i, n, &p, &q) || !(size_of(a[p + q * n]) > small)) continue;
                rotations[i] = rotation_of(real_of(a[p + p * n]), real_of(a[q + q * n]), a[p + q * n]);
                first[i] = p;
                second[i] = q;
                here = true;
            }
            if (!__syncthreads_or(here)) continue;
            rotated = true;
            EACH_COLUMN(i, 0, pairs) {
                const int p = first[i], q = second[i];
                if (p < 0) continue;
                const rotation r = rotations[i];
                EACH_ROW(k, 0, n) rotate(r, conj_of(r.e), a[k + p * n], a[k + q * n]);
                if (v) EACH_ROW(k, 0, n) rotate(r, conj_of(r.e), v[k + p * n], v[k + q * n]);
            }
            __syncthreads();
            for (int e = threadIdx.x; e < n * HALF; e += blockDim.x) {
                const int k = e / HALF;
                for (int i = e % HALF; i < pairs; i += HALF) {
                    const int p = first[i], q = second[i];
                    if (p < 0) continue;
                    T &x = a[p + k * n], &y = a[q + k * n];
                    rotate(rotations[i], rotations[i].e, x, y);
                    if (k == p) {
                        x = number(real_of(x));
                        y = number(0);
                    } else if (k == q) {
                        x = number(0);
                        y = number(real_of(y));
                    }
                }
            }
            __syncthreads();
        }
        if (!rotated) return true;
    }
    return false;
}

/* The columns of a become orthogonal, and v the product of the rotations, if it is not NULL. */
static TT_DEVICE bool orthogonalize(T *a, T *v, int m, int n) {
    const int pairs = (n + 1) / 2, rounds = 2 * pairs - 1;
    const R small = EPSILON * root_of((R)m) * (R)0.5;
    for (int sweep = 0; sweep < MOST_SWEEPS; sweep++) {
        bool rotated = false;
        for (int round = 0; round < rounds; round++) {
            for (int i = TEAM; i - TEAM < pairs; i += TEAMS) {
                int p = 0, q = 0;
                const int rows = i < pairs && pair_of(round, i, n, &p, &q) ? m : 0;
                T *const x = a + p * m, *const y = a + q * m;
                T dot = number(0);
                R alpha = 0, beta = 0;
                EACH_ROW(k, 0, rows) {
                    alpha += square_of(x[k]);
                    beta += square_of(y[k]);
                    dot = plus_product(dot, conj_of(x[k]), y[k]);
                }
                alpha = sum_of_lanes(alpha);
                beta = sum_of_lanes(beta);
                dot = sum_of_lanes(dot);
                if (!(size_of(dot) > small * root_of(alpha) * root_of(beta)) || !(size_of(dot) > TINY)) continue;
                const rotation r = rotation_of(alpha, beta, dot);
                EACH_ROW(k, 0, m) rotate(r, conj_of(r.e), x[k], y[k]);
                if (v) EACH_ROW(k, 0, n) rotate(r, conj_of(r.e), v[k + p * n], v[k + q * n]);
                rotated = true;
            }
            __syncthreads();
        }
        if (!__syncthreads_or(rotated)) return true;
    }
    return false;
}

#if TASK == TT_JACOBI_EIGH || TASK == TT_JACOBI_EIGVALSH
static TT_DEVICE int eigenvalues(const TT_ARGS &p, T *room, R *found, int *order) {
    const bool vectors = TASK == TT_JACOBI_EIGH;
    const int n = p.n;
    T *const a = room, *const v = vectors ? a + n * n : nullptr;
    const T *const from = (const T *)(p.a + blockIdx.x * p.step_a);
    bool wrong = false;
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) {
        const int row = e % n, col = e / n;
        const bool given = p.upper ? row <= col : row >= col;
        const T x = given ? from[e] : conj_of(from[col + row * n]);
        wrong |= !is_finite(x);
        a[e] = row == col ? number(real_of(x)) : x;
    }
    if (vectors) set_identity(v, n);
    if (__syncthreads_or(wrong)) return -1;
    const R scale = largest(a, n * n);
    for (int e = threadIdx.x; e < n * n; e += blockDim.x) a[e] = scaled(a[e], 1 / scale);
    __syncthreads();
    if (!diagonalize(a, v, n)) return n + 1;
    for (int i = threadIdx.x; i < n; i += blockDim.x) found[i] = real_of(a[i + i * n]);
    __syncthreads();
    sort(found, n, false, order);
    R *const values = (R *)(p.values + blockIdx.x * p.step_values);
    for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = found[order[i]] * scale;
    T *const to = (T *)(p.u + blockIdx.x * p.step_u);
    for (int e = threadIdx.x; vectors && e < n * n; e += blockDim.x) to[e] = v[e % n + order[e / n] * n];
    return 0;
}
#else
/* A = U S V^H has m >= n here, or is the adjoint of what is asked for. */
static TT_DEVICE int singular_values(const TT_ARGS &p, T *room, R *found, int *order) {
    __shared__ T factors[MOST_SIDE];
    const bool vectors = TASK == TT_JACOBI_SVD, wide = p.m < p.n;
    const int m = wide ? p.n : p.m, n = wide ? p.m : p.n, cols = p.full ? m : n;
    T *const a = room, *const v = vectors ? a + m * n : nullptr, *const q = v + n * n;
    const T *const from = (const T *)(p.a + blockIdx.x * p.step_a);
    bool wrong = false;
    for (int e = threadIdx.x; e < m * n; e += blockDim.x) {
        a[e] = wide ? conj_of(from[e / m + (e % m) * n]) : from[e];
        wrong |= !is_finite(a[e]);
    }
    if (vectors) set_identity(v, n);
    if (__syncthreads_or(wrong)) return -1;
    const R scale = largest(a, m * n);
    for (int e = threadIdx.x; e < m * n; e += blockDim.x) a[e] = scaled(a[e], 1 / scale);
    __syncthreads();
    if (!orthogonalize(a, v, m, n)) return n + 1;
    for (int j = TEAM; j - TEAM < n; j += TEAMS) {
        R sum = 0;
        EACH_ROW(i, 0, j < n ? m : 0) sum += square_of(a[i + j * m]);
        sum = root_of(sum_of_lanes(sum));
        if (LANE == 0 && j < n) found[j] = sum;
    }
    __syncthreads();
    sort(found, n, true, order);
    R *const values = (R *)(p.values + blockIdx.x * p.step_values);
    for (int i = threadIdx.x; i < n; i += blockDim.x) values[i] = found[order[i]] * scale;
    if (!vectors) return 0;
    /* U: the columns, and where they are 0, or more are wanted, what Q of a QR decomposition has there. */
    const R least = found[order[0]] * EPSILON * (R)0.01;
    int rank = 0;
    while (rank < n && found[order[rank]] > least) rank++;
    for (int e = threadIdx.x; e < m * rank; e += blockDim.x) {
        const int col = order[e / m];
        q[e] = scaled(a[e % m + col * m], 1 / found[col]);
    }
    __syncthreads();
    if (rank < cols) {
        factor(q, m, rank, factors);
        __syncthreads();
        for (int i = threadIdx.x; i < rank; i += blockDim.x) found[i] = real_of(q[i * (m + 1)]); /* 1 or -1 */
        __syncthreads();
        become_q(q, m, rank, factors, cols);
        for (int e = threadIdx.x; e < m * rank; e += blockDim.x) q[e] = scaled(q[e], found[e / m]);
        __syncthreads();
    }
    T *const to_u = (T *)(p.u + blockIdx.x * p.step_u), *const to_v = (T *)(p.v + blockIdx.x * p.step_v);
    if (!wide) {
        for (int e = threadIdx.x; e < m * cols; e += blockDim.x) to_u[e] = q[e];
        for (int e = threadIdx.x; e < n * n; e += blockDim.x) to_v[e] = conj_of(v[e / n + order[e % n] * n]);
    } else {
        for (int e = threadIdx.x; e < n * n; e += blockDim.x) to_u[e] = v[e % n + order[e / n] * n];
        for (int e = threadIdx.x; e < m * cols; e += blockDim.x) to_v[e] = conj_of(q[e / cols + (e % cols) * m]);
    }
    return 0;
}
#endif

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    TT_DYNAMIC_SHARED(room);
    __shared__ R found[MOST_SIDE];
    __shared__ int order[MOST_SIDE];
#if TASK == TT_JACOBI_EIGH || TASK == TT_JACOBI_EIGVALSH
    const int info = eigenvalues(p, (T *)room, found, order);
#else
    const int info = singular_values(p, (T *)room, found, order);
#endif
    if (threadIdx.x == 0) p.info[blockIdx.x] = info;
}
