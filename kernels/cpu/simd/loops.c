/* The loops of every elementwise operator, made from scalar/ops.h. */
#include "cpu/simd.h"
#include "backend/operators.h"
#include "scalar/arith.h"

/* A processor has too few elements of a costly operator under way to ask for memory in time: line by line, one some
 * way ahead is asked for. 1M floats, two cores: tanh 205 -> 187 us, exp 171 -> 155; a cheap operator gains nothing. */
#define AHEAD 1024 /* bytes */
#define COST(op, arity, domain, rule, flops, cost) cost_of_##op = cost,
enum { TT_COMMON_OPS(COST) };
#define FETCH(p) __builtin_prefetch((const char *)((p) + at) + AHEAD)
#define ELEMENTS(op, T, fetch, assignment)                                                                             \
    const int line = (int)(64 / sizeof(TT_C_##T));                                                                     \
    int64_t at = 0;                                                                                                    \
    if (cost_of_##op >= TT_COSTLY)                                                                                     \
        for (; at + line <= n; at += line) {                                                                           \
            fetch;                                                                                                     \
            TT_INDEPENDENT                                                                                             \
            for (int k = 0; k < line; k++) {                                                                           \
                const int64_t i = at + k;                                                                              \
                assignment;                                                                                            \
            }                                                                                                          \
        }                                                                                                              \
    TT_INDEPENDENT                                                                                                     \
    for (int64_t i = at; i < n; i++) assignment

#define LOOP_1(op, T, R)                                                                                               \
    static void op##_##T(char **p, int64_t n) {                                                                        \
        R *out = (R *)p[0];                                                                                            \
        const TT_C_##T *a = (const TT_C_##T *)p[1];                                                                    \
        ELEMENTS(op, T, FETCH(a), out[i] = tt_##op##_##T(a[i]));                                                       \
    }
#define LOOP_2(op, T, R)                                                                                               \
    static void op##_##T(char **p, int64_t n) {                                                                        \
        R *out = (R *)p[0];                                                                                            \
        const TT_C_##T *a = (const TT_C_##T *)p[1], *b = (const TT_C_##T *)p[2];                                       \
        ELEMENTS(op, T, (FETCH(a), FETCH(b)), out[i] = tt_##op##_##T(a[i], b[i]));                                     \
    }
#define LOOP_3(op, T, A)                                                                                               \
    static void op##_##T(char **p, int64_t n) {                                                                        \
        TT_C_##T *out = (TT_C_##T *)p[0];                                                                              \
        const A *a = (const A *)p[1];                                                                                  \
        const TT_C_##T *b = (const TT_C_##T *)p[2], *c = (const TT_C_##T *)p[3];                                       \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) out[i] = tt_##op##_##T(a[i], b[i], c[i]);                                      \
    }

#define LOOP_1_PERIODIC(op, T) LOOP_PERIODIC_##T(op)
#define LOOP_PERIODIC_f64(op) LOOP_1(op, f64, double)
#define LOOP_PERIODIC_f32(op)                                                                                          \
    TT_PERIODIC_BLOCK(op)                                                                                              \
    static void op##_f32(char **p, int64_t n) {                                                                        \
        float *out = (float *)p[0];                                                                                    \
        const float *a = (const float *)p[1];                                                                          \
        for (int64_t at = 0; at < n; at += TT_BLOCK)                                                                   \
            op##_block(out + at, a + at, at + TT_BLOCK < n ? TT_BLOCK : n - at);                                       \
    }
#define LOOP_1_SAME(op, T) LOOP_1(op, T, TT_C_##T)
#define LOOP_1_PART(op, T) LOOP_1(op, T, TT_C_##T)
#define LOOP_1_BOOL(op, T) LOOP_1(op, T, uint8_t)
#define LOOP_2_SAME(op, T) LOOP_2(op, T, TT_C_##T)
#define LOOP_2_BOOL(op, T) LOOP_2(op, T, uint8_t)
#define LOOP_3_SAME(op, T) LOOP_3(op, T, TT_C_##T)
#define LOOP_3_SELECT(op, T) LOOP_3(op, T, uint8_t)
#define LOOPS(name, arity, domain, rule, ...) TT_DTYPES_##domain(LOOP_##arity##_##rule, name)
TT_COMMON_OPS(LOOPS)
#define WIDE_UNSIGNED_LOOPS(name, arity, rule)                                                                         \
    LOOP_##arity##_##rule(name, u16) LOOP_##arity##_##rule(name, u32) LOOP_##arity##_##rule(name, u64)
TT_WIDE_UNSIGNED_OPS(WIDE_UNSIGNED_LOOPS)

/* p: the two results, x, the gradient. */
#define PAIR(op, derivative)                                                                                           \
    static void op##_pair(char **p, int64_t n) {                                                                       \
        float *out = (float *)p[0], *other = (float *)p[1];                                                            \
        const float *x = (const float *)p[2], *g = (const float *)p[3];                                                \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const float a = x[i], b = g[i];                                                                            \
            out[i] = tt_##op##_f32(a);                                                                                 \
            other[i] = tt_##derivative##_f32(b, a);                                                                    \
        }                                                                                                              \
    }
TT_PAIRS(PAIR)

#define ENTRY(op, T) [TT_CODE_##T] = op##_##T,
#define ROW(name, arity, domain, ...) [TT_OP_##name] = {TT_DTYPES_##domain(ENTRY, name)},
/* The loops of special functions: cpu/special.c. */
#define SPECIAL(name, ...) tt_special_loop tt_loop_##name##_f32, tt_loop_##name##_f64;
#define SPECIAL_ROW(name, ...)                                                                                         \
    [TT_OP_##name] = {[TT_CODE_f32] = tt_loop_##name##_f32, [TT_CODE_f64] = tt_loop_##name##_f64},
typedef void tt_special_loop(char **p, int64_t n);
TT_SPECIAL_OPS(SPECIAL)
/* The loops over complex numbers: complex.c. */
#define COMPLEX(op, arity, rule) void TT_LOCAL(op##_c64)(char **p, int64_t n), TT_LOCAL(op##_c128)(char **p, int64_t n);
TT_COMPLEX_OPS(COMPLEX)
#define COMPLEX_ROW(op, arity, rule)                                                                                   \
    [TT_OP_##op][TT_C64] = TT_LOCAL(op##_c64), [TT_OP_##op][TT_C128] = TT_LOCAL(op##_c128),
#define WIDE_UNSIGNED_ROW(op, arity, rule)                                                                             \
    [TT_OP_##op][TT_U16] = op##_u16, [TT_OP_##op][TT_U32] = op##_u32, [TT_OP_##op][TT_U64] = op##_u64,
const tt_op_loops TT_LOCAL(tt_op_table)[TT_NUM_OPS] = {
    TT_COMMON_OPS(ROW) TT_SPECIAL_OPS(SPECIAL_ROW) TT_COMPLEX_OPS(COMPLEX_ROW) TT_WIDE_UNSIGNED_OPS(WIDE_UNSIGNED_ROW)};

#define PAIR_ENTRY(op, derivative) [TT_PAIR_##op] = op##_pair,
const tt_loop TT_LOCAL(tt_pair_table)[TT_NUM_PAIRS] = {TT_PAIRS(PAIR_ENTRY)};
