/* How a thread block shares out a column-major matrix: a team goes through columns, its lanes through rows. Teams of a
 * warp shuffle together: where they do, all of them come by, with a column or without. */
#pragma once
#include "cuda/device/number.cuh"
#include "cuda/device/stack_args.h"
#define LANES (1 << TT_VARIANT / TT_SMALL_LANES)
#define LANE ((int)threadIdx.x % LANES)
#define TEAM ((int)threadIdx.x / LANES)
#define TEAMS ((int)blockDim.x / LANES)
#define WARP 32
#define EACH_COLUMN(j, begin, end) for (int j = (begin) + TEAM; j < (end); j += TEAMS)
#define EACH_ROW(i, begin, end) for (int i = (begin) + LANE; i < (end); i += LANES)

static TT_DEVICE R root_of(R x) { return sizeof(R) == 4 ? (R)tt_sqrt_f32((float)x) : (R)tt_sqrt_f64((double)x); }

/* Sum over the lanes of a team, alike in all. */
static TT_DEVICE R sum_of_lanes(R x) {
    for (int by = LANES / 2; by; by /= 2) x += __shfl_xor_sync(~0u, x, by);
    return x;
}
#if TT_IS_COMPLEX(TT_D0)
static TT_DEVICE T sum_of_lanes(T z) { return number(sum_of_lanes(z.re), sum_of_lanes(z.im)); }
#endif
static TT_DEVICE R most_of_lanes(R x) {
    for (int by = LANES / 2; by; by /= 2) {
        const R other = __shfl_xor_sync(~0u, x, by);
        x = other > x ? other : x;
    }
    return x;
}
/* x of that lane of the team. */
static TT_DEVICE R lane_of(R x, int lane) {
    return __shfl_sync(~0u, x, (int)threadIdx.x % WARP / LANES * LANES + lane);
}
#if TT_IS_COMPLEX(TT_D0)
static TT_DEVICE T lane_of(T z, int lane) { return number(lane_of(z.re, lane), lane_of(z.im, lane)); }
#endif
