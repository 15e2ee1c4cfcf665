/* What a loop over elements needs besides the scalar functions: shared by the kernels' loops and by generated code. */
#pragma once

/* A loop's iterations do not depend on each other even where an output is an input (then they are the very same
 * element): without the pragma compilers test for overlap at run time. */
#ifdef __clang__
#define TT_INDEPENDENT _Pragma("clang loop vectorize(assume_safety)")
#else
#define TT_INDEPENDENT _Pragma("GCC ivdep")
#endif

/* Reducing a huge argument by pi costs seven times the rest: a block without one takes the function that need not.
 * op_block(out, a, n) for a PERIODIC operator (see ops.h). */
#define TT_PERIODIC_BLOCK(op)                                                                                          \
    static void op##_block(float *out, const float *a, int64_t n) {                                                    \
        int large = 0;                                                                                                 \
        for (int64_t i = 0; i < n; i++) large |= !(tt_abs_f32(a[i]) <= TT_TRIG_SMALL_F32);                             \
        if (large) {                                                                                                   \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < n; i++) out[i] = tt_##op##_f32(a[i]);                                              \
        } else {                                                                                                       \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < n; i++) out[i] = tt_##op##_small_f32(a[i]);                                        \
        }                                                                                                              \
    }
