/* Note [Substitution in rows] in cpu/triangle.h. */
#include "cpu/triangle.h"
#include "cpu/simd.h"
#include <string.h>

#define INLINE static inline __attribute__((always_inline))
#define WIDTH 64 /* right-hand sides in registers */

#define T float
#define OF(name) name##_f32
#include "cpu/simd/triangle_loops.h"
#define T double
#define OF(name) name##_f64
#include "cpu/simd/triangle_loops.h"

const tt_triangle_table TT_LOCAL(tt_triangle_loops) = {solve_f32, solve_f64};
