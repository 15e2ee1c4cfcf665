/* Loops of the normalisation of channels. Sums are taken in the tree of Note [The tree of a reduction], and every
 * number is rounded where tinytorch/ops/batch_norm.py rounds: the bits are those of elementwise operators and
 * reductions. */
#include "cpu/simd.h"
#include "cpu/batch_norm.h"
#include "backend/reduction.h"
#include "scalar/arith.h"

#define LANES TT_LANES
#define TIMES 4 /* rows of a lane that are added at once: its sums move less */

#define T float
#define OF(name) name##_f32
#include "cpu/simd/batch_norm_loops.h"
#define T double
#define OF(name) name##_f64
#include "cpu/simd/batch_norm_loops.h"

#define TABLE(T)                                                                                                       \
    {sums_##T,   sums_rows_##T, gather_##T, normalize_##T, gradient_##T, rsqrt_##T,       fill_##T,                    \
     divide_##T, multiply_##T,  mix_##T,    affine_##T,    slopes_##T,   group_slopes_##T}
const tt_batch_table TT_LOCAL(tt_batch) = {TABLE(f32), TABLE(f64)};
