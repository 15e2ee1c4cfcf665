/* Elements between a table and dense rows, by index tensors. See index.c.
 *
 * TT_OP: what is done, of the numbers below. The variant: bits 0-2 the logarithm of the bytes that move together, 3 of
 * 64-bit arithmetic, 4 claims by hashing, 5 sort keys of 64 bits, 6 one index tensor, of TT_D0, for one dimension. A
 * thread of those that read has several elements, whose loads wait together. */
#pragma once
#define TT_WIDE (TT_VARIANT & 8)
#if TT_VARIANT & 64
#define TT_INDEX TT_D0
#endif
#include "cuda/device/positions.cuh"
#include "cuda/device/unit.cuh"
#define TT_ARGS tt_index_args

#define TT_GET 0
#define TT_PUT 1
#define TT_CLAIM 2
#define TT_PUT_LAST 3
#define TT_KEYS 4
#define TT_EACH (TT_OP == TT_GET || TT_OP == TT_KEYS ? 4 : 1) /* of a thread; see launch in index.c */

typedef tt_unit_of<1 << (TT_VARIANT & 7)>::type unit;

static TT_DEVICE uint64_t tt_first_slot(const tt_claims &c, uint64_t key) {
    key *= 0x9e3779b97f4a7c15ull;
    return (key ^ key >> 32) & c.mask;
}

/* The slot of an offset, taken if it has none yet. */
static TT_DEVICE uint64_t tt_take_slot(const tt_claims &c, int64_t offset) {
    const uint64_t key = (uint64_t)(offset / c.grain);
#if TT_VARIANT & 16
    uint64_t slot = tt_first_slot(c, key);
    for (;; slot = (slot + 1) & c.mask) {
        const uint64_t found = atomicCAS(&c.keys[slot], ~(uint64_t)0, key);
        if (found == ~(uint64_t)0 || found == key) return slot;
    }
#else
    return key;
#endif
}
static TT_DEVICE uint64_t tt_find_slot(const tt_claims &c, int64_t offset) {
    const uint64_t key = (uint64_t)(offset / c.grain);
#if TT_VARIANT & 16
    uint64_t slot = tt_first_slot(c, key);
    while (c.keys[slot] != key) slot = (slot + 1) & c.mask;
    return slot;
#else
    return key;
#endif
}

/* The row that element `number` is in, and where in the table it is besides what the index says. */
static TT_DEVICE tt_place row_of(const TT_ARGS &p, tt_place number, int64_t *offset) {
    tt_place row = number, q = 0, before = 0;
    const tt_around &a = p.around;
    if (a.npost > 1) {
        row = TT_SPLIT(number, (tt_place)a.npost, a.by_npost);
        q = number - row * (tt_place)a.npost;
    }
    tt_place i = row;
    if (a.npre > 1) {
        before = TT_SPLIT(row, (tt_place)p.at.m, a.by_m);
        i = row - before * (tt_place)p.at.m;
    }
    *offset = tt_before(a, before) + tt_after(a, q);
    return i;
}

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t number = (int64_t)blockIdx.x * (TT_CUDA_THREADS * TT_EACH) + threadIdx.x;
    if (number >= p.total) return;
#if TT_OP == TT_GET
    const char *from[TT_EACH];
    unit moved[TT_EACH];
#pragma unroll
    for (int k = 0; k < TT_EACH; k++) {
        const int64_t n = number + k * TT_CUDA_THREADS;
        if (n >= p.total) break;
        int64_t offset;
        const tt_place i = row_of(p, (tt_place)n, &offset);
        from[k] = p.table + offset + tt_offset(p.at, i);
    }
#pragma unroll
    for (int k = 0; k < TT_EACH; k++)
        if (number + k * TT_CUDA_THREADS < p.total) moved[k] = *(const unit *)from[k];
#pragma unroll
    for (int k = 0; k < TT_EACH; k++) {
        const int64_t n = number + k * TT_CUDA_THREADS;
        if (n < p.total) *(unit *)(p.rows + n * p.row_step) = moved[k];
    }
#elif TT_OP == TT_KEYS /* of which all steps are numbers of elements */
#pragma unroll
    for (int k = 0; k < TT_EACH; k++) {
        const int64_t n = number + k * TT_CUDA_THREADS;
        if (n >= p.total) break;
        const int64_t key = tt_offset(p.at, (tt_place)n);
        if (TT_VARIANT & 32) ((uint64_t *)p.sort_keys)[n] = (uint64_t)key;
        else ((uint32_t *)p.sort_keys)[n] = (uint32_t)key;
    }
#elif TT_OP == TT_CLAIM
    atomicMax(&p.claims.last[tt_take_slot(p.claims, tt_offset(p.at, (tt_place)number))], (int32_t)number);
#else
    int64_t outside;
    const tt_place i = row_of(p, (tt_place)number, &outside);
    const int64_t offset = tt_offset(p.at, i);
    if (TT_OP == TT_PUT_LAST && p.claims.last[tt_find_slot(p.claims, offset)] != (int32_t)i) return;
    *(unit *)(p.table + offset + outside) = *(const unit *)(p.rows + number * p.row_step);
#endif
}
