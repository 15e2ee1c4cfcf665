/* Rows of attention's tiles: masks, exponentials, and what the derivative makes of them. */
#include "cpu/attention.h"
#include "core/sizes.h"
#include "cpu/simd.h"
#include "scalar/arith.h"

#define LANES 32 /* of a row's sums: the same on every instruction set */

#define T float
#define OF(name) name##_f32
#include "cpu/simd/attention_loops.h"
#define T double
#define OF(name) name##_f64
#include "cpu/simd/attention_loops.h"

#define TABLE(T) {exponentials_##T, finish_##T, weights_##T, multiply_##T, dots_##T, slopes_##T, add_##T}
const tt_attention_table TT_LOCAL(tt_attention_rows) = {TABLE(f32), TABLE(f64)};
