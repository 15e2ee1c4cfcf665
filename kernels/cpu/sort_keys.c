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

bool tt_key_is_narrow(int dtype) { return dtype != TT_I64 && dtype != TT_F64; }

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
        out[i] = (tt_keyed){(dtype == TT_F64 ? key_f64(f) : u ^ 0x8000000000000000u) ^ flip, (uint64_t)i};
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

/* E: the element; LESS: by key, then index; DIGIT_OF(e, shift): BUCKETS' worth of the key. */
#define SORTS(S, E, LESS, DIGIT_OF)                                                                                    \
    static void insertion_##S(E *x, int64_t n) {                                                                       \
        for (int64_t i = 1; i < n; i++) {                                                                              \
            E e = x[i];                                                                                                \
            int64_t j = i;                                                                                             \
            for (; j > 0 && LESS(e, x[j - 1]); j--) x[j] = x[j - 1];                                                   \
            x[j] = e;                                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    static E *merge_##S(E *x, E *spare, int64_t n) {                                                                   \
        for (int64_t i = 0; i < n; i += FEW) insertion_##S(x + i, n - i < FEW ? n - i : FEW);                          \
        for (int64_t run = FEW; run < n; run *= 2) {                                                                   \
            for (int64_t i = 0; i < n; i += 2 * run) {                                                                 \
                int64_t a = i, mid = i + run < n ? i + run : n, b = mid, end = mid + run < n ? mid + run : n;          \
                E *to = spare + i;                                                                                     \
                while (a < mid && b < end) {                                                                           \
                    bool right = LESS(x[b], x[a]);                                                                     \
                    *to++ = right ? x[b] : x[a];                                                                       \
                    b += right;                                                                                        \
                    a += !right;                                                                                       \
                }                                                                                                      \
                while (a < mid) *to++ = x[a++];                                                                        \
                while (b < end) *to++ = x[b++];                                                                        \
            }                                                                                                          \
            E *swap = x;                                                                                               \
            x = spare;                                                                                                 \
            spare = swap;                                                                                              \
        }                                                                                                              \
        return x;                                                                                                      \
    }                                                                                                                  \
    static void count_##S(void *context, int64_t begin, int64_t end) {                                                 \
        radix_pass *p = context;                                                                                       \
        for (int64_t piece = begin; piece < end; piece++) {                                                            \
            int64_t *table = p->table[piece], last = p->n * (piece + 1) / PIECES;                                      \
            const E *x = p->from;                                                                                      \
            memset(table, 0, sizeof(int64_t) * BUCKETS);                                                               \
            for (int64_t i = p->n * piece / PIECES; i < last; i++) table[DIGIT_OF(x[i], p->shift)]++;                  \
        }                                                                                                              \
    }                                                                                                                  \
    static void place_##S(void *context, int64_t begin, int64_t end) {                                                 \
        radix_pass *p = context;                                                                                       \
        for (int64_t piece = begin; piece < end; piece++) {                                                            \
            int64_t *table = p->table[piece], last = p->n * (piece + 1) / PIECES;                                      \
            const E *x = p->from;                                                                                      \
            E *to = p->to;                                                                                             \
            for (int64_t i = p->n * piece / PIECES; i < last; i++) to[table[DIGIT_OF(x[i], p->shift)]++] = x[i];       \
        }                                                                                                              \
    }                                                                                                                  \
    E *tt_sort_##S(E *x, E *spare, int64_t n, int bits) {                                                              \
        if (n <= SOME) return merge_##S(x, spare, n);                                                                  \
        int pieces = n >= LONG ? PIECES : 1;                                                                           \
        int64_t(*table)[BUCKETS] = tt_scratch((int64_t)sizeof(int64_t) * BUCKETS * PIECES);                            \
        if (!table) return merge_##S(x, spare, n); /* slower, but needs nothing */                                     \
        for (int shift = 0; shift < bits; shift += DIGIT) {                                                            \
            radix_pass p = {x, spare, n, shift, table};                                                                \
            int64_t at = 0;                                                                                            \
            bool one_bucket = false;                                                                                   \
            if (pieces > 1) tt_parallel(PIECES, 1, count_##S, &p);                                                     \
            else {                                                                                                     \
                memset(table, 0, sizeof(int64_t) * BUCKETS);                                                           \
                for (int64_t i = 0; i < n; i++) table[0][DIGIT_OF(x[i], shift)]++;                                     \
            }                                                                                                          \
            for (int d = 0; d < BUCKETS; d++) {                                                                        \
                int64_t before = at;                                                                                   \
                for (int piece = 0; piece < pieces; piece++) {                                                         \
                    int64_t many = table[piece][d];                                                                    \
                    table[piece][d] = at;                                                                              \
                    at += many;                                                                                        \
                }                                                                                                      \
                one_bucket |= at - before == n;                                                                        \
            }                                                                                                          \
            if (one_bucket) continue; /* this digit is the same in all */                                              \
            if (pieces > 1) tt_parallel(PIECES, 1, place_##S, &p);                                                     \
            else                                                                                                       \
                for (int64_t i = 0; i < n; i++) spare[table[0][DIGIT_OF(x[i], shift)]++] = x[i];                       \
            E *swap = x;                                                                                               \
            x = spare;                                                                                                 \
            spare = swap;                                                                                              \
        }                                                                                                              \
        tt_scratch_free(table);                                                                                        \
        return x;                                                                                                      \
    }                                                                                                                  \
    /* Hoare's selection; the pivot is the median of three, at places that a hash chooses. */                          \
    void tt_nth_##S(E *x, int64_t n, int64_t k) {                                                                      \
        int64_t lo = 0, hi = n - 1;                                                                                    \
        uint64_t hash = 0x9e3779b97f4a7c15u;                                                                           \
        while (hi - lo >= FEW) {                                                                                       \
            int64_t span = hi - lo + 1;                                                                                \
            E pick[3];                                                                                                 \
            for (int t = 0; t < 3; t++) {                                                                              \
                hash ^= hash << 13, hash ^= hash >> 7, hash ^= hash << 17;                                             \
                pick[t] = x[lo + (int64_t)(hash % (uint64_t)span)];                                                    \
            }                                                                                                          \
            insertion_##S(pick, 3);                                                                                    \
            E pivot = pick[1];                                                                                         \
            int64_t i = lo, j = hi;                                                                                    \
            while (i <= j) {                                                                                           \
                while (LESS(x[i], pivot)) i++;                                                                         \
                while (LESS(pivot, x[j])) j--;                                                                         \
                if (i <= j) {                                                                                          \
                    E swap = x[i];                                                                                     \
                    x[i++] = x[j];                                                                                     \
                    x[j--] = swap;                                                                                     \
                }                                                                                                      \
            }                                                                                                          \
            if (k <= j) hi = j;                                                                                        \
            else if (k >= i) lo = i;                                                                                   \
            else return;                                                                                               \
        }                                                                                                              \
        for (int64_t i = lo + 1; i <= hi; i++) {                                                                       \
            E e = x[i];                                                                                                \
            int64_t j = i;                                                                                             \
            for (; j > lo && LESS(e, x[j - 1]); j--) x[j] = x[j - 1];                                                  \
            x[j] = e;                                                                                                  \
        }                                                                                                              \
    }                                                                                                                  \
    /* The k elements up to `last`, sorted; where a radix sort will leave equal ones alone, from where they stood. */  \
    static E *finish_##S(E *x, E *spare, int64_t n, int64_t k, E last, int bits) {                                     \
        int64_t many = 0;                                                                                              \
        if (k <= SOME) return tt_sort_##S(spare, x, k, bits);                                                          \
        for (int64_t i = 0; i < n; i++)                                                                                \
            if (!LESS(last, x[i])) spare[many++] = x[i];                                                               \
        return tt_sort_##S(spare, x, k, bits);                                                                         \
    }                                                                                                                  \
    E *tt_select_##S(E *x, E *spare, int64_t n, int64_t k, int bits) {                                                 \
        if (k == 0) return x;                                                                                          \
        if (k <= 2 * FEW && n >= 4 * k) { /* most elements are no better than the worst of the best */                 \
            insertion_##S(x, k);                                                                                       \
            for (int64_t i = k; i < n; i++) {                                                                          \
                if (!LESS(x[i], x[k - 1])) continue;                                                                   \
                E e = x[i];                                                                                            \
                int64_t j = k - 1;                                                                                     \
                for (; j > 0 && LESS(e, x[j - 1]); j--) x[j] = x[j - 1];                                               \
                x[j] = e;                                                                                              \
            }                                                                                                          \
            return x;                                                                                                  \
        }                                                                                                              \
        if (k <= n / 8) { /* few are better than the k-th best so far: gather those, and now and then cut them to k */ \
            int64_t room = 8 * k, many = 0;                                                                            \
            E worst = x[0];                                                                                            \
            for (int64_t i = 0; i < n; i++) {                                                                          \
                if (many >= k && i >= room && !LESS(x[i], worst)) continue;                                            \
                spare[many++] = x[i];                                                                                  \
                if (many == room) {                                                                                    \
                    tt_nth_##S(spare, many, k - 1);                                                                    \
                    worst = spare[k - 1];                                                                              \
                    many = k;                                                                                          \
                }                                                                                                      \
            }                                                                                                          \
            if (many > k) tt_nth_##S(spare, many, k - 1);                                                              \
            return finish_##S(x, spare, n, k, spare[k - 1], bits);                                                     \
        }                                                                                                              \
        if (k > n / 2) return tt_sort_##S(x, spare, n, bits);                                                          \
        memcpy(spare, x, (size_t)n * sizeof(E));                                                                       \
        tt_nth_##S(spare, n, k - 1);                                                                                   \
        return finish_##S(x, spare, n, k, spare[k - 1], bits);                                                         \
    }

#define PACKED_LESS(a, b) ((a) < (b))
#define PACKED_DIGIT(e, shift) ((e) >> (32 + (shift)) & (BUCKETS - 1))
#define KEYED_LESS(a, b) ((a).key < (b).key || ((a).key == (b).key && (a).index < (b).index))
#define KEYED_DIGIT(e, shift) ((e).key >> (shift) & (BUCKETS - 1))
SORTS(packed, tt_packed, PACKED_LESS, PACKED_DIGIT)
SORTS(keyed, tt_keyed, KEYED_LESS, KEYED_DIGIT)
