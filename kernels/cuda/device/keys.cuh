/* Elements as unsigned integers in the same order, NaN last, -0 equal to 0 (kernels/cpu/sort_keys.c); rows; and what is
 * chosen of a sorted row. TT_D0: the dtype; TT_DESCENDING: all bits turned. */
#pragma once
#include "cuda/device/unit.cuh"
#include "cuda/device/sort_args.h"

#if TT_IS(TT_D0, b8) || TT_IS(TT_D0, u8) || TT_IS(TT_D0, i8)
#define TT_KEY_BITS 8
#elif TT_IS(TT_D0, i16) || TT_IS(TT_D0, u16) || TT_IS(TT_D0, f16) || TT_IS(TT_D0, bf16)
#define TT_KEY_BITS 16
#elif TT_IS(TT_D0, i32) || TT_IS(TT_D0, u32) || TT_IS(TT_D0, f32)
#define TT_KEY_BITS 32
#else
#define TT_KEY_BITS 64
#endif
#if TT_IS(TT_D0, f16) || TT_IS(TT_D0, bf16) || TT_IS(TT_D0, f32) || TT_IS(TT_D0, f64)
#define TT_FLOATING 1
#else
#define TT_FLOATING 0
#endif
#define TT_UNSIGNED                                                                                                    \
    (TT_IS(TT_D0, b8) || TT_IS(TT_D0, u8) || TT_IS(TT_D0, u16) || TT_IS(TT_D0, u32) || TT_IS(TT_D0, u64))
typedef tt_unit_of<TT_KEY_BITS / 8>::type stored;
#if TT_KEY_BITS == 64
typedef uint64_t sort_key;
#else
typedef uint32_t sort_key;
#endif
#define TT_KEY_ONES ((sort_key)(stored) ~(stored)0)
#define TT_SIGN ((sort_key)1 << (TT_KEY_BITS - 1))
#if TT_IS(TT_D0, f16)
#define TT_INFINITY 0x7c00u
#elif TT_IS(TT_D0, bf16)
#define TT_INFINITY 0x7f80u
#elif TT_IS(TT_D0, f32)
#define TT_INFINITY 0x7f800000u
#else
#define TT_INFINITY 0x7ff0000000000000ull
#endif

static TT_DEVICE sort_key tt_key_of(stored x) {
    sort_key key = x;
#if TT_FLOATING
    if (key == TT_SIGN) key = 0;
    key = (key & ~TT_SIGN) > TT_INFINITY ? TT_KEY_ONES : key & TT_SIGN ? key ^ TT_KEY_ONES : key | TT_SIGN;
#elif !TT_UNSIGNED
    key ^= TT_SIGN;
#endif
    return TT_DESCENDING ? key ^ TT_KEY_ONES : key;
}

/* Whose key it is; of zeros and NaNs, which share theirs, one: 0, and a NaN. */
static TT_DEVICE stored tt_element_of(sort_key key) {
    if (TT_DESCENDING) key ^= TT_KEY_ONES;
#if TT_FLOATING
    return (stored)(key & TT_SIGN ? key ^ TT_SIGN : key ^ TT_KEY_ONES);
#elif !TT_UNSIGNED
    return (stored)(key ^ TT_SIGN);
#else
    return (stored)key;
#endif
}
static TT_DEVICE bool tt_shares_key(sort_key key) {
    if (TT_DESCENDING) key ^= TT_KEY_ONES;
    return TT_FLOATING && (key == TT_KEY_ONES || key == TT_SIGN);
}

/* Where a row starts: in the operand (bytes), and in the results (elements). */
static TT_DEVICE void tt_row(const tt_sort_args &p, int64_t row, int64_t *in, int64_t *out) {
    *in = *out = 0;
    for (int d = 0; d < p.dims; d++) {
        int64_t x = row;
        if (d < p.dims - 1) {
            row /= p.size[d];
            x -= row * p.size[d];
        }
        *in += x * p.row_step[d];
        *out += x * p.out_row_step[d];
    }
}

static TT_DEVICE void tt_write_out(const tt_sort_args &p, int64_t in, int64_t out, int64_t i, int64_t index) {
    const int64_t at = out + i * p.out_step;
    ((stored *)p.values)[at] = *(const stored *)(p.in + in + index * p.step);
    p.indices[at] = index;
}

/* The first of a sorted row's elements whose key is not below `key`. */
template <typename K> static TT_DEVICE int64_t tt_bound(const K &keys, int64_t n, sort_key key) {
    int64_t low = 0, high = n;
    while (low < high) {
        const int64_t mid = low + (high - low) / 2;
        if (keys(mid) < key) low = mid + 1;
        else high = mid;
    }
    return low;
}

/* The rank that kthvalue and the medians choose, where `nans` elements are NaN. */
static TT_DEVICE int64_t tt_rank(const tt_sort_args &p, int64_t nans) {
    if (TT_OP == TT_KTH) return p.k;
    if (nans && TT_OP == TT_MEDIAN) return p.n - nans;
    return nans == p.n ? 0 : (p.n - nans - 1) / 2;
}

/* A run of equal keys that ends at i, as a number that is larger for a longer one, and for the first of several. */
template <typename K> static TT_DEVICE uint64_t tt_run(const K &keys, int64_t n, int64_t i) {
    const sort_key key = keys(i);
    if (i + 1 < n && keys(i + 1) == key) return 0;
    return (uint64_t)(i + 1 - tt_bound(keys, i, key)) << 32 | (uint32_t) ~(uint32_t)i;
}
static TT_DEVICE int64_t tt_run_end(uint64_t run) { return (int64_t)(uint32_t) ~(uint32_t)run; }

/* Exchanges in shared memory (Batcher's bitonic sort) of `size` elements, a power of two; all threads of the block. */
#if TT_KEY_BITS == 64
struct tt_bitonic {
    uint64_t *x;
    uint32_t *number;
    TT_DEVICE void set(int i, sort_key key, uint32_t n) { x[i] = key, number[i] = n; }
    TT_DEVICE sort_key key(int i) const { return x[i]; }
    TT_DEVICE uint32_t index(int i) const { return number[i]; }
    TT_DEVICE void pad(int i) { x[i] = ~(uint64_t)0, number[i] = ~0u; }
    TT_DEVICE void order(int i, int j, bool up) {
        const uint64_t a = x[i], b = x[j];
        const uint32_t m = number[i], n = number[j];
        if ((a > b || (a == b && m > n)) == up) x[i] = b, x[j] = a, number[i] = n, number[j] = m;
    }
};
#else
struct tt_bitonic {
    uint64_t *x;
    TT_DEVICE void set(int i, sort_key key, uint32_t n) { x[i] = (uint64_t)key << 32 | n; }
    TT_DEVICE sort_key key(int i) const { return (sort_key)(x[i] >> 32); }
    TT_DEVICE uint32_t index(int i) const { return (uint32_t)x[i]; }
    TT_DEVICE void pad(int i) { x[i] = ~(uint64_t)0; }
    TT_DEVICE void order(int i, int j, bool up) {
        const uint64_t a = x[i], b = x[j];
        if ((a > b) == up) x[i] = b, x[j] = a;
    }
};
#endif
/* In so much shared memory. */
static TT_DEVICE tt_bitonic tt_bitonic_in(unsigned char *room, int size) {
    tt_bitonic x;
    x.x = (uint64_t *)room;
#if TT_KEY_BITS == 64
    x.number = (uint32_t *)(x.x + size);
#endif
    return x;
}

static TT_DEVICE void tt_bitonic_sort(tt_bitonic &x, int size) {
    for (int length = 2; length <= size; length *= 2)
        for (int step = length / 2; step; step /= 2) {
            __syncthreads();
            for (int t = threadIdx.x; t < size / 2; t += blockDim.x) {
                const int i = 2 * t - (t & (step - 1));
                x.order(i, i + step, !(i & length));
            }
        }
    __syncthreads();
}

/* The number of the thread's key among its warp's of the same digit, of which there were `seen[digit]`; all threads of
 * the warp. */
static TT_DEVICE uint32_t tt_number_of_digit(uint32_t *seen, uint32_t digit, int lane) {
    uint32_t peers = ~0u;
#pragma unroll
    for (int b = 0; b < 8; b++) {
        const bool set = digit >> b & 1;
        const uint32_t with = __ballot_sync(~0u, set);
        peers &= set ? with : ~with;
    }
    const uint32_t below = peers & ((1u << lane) - 1), already = seen[digit];
    __syncwarp();
    if (!below) seen[digit] = already + __popc(peers);
    __syncwarp();
    return already + __popc(below);
}
