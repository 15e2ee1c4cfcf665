/* Sorting keys with their indices: insertion for a few, merging for some, radix from the least digit for many. */
#include "cpu/sort.h"
#include "scalar/half.h"
#include <string.h>

#define FEW 16
#define SOME 768             /* up to here merging is faster than a radix sort's tables */
#define DIGIT 11             /* bits */
#define BUCKETS (1 << DIGIT)
#define PIECES 16            /* of a long row, each with a histogram of its own */
#define LONG (1 << 16)

bool tt_key_is_narrow(int dtype) { return tt_itemsizes[dtype] < 8; }

/* Negative floats turned whole, others moved above them; NaN above all. */
static inline uint32_t key_f32(float x) {
    uint32_t u = tt_bits_f32(x + 0.0f); /* -0 + 0 is 0 */
    uint32_t key = u >> 31 ? ~u : u | 0x80000000u;
    return x != x ? 0xffffffffu : key;
}
static inline uint64_t key_f64(double x) {
    uint64_t u = tt_bits_f64(x + 0.0);
    uint64_t key = u >> 63 ? ~u : u | 0x8000000000000000u;
    return x != x ? ~(uint64_t)0 : key;
}

#define NARROW(T, KEY)                                                                                                 \
    for (int64_t i = 0; i < n; i++) {                                                                                  \
        T v;                                                                                                           \
        memcpy(&v, p + i * (int64_t)sizeof v, sizeof v);                                                               \
        out[i] = (tt_packed)((uint32_t)(KEY) ^ flip) << 32 | (uint32_t)i;                                              \
    }

void tt_make_packed(tt_packed *out, const void *x, int dtype, int64_t n, bool descending) {
    const char *p = x;
    uint32_t flip = !descending ? 0 : tt_itemsizes[dtype] == 1 ? 0xff : tt_itemsizes[dtype] == 2 ? 0xffff : 0xffffffffu;
    if (tt_is_half(dtype)) flip = descending ? 0xffffffffu : 0;
    switch (dtype) {
    case TT_BOOL:
    case TT_U8: NARROW(uint8_t, v) break;
    case TT_I8: NARROW(uint8_t, v ^ 0x80u) break;
    case TT_U16: NARROW(uint16_t, v) break;
    case TT_U32: NARROW(uint32_t, v) break;
    case TT_I16: NARROW(uint16_t, v ^ 0x8000u) break;
    case TT_I32: NARROW(uint32_t, v ^ 0x80000000u) break;
    case TT_F16: NARROW(uint16_t, key_f32(tt_f16_to_f32(v))) break;
    case TT_BF16: NARROW(uint16_t, key_f32(tt_bf16_to_f32(v))) break;
    default: NARROW(float, key_f32(v)) break;
    }
}

void tt_make_keyed(tt_keyed *out, const void *x, int dtype, int64_t n, bool descending) {
    const char *p = x;
    uint64_t flip = descending ? ~(uint64_t)0 : 0;
    for (int64_t i = 0; i < n; i++) {
        uint64_t u;
        double f;
        memcpy(&u, p + i * 8, 8);
        memcpy(&f, p + i * 8, 8);
        uint64_t key = dtype == TT_F64 ? key_f64(f) : dtype == TT_U64 ? u : u ^ 0x8000000000000000u;
        out[i] = (tt_keyed){key ^ flip, (uint64_t)i};
    }
}

int tt_compact_keys(tt_keyed *x, int64_t n) {
    uint64_t lo = ~(uint64_t)0, hi = 0;
    for (int64_t i = 0; i < n; i++) {
        lo = x[i].key < lo ? x[i].key : lo;
        hi = x[i].key > hi ? x[i].key : hi;
    }
    if (n == 0 || lo == hi) return 0;
    for (int64_t i = 0; i < n; i++) x[i].key -= lo;
    return 64 - __builtin_clzll(hi - lo);
}

typedef struct {
    void *from, *to;
    int64_t n;
    int shift;
    int64_t (*table)[BUCKETS];
} radix_pass;

#define T tt_packed
#define OF(name) name##_packed
#define LESS(a, b) ((a) < (b))
#define DIGIT_OF(e, shift) ((e) >> (32 + (shift)) & (BUCKETS - 1))
#include "cpu/sort_keys_loops.h"
#define T tt_keyed
#define OF(name) name##_keyed
#define LESS(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).index < (b).index))
#define DIGIT_OF(e, shift) ((e).key >> (shift) & (BUCKETS - 1))
#include "cpu/sort_keys_loops.h"
