/* Convolutions: tiles of products, and the panels that they take. Note [Convolutions as products] in cpu/conv.h. */
#include "cpu/conv.h"
#include "cpu/simd.h"
#include "cpu/simd/vectors.h"
#include <string.h>

#define DIMS TT_CONV_DIMS
#define UNROLLED false

/* The places of a vector's lanes as runs in memory: lane k of run r is element at[r] + k run_step. */
typedef struct {
    int n;
    uint32_t lanes[16];
    int64_t at[16];
} runs;

static int64_t run_step(const tt_correlation *c) {
    return c->axis[DIMS - 1].step * c->axis[DIMS - 1].source == 2 ? 2 : 1;
}

#define T float
#define OF(name) name##_f32
#define FMA FMA_f32
#define SPLAT SPLAT_f32
#define LANES_OF LANES_4
#define EVEN_LANES_OF EVEN_LANES_4
#define STORE_LANES STORE_LANES_4
#define STORE_EVEN_LANES STORE_EVEN_LANES_4
#include "cpu/simd/tile.h"
#include "cpu/simd/conv_pack.h"
#include "cpu/simd/conv_loops.h"
#include "cpu/simd/conv_depthwise.h"
#include "cpu/simd/conv_winograd_tiles.h"
#include "cpu/simd/conv_winograd.h"
#include "cpu/simd/tile_end.h"
#define T double
#define OF(name) name##_f64
#define FMA FMA_f64
#define SPLAT SPLAT_f64
#define LANES_OF LANES_8
#define EVEN_LANES_OF EVEN_LANES_8
#define STORE_LANES STORE_LANES_8
#define STORE_EVEN_LANES STORE_EVEN_LANES_8
#include "cpu/simd/tile.h"
#include "cpu/simd/conv_pack.h"
#include "cpu/simd/conv_loops.h"
#include "cpu/simd/conv_depthwise.h"
#include "cpu/simd/tile_end.h"
#define T uint64_t /* wraps as signed integers do */
#define OF(name) name##_i64
#define FMA FMA_i64
#define SPLAT SPLAT_i64
#define LANES_OF LANES_8
#define EVEN_LANES_OF EVEN_LANES_8
#define STORE_LANES STORE_LANES_8
#define STORE_EVEN_LANES STORE_EVEN_LANES_8
#include "cpu/simd/tile.h"
#include "cpu/simd/conv_pack.h"
#include "cpu/simd/conv_loops.h"
#include "cpu/simd/conv_depthwise.h"
#include "cpu/simd/tile_end.h"

#define LOOPS(D, T)                                                                                                    \
    {                                                                                                                  \
        .lanes = BYTES / (int)sizeof(T), .tile_rows = TILE_ROWS, .tile_columns = VECTORS * BYTES / (int)sizeof(T),     \
        .pack = pack_weight_##D, .correlate = {correlate_##D, correlate_last_##D},                                     \
        .weigh = {weigh_##D, weigh_last_##D}, .add_parts = add_parts_##D, .pack_depthwise = pack_depthwise_##D,        \
        .depthwise = {depthwise_##D, depthwise_last_##D}, .weigh_depthwise = {                                         \
            weigh_depthwise_##D,                                                                                       \
            weigh_depthwise_last_##D                                                                                   \
        }                                                                                                              \
    }
const tt_conv_table TT_LOCAL(tt_conv_tables) = {{LOOPS(f32, float), LOOPS(f64, double), LOOPS(i64, int64_t)},
                                                winograd_weight_f32,
                                                winograd_f32,
                                                winograd_weigh_f32,
                                                winograd_add_parts_f32};
