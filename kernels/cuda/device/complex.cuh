/* What kernels that are written for numbers need to take complex ones. */
#pragma once
#include "scalar/complex.h"

static TT_DEVICE tt_complex64 operator+(tt_complex64 a, tt_complex64 b) { return tt_add_c64(a, b); }
static TT_DEVICE tt_complex128 operator+(tt_complex128 a, tt_complex128 b) { return tt_add_c128(a, b); }
static TT_DEVICE tt_complex64 operator*(tt_complex64 a, tt_complex64 b) { return tt_mul_c64(a, b); }
static TT_DEVICE tt_complex128 operator*(tt_complex128 a, tt_complex128 b) { return tt_mul_c128(a, b); }
#if !TT_EMULATED /* the emulator's are templates */
#define TT_BY_PARTS(T)                                                                                                 \
    static TT_DEVICE T __shfl_down_sync(unsigned mask, T z, unsigned by) {                                             \
        z.re = __shfl_down_sync(mask, z.re, by);                                                                       \
        z.im = __shfl_down_sync(mask, z.im, by);                                                                       \
        return z;                                                                                                      \
    }                                                                                                                  \
    static TT_DEVICE T __ldcg(const T *at) {                                                                           \
        T z;                                                                                                           \
        z.re = __ldcg(&at->re);                                                                                        \
        z.im = __ldcg(&at->im);                                                                                        \
        return z;                                                                                                      \
    }
TT_BY_PARTS(tt_complex64)
TT_BY_PARTS(tt_complex128)
#endif
