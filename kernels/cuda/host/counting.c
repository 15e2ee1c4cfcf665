/* Counting, numbering and looking up on a device: nonzero, repeat_interleave's positions, unique, searches, histograms.
 * Where the size of the result is a count, the CPU waits for it, as PyTorch does. */
#include "backend/now.h"
#include "cuda/device/counting_args.h"
#include "cuda/device/sort_args.h"
#include "cuda/host/radix.h"
#include <string.h>

enum { SUMS, BEFORE, NONZERO, STARTS, REPEAT };
enum { COLUMN, HEADS, ROW_HEADS, NUMBER, COUNTS };
enum { WRITE = 1, ZERO }; /* distinct's, after SUMS */
enum { SEARCH, ISIN };
enum { EXTREMES, HISTOGRAM, FLOATS, ONE_HOT };
#define MAKES_KEYS 2
#define SMALL_HISTOGRAM 32768 /* bytes of counts with which a processor still has many blocks */
_Static_assert(TT_CUDA_MOST_DIMS == TT_MAX_NDIM, "see cuda/device/args.h");
#define MOST_BLOCKS 1056 /* of kernels that go through all elements with few: eight for each of an H200's processors */

static int64_t blocks_of(int64_t n) { return (n + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS; }
static int64_t few_blocks(int64_t n) { return blocks_of(n) < MOST_BLOCKS ? blocks_of(n) : MOST_BLOCKS; }

static bool compact(tt_compact_args *p, int op, int dtype, int64_t blocks) {
    return TT_LAUNCH(tt_key(TT_FAMILY_compact, op, 0, dtype, 0, 0, 0, 0), blocks, 1, TT_CUDA_THREADS, 0, *p);
}

/* The sums of tiles before each; read[0] gets that of all, read[1] the first negative element's position or -1. */
static tt_array *sums(tt_compact_args *p, int dtype, int64_t read[2]) {
    p->blocks = (p->n + TT_COUNT_TILE - 1) / TT_COUNT_TILE;
    int64_t n = p->blocks + 2;
    tt_array *all = tt_full_now(TT_I64, 1, &n, TT_KIND_INT, 0, -1);
    if (!all) return NULL;
    p->sums = (int64_t *)all->data;
    if (compact(p, SUMS, dtype, p->blocks) && compact(p, BEFORE, dtype, 1) &&
        tt_device_read(read, p->sums + p->blocks, 2 * sizeof(int64_t)))
        return all;
    tt_free(all);
    return NULL;
}

/* `out`, or where it could not be filled, NULL. */
static tt_array *when(tt_array *out, bool done) {
    if (done || !out) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_cuda_nonzero(const uint8_t *set, const tt_array *a, bool flat) {
    tt_compact_args p = {.in = set, .n = a->numel, .ndim = flat ? 0 : a->ndim};
    int64_t read[2] = {0, -1}, shape[2] = {0, a->ndim};
    tt_array *all = NULL;
    if (p.n && !(all = sums(&p, TT_BOOL, read))) return NULL;
    shape[0] = read[0];
    tt_array *out = tt_empty(TT_I64, flat ? 1 : 2, shape);
    if (out && out->numel) {
        p.out = (int64_t *)out->data;
        memcpy(p.size, a->shape, sizeof(int64_t) * (size_t)a->ndim);
        out = when(out, compact(&p, NONZERO, TT_BOOL, p.blocks));
    }
    if (all) tt_free(all);
    return out;
}

tt_array *tt_cuda_repeat_positions(const int64_t *times, int64_t n) {
    tt_compact_args p = {.in = times, .n = n};
    int64_t read[2] = {0, -1}, value;
    tt_array *all = NULL, *starts = NULL, *out = NULL;
    if (n && !(all = sums(&p, TT_I64, read))) return NULL;
    if (read[1] >= 0) {
        if (tt_device_read(&value, times + read[1], sizeof value))
            tt_fail(TT_RUNTIME_ERROR, "repeat_interleave: repeats can not be negative, got %lld at position %lld",
                    (long long)value, (long long)read[1]);
    } else if (read[0] < 0) tt_fail(TT_RUNTIME_ERROR, "repeat_interleave: the sum of repeats overflows");
    else if ((out = tt_empty(TT_I64, 1, &read[0])) && out->numel) {
        bool done = (starts = tt_cuda_temporary(TT_I64, n));
        if (done) {
            p.out = (int64_t *)starts->data;
            done = compact(&p, STARTS, TT_I64, p.blocks);
            p.sums = p.out;
            p.out = (int64_t *)out->data;
            p.blocks = out->numel;
            done = done && compact(&p, REPEAT, TT_I64, blocks_of(out->numel));
        }
        out = when(out, done);
    }
    if (all) tt_free(all);
    if (starts) tt_free(starts);
    return out;
}

/* The keys of contiguous elements, of 4 or 8 bytes. */
static bool make_keys(const tt_array *x, int64_t n, void *keys) {
    tt_sort_args p = {.in = x->data, .keys = keys, .rows = 1, .n = n, .step = tt_itemsizes[x->dtype]};
    return !n || TT_LAUNCH(tt_key(TT_FAMILY_sorted, TT_SORT, MAKES_KEYS, x->dtype, 0, 0, 0, 0), blocks_of(n), 1,
                           TT_CUDA_THREADS, 0, p);
}

static bool group(const tt_group_args *p, int op, int dtype, int64_t n) {
    return TT_LAUNCH(tt_key(TT_FAMILY_groups, op, 0, dtype, 0, 0, 0, 0), blocks_of(n), 1, TT_CUDA_THREADS, 0, *p);
}

/* Sorts rows by their columns, from the last on: s->order. */
static bool sort_columns(tt_radix_sort *s, tt_group_args *p, int dtype, int bits) {
    for (p->column = p->width - 1; p->column >= 0; p->column--) {
        if (!tt_radix_sort_room(s)) return false;
        p->keys_out = s->keys->data;
        p->order = s->numbers ? (uint32_t *)s->numbers->data : NULL;
        if (!group(p, COLUMN, dtype, p->n) || !tt_radix_sort_keys(s, bits, 0)) return false;
    }
    p->order = s->numbers ? (uint32_t *)s->numbers->data : NULL;
    return true;
}

/* Numbers the groups whose heads are known; gives the first of each. */
static tt_array *number(tt_group_args *p, tt_array **inverse, tt_array **counts) {
    tt_compact_args c = {.in = p->heads, .n = p->n};
    int64_t read[2];
    tt_array *all = sums(&c, TT_BOOL, read), *before = all ? tt_cuda_temporary(TT_I64, p->n) : NULL;
    tt_array *begin = NULL, *first = NULL, *inv = NULL, *cnt = NULL;
    bool done = before && (begin = tt_cuda_temporary(TT_I64, read[0])) && (first = tt_empty(TT_I64, 1, &read[0])) &&
                (inv = tt_empty(TT_I64, 1, &p->n)) && (cnt = tt_empty(TT_I64, 1, &read[0]));
    if (done) {
        c.out = p->before = (int64_t *)before->data;
        p->begin = (int64_t *)begin->data;
        p->first = (int64_t *)first->data;
        p->inverse = (int64_t *)inv->data;
        p->counts = (int64_t *)cnt->data;
        p->groups = read[0];
        done = compact(&c, STARTS, TT_BOOL, c.blocks) && group(p, NUMBER, TT_I32, p->n) &&
               group(p, COUNTS, TT_I32, p->groups);
    }
    tt_array *results[] = {first, inv, cnt}, *own[] = {all, before, begin};
    for (int k = 0; k < 3; k++) {
        if (own[k]) tt_free(own[k]);
        if (!done && results[k]) tt_free(results[k]);
    }
    if (!done) return NULL;
    *inverse = inv;
    *counts = cnt;
    return first;
}

tt_array *tt_cuda_groups(const tt_array *x, int64_t n, int64_t width, bool consecutive, tt_array **inverse,
                         tt_array **counts) {
    int item = tt_itemsizes[x->dtype], dtype = item == 8 ? TT_I64 : TT_I32;
    tt_group_args p = {.n = n,
                       .width = width,
                       .has_nan = tt_is_floating(x->dtype),
                       .nan = item == 8   ? ~(uint64_t)0
                              : item == 4 ? 0xffffffffu
                                          : 0xffffu};
    tt_array *first = NULL, *table = NULL, *heads = NULL;
    tt_radix_sort s = {.n = 0};
    if (!n) {
        first = tt_empty(TT_I64, 1, &n);
        *inverse = first ? tt_empty(TT_I64, 1, &n) : NULL;
        *counts = *inverse ? tt_empty(TT_I64, 1, &n) : NULL;
        if (first && !*inverse) tt_free(first);
        return *inverse && *counts ? first : NULL;
    }
    bool done = tt_radix_sort_begin(&s, n, item == 8) && (heads = tt_cuda_temporary(TT_BOOL, n));
    if (done && width == 1) {
        if (consecutive) done = tt_radix_sort_room(&s) && make_keys(x, n, s.keys->data);
        else done = tt_radix_sort_elements(&s, x->data, x->dtype, false, 0, NULL, NULL);
        if (done) p.keys = s.keys->data;
        p.order = s.numbers ? (uint32_t *)s.numbers->data : NULL;
    } else if (done) {
        done = (table = tt_cuda_temporary(dtype, n * width)) && make_keys(x, n * width, table->data);
        if (done) p.keys = table->data;
        done = done && (consecutive || sort_columns(&s, &p, dtype, 8 * item));
    }
    if (done) {
        p.heads = (uint8_t *)heads->data;
        if (group(&p, width == 1 ? HEADS : ROW_HEADS, dtype, n)) first = number(&p, inverse, counts);
    }
    tt_radix_sort_end(&s);
    if (table) tt_free(table);
    if (heads) tt_free(heads);
    return first;
}

static bool distinct(const tt_distinct_args *p, int op, bool consecutive, int dtype, int64_t blocks) {
    return TT_LAUNCH(tt_key(TT_FAMILY_distinct, op, consecutive, dtype, 0, 0, 0, 0), blocks, 1, TT_CUDA_THREADS, 0, *p);
}

tt_array *tt_cuda_distinct(const tt_array *x, bool consecutive) {
    tt_distinct_args p = {.in = x->data, .n = x->numel};
    tt_compact_args c = {.n = p.n, .blocks = (p.n + TT_COUNT_TILE - 1) / TT_COUNT_TILE};
    int64_t words = c.blocks + 2, many = 0;
    tt_array *out = NULL, *sums = NULL;
    tt_radix_sort s = {.n = 0};
    bool done = true;
    if (p.n) {
        done = tt_radix_sort_begin(&s, p.n, tt_itemsizes[x->dtype] == 8) &&
               (consecutive || tt_radix_sort_alone(&s, x->data, x->dtype)) &&
               (sums = tt_full_now(TT_I64, 1, &words, TT_KIND_INT, 0, -1));
        if (done) {
            c.sums = p.sums = (int64_t *)sums->data;
            p.zero = (uint32_t *)(p.sums + c.blocks + 1);
            if (s.keys) p.keys = s.keys->data;
            done = (consecutive || !tt_is_floating(x->dtype) ||
                    distinct(&p, ZERO, consecutive, x->dtype, few_blocks(p.n))) &&
                   distinct(&p, SUMS, consecutive, x->dtype, c.blocks) && compact(&c, BEFORE, TT_I64, 1) &&
                   tt_device_read(&many, c.sums + c.blocks, sizeof many);
        }
    }
    out = done ? tt_empty(x->dtype, 1, &many) : NULL;
    if (out && p.n) {
        p.out = out->data;
        out = when(out, distinct(&p, WRITE, consecutive, x->dtype, c.blocks));
    }
    tt_radix_sort_end(&s);
    if (sums) tt_free(sums);
    return out;
}

bool tt_cuda_search(const void *sorted, const void *values, const int64_t *order, int64_t n, int64_t per_row,
                    bool right, int dtype, tt_array *out) {
    tt_search_args p = {.fault = tt_cuda_fault(),
                        .sorted = sorted,
                        .values = values,
                        .order = order,
                        .out = out->data,
                        .n = n,
                        .numel = out->numel,
                        .per_row = per_row,
                        .right = right,
                        .narrow = out->dtype == TT_I32};
    return !p.numel || TT_LAUNCH(tt_key(TT_FAMILY_search, SEARCH, 0, dtype, 0, 0, 0, 0), blocks_of(p.numel), 1,
                                 TT_CUDA_THREADS, 0, p);
}

bool tt_cuda_isin(tt_array *among, const void *values, bool invert, tt_array *out) {
    tt_radix_sort s = {.n = 0};
    bool done = tt_radix_sort_begin(&s, among->numel, true) &&
                tt_radix_sort_elements(&s, among->data, among->dtype, false, 0, NULL, NULL);
    if (done) {
        tt_search_args p = {.sorted = s.keys ? s.keys->data : NULL,
                            .values = values,
                            .out = out->data,
                            .n = among->numel,
                            .numel = out->numel,
                            .narrow = invert};
        done = !p.numel || TT_LAUNCH(tt_key(TT_FAMILY_search, ISIN, 0, among->dtype, 0, 0, 0, 0), blocks_of(p.numel), 1,
                                     TT_CUDA_THREADS, 0, p);
    }
    tt_radix_sort_end(&s);
    return done;
}

static bool count(const tt_count_args *p, int op, int dtype, int64_t threads) {
    return !threads || TT_LAUNCH(tt_key(TT_FAMILY_counting, op, 0, dtype, 0, 0, 0, 0), few_blocks(threads), 1,
                                 TT_CUDA_THREADS, 0, *p);
}

/* Blocks count for themselves as long as they have room; the more that takes, the fewer and larger they are. */
static bool count_bins(tt_count_args *p, int dtype) {
    int64_t room = 4 * p->bins, threads = room > SMALL_HISTOGRAM ? 1024 : TT_CUDA_THREADS,
            blocks = (p->n + threads - 1) / threads, most = MOST_BLOCKS * TT_CUDA_THREADS / threads;
    p->local = room <= tt_cuda_shared_room() && p->n >= p->bins;
    return !p->n || TT_LAUNCH(tt_key(TT_FAMILY_counting, HISTOGRAM, 0, dtype, 0, 0, 0, 0),
                              blocks < most ? blocks : most, 1, (int)threads, p->local ? room : 0, *p);
}

static void value_of(uint64_t key, int dtype, void *value) {
    uint64_t sign = (uint64_t)1 << 63, bits = key ^ sign;
    if (dtype == TT_F64) bits = key == ~(uint64_t)0 ? 0x7ff8000000000000u : key & sign ? key ^ sign : ~key;
    memcpy(value, &bits, sizeof bits);
}

bool tt_cuda_extremes(const void *x, int dtype, int64_t n, void *least, void *largest) {
    uint64_t keys[2] = {~(uint64_t)0, 0};
    tt_array *both = tt_cuda_temporary(TT_I64, 2);
    if (!both) return false;
    tt_count_args p = {.in = x, .n = n, .extremes = (uint64_t *)both->data};
    bool done = tt_device_write(both->data, keys, sizeof keys) && count(&p, EXTREMES, dtype, n) &&
                tt_device_read(keys, both->data, sizeof keys);
    tt_free(both);
    if (dtype == TT_F64 && keys[1] == ~(uint64_t)0) keys[0] = keys[1];
    value_of(keys[0], dtype, least);
    value_of(keys[1], dtype, largest);
    return done;
}

bool tt_cuda_histogram(const void *x, int dtype, int64_t n, double lo, double hi, tt_array *out) {
    tt_array *counts = out->dtype == TT_I64 ? tt_alias(out) : tt_full_now(TT_I64, 1, out->shape, TT_KIND_INT, 0, 0);
    if (!counts) return false;
    tt_count_args p = {
        .in = x, .n = n, .bins = out->numel, .counts = (int64_t *)counts->data, .out = out->data, .lo = lo, .hi = hi};
    bool done = count_bins(&p, dtype);
    if (done && out->dtype == TT_F32) done = count(&p, FLOATS, dtype, p.bins);
    else if (done && out->dtype == TT_F64) done = tt_copy_now(out, counts) == 0;
    tt_free(counts);
    return done;
}

bool tt_cuda_one_hot(const int64_t *classes, int64_t n, tt_array *out) {
    tt_count_args p = {
        .fault = tt_cuda_fault(), .in = classes, .n = n, .bins = n ? out->numel / n : 0, .out = out->data};
    return count(&p, ONE_HOT, TT_I64, out->numel);
}

bool tt_cuda_add_at(tt_array *out, tt_array *x, tt_array *weights) {
    tt_indexed view;
    tt_moves moves;
    tt_index_along(&view, 0, out->numel, 1);
    tt_moves_begin(&moves, out->data, x->numel);
    moves.rows = weights->data;
    moves.row_step = tt_itemsizes[out->dtype];
    tt_index_where where = {.n = 1, .ndim = 1, .shape = x->shape, .indices = &x, .view = &view};
    return tt_cuda_move_indexed(&moves, &where, out->dtype, out->dtype, TT_MOVE_ADD);
}
