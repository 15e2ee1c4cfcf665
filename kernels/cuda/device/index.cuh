/* Elements between a table and dense rows, by index tensors. See index.c.
 *
 * TT_OP: what is done, of the numbers below. The variant: bits 0-2 the logarithm of the bytes that move together, 3 of
 * 64-bit arithmetic, 4 claims by hashing, 5 sort keys of 64 bits. */
#pragma once
#define TT_WIDE (TT_VARIANT & 8)
#include "cuda/device/positions.cuh"
#include "cuda/device/unit.cuh"
#define TT_ARGS tt_index_args

enum { TT_GET, TT_PUT, TT_CLAIM, TT_PUT_LAST, TT_KEYS };

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

extern "C" __global__ void __launch_bounds__(TT_CUDA_THREADS) tt_kernel(const __grid_constant__ TT_ARGS p) {
    const int64_t number = (int64_t)blockIdx.x * TT_CUDA_THREADS + threadIdx.x;
    if (number >= p.total) return;
    if (TT_OP == TT_CLAIM) {
        atomicMax(&p.claims.last[tt_take_slot(p.claims, tt_offset(p.at, (tt_place)number))], (int32_t)number);
        return;
    }
    if (TT_OP == TT_KEYS) {
        const int64_t key = tt_offset(p.at, (tt_place)number) / p.claims.grain;
        if (TT_VARIANT & 32) ((uint64_t *)p.sort_keys)[number] = (uint64_t)key;
        else ((uint32_t *)p.sort_keys)[number] = (uint32_t)key;
        return;
    }
    tt_place row = (tt_place)number, q = 0, before = 0;
    const tt_around &a = p.around;
    if (a.npost > 1) {
        row = TT_SPLIT((tt_place)number, (tt_place)a.npost, a.by_npost);
        q = (tt_place)number - row * (tt_place)a.npost;
    }
    tt_place i = row;
    if (a.npre > 1) {
        before = TT_SPLIT(row, (tt_place)p.at.m, a.by_m);
        i = row - before * (tt_place)p.at.m;
    }
    const int64_t offset = tt_offset(p.at, i);
    if (TT_OP == TT_PUT_LAST && p.claims.last[tt_find_slot(p.claims, offset)] != (int32_t)i) return;
    unit *element = (unit *)(p.table + offset + tt_before(a, before) + tt_after(a, q));
    unit *other = (unit *)(p.rows + number * p.row_step);
    if (TT_OP == TT_GET) *other = *element;
    else *element = *other;
}
