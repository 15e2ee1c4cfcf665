/* Scans of neighbouring elements: a warp has a block of them, and each of its lanes a chunk. */
#pragma once
#define TT_WARPS (TT_SCAN_THREADS / 32)

/* What the threads of a warp have of its block: a chunk for each lane. */
struct chunk {
    accumulator before; /* what the chunks before it in the block give */
    accumulator total;  /* ... and with its own */
    acc_type top;       /* with TT_GOES_ON: its largest element */
};

union cell {
    element_type x;
#if TT_QUICK
    acc_type sum; /* of the elements up to x, beside the chunk's largest */
#endif
};

static TT_DEVICE cell *warp_tile() {
    __shared__ __align__(8) unsigned char tiles[TT_WARPS][32 * 33 * (TT_INDEXED ? 8 : sizeof(cell))];
    return (cell *)tiles[threadIdx.x / 32];
}

static TT_DEVICE int of_chunk(int n) {
    const int many = n - (int)(threadIdx.x & 31) * TT_CHUNK;
    return many < TT_CHUNK ? many : TT_CHUNK;
}

#if TT_QUICK
#include "cuda/device/scan_quick.cuh"
#endif

#if TT_GOES_ON
struct grown {
    growing up_to_lane, all;
};

/* What comes of `sum`, if it is not a new one, and the numbers of the first lanes, `many` in all, one after the other:
 * the largest up to each lane's, then how much what came before shrinks there, and what is added. */
static TT_DEVICE grown add_lanes(growing sum, bool is_new, acc_type x, int many) {
    __shared__ tt_pack<acc_type, 2> steps[TT_WARPS][32];
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32;
    const bool first = is_new && lane == 0;
    grown r;
    acc_type top = lane || is_new ? x : tt_log_top(sum.top, x), former;
#pragma unroll
    for (int h = 1; h < 32; h *= 2) {
        const acc_type other = __shfl_up_sync(~0u, top, h);
        if (lane >= h) top = tt_log_top(other, top);
    }
    former = __shfl_up_sync(~0u, top, 1);
    if (lane == 0 && !is_new) former = sum.top;
    const acc_type share = log_share(former, x);
    const bool grows = x > former;
    __syncwarp();
    steps[warp][lane] = {first ? 0 : grows ? share : 1, first || grows ? 1 : share};
    __syncwarp();
    acc_type now = is_new ? 0 : sum.sum;
    r.up_to_lane.top = top;
#pragma unroll 4
    for (int s = 0; s < many; s++) {
        now = now * steps[warp][s].at[0] + steps[warp][s].at[1];
        if (s == lane) r.up_to_lane.sum = now;
    }
    r.all.top = __shfl_sync(~0u, top, many - 1);
    r.all.sum = now;
    return r;
}
#endif

template <bool whole> static TT_DEVICE void read_chunks(const TT_ARGS &p, int64_t row, int64_t first, int n, chunk &c) {
    const int lane = threadIdx.x & 31, warp = threadIdx.x / 32, many = of_chunk(n);
    const element_type *x = (const element_type *)p.a + row * p.n;
    cell *const tile = warp_tile(), *const own = tile + lane * 33;
    const int64_t start = first + lane * TT_CHUNK;
    element_type raw[32];
#pragma unroll
    for (int k = 0; k < 32; k++)
        if (whole || k * 32 + lane < n) raw[k] = x[place(p, first + k * 32 + lane)];
#pragma unroll
    for (int k = 0; k < 32; k++)
        if (whole || k * 32 + lane < n) tile[k * 33 + lane].x = raw[k];
    __syncwarp();
    const accumulator total = total_of<whole>(
        many, start, [&](int j) { return own[j].x; },
        [&](int j, acc_type top, acc_type sum) {
            c.top = top;
#if TT_QUICK
            own[j].sum = sum;
#endif
        });
#if TT_GOES_ON
    c.total = add_lanes(growing(), true, total.value, 32).up_to_lane.total();
    c.before.value = __shfl_up_sync(~0u, c.total.value, 1);
#else
    __shared__ accumulator chunks[TT_WARPS][32], sums[TT_WARPS][32];
    chunks[warp][lane] = total;
    __syncwarp();
    accumulator sum = chunks[warp][0];
#pragma unroll TT_COPIES(32)
    for (int s = 1; s < 32; s++) { /* all lanes write the same */
        sums[warp][s] = sum;
        if (s < 31) sum = join(sum, chunks[warp][s]);
    }
    __syncwarp();
    c.before = sums[warp][lane ? lane : 1];
    c.total = join(c.before, total);
#endif
}

template <bool whole>
static TT_DEVICE void write_chunks(const TT_ARGS &p, int64_t row, int64_t first, int n, const chunk &c,
                                   const accumulator &sum) {
    const int lane = threadIdx.x & 31, many = of_chunk(n);
    cell *const tile = warp_tile(), *const own = tile + lane * 33;
    accumulator before = c.before;
    if (first > 0) before = lane > 0 ? join(sum, before) : sum;
    else if (lane == 0)
        before.value = TT_CONVERT(f64, TT_D1,
                                  TT_OP == TT_SCAN_PROD ? 1.0
                                  : TT_COSTS            ? -TT_INF_F64
                                                        : -0.0); /* which leaves all as it is */
    const int64_t start = first + lane * TT_CHUNK;
#if TT_INDEXED
    int64_t places[TT_CHUNK];
#endif
#if TT_GOES_ON
#if TT_QUICK
    const element_type *x = (const element_type *)p.a + row * p.n;
    const auto element = [&](int j) { return x[place(p, start + j)]; };
    if (!quick_results<whole>(own, many, c.top, before.value))
#else
    const auto element = [&](int j) { return own[j].x; };
#endif
    {
        growing a;
        a.start(before.value);
#pragma unroll 1
        for (int j = 0; j < many; j++) {
            a.add(first_of(element(j), 0).value);
            own[j].x = result_of(a.total());
        }
    }
#else
    accumulator a = before;
#pragma unroll
    for (int j = 0; j < TT_CHUNK; j++)
        if (whole || j < many) {
            const accumulator next = first_of(own[j].x, start + j);
            const bool alone = TT_INDEXED && first == 0 && lane == 0;
            a = j ? join(a, next) : next;
            const accumulator all = alone ? a : join(before, a);
            own[j].x = result_of(all);
#if TT_INDEXED
            places[j] = all.at;
#endif
        }
#endif
    __syncwarp();
    element_type *out = (element_type *)p.out + row * p.n;
#pragma unroll
    for (int k = 0; k < 32; k++)
        if (whole || k * 32 + lane < n) out[place(p, first + k * 32 + lane)] = tile[k * 33 + lane].x;
    __syncwarp();
#if TT_INDEXED
    int64_t *const found = (int64_t *)tile;
#pragma unroll
    for (int j = 0; j < TT_CHUNK; j++)
        if (whole || j < many) found[lane * 33 + j] = places[j];
    __syncwarp();
    for (int k = 0; k < 32; k++)
        if (whole || k * 32 + lane < n) p.index[row * p.n + place(p, first + k * 32 + lane)] = found[k * 33 + lane];
#endif
}
