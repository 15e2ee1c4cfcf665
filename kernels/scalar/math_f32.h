/* float32 scalar functions: one definition for eager loops, the block interpreter, generated C
   and CUDA.  All but fmod, remainder and floor_divide are branch-free, so that compilers
   vectorise loops over them; all have the same bits on every instruction set (see bits.h) and
   are within 2 ulp everywhere, as checked by tests/scalar/ulp.c. */
#ifndef TT_SCALAR_MATH_F32_H
#define TT_SCALAR_MATH_F32_H

#include "bits.h"
#include "exp_f32.h"
#include "log_f32.h"
#include "trig_f32.h"
#include "erf_f32.h"
#include "hyper_f32.h"
#include "special_f32.h"
#include "binary_f32.h"

TT_FN float tt_reciprocal_f32(float x) { return 1.0f / x; }
TT_FN float tt_rsqrt_f32(float x) { return 1.0f / tt_sqrt_f32(x); }

#ifdef TT_APPROXIMATE /* a header with other functions in the place of some of these */
#include TT_APPROXIMATE
#endif

#endif
