/* Sorting on a device: the passes of radix.cuh. */
#include "cuda/host/radix.h"

enum { COUNT, SUM, PLACE, SMALL };
#define WIDE 1
#define IMPLICIT 2
#define BY_ROW 4

bool tt_radix_sort_begin(tt_radix_sort *s, int64_t n, bool wide) {
    *s = (tt_radix_sort){.n = n, .wide = wide};
    if (n > INT32_MAX) {
        tt_fail(TT_RUNTIME_ERROR, "at most 2^31 - 1 elements can be sorted together on a CUDA device, got %lld",
                (long long)n);
        return false;
    }
    int dtype = wide ? TT_I64 : TT_I32;
    return (s->keys = tt_cuda_temporary(dtype, n)) && (s->spare_keys = tt_cuda_temporary(dtype, n)) &&
           (s->order = tt_cuda_temporary(TT_I32, n)) && (s->spare_order = tt_cuda_temporary(TT_I32, n));
}

void tt_radix_sort_end(tt_radix_sort *s) {
    tt_array *all[] = {s->keys, s->spare_keys, s->order, s->spare_order, s->counts};
    for (int k = 0; k < 5; k++)
        if (all[k]) tt_free(all[k]);
}

static void swap(tt_radix_sort *s) {
    tt_array *keys = s->keys, *order = s->order;
    s->keys = s->spare_keys;
    s->order = s->spare_order;
    s->spare_keys = keys;
    s->spare_order = order;
    s->ordered = true;
}

static bool pass(tt_radix_sort *s, int shift, int64_t row) {
    int64_t tile = TT_CUDA_THREADS * (s->wide ? 8 : 16); /* TT_TILE in radix.cuh */
    tt_radix_args p = {.keys = s->keys->data,
                       .order = (uint32_t *)s->order->data,
                       .keys_out = s->spare_keys->data,
                       .order_out = (uint32_t *)s->spare_order->data,
                       .n = s->n,
                       .blocks = (s->n + tile - 1) / tile,
                       .shift = shift};
    int variant = (s->wide ? WIDE : 0) | (s->ordered ? 0 : IMPLICIT) | (row ? BY_ROW : 0);
    if (row) p.row = tt_divider_of(row);
    if (!s->counts && !(s->counts = tt_cuda_temporary(TT_I32, 256 * (p.blocks + 1)))) return false;
    p.counts = (uint32_t *)s->counts->data;
    p.totals = p.counts + 256 * p.blocks;
    if (!TT_LAUNCH(tt_key(TT_FAMILY_radix, COUNT, variant, 0, 0, 0, 0, 0), p.blocks, 1, TT_CUDA_THREADS, 0, p) ||
        !TT_LAUNCH(tt_key(TT_FAMILY_radix, SUM, 0, 0, 0, 0, 0, 0), 256, 1, TT_CUDA_THREADS, 0, p) ||
        !TT_LAUNCH(tt_key(TT_FAMILY_radix, PLACE, variant, 0, 0, 0, 0, 0), p.blocks, 1, TT_CUDA_THREADS, 0, p))
        return false;
    swap(s);
    return true;
}

bool tt_radix_sort_keys(tt_radix_sort *s, int bits) {
    if (!s->n) return true;
    if (!s->wide && !s->ordered && s->n <= 4096) {
        tt_radix_args p = {.keys = s->keys->data,
                           .keys_out = s->spare_keys->data,
                           .order_out = (uint32_t *)s->spare_order->data,
                           .n = s->n};
        int threads = 32;
        while (threads < 1024 && threads * 2 < s->n) threads *= 2;
        if (!TT_LAUNCH(tt_key(TT_FAMILY_radix, SMALL, 0, 0, 0, 0, 0, 0), 1, 1, threads, 0, p)) return false;
        swap(s);
        return true;
    }
    if (bits < 1) bits = 1; /* so that there is an order */
    for (int shift = 0; shift < bits; shift += 8)
        if (!pass(s, shift, 0)) return false;
    return true;
}

bool tt_radix_sort_rows(tt_radix_sort *s, int64_t row) {
    for (int shift = 0; shift < 32 && (s->n - 1) / row >> shift; shift += 8)
        if (!pass(s, shift, row)) return false;
    return true;
}
