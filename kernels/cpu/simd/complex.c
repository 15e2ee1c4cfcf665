/* The loops of elementwise operators over complex numbers, made from scalar/ops.h. */
#include "cpu/simd.h"
#include "scalar/complex.h"

#define PART_c64 float
#define PART_c128 double
#define OUT_SAME(T) TT_C_##T
#define OUT_BOOL(T) uint8_t
#define OUT_PART(T) PART_##T
#define OUT_SELECT(T) TT_C_##T
#define FIRST_SAME(T) TT_C_##T
#define FIRST_SELECT(T) uint8_t

#define NAME(op, T) TT_LOCAL(op##_##T)
#define LOOP_1(op, T, rule)                                                                                            \
    void NAME(op, T)(char **p, int64_t n) {                                                                            \
        OUT_##rule(T) *out = (OUT_##rule(T) *)p[0];                                                                    \
        const TT_C_##T *a = (const TT_C_##T *)p[1];                                                                    \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) out[i] = tt_##op##_##T(a[i]);                                                  \
    }
#define LOOP_2(op, T, rule)                                                                                            \
    void NAME(op, T)(char **p, int64_t n) {                                                                            \
        OUT_##rule(T) *out = (OUT_##rule(T) *)p[0];                                                                    \
        const TT_C_##T *a = (const TT_C_##T *)p[1], *b = (const TT_C_##T *)p[2];                                       \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) out[i] = tt_##op##_##T(a[i], b[i]);                                            \
    }
#define LOOP_3(op, T, rule)                                                                                            \
    void NAME(op, T)(char **p, int64_t n) {                                                                            \
        OUT_##rule(T) *out = (OUT_##rule(T) *)p[0];                                                                    \
        const FIRST_##rule(T) *a = (const FIRST_##rule(T) *)p[1];                                                      \
        const TT_C_##T *b = (const TT_C_##T *)p[2], *c = (const TT_C_##T *)p[3];                                       \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) out[i] = tt_##op##_##T(a[i], b[i], c[i]);                                      \
    }
#define DECLARE(op, arity, rule) tt_complex_loop NAME(op, c64), NAME(op, c128);
typedef void tt_complex_loop(char **p, int64_t n);
TT_COMPLEX_OPS(DECLARE)
#define LOOPS(op, arity, rule) LOOP_##arity(op, c64, rule) LOOP_##arity(op, c128, rule)
TT_COMPLEX_OPS(LOOPS)
