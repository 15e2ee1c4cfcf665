/* Products of float32 and float64 matrices. */
#include "core/sizes.h"
#include "cpu/float_product.h"
#include "cpu/simd.h"
#include "cpu/simd/vectors.h"
#include <string.h>

#define UNROLLED true /* steps of whole tiles; convolutions, whose sums are short, take 1.1 of the time with it */
#define GROUP (4 * TILE_ROWS) /* rows of the left operand, or columns of a transpose, at a time */

#define T float
#define OF(name) name##_f32
#define FMA FMA_f32
#define SPLAT SPLAT_f32
#include "cpu/simd/tile.h"
#include "cpu/simd/float_product_loops.h"
#include "cpu/simd/tile_end.h"
#define T double
#define OF(name) name##_f64
#define FMA FMA_f64
#define SPLAT SPLAT_f64
#include "cpu/simd/tile.h"
#include "cpu/simd/float_product_loops.h"
#include "cpu/simd/tile_end.h"

#define LANES(T) (BYTES / (int)sizeof(T))
#define LOOPS(D, T)                                                                                                    \
    {                                                                                                                  \
        .lanes = LANES(T),                                                                                             \
        .tile_rows = TILE_ROWS,                                                                                        \
        .group = GROUP,                                                                                                \
        .tile_columns = VECTORS * LANES(T),                                                                            \
        .depth = TT_PRODUCT_DEPTH,                                                                                     \
        .grain = 8,                                                                                                    \
        .columns = TT_PRODUCT_COLUMNS,                                                                                 \
        .packed = sizeof(T),                                                                                           \
        .edge = TILE_ROWS * VECTORS * LANES(T) * sizeof(T),                                                            \
        .packing = 6,                                                                                                  \
        .pack = pack_##D,                                                                                              \
        .multiply = multiply_##D,                                                                                      \
        .rows_product = rows_product_##D,                                                                              \
        .turn = turn_lines_##D,                                                                                        \
    }
const tt_float_product_loops TT_LOCAL(tt_float_products)[2] = {LOOPS(f32, float), LOOPS(f64, double)};
