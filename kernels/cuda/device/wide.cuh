/* Blocks whose elements lie together, many of a warp's at a time, for reduce.cuh. A thread has TT_WIDE neighbouring
 * lanes of the tree, so that one load gives an element to each of them, and a warp as many blocks. Where the order does
 * not matter to the bits a warp reads what lies together instead. */
#pragma once

#define TT_WIDE (1 << TT_LOG_WIDE)
#define TT_SHARE (TT_LANES / TT_WIDE) /* threads of a block */
#define TT_ANY_ORDER ((TT_INTEGRAL_DTYPES >> TT_CODE(TT_D2) & 1) && !TT_INDEXED)
#define TT_SUMS (TT_ANY_ORDER && TT_WIDE > 4 ? 4 : TT_WIDE) /* of a thread */
#define TT_PITCH (TT_ANY_ORDER ? 32 * TT_WIDE : TT_LANES) /* from a thread's elements to its next */
#define TT_AHEAD (128 / (TT_WIDE * sizeof(stored_type)) < 32 ? 128 / (TT_WIDE * (int)sizeof(stored_type)) : 32)
/* at least so many thread blocks on a processor */
#define TT_RESIDENT (TT_INDEXED || sizeof(acc_type) > 4 || sizeof(stored_type) == 1 ? 3 : 4)

/* What a thread reads at once. Elements of less than 4 bytes stay together until they are used, or a register would
 * hold one. */
template <bool narrow> struct kept_as {
    typedef stored_type unit;
    static TT_DEVICE stored_type element(const unit *x, int j) { return x[j]; }
};
#if !TT_IS_COMPLEX(TT_D0)
template <> struct kept_as<true> {
    typedef uint32_t unit;
    static TT_DEVICE stored_type element(const unit *x, int j) {
        const int byte = j * (int)sizeof(stored_type);
        return (stored_type)(x[byte / 4] >> byte % 4 * 8);
    }
};
#endif
typedef kept_as<(sizeof(stored_type) < 4)> kept;
typedef tt_pack<kept::unit, TT_WIDE *(int)sizeof(stored_type) / (int)sizeof(kept::unit)> elements;

static TT_DEVICE void add(near (&a)[TT_SUMS], const elements &x, acc_type param, int row) {
#pragma unroll
    for (int j = 0; j < TT_WIDE; j++)
        a[j % TT_SUMS] = with(a[j % TT_SUMS], contributed(kept::element(x.at, j), param), row);
}

template <bool whole>
static TT_DEVICE void add_elements(near (&a)[TT_SUMS], const stored_type *from, int64_t left, acc_type param) {
    if (whole) { /* a register is filled anew as soon as its elements are added */
        elements x[TT_AHEAD];
#pragma unroll
        for (int e = 0; e < TT_AHEAD; e++) x[e] = *(const elements *)(from + e * TT_PITCH);
#pragma unroll 1
        for (int b = TT_AHEAD; b < 32; b += TT_AHEAD)
#pragma unroll
            for (int e = 0; e < TT_AHEAD; e++) {
                add(a, x[e], param, b - TT_AHEAD + e);
                x[e] = *(const elements *)(from + (b + e) * TT_PITCH);
            }
#pragma unroll
        for (int e = 0; e < TT_AHEAD; e++) add(a, x[e], param, 32 - TT_AHEAD + e);
    } else {
#pragma unroll 1
        for (int e = 0; e < 32; e++)
#pragma unroll
            for (int j = 0; j < TT_WIDE; j++)
                if (e * TT_PITCH + j < left)
                    a[j % TT_SUMS] = with(a[j % TT_SUMS], contributed(from[e * TT_PITCH + j], param), e);
    }
}

/* The warp's blocks, the `begin`-th TT_WIDE of them. */
static TT_DEVICE accumulator warp_blocks(const TT_ARGS &p, const char *base, int64_t begin, acc_type param) {
    const int lane = threadIdx.x & 31, block = lane / TT_SHARE;
    const int offset = TT_ANY_ORDER ? lane * TT_WIDE : block * TT_BLOCK + lane % TT_SHARE * TT_WIDE;
    const int64_t first = begin * (TT_BLOCK * TT_WIDE), left = p.reduced - first;
    const char *start = base + (TT_RUN_LAYOUT == TT_RED_FLAT ? first * (int)sizeof(stored_type) : place(p.run, first));
    const stored_type *from = (const stored_type *)start + offset;
    near a[TT_SUMS];
#pragma unroll
    for (int j = 0; j < TT_SUMS; j++) a[j] = nothing_near();
    if (left >= TT_BLOCK * TT_WIDE) add_elements<true>(a, from, left - offset, param);
    else add_elements<false>(a, from, left - offset, param);
#if TT_INDEXED
#pragma unroll
    for (int j = 0; j < TT_SUMS; j++)
        a[j].at = offset + j < left ? a[j].at * TT_PITCH + offset + j : TT_BLOCK * TT_WIDE;
#endif
#pragma unroll
    for (int h = TT_LANES / 2; h > 0; h /= 2)
        if (!TT_ANY_ORDER && h >= TT_WIDE) {
#pragma unroll
            for (int j = 0; j < TT_SUMS; j++) a[j] = join(a[j], lane_below(a[j], h / TT_WIDE));
        } else if (h < TT_SUMS) {
#pragma unroll
            for (int j = 0; j < h; j++) a[j] = join(a[j], a[j + h]);
        }
    near all = a[0];
#pragma unroll
    for (int h = TT_ANY_ORDER ? 1 : TT_SHARE; h < 32; h *= 2) all = join(all, lane_below(all, h));
#if TT_INDEXED
    return accumulated(all.value, first + all.at);
#else
    return accumulated(all.value, 0);
#endif
}
