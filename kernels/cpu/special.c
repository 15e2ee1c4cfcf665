/* The loops of the special functions, made from scalar/ops.h. They are not compiled for each instruction set as those
 * of simd/loops.c are: there is nothing in them to vectorise. */
#include "core/tt.h"
#include "scalar/special.h"

#define LOOP_1(name, T)                                                                                                \
    void tt_loop_##name##_##T(char **p, int64_t n) {                                                                   \
        TT_C_##T *out = (TT_C_##T *)p[0];                                                                              \
        const TT_C_##T *a = (const TT_C_##T *)p[1];                                                                    \
        for (int64_t i = 0; i < n; i++) out[i] = tt_##name##_##T(a[i]);                                                \
    }
#define LOOP_2(name, T)                                                                                                \
    void tt_loop_##name##_##T(char **p, int64_t n) {                                                                   \
        TT_C_##T *out = (TT_C_##T *)p[0];                                                                              \
        const TT_C_##T *a = (const TT_C_##T *)p[1], *b = (const TT_C_##T *)p[2];                                       \
        for (int64_t i = 0; i < n; i++) out[i] = tt_##name##_##T(a[i], b[i]);                                          \
    }
#define LOOP_3(name, T)                                                                                                \
    void tt_loop_##name##_##T(char **p, int64_t n) {                                                                   \
        TT_C_##T *out = (TT_C_##T *)p[0];                                                                              \
        const TT_C_##T *a = (const TT_C_##T *)p[1], *b = (const TT_C_##T *)p[2], *c = (const TT_C_##T *)p[3];          \
        for (int64_t i = 0; i < n; i++) out[i] = tt_##name##_##T(a[i], b[i], c[i]);                                    \
    }
#define DECLARE(name, ...) void tt_loop_##name##_f32(char **p, int64_t n), tt_loop_##name##_f64(char **p, int64_t n);
TT_SPECIAL_OPS(DECLARE)
#define LOOPS(name, arity, ...) LOOP_##arity(name, f32) LOOP_##arity(name, f64)
TT_SPECIAL_OPS(LOOPS)
