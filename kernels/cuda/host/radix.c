/* Sorting on a device: the kernels of radix.cuh. */
#include "cuda/host/radix.h"
#include "backend/now.h"

enum { COUNT, SWEEP };
#define DESCENDING 1
#define RAW 2
#define LONG 4
#define BARE 8
#define THREADS 384
#define MOST_BLOCKS 528 /* that count: four for each of an H200's processors */
#define STATES ((int64_t)1 << 30) /* from so many elements on, states of tiles have 64 bits */

bool tt_radix_sort_begin(tt_radix_sort *s, int64_t n, bool wide) {
    *s = (tt_radix_sort){.n = n, .wide = wide};
    if (n <= INT32_MAX) return true;
    tt_fail(TT_RUNTIME_ERROR, "at most 2^31 - 1 elements can be sorted together on a CUDA device, got %lld",
            (long long)n);
    return false;
}

bool tt_radix_sort_room(tt_radix_sort *s) {
    if (s->keys) tt_free(s->keys);
    return (s->keys = tt_cuda_temporary(s->wide ? TT_I64 : TT_I32, s->n));
}

void tt_radix_sort_end(tt_radix_sort *s) {
    if (s->keys) tt_free(s->keys);
    if (s->numbers) tt_free(s->numbers);
    if (s->counts) tt_free(s->counts);
}

static bool launch(const tt_radix_args *p, int dtype, int variant, bool wide) {
    int64_t tile = THREADS * (wide ? 12 : 18), tiles = (p->n + tile - 1) / tile; /* TT_TILE in radix.cuh */
    int64_t blocks = tiles < MOST_BLOCKS ? tiles : MOST_BLOCKS;
    tt_radix_args q = *p;
    if (!TT_LAUNCH(tt_key(TT_FAMILY_radix, COUNT, variant, dtype, 0, 0, 0, 0), blocks, 1, THREADS, 0, q)) return false;
    for (; q.pass < q.passes; q.pass++)
        if (!TT_LAUNCH(tt_key(TT_FAMILY_radix, SWEEP, variant, dtype, 0, 0, 0, 0), tiles, 1, THREADS,
                       tile * (wide ? 8 : 4) + (variant & BARE ? 0 : tile * 4), q))
            return false;
    return true;
}

static bool sort(tt_radix_sort *s, tt_radix_args *p, int dtype, int variant, int bits, int64_t row) {
    if (!s->n) return true;
    int64_t words = s->n >= STATES ? 2 : 1, tiles = s->n / (THREADS * (s->wide ? 12 : 18)) + 1;
    if (words == 2) variant |= LONG;
    p->n = s->n;
    p->order = s->numbers ? (uint32_t *)s->numbers->data : s->carried;
    p->key_passes = p->passes = bits > 8 ? (bits + 7) / 8 : 1; /* one, so that there is an order */
    if (row && row < s->n) {
        p->row_length = row;
        p->row = tt_divider_of(row);
        for (int64_t last = (s->n - 1) / row; last; last >>= 8) p->passes++;
    }
    tt_array *made[6] = {NULL};
    int64_t counts = p->passes * 258 + 2;
    int key = s->wide ? TT_I64 : TT_I32;
    bool needs = !p->values || p->passes > 1, done = (made[4] = tt_full_now(TT_I32, 1, &counts, TT_KIND_INT, 0, 0)) &&
                                                     (made[5] = tt_cuda_temporary(TT_I32, tiles * 512 * words));
    for (int k = 0; done && needs && k < 2; k++)
        done = (made[k] = tt_cuda_temporary(key, s->n)) &&
               (variant & BARE || (made[2 + k] = tt_cuda_temporary(TT_I32, s->n)));
    if (done) {
        for (int k = 0; k < 2; k++) {
            p->keys[k] = made[k] ? made[k]->data : NULL;
            p->numbers[k] = made[2 + k] ? (uint32_t *)made[2 + k]->data : NULL;
            p->states[k] = made[5]->data + k * tiles * 256 * 4 * words;
        }
        p->counts = (uint32_t *)made[4]->data;
        p->leaves = s->leaves;
        done = launch(p, dtype, variant, s->wide);
    }
    if (done && !p->values) {
        tt_array *keys = s->keys, *numbers = s->numbers;
        s->keys = made[0];
        s->numbers = made[2];
        made[0] = keys;
        made[2] = numbers;
    }
    if (done && s->leaves) {
        s->counts = made[4];
        s->left = p->counts + p->passes * 258 + 1;
        made[4] = NULL;
    }
    for (int k = 0; k < 6; k++)
        if (made[k]) tt_free(made[k]);
    return done;
}

bool tt_radix_sort_keys(tt_radix_sort *s, int bits, int64_t row) {
    tt_radix_args p = {.in = s->keys->data};
    return sort(s, &p, s->wide ? TT_I64 : TT_I32, RAW, bits, row);
}

bool tt_radix_sort_alone(tt_radix_sort *s, const void *in, int dtype) {
    tt_radix_args p = {.in = in};
    return sort(s, &p, dtype, BARE, 8 * tt_itemsizes[dtype], 0);
}

bool tt_radix_sort_elements(tt_radix_sort *s, const void *in, int dtype, bool descending, int64_t row, void *values,
                            int64_t *places) {
    tt_radix_args p = {.in = in, .values = values, .places = places};
    return sort(s, &p, dtype, descending ? DESCENDING : 0, 8 * tt_itemsizes[dtype], row);
}
