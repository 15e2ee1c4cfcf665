/* The reducers of each dtype: Note [The tree of a reduction] in backend/reduction.h. */
#include "cpu/simd.h"
#include "cpu/reduce.h"
#include "scalar/complex.h"

_Static_assert(TT_LANES == 32, "the lanes are joined in five steps");

/* (dtype read, accumulator's dtype): those of TT_READS_... in scalar/reducers.h */
#define T TT_C_b8
#define A TT_C_b8
#define OF(name) name##_b8_b8
#include "cpu/simd/reduce_loops.h"
#define T TT_C_u8
#define A TT_C_u8
#define OF(name) name##_u8_u8
#include "cpu/simd/reduce_loops.h"
#define T TT_C_i8
#define A TT_C_i8
#define OF(name) name##_i8_i8
#include "cpu/simd/reduce_loops.h"
#define T TT_C_i16
#define A TT_C_i16
#define OF(name) name##_i16_i16
#include "cpu/simd/reduce_loops.h"
#define T TT_C_i32
#define A TT_C_i32
#define OF(name) name##_i32_i32
#include "cpu/simd/reduce_loops.h"
#define T TT_C_i64
#define A TT_C_i64
#define OF(name) name##_i64_i64
#include "cpu/simd/reduce_loops.h"
#define T TT_C_f32
#define A TT_C_f32
#define OF(name) name##_f32_f32
#include "cpu/simd/reduce_loops.h"
#define T TT_C_f64
#define A TT_C_f64
#define OF(name) name##_f64_f64
#include "cpu/simd/reduce_loops.h"
#define T TT_C_c64
#define A TT_C_c64
#define OF(name) name##_c64_c64
#include "cpu/simd/reduce_loops.h"
#define T TT_C_c128
#define A TT_C_c128
#define OF(name) name##_c128_c128
#include "cpu/simd/reduce_loops.h"
#define T TT_C_b8
#define A TT_C_i64
#define OF(name) name##_b8_i64
#include "cpu/simd/reduce_loops.h"

/* A reducer's map and join, and the loops with them as constants: X is the dtype read, A the accumulator's. */
#define REDUCER(name, X, A)                                                                                            \
    TT_FN TT_C_##A name##_##X##_map(TT_C_##X x, const TT_C_##A *p, int64_t i) {                                        \
        (void)p, (void)i;                                                                                              \
        return TT_MAP_##name(X, x, p[i]);                                                                              \
    }                                                                                                                  \
    TT_FN TT_C_##A name##_##X##_join2(TT_C_##A a, TT_C_##A b) { return TT_JOIN_##name(X, a, b); }                      \
    static void name##_##X##_fold(void *acc, const void *x, int64_t n, const void *p) {                                \
        fold_##X##_##A(acc, x, n, p, name##_##X##_map, name##_##X##_join2, TT_NONE_##name(X));                         \
    }                                                                                                                  \
    static void name##_##X##_first(void *acc, const void *x, int64_t n, const void *p) {                               \
        first_##X##_##A(acc, x, n, p, name##_##X##_map);                                                               \
    }                                                                                                                  \
    static void name##_##X##_next(void *acc, const void *x, int64_t n, const void *p) {                                \
        next_##X##_##A(acc, x, n, p, name##_##X##_map, name##_##X##_join2);                                            \
    }                                                                                                                  \
    static void name##_##X##_rows(void *acc, const char *x, int64_t step, int64_t n, int64_t w, const void *p,         \
                                  tt_cast_loop cast) {                                                                 \
        rows_##X##_##A(acc, x, step, n, w, p, cast, name##_##X##_map, name##_##X##_join2);                             \
    }                                                                                                                  \
    static void name##_##X##_join(void *acc, const void *other, int64_t n) {                                           \
        join_##X##_##A(acc, other, n, name##_##X##_join2);                                                             \
    }

#define OF_DTYPES(name, reads, flops) TT_READS_##reads(REDUCER, name)
TT_REDUCERS(OF_DTYPES)
#define COMPLEX_REDUCER(name, X) REDUCER(name, X, X)
TT_COMPLEX_REDUCERS(COMPLEX_REDUCER)

#define SAME(a, b) ((a) == (b))
#define SAME_OR_NAN(a, b) (((a) == (b)) | (((a) != (a)) & ((b) != (b))))
#define EXTREMES(X, EQUAL)                                                                                             \
    static int64_t find_##X(const void *x, int64_t n, const void *value) {                                             \
        const TT_C_##X *v = x, wanted = *(const TT_C_##X *)value;                                                      \
        int64_t i = 0;                                                                                                 \
        for (; i + TT_LANES <= n; i += TT_LANES) {                                                                     \
            int any = 0;                                                                                               \
            for (int l = 0; l < TT_LANES; l++) any |= EQUAL(v[i + l], wanted);                                         \
            if (any) break;                                                                                            \
        }                                                                                                              \
        while (i < n && !EQUAL(v[i], wanted)) i++;                                                                     \
        return i;                                                                                                      \
    }                                                                                                                  \
    static void mark_##X(int64_t *index, const void *x, const void *value, int64_t n, int64_t row) {                   \
        const TT_C_##X *v = x, *wanted = value;                                                                        \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) index[i] = EQUAL(v[i], wanted[i]) ? row : index[i];                            \
    }
EXTREMES(b8, SAME)
EXTREMES(u8, SAME)
EXTREMES(i8, SAME)
EXTREMES(i16, SAME)
EXTREMES(i32, SAME)
EXTREMES(i64, SAME)
EXTREMES(f32, SAME_OR_NAN)
EXTREMES(f64, SAME_OR_NAN)

#define ENTRY(name, X, A)                                                                                              \
    [TT_CODE_##X] = {name##_##X##_fold, name##_##X##_first, name##_##X##_next, name##_##X##_join, name##_##X##_rows},
#define ROW(name, reads, flops) [TT_RED_##name] = {TT_READS_##reads(ENTRY, name)},
#define COMPLEX_ENTRY(name, X)                                                                                         \
    [TT_RED_##name][TT_CODE_##X] = {name##_##X##_fold, name##_##X##_first, name##_##X##_next, name##_##X##_join,       \
                                    name##_##X##_rows},
#define FIND(name, X, A) [TT_CODE_##X] = find_##X,
#define MARK(name, X, A) [TT_CODE_##X] = mark_##X,
const tt_reduce_table TT_LOCAL(tt_reducers) = {
    .of = {TT_REDUCERS(ROW) TT_COMPLEX_REDUCERS(COMPLEX_ENTRY)},
    .find = {TT_READS_EVERY(FIND, max)},
    .mark = {TT_READS_EVERY(MARK, max)},
};
