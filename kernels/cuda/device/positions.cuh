/* Offsets into a table from index tensors, and the dimensions around those indexed. Included by the families that use
 * them; TT_WIDE: sizes need 64-bit arithmetic; TT_INDEX: there is one index tensor, of that dtype and for one
 * dimension. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/index_args.h"

#if TT_WIDE
typedef int64_t tt_place;
#define TT_SPLIT(x, size, by) ((x) / (size))
#else
typedef uint32_t tt_place;
#define TT_SPLIT(x, size, by) tt_quotient(x, by)
#endif

/* Where element i of a walk over dimensions lies; the last dimension needs no division. */
static TT_DEVICE int64_t tt_offset_of(tt_place i, int n, const int64_t *size, const tt_divider *by,
                                      const int64_t *step) {
    int64_t at = 0;
    for (int d = 0; d < n - 1; d++) {
        const tt_place outer = TT_SPLIT(i, (tt_place)size[d], by[d]);
        at += (int64_t)(i - outer * (tt_place)size[d]) * step[d];
        i = outer;
    }
    return n > 0 ? at + (int64_t)i * step[n - 1] : 0;
}

static TT_DEVICE int64_t tt_read_index(const char *p, int dtype) {
    switch (dtype) {
    case TT_CODE_u8: return *(const uint8_t *)p;
    case TT_CODE_i8: return *(const int8_t *)p;
    case TT_CODE_i16: return *(const int16_t *)p;
    case TT_CODE_i32: return *(const int32_t *)p;
    default: return *(const int64_t *)p;
    }
}

/* What the value of index tensor k at a position adds to the offset. One out of range counts as 0. */
static TT_DEVICE int64_t tt_entry(const tt_positions &p, int k, int64_t at) {
    const tt_index_tensor &t = p.of[k];
#ifdef TT_INDEX
    int64_t v = *(const TT_TYPE(TT_INDEX) *)(t.data + at);
#else
    int64_t v = tt_read_index(t.data + at, t.dtype);
#endif
    const bool wraps = p.rule == TT_FAULT_SUBSCRIPT || p.rule == TT_FAULT_FLAT;
    if (v < (wraps ? -t.total : 0) || v >= t.total) {
        tt_report(p.fault, p.rule, v, t.total, t.dim);
        v = 0;
    }
    if (v < 0) v += t.total;
#ifndef TT_INDEX
    if (t.parts > 1) {
        int64_t offset = 0;
        for (int d = t.first; d < t.first + t.parts; d++) {
            offset += v % p.part_size[d] * p.part_step[d];
            v /= p.part_size[d];
        }
        return offset;
    }
#endif
    return v * p.part_step[t.first];
}

static TT_DEVICE int64_t tt_offset(const tt_positions &p, tt_place i) {
    int64_t offset = p.own ? tt_offset_of(i, p.ndim, p.size, p.by, p.table_step) : 0;
#ifdef TT_INDEX
    return offset + tt_entry(p, 0, tt_offset_of(i, p.ndim, p.size, p.by, p.index_step[0]));
#endif
    for (int k = 0; k < p.n; k++) offset += tt_entry(p, k, tt_offset_of(i, p.ndim, p.size, p.by, p.index_step[k]));
    return offset;
}

static TT_DEVICE int64_t tt_before(const tt_around &a, tt_place p) {
    return tt_offset_of(p, a.pre, a.size, a.by, a.step);
}
static TT_DEVICE int64_t tt_after(const tt_around &a, tt_place q) {
    return tt_offset_of(q, a.post, a.size + a.pre, a.by + a.pre, a.step + a.pre);
}
