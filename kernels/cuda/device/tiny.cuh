/* Factors and systems of square matrices of at most 32 rows: a team of lanes has a matrix, a lane a row of it, in
 * registers; of right hand sides a lane has a column, and reads the factors from shared memory. Matrices are read where
 * they lie, and the results written as they are wanted. The variant as in small.cuh. */
#pragma once
#include "cuda/device/warps.cuh"
#define TT_ARGS tt_tiny_args
#define TASK (TT_VARIANT % TT_SMALL_LANES)
#define ROWS LANES

/* Steps over 32 rows are loops: unrolled, those of an inverse take NVRTC 8 s, of complex numbers 21 s. What a loop's
 * step is about lies at the rows' front, since the numbers of registers have to be known. */
static const int UNROLLED = ROWS > 16 ? 1 : ROWS;

typedef T room[ROWS][ROWS + 1]; /* so that neither a row nor a column lies in one bank */

static TT_DEVICE int lane_of_int(int x, int lane) {
    return __shfl_sync(~0u, x, (int)threadIdx.x % WARP / LANES * LANES + lane);
}

/* From the matrix's row in each lane to its column, or back. `place`: which row the lane's is. */
static TT_DEVICE void put_row(const T *x, int place, room &s) {
    __syncwarp();
#pragma unroll
    for (int j = 0; j < ROWS; j++) s[place][j] = x[j];
    __syncwarp();
}
static TT_DEVICE void to_columns(T *x, int place, room &s) {
    put_row(x, place, s);
#pragma unroll
    for (int i = 0; i < ROWS; i++) x[i] = s[i][LANE];
}
static TT_DEVICE void to_rows(T *x, int place, room &s) {
    __syncwarp();
#pragma unroll
    for (int i = 0; i < ROWS; i++) s[i][LANE] = x[i];
    __syncwarp();
#pragma unroll
    for (int j = 0; j < ROWS; j++) x[j] = s[place][j];
}

/* This lane's row of a matrix; zeros where there is none. Neighbouring lanes read neighbours. */
static TT_DEVICE void take(T *x, const T *from, int64_t down, int64_t along, int rows, int cols, room &s) {
    const bool by_columns = along < down;
    const int64_t lane_step = by_columns ? along : down, step = by_columns ? down : along;
    const int lanes = by_columns ? cols : rows, steps = by_columns ? rows : cols;
#pragma unroll
    for (int i = 0; i < ROWS; i++) x[i] = LANE < lanes && i < steps ? from[LANE * lane_step + i * step] : number(0);
    if (by_columns) to_rows(x, LANE, s);
}

/* The front element goes to the end. `back`: the end's is the front. */
static TT_DEVICE void turn(T *x, bool back) {
    const T front = x[back ? ROWS - 1 : 0];
#pragma unroll
    for (int j = 1; j < ROWS; j++) {
        const int to = back ? ROWS - j : j - 1;
        x[to] = x[back ? to - 1 : j];
    }
    x[back ? 0 : ROWS - 1] = front;
}

/* The lower factor; 0, or the order of the first minor that is not positive. Above the diagonal nothing counts. */
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
            if (below) row[j] = minus_product(row[j], row[k], by);
        }
    }
    return failed;
}

/* The place where the exchange of rows k and `other` brings the row of that place. */
static TT_DEVICE int exchanged(int place, int k, int other) { return place == k ? other : place == other ? k : place; }

/* P L U; 0, or the number of the first pivot that is zero. Rows stay in their lanes: *place is where the exchanges
 * bring this lane's. */
static TT_DEVICE int lu(T *row, int n, int *place, int *pivots, bool in_order) {
    int failed = 0;
#pragma unroll UNROLLED
    for (int k = 0; k < ROWS; k++, turn(row, false)) {
        if (k >= n) continue;
        const R here = size_of(row[0]);
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
        if (pivots && LANE == 0) pivots[k] = from + 1;
        *place = exchanged(*place, k, from);
        const T pivot = lane_of(row[0], lane);
        const bool zero = is_zero(pivot), below = !zero && *place > k;
        if (zero && !failed) failed = k + 1;
        if (below) row[0] = row[0] / pivot;
#pragma unroll
        for (int j = 1; j < ROWS; j++) {
            if (k + j >= ROWS) continue;
            const T by = lane_of(row[j], lane);
            if (below) row[j] = minus_product(row[j], row[0], by);
        }
    }
    return failed;
}

/* This lane's row's place after the exchanges of these pivots. */
static TT_DEVICE int place_by(const int *pivots, int n, tt_fault *fault) {
    int pivot = LANE < n && pivots ? pivots[LANE] : LANE + 1, place = LANE;
    if (LANE < n && (pivot < 1 || pivot > n)) {
        tt_report(fault, TT_FAULT_PIVOT, pivot, n, 0);
        pivot = LANE + 1;
    }
    for (int k = 0; k < n; k++) place = exchanged(place, k, lane_of_int(pivot, k) - 1);
    return place;
}

/* The solution of a triangular system, a column of right hand sides in each lane. */
static TT_DEVICE void solve(const room &s, T *x, int n, bool lower, bool unit) {
#pragma unroll UNROLLED
    for (int step = 0; step < ROWS; step++, turn(x, !lower)) {
        const int k = lower ? step : ROWS - 1 - step, front = lower ? 0 : ROWS - 1;
        if (k >= n) continue;
        if (!unit) x[front] = x[front] / s[k][k];
#pragma unroll
        for (int j = 1; j < ROWS; j++) {
            const int by = lower ? j : -j;
            if (step + j < ROWS) x[front + by] = minus_product(x[front + by], s[k + by][k], x[front]);
        }
    }
}

/* Of a problem, where its matrix is, or which is its. */
static TT_DEVICE int64_t place_of(const TT_ARGS &p, const int64_t *strides, int64_t problem) {
    int64_t at = 0;
    for (int d = p.nbatch - 1; d > 0; problem /= p.batch[d--]) at += problem % p.batch[d] * strides[d];
    return p.nbatch ? at + problem * strides[0] : 0;
}

extern "C" __global__ void __launch_bounds__(TT_FLAT_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    __shared__ room rooms[TT_FLAT_THREADS / LANES];
    room &s = rooms[TEAM];
    const int64_t problem = blockIdx.x * (int64_t)TEAMS + TEAM, first = (int64_t)blockIdx.y * LANES;
    const bool there = problem < p.count, writes = there && blockIdx.y == 0; /* what all parts of a system have */
    const int n = p.n, rows = there ? n : 0;
    const T *const a = (const T *)p.a + (there ? place_of(p, p.a_strides, problem) : 0);
    /* The upper factor is the adjoint of the lower one, of the adjoint. */
    const bool flipped = (TASK == TT_TINY_CHOLESKY || TASK == TT_TINY_LU_SOLVE) && p.option;
    const bool conjugate = TASK == TT_TINY_CHOLESKY ? p.option == 1 : TASK == TT_TINY_LU_SOLVE && p.option == 2;
    T row[ROWS];
    int info = 0;
    take(row, a, flipped ? p.a_along : p.a_down, flipped ? p.a_down : p.a_along, rows, rows, s);
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        if (conjugate) row[j] = conj_of(row[j]);
#if TASK == TT_TINY_CHOLESKY
    T *const x = row;
    const int cols = n;
    info = cholesky(row, n);
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        if (j > LANE) row[j] = number(0);
    if (flipped) to_columns(row, LANE, s);
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        if (flipped) row[j] = conj_of(row[j]);
#else
    int place = LANE;
#if TASK == TT_TINY_LU_SOLVE
    place = place_by(there ? p.pivots + place_of(p, p.pivot_strides, problem) * n : NULL, n, p.fault);
#else
    info = lu(row, n, &place, TASK != TT_TINY_INV && writes ? p.pivots + problem * n : NULL,
              TASK == TT_TINY_LU && p.option);
#endif
#if TASK == TT_TINY_LU || TASK == TT_TINY_SOLVE
    T *const factors = (T *)p.lu + problem * n * n;
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        if (writes && LANE < n && j < n) factors[place + j * n] = row[j];
#endif
#if TASK != TT_TINY_LU
    T x[ROWS];
#if TASK == TT_TINY_INV
    const int cols = n;
#pragma unroll
    for (int i = 0; i < ROWS; i++) x[i] = number(i == place ? 1 : 0);
#else
    const int cols = p.cols - first < LANES ? (int)(p.cols - first) : LANES;
    const T *const b = (const T *)p.b + (there ? place_of(p, p.b_strides, problem) : 0);
    take(x, b + first * p.b_along, p.b_down, p.b_along, rows, there ? cols : 0, s);
    to_columns(x, flipped ? LANE : place, s);
#endif
    put_row(row, TASK == TT_TINY_LU_SOLVE ? LANE : place, s); /* given factors are in order */
    solve(s, x, n, true, !flipped);
    solve(s, x, n, false, flipped);
    to_rows(x, flipped ? place : LANE, s);
#endif
#endif
#if TASK != TT_TINY_LU
    T *const out =
        (T *)p.out + (problem * (TASK == TT_TINY_SOLVE || TASK == TT_TINY_LU_SOLVE ? p.cols : n) + first) * n;
#pragma unroll
    for (int j = 0; j < ROWS; j++)
        if (LANE < rows && j < cols) out[LANE + j * n] = x[j];
#endif
    if (writes && LANE == 0) p.info[problem] = info;
}
