/* Moves between a table of elements, reached by offsets, and dense rows. */
#include "cpu/gather_rows.h"
#include "scalar/complex.h"
#include "scalar/half.h"
#include <string.h>

#define GRAIN 32768 /* elements a thread should have before another is worth waking */

/* Copies do not care what the bits mean: one pair for each size of element. */
#define COPIES(T)                                                                                                      \
    typedef T __attribute__((may_alias)) bits_##T;                                                                     \
    static void get_run_##T(char *table, int64_t table_step, char *rows, int64_t row_step, int64_t n) {                \
        if (table_step == sizeof(T)) memcpy(rows, table, (size_t)n * sizeof(T));                                       \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++)                                                                            \
                *(bits_##T *)(rows + i * row_step) = *(const bits_##T *)(table + i * table_step);                      \
    }                                                                                                                  \
    static void put_run_##T(char *table, int64_t table_step, char *rows, int64_t row_step, int64_t n) {                \
        if (table_step == sizeof(T) && row_step) memcpy(table, rows, (size_t)n * sizeof(T));                           \
        else                                                                                                           \
            for (int64_t i = 0; i < n; i++)                                                                            \
                *(bits_##T *)(table + i * table_step) = *(const bits_##T *)(rows + i * row_step);                      \
    }                                                                                                                  \
    static void get_hop_##T(char *table, const int64_t *offsets, char *rows, int64_t row_step, int64_t n) {            \
        (void)row_step;                                                                                                \
        for (int64_t i = 0; i < n; i++) ((bits_##T *)rows)[i] = *(const bits_##T *)(table + offsets[i]);               \
    }                                                                                                                  \
    static void put_hop_##T(char *table, const int64_t *offsets, char *rows, int64_t row_step, int64_t n) {            \
        for (int64_t i = 0; i < n; i++) *(bits_##T *)(table + offsets[i]) = *(const bits_##T *)(rows + i * row_step);  \
    }
COPIES(uint8_t)
COPIES(uint16_t)
COPIES(uint32_t)
COPIES(uint64_t)
typedef unsigned __int128 uint128_t __attribute__((aligned(8)));
COPIES(uint128_t)
/* clang-format off */
#define COPY_PAIRS(way)                                                                                        \
    {[1] = {way##_run_uint8_t, way##_hop_uint8_t}, [2] = {way##_run_uint16_t, way##_hop_uint16_t},             \
     [4] = {way##_run_uint32_t, way##_hop_uint32_t}, [8] = {way##_run_uint64_t, way##_hop_uint64_t},            \
     [16] = {way##_run_uint128_t, way##_hop_uint128_t}}
/* clang-format on */
static const tt_mover copies[2][TT_MAX_ITEMSIZE + 1] = {COPY_PAIRS(put), COPY_PAIRS(get)};

/* Updates: the scalar function of old and new value. Half types are computed in float32 and rounded each time. */
#define PLAIN(op, T, a, b) tt_##op##_##T(a, b)
#define HALF(op, T, a, b) tt_f32_to_##T(tt_##op##_f32(tt_##T##_to_f32(a), tt_##T##_to_f32(b)))
#define UPDATE(op, T, C, COMPUTE)                                                                                      \
    static void op##_run_##T(char *table, int64_t table_step, char *rows, int64_t row_step, int64_t n) {               \
        if (table_step == sizeof(C) && row_step == sizeof(C)) {                                                        \
            C *to = (C *)table;                                                                                        \
            const C *from = (const C *)rows;                                                                           \
            for (int64_t i = 0; i < n; i++) to[i] = COMPUTE(op, T, to[i], from[i]);                                    \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            C *to = (C *)(table + i * table_step);                                                                     \
            *to = COMPUTE(op, T, *to, *(const C *)(rows + i * row_step));                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void op##_hop_##T(char *table, const int64_t *offsets, char *rows, int64_t row_step, int64_t n) {           \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            C *to = (C *)(table + offsets[i]);                                                                         \
            *to = COMPUTE(op, T, *to, *(const C *)(rows + i * row_step));                                              \
        }                                                                                                              \
    }
/* clang-format off */
#define UPDATES(op)                                                                                            \
    UPDATE(op, b8, uint8_t, PLAIN) UPDATE(op, u8, uint8_t, PLAIN) UPDATE(op, i8, int8_t, PLAIN)                \
    UPDATE(op, i16, int16_t, PLAIN) UPDATE(op, i32, int32_t, PLAIN) UPDATE(op, i64, int64_t, PLAIN)            \
    UPDATE(op, f16, uint16_t, HALF) UPDATE(op, bf16, uint16_t, HALF)                                           \
    UPDATE(op, f32, float, PLAIN) UPDATE(op, f64, double, PLAIN)
/* clang-format on */
UPDATES(add)
UPDATES(mul)
UPDATE(add, c64, tt_complex64, PLAIN)
UPDATE(add, c128, tt_complex128, PLAIN)
UPDATE(mul, c64, tt_complex64, PLAIN)
UPDATE(mul, c128, tt_complex128, PLAIN)
UPDATES(maximum)
UPDATES(minimum)
#define PAIR(op, T) [TT_CODE_##T] = {op##_run_##T, op##_hop_##T}
#define PAIRS(op)                                                                                                      \
    {PAIR(op, b8),  PAIR(op, u8),  PAIR(op, i8),   PAIR(op, i16), PAIR(op, i32),                                       \
     PAIR(op, i64), PAIR(op, f16), PAIR(op, bf16), PAIR(op, f32), PAIR(op, f64)}
#define COMPLEX_PAIR(how, op, T) [how][TT_CODE_##T] = {op##_run_##T, op##_hop_##T}
/* Complex numbers have no order. */
static const tt_mover updates[TT_NUM_MOVES][TT_NUM_DTYPES] = {
    [TT_MOVE_ADD] = PAIRS(add),          [TT_MOVE_MUL] = PAIRS(mul),           [TT_MOVE_MAX] = PAIRS(maximum),
    [TT_MOVE_MIN] = PAIRS(minimum),      COMPLEX_PAIR(TT_MOVE_ADD, add, c64),  COMPLEX_PAIR(TT_MOVE_ADD, add, c128),
    COMPLEX_PAIR(TT_MOVE_MUL, mul, c64), COMPLEX_PAIR(TT_MOVE_MUL, mul, c128),
};

/* The trailing positions [q0, q1) of one row. */
static void move_row(const tt_moves *j, char *table, char *row, int64_t q0, int64_t q1) {
    int last = j->post - 1;
    int64_t index[TT_MAX_NDIM], rest = q0;
    row += q0 * j->row_step;
    for (int d = last; d >= 0; d--) {
        index[d] = rest % j->post_shape[d];
        rest /= j->post_shape[d];
        table += index[d] * j->post_strides[d];
    }
    for (int64_t n = q1 - q0; n > 0;) {
        int64_t run = j->post_shape[last] - index[last];
        if (run > n) run = n;
        j->mover.run(table, j->post_strides[last], row, j->row_step, run);
        row += run * j->row_step;
        table += run * j->post_strides[last];
        index[last] += run;
        n -= run;
        for (int d = last; d > 0 && index[d] == j->post_shape[d]; d--) {
            table += j->post_strides[d - 1] - j->post_shape[d] * j->post_strides[d];
            index[d] = 0;
            index[d - 1]++;
        }
    }
}

static void move(const tt_moves *j, int64_t p, int64_t i0, int64_t i1, int64_t q0, int64_t q1) {
    char *table = j->table, *row = j->rows + (p * j->m + i0) * j->npost * j->row_step;
    for (int d = j->pre - 1; d >= 0; d--) {
        table += p % j->pre_shape[d] * j->pre_strides[d];
        p /= j->pre_shape[d];
    }
    if (j->npost == 1) {
        j->mover.hop(table, j->offsets + i0, row, j->row_step, i1 - i0);
        return;
    }
    for (int64_t i = i0; i < i1; i++, row += j->npost * j->row_step) move_row(j, table + j->offsets[i], row, q0, q1);
}

static void move_reads(void *context, int64_t begin, int64_t end) {
    const tt_moves *j = context;
    while (begin < end) {
        int64_t p = begin / j->m, i = begin % j->m, n = j->m - i < end - begin ? j->m - i : end - begin;
        move(j, p, i, i + n, 0, j->npost);
        begin += n;
    }
}
static void move_leading(void *context, int64_t begin, int64_t end) {
    const tt_moves *j = context;
    for (int64_t p = begin; p < end; p++) move(j, p, 0, j->m, 0, j->npost);
}
/* Writes of whole rows: a thread does those that begin in its part of the table. Counted in PARTS. */
#define PARTS 4096
static void move_owned(void *context, int64_t begin, int64_t end) {
    const tt_moves *j = context;
    int64_t from = j->first + begin * j->part, until = j->first + end * j->part;
    for (int64_t i = 0; i < j->m; i++)
        if (j->offsets[i] >= from && j->offsets[i] < until) move(j, 0, i, i + 1, 0, j->npost);
}
static void run_owned(tt_moves *j) {
    int64_t last = j->first = j->offsets[0];
    for (int64_t i = 1; i < j->m; i++) {
        if (j->offsets[i] < j->first) j->first = j->offsets[i];
        if (j->offsets[i] > last) last = j->offsets[i];
    }
    j->part = (last - j->first) / PARTS + 1;
    tt_parallel(PARTS, j->m * j->npost > 4 * GRAIN ? 256 : PARTS, move_owned, j);
}
static void move_trailing(void *context, int64_t begin, int64_t end) {
    const tt_moves *j = context;
    move(j, 0, 0, j->m, begin, end);
}

static int64_t grain_of(int64_t each) { return each >= GRAIN ? 1 : GRAIN / (each > 0 ? each : 1); }

/* Reads may be shared out at will. Two writes may meet in one element, so theirs are shared out by the element: each
 * thread goes through all of the index, in order. */
void tt_run_moves(tt_moves *j, int dtype, int how) {
    if (!j->m || !j->npre || !j->npost) return;
    j->mover = how == TT_MOVE_GET || how == TT_MOVE_PUT ? copies[how == TT_MOVE_GET][tt_itemsizes[dtype]]
                                                        : updates[how][dtype];
    if (how == TT_MOVE_GET) tt_parallel(j->npre * j->m, grain_of(j->npost), move_reads, j);
    else if (j->npre > 1) tt_parallel(j->npre, grain_of(j->m * j->npost), move_leading, j);
    else if (j->npost >= 32 && j->m >= 4) run_owned(j);
    else tt_parallel(j->npost, grain_of(j->m) < 64 ? 64 : grain_of(j->m), move_trailing, j);
}
