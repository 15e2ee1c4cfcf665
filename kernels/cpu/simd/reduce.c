/* The reducers of each dtype: Note [The tree of a reduction] in backend/reduction.h. */
#include "cpu/simd.h"
#include "cpu/reduce.h"
#include "scalar/arith.h"

_Static_assert(TT_LANES == 32, "the lanes are joined in five steps");
#define HALVE(h, name, X)                                                                                              \
    for (int l = 0; l < h; l++) lane[l] = TT_JOIN_##name(X, lane[l], lane[l + h]);

/* X: the dtype read; A: the accumulator's C type. What a reducer does: scalar/reducers.h. */
#define REDUCER(name, X, A)                                                                                            \
    static void name##_##X##_fold(void *acc, const void *x, int64_t n, const void *param) {                            \
        const TT_C_##X *v = x;                                                                                         \
        const A *p = param;                                                                                            \
        A lane[TT_LANES];                                                                                              \
        int64_t i = TT_LANES;                                                                                          \
        (void)p;                                                                                                       \
        if (n >= TT_LANES) {                                                                                           \
            for (int l = 0; l < TT_LANES; l++) lane[l] = TT_MAP_##name(X, v[l], p[0]);                                 \
            for (; i + TT_LANES <= n; i += TT_LANES)                                                                   \
                for (int l = 0; l < TT_LANES; l++)                                                                     \
                    lane[l] = TT_JOIN_##name(X, lane[l], TT_MAP_##name(X, v[i + l], p[0]));                            \
            for (int l = 0; i + l < n; l++) lane[l] = TT_JOIN_##name(X, lane[l], TT_MAP_##name(X, v[i + l], p[0]));    \
        } else                                                                                                         \
            for (int l = 0; l < TT_LANES; l++)                                                                         \
                lane[l] = l < n ? (A)TT_MAP_##name(X, v[l], p[0]) : (A)TT_NONE_##name(X);                              \
        HALVE(16, name, X)                                                                                             \
        HALVE(8, name, X) HALVE(4, name, X) HALVE(2, name, X) HALVE(1, name, X) * (A *)acc = lane[0];                  \
    }                                                                                                                  \
    static void name##_##X##_first(void *acc, const void *x, int64_t n, const void *param) {                           \
        A *a = acc;                                                                                                    \
        const TT_C_##X *v = x;                                                                                         \
        const A *p = param;                                                                                            \
        (void)p;                                                                                                       \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) a[i] = TT_MAP_##name(X, v[i], p[i]);                                           \
    }                                                                                                                  \
    static void name##_##X##_next(void *acc, const void *x, int64_t n, const void *param) {                            \
        A *a = acc;                                                                                                    \
        const TT_C_##X *v = x;                                                                                         \
        const A *p = param;                                                                                            \
        (void)p;                                                                                                       \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) a[i] = TT_JOIN_##name(X, a[i], TT_MAP_##name(X, v[i], p[i]));                  \
    }                                                                                                                  \
    static void name##_##X##_rows(void *acc, const char *x, int64_t step, int64_t n, int64_t w) {                      \
        const A *p = NULL;                                                                                             \
        (void)p;                                                                                                       \
        for (int64_t r = 0; r < n && r < TT_LANES; r++) name##_##X##_first((A *)acc + r * w, x + r * step, w, NULL);   \
        for (int64_t r0 = TT_LANES; r0 < n; r0 += 4 * TT_LANES)                                                        \
            for (int64_t r = r0; r < n && r < r0 + TT_LANES; r++) {                                                    \
                A *to = (A *)acc + (r - r0) * w;                                                                       \
                const char *row = x + r * step;                                                                        \
                int64_t next = TT_LANES * step;                                                                        \
                if (r + 3 * TT_LANES < n) { /* four at a time: the accumulators move less */                           \
                    const TT_C_##X *a = (const void *)row, *b = (const void *)(row + next);                            \
                    const TT_C_##X *c = (const void *)(row + 2 * next), *d = (const void *)(row + 3 * next);           \
                    TT_INDEPENDENT                                                                                     \
                    for (int64_t k = 0; k < w; k++) {                                                                  \
                        A t = TT_JOIN_##name(X, to[k], TT_MAP_##name(X, a[k], p[0]));                                  \
                        t = TT_JOIN_##name(X, t, TT_MAP_##name(X, b[k], p[0]));                                        \
                        t = TT_JOIN_##name(X, t, TT_MAP_##name(X, c[k], p[0]));                                        \
                        to[k] = TT_JOIN_##name(X, t, TT_MAP_##name(X, d[k], p[0]));                                    \
                    }                                                                                                  \
                } else                                                                                                 \
                    for (int64_t k = r; k < n; k += TT_LANES) name##_##X##_next(to, x + k * step, w, NULL);            \
            }                                                                                                          \
    }                                                                                                                  \
    static void name##_##X##_join(void *acc, const void *other, int64_t n) {                                           \
        A *a = acc;                                                                                                    \
        const A *b = other;                                                                                            \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) a[i] = TT_JOIN_##name(X, a[i], b[i]);                                          \
    }

#define OF_DTYPE(name, X, A) REDUCER(name, X, TT_C_##A)
#define OF_DTYPES(name, reads, flops) TT_READS_##reads(OF_DTYPE, name)
TT_REDUCERS(OF_DTYPES)

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
#define FIND(name, X, A) [TT_CODE_##X] = find_##X,
#define MARK(name, X, A) [TT_CODE_##X] = mark_##X,
const tt_reduce_table TT_LOCAL(tt_reducers) = {
    .of = {TT_REDUCERS(ROW)},
    .find = {TT_READS_EVERY(FIND, max)},
    .mark = {TT_READS_EVERY(MARK, max)},
};
