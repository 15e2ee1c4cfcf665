/* The reducers of each dtype: Note [The tree of a reduction] in ../reduce.h. */
#include "../simd.h"
#include "../reduce.h"
#include "../../scalar/arith.h"

_Static_assert(TT_LANES == 32, "the lanes are joined in five steps");
#define HALVE(h, JOIN) for (int l = 0; l < h; l++) lane[l] = JOIN(lane[l], lane[l + h]);

/* X: the dtype read; A: the accumulator's C type; MAP(x, p): an element's contribution; JOIN(a, b); NONE: what joined to
 * anything leaves it as it is, to the bit (so -0 and not 0 for sums), in lanes without elements. */
#define REDUCER(name, X, A, MAP, JOIN, NONE)                                                              \
    static void name##_##X##_fold(void *acc, const void *x, int64_t n, const void *param) {         \
        const TT_C_##X *v = x;                                                                      \
        const A *p = param;                                                                         \
        A lane[TT_LANES];                                                                           \
        int64_t i = TT_LANES;                                                                       \
        (void)p;                                                                                    \
        if (n >= TT_LANES) {                                                                        \
            for (int l = 0; l < TT_LANES; l++) lane[l] = MAP(v[l], p[0]);                           \
            for (; i + TT_LANES <= n; i += TT_LANES)                                                \
                for (int l = 0; l < TT_LANES; l++) lane[l] = JOIN(lane[l], MAP(v[i + l], p[0]));    \
            for (int l = 0; i + l < n; l++) lane[l] = JOIN(lane[l], MAP(v[i + l], p[0]));           \
        } else                                                                                      \
            for (int l = 0; l < TT_LANES; l++) lane[l] = l < n ? (A)MAP(v[l], p[0]) : (A)(NONE);    \
        HALVE(16, JOIN) HALVE(8, JOIN) HALVE(4, JOIN) HALVE(2, JOIN) HALVE(1, JOIN)                 \
        *(A *)acc = lane[0];                                                                        \
    }                                                                                               \
    static void name##_##X##_first(void *acc, const void *x, int64_t n, const void *param) {        \
        A *a = acc;                                                                                 \
        const TT_C_##X *v = x;                                                                      \
        const A *p = param;                                                                         \
        (void)p;                                                                                    \
        TT_INDEPENDENT                                                                              \
        for (int64_t i = 0; i < n; i++) a[i] = MAP(v[i], p[i]);                                     \
    }                                                                                               \
    static void name##_##X##_next(void *acc, const void *x, int64_t n, const void *param) {         \
        A *a = acc;                                                                                 \
        const TT_C_##X *v = x;                                                                      \
        const A *p = param;                                                                         \
        (void)p;                                                                                    \
        TT_INDEPENDENT                                                                              \
        for (int64_t i = 0; i < n; i++) a[i] = JOIN(a[i], MAP(v[i], p[i]));                         \
    }                                                                                               \
    static void name##_##X##_rows(void *acc, const char *x, int64_t step, int64_t n, int64_t w) {   \
        const A *p = NULL;                                                                          \
        (void)p;                                                                                    \
        for (int64_t r = 0; r < n && r < TT_LANES; r++) name##_##X##_first((A *)acc + r * w, x + r * step, w, NULL); \
        for (int64_t r0 = TT_LANES; r0 < n; r0 += 4 * TT_LANES)                                     \
            for (int64_t r = r0; r < n && r < r0 + TT_LANES; r++) {                                 \
                A *to = (A *)acc + (r - r0) * w;                                                    \
                const char *row = x + r * step;                                                     \
                int64_t next = TT_LANES * step;                                                     \
                if (r + 3 * TT_LANES < n) { /* four at a time: the accumulators move less */        \
                    const TT_C_##X *a = (const void *)row, *b = (const void *)(row + next);         \
                    const TT_C_##X *c = (const void *)(row + 2 * next), *d = (const void *)(row + 3 * next); \
                    TT_INDEPENDENT                                                                  \
                    for (int64_t k = 0; k < w; k++)                                                 \
                        to[k] = JOIN(JOIN(JOIN(JOIN(to[k], MAP(a[k], p[0])), MAP(b[k], p[0])), MAP(c[k], p[0])), MAP(d[k], p[0])); \
                } else                                                                              \
                    for (int64_t k = r; k < n; k += TT_LANES) name##_##X##_next(to, x + k * step, w, NULL); \
            }                                                                                       \
    }                                                                                               \
    static void name##_##X##_join(void *acc, const void *other, int64_t n) {                        \
        A *a = acc;                                                                                 \
        const A *b = other;                                                                         \
        TT_INDEPENDENT                                                                              \
        for (int64_t i = 0; i < n; i++) a[i] = JOIN(a[i], b[i]);                                    \
    }

#define ITSELF(x, p) (x)
#define AS_LONG(x, p) ((int64_t)(x))
#define PLUS(a, b) ((a) + (b))
#define TIMES(a, b) ((a) * (b))
#define PLUS_I64(a, b) ((int64_t)((uint64_t)(a) + (uint64_t)(b))) /* overflow wraps */
#define TIMES_I64(a, b) ((int64_t)((uint64_t)(a) * (uint64_t)(b)))
/* NaN wins; of equal ones the second. */
#define LARGER(a, b) (((a) > (b)) | ((a) != (a)) ? (a) : (b))
#define SMALLER(a, b) (((a) < (b)) | ((a) != (a)) ? (a) : (b))
#define LOWEST_b8 0
#define HIGHEST_b8 1
#define LOWEST_u8 0
#define HIGHEST_u8 UINT8_MAX
#define LOWEST_i8 INT8_MIN
#define HIGHEST_i8 INT8_MAX
#define LOWEST_i16 INT16_MIN
#define HIGHEST_i16 INT16_MAX
#define LOWEST_i32 INT32_MIN
#define HIGHEST_i32 INT32_MAX
#define LOWEST_i64 INT64_MIN
#define HIGHEST_i64 INT64_MAX
#define LOWEST_f32 -__builtin_inff()
#define HIGHEST_f32 __builtin_inff()
#define LOWEST_f64 -__builtin_inf()
#define HIGHEST_f64 __builtin_inf()
#define OR_ZERO(x, p) ((x) == (x) ? (x) : 0)
#define SQUARE(x, p) ((x) * (x))
#define IS_NONZERO_f32(x, p) ((x) != 0 ? 1.0f : 0.0f)
#define IS_NONZERO_f64(x, p) ((x) != 0 ? 1.0 : 0.0)
#define DEVIATION(x, p) (((x) - (p)) * ((x) - (p)))
#define ABS_f32(x, p) tt_abs_f32(x)
#define ABS_f64(x, p) tt_abs_f64(x)
#define EXP_f32(x, p) tt_exp_f32((x) - (p))
#define EXP_f64(x, p) tt_exp_f64((x) - (p))

#define FLOATING(X, A)                                                                              \
    REDUCER(sum, X, A, ITSELF, PLUS, -0.0) REDUCER(prod, X, A, ITSELF, TIMES, 1)                    \
    REDUCER(nansum, X, A, OR_ZERO, PLUS, -0.0) REDUCER(abssum, X, A, ABS_##X, PLUS, -0.0)           \
    REDUCER(sqsum, X, A, SQUARE, PLUS, -0.0) REDUCER(maxabs, X, A, ABS_##X, LARGER, LOWEST_##X)     \
    REDUCER(minabs, X, A, ABS_##X, SMALLER, HIGHEST_##X) REDUCER(nonzero, X, A, IS_NONZERO_##X, PLUS, -0.0) \
    REDUCER(devsq, X, A, DEVIATION, PLUS, -0.0) REDUCER(expsum, X, A, EXP_##X, PLUS, -0.0)
FLOATING(f32, float)
FLOATING(f64, double)
REDUCER(sum, i64, int64_t, ITSELF, PLUS_I64, 0)
REDUCER(prod, i64, int64_t, ITSELF, TIMES_I64, 1)
REDUCER(count, b8, int64_t, AS_LONG, PLUS_I64, 0)

#define SAME(a, b) ((a) == (b))
#define SAME_OR_NAN(a, b) (((a) == (b)) | (((a) != (a)) & ((b) != (b))))
#define EXTREMES(X, EQUAL)                                                                          \
    REDUCER(max, X, TT_C_##X, ITSELF, LARGER, LOWEST_##X)                                           \
    REDUCER(min, X, TT_C_##X, ITSELF, SMALLER, HIGHEST_##X)                                         \
    static int64_t find_##X(const void *x, int64_t n, const void *value) {                          \
        const TT_C_##X *v = x, wanted = *(const TT_C_##X *)value;                                   \
        int64_t i = 0;                                                                              \
        for (; i + TT_LANES <= n; i += TT_LANES) {                                                  \
            int any = 0;                                                                            \
            for (int l = 0; l < TT_LANES; l++) any |= EQUAL(v[i + l], wanted);                      \
            if (any) break;                                                                         \
        }                                                                                           \
        while (i < n && !EQUAL(v[i], wanted)) i++;                                                  \
        return i;                                                                                   \
    }                                                                                               \
    static void mark_##X(int64_t *index, const void *x, const void *value, int64_t n, int64_t row) { \
        const TT_C_##X *v = x, *wanted = value;                                                     \
        TT_INDEPENDENT                                                                              \
        for (int64_t i = 0; i < n; i++) index[i] = EQUAL(v[i], wanted[i]) ? row : index[i];         \
    }
EXTREMES(b8, SAME) EXTREMES(u8, SAME) EXTREMES(i8, SAME) EXTREMES(i16, SAME) EXTREMES(i32, SAME)
EXTREMES(i64, SAME) EXTREMES(f32, SAME_OR_NAN) EXTREMES(f64, SAME_OR_NAN)

#define ENTRY(name, X) [TT_ENUM_##X] = {name##_##X##_fold, name##_##X##_first, name##_##X##_next, name##_##X##_join, \
                                           name##_##X##_rows}
#define BOTH(name) {ENTRY(name, f32), ENTRY(name, f64)}
#define EVERY(name)                                                                                 \
    {ENTRY(name, b8), ENTRY(name, u8), ENTRY(name, i8), ENTRY(name, i16), ENTRY(name, i32), ENTRY(name, i64), \
     ENTRY(name, f32), ENTRY(name, f64)}
#define OF_DTYPES(f)                                                                                \
    {[TT_BOOL] = f##_b8, [TT_U8] = f##_u8, [TT_I8] = f##_i8, [TT_I16] = f##_i16, [TT_I32] = f##_i32, \
     [TT_I64] = f##_i64, [TT_F32] = f##_f32, [TT_F64] = f##_f64}
const tt_reduce_table TT_LOCAL(tt_reduce) = {
    .of = {
        [TT_RED_SUM] = {ENTRY(sum, f32), ENTRY(sum, f64), ENTRY(sum, i64)},
        [TT_RED_PROD] = {ENTRY(prod, f32), ENTRY(prod, f64), ENTRY(prod, i64)},
        [TT_RED_MAX] = EVERY(max), [TT_RED_MIN] = EVERY(min), [TT_RED_COUNT] = {ENTRY(count, b8)},
        [TT_RED_NANSUM] = BOTH(nansum), [TT_RED_ABSSUM] = BOTH(abssum), [TT_RED_SQSUM] = BOTH(sqsum),
        [TT_RED_MAXABS] = BOTH(maxabs), [TT_RED_MINABS] = BOTH(minabs), [TT_RED_NONZERO] = BOTH(nonzero),
        [TT_RED_DEVSQ] = BOTH(devsq), [TT_RED_EXPSUM] = BOTH(expsum),
    },
    .find = OF_DTYPES(find),
    .mark = OF_DTYPES(mark),
};
