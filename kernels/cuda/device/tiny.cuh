/* Factors and systems of square matrices of at most 32 rows: a team of lanes has a matrix, a lane a row of it, in
 * registers. The variant as in small.cuh, whose steps are the same, and so the bits; on an H200, 4096 matrices of 16 x
 * 16: see TT_TINY_... in stack_args.h. */
#pragma once
#include "cuda/device/warps.cuh"
#define TT_ARGS tt_small_args
#define TASK (TT_VARIANT % TT_SMALL_LANES)
#define ROWS LANES

static TT_DEVICE int lane_of_int(int x, int lane) {
    return __shfl_sync(~0u, x, (int)threadIdx.x % WARP / LANES * LANES + lane);
}

/* The lower factor; 0, or the order of the first minor that is not positive. */
static TT_DEVICE int cholesky(T *row, int n) {
    int failed = 0;
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        if (k >= n) break;
        const R pivot = lane_of(real_of(row[k]), k);
        if (!failed && !(pivot > 0)) failed = k + 1;
        const R root = root_of(pivot);
        const bool below = !failed && LANE > k;
        if (!failed && LANE == k) row[k] = number(root);
        if (below) row[k] = scaled(row[k], 1 / root);
#pragma unroll
        for (int j = k + 1; j < ROWS; j++) {
            const T by = conj_of(lane_of(row[k], j));
            if (below && LANE >= j) row[j] = minus_product(row[j], row[k], by);
        }
    }
    return failed;
}

/* P L U; 0, or the number of the first pivot that is zero. Rows stay in their lanes: *place is where the exchanges
 * bring this lane's. */
static TT_DEVICE int lu(T *row, int n, int *place, int *pivots, bool in_order, bool writes) {
    int failed = 0;
    *place = LANE;
#pragma unroll
    for (int k = 0; k < ROWS; k++) {
        if (k >= n) break;
        const R here = size_of(row[k]);
        R best = *place < k || *place >= n || (in_order && *place > k) ? -1 : here == here ? here : (R)TT_INF_F32;
        int found = *place * WARP + LANE; /* the first place of those with the largest element */
        for (int by = LANES / 2; by; by /= 2) {
            const R size = __shfl_xor_sync(~0u, best, by);
            const int other = __shfl_xor_sync(~0u, found, by);
            if (size > best || (size == best && other < found)) {
                best = size;
                found = other;
            }
        }
        const int lane = found % WARP, from = found / WARP;
        if (writes && LANE == 0) pivots[k] = from + 1;
        *place = *place == k ? from : LANE == lane ? k : *place;
        const T pivot = lane_of(row[k], lane);
        const bool zero = is_zero(pivot), below = !zero && *place > k;
        if (zero && !failed) failed = k + 1;
        if (below) row[k] = row[k] / pivot;
#pragma unroll
        for (int j = k + 1; j < ROWS; j++) {
            const T by = lane_of(row[j], lane);
            if (below) row[j] = minus_product(row[j], row[k], by);
        }
    }
    return failed;
}

/* The element of this lane's row in the solution of a triangular system; row: of the lane's place. */
static TT_DEVICE T solve(const T *row, int n, T x, bool lower, bool unit, const T *diagonal) {
#pragma unroll
    for (int step = 0; step < ROWS; step++) {
        const int k = lower ? step : ROWS - 1 - step;
        if (k >= n) continue;
        const T found = lane_of(unit ? x : x / *diagonal, k);
        if (LANE == k) x = found;
        if (lower ? LANE > k : LANE < k) x = minus_product(x, row[k], found);
    }
    return x;
}

extern "C" __global__ void __launch_bounds__(TT_FLAT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int n = p.n;
    const int64_t matrix = blockIdx.x * (int64_t)TEAMS + TEAM;
    const bool there = matrix < p.count, mine = there && LANE < n;
    T row[ROWS];
    int info = 0;
#if TASK == TT_SMALL_CHOLESKY
    T *const b = (T *)(p.b + matrix * p.step_b);
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        row[j] = !mine || j >= n ? number(0) : p.option ? conj_of(b[j + LANE * n]) : b[LANE + j * n];
    info = cholesky(row, n);
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        const T x = j <= LANE ? row[j] : number(0);
        if (mine && j < n) b[p.option ? j + LANE * n : LANE + j * n] = p.option ? conj_of(x) : x;
    }
#else
    const bool inverts = TASK == TT_SMALL_INV, factors = inverts || TASK == TT_SMALL_LU;
    int64_t at = matrix;
    if (TASK == TT_SMALL_LU_SOLVE) {
        int64_t rest = matrix;
        at = 0;
        for (int d = p.nbatch - 1; d >= 0; rest /= p.batch[d--]) at += rest % p.batch[d] * p.a_strides[d];
    }
    const T *const a = (const T *)(TASK == TT_SMALL_LU ? p.b + matrix * p.step_b : p.a + at * p.step_a);
    const bool flipped = TASK == TT_SMALL_LU_SOLVE && p.option; /* the transposed system, or the adjoint one */
#pragma unroll
    for (int j = 0; j < ROWS; j++) {
        row[j] = !mine || j >= n ? number(0) : a[flipped ? j + LANE * n : LANE + j * n];
        if (flipped && p.option == 2) row[j] = conj_of(row[j]);
    }
    int place = LANE;
    if (factors) info = lu(row, n, &place, p.pivots + matrix * n, TASK == TT_SMALL_LU && p.option, !inverts && there);
#if TASK == TT_SMALL_LU
    T *const b = (T *)(p.b + matrix * p.step_b);
    __syncwarp();
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        if (mine && j < n) b[place + j * n] = row[j];
#else
    /* Of the right sides' row in this lane's place, where it stands; and the factors' row comes here. */
    int from = LANE;
    if (inverts) {
        for (int lane = 0; lane < n; lane++) from = lane_of_int(place, lane) == LANE ? lane : from;
#pragma unroll
        for (int j = 0; j < ROWS; j++) row[j] = lane_of(row[j], from);
    } else {
        for (int i = 0; i < n; i++) {
            int pivot = there ? p.pivots[at * n + i] : 1;
            if (pivot < 1 || pivot > n) {
                if (LANE == 0) tt_report(p.fault, TT_FAULT_PIVOT, pivot, n, 0);
                pivot = i + 1;
            }
            const int first = lane_of_int(from, i), second = lane_of_int(from, pivot - 1);
            from = LANE == pivot - 1 ? first : LANE == i ? second : from;
        }
    }
    T diagonal = number(1);
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        if (j == LANE && j < n) diagonal = row[j];
    T *const b = (T *)(p.b + matrix * p.step_b);
    const int first = blockIdx.y * p.at_once, cols = inverts ? n : p.cols;
    for (int c = first; c < cols && c < first + p.at_once; c++) {
        T *const column = b + (int64_t)c * n;
        T x = inverts ? number(from == c ? 1 : 0) : mine ? column[flipped ? LANE : from] : number(0);
        x = flipped ? solve(row, n, x, true, false, &diagonal) : solve(row, n, x, true, true, &diagonal);
        x = flipped ? solve(row, n, x, false, true, &diagonal) : solve(row, n, x, false, false, &diagonal);
        if (mine) column[flipped ? from : LANE] = x;
    }
    if (blockIdx.y) return;
#endif
#endif
    if (there && LANE == 0) p.info[matrix] = info;
}
