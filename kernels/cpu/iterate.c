/* Iteration over several operands: blocks of contiguous elements in the dtype the loop wants.
 *
 * An operand that is already so is passed as it lies; any other is gathered (and cast) into a block buffer in L1, and
 * an output that is not is scattered back. So a loop exists once for each operator and dtype, and never sees a stride.
 * The fused-program interpreter runs the same loops over the same blocks. */
#include "cpu/simd.h"
#include <string.h>

#define ROW 512 /* rows this long are visited one by one, so that a row of a broadcast operand is used where it lies */

#define MOVE(T)                                                                                                        \
    if (step == 0 && to_step == size) { /* one element for all */                                                      \
        T value;                                                                                                       \
        memcpy(&value, q, sizeof value);                                                                               \
        for (int64_t i = 0; i < n; i++) memcpy(p + i * (int64_t)sizeof value, &value, sizeof value);                   \
        return;                                                                                                        \
    }                                                                                                                  \
    _Pragma("GCC unroll 8") for (int64_t i = 0; i < n; i++) {                                                          \
        T value;                                                                                                       \
        memcpy(&value, q + i * step, sizeof value);                                                                    \
        memcpy(p + i * to_step, &value, sizeof value);                                                                 \
    }

void tt_move(void *to, int64_t to_step, const void *from, int64_t step, int64_t n, int size) {
    char *p = to;
    const char *q = from;
    if (to_step == size && step == size) {
        memcpy(p, q, (size_t)(n * size));
        return;
    }
    switch (size) {
    case 1: MOVE(uint8_t) break;
    case 2: MOVE(uint16_t) break;
    case 4: MOVE(uint32_t) break;
    case 8: MOVE(uint64_t) break;
    default: MOVE(tt_complex128) break;
    }
}

void tt_strided_move(const tt_strided_iter *w, int64_t at, int64_t n, char *buffer, bool gather) {
    int64_t index[TT_MAX_NDIM], rest = at;
    int last = w->ndim - 1;
    char *p = w->data;
    for (int d = last; d >= 0; d--) {
        index[d] = rest % w->shape[d];
        rest /= w->shape[d];
        p += index[d] * w->strides[d];
    }
    while (n > 0) {
        int64_t run = w->shape[last] - index[last];
        if (run > n) run = n;
        if (gather) tt_move(buffer, w->size, p, w->strides[last], run, w->size);
        else tt_move(p, w->strides[last], buffer, w->size, run, w->size);
        buffer += run * w->size;
        n -= run;
        p += run * w->strides[last];
        index[last] += run;
        for (int d = last; d > 0 && index[d] == w->shape[d]; d--) {
            p += w->strides[d - 1] - w->shape[d] * w->strides[d];
            index[d] = 0;
            index[d - 1]++;
        }
    }
}

/* The same for operand k. */
static void move_block(const tt_iter *it, int k, int64_t at, int64_t n, char *buffer, bool gather) {
    tt_strided_iter w = {it->ndim, tt_itemsizes[it->dtype[k]], it->shape, it->strides[k], it->data[k]};
    tt_strided_move(&w, at, n, buffer, gather);
}

typedef struct {
    const tt_iter *it;
    tt_loop loop; /* NULL: copy operand 1 to operand 0 */
    bool flat[5], one[5];
} plan;

/* Operands that all lie as the loop wants them. */
static void flat_range(void *context, int64_t begin, int64_t end) {
    const plan *pl = context;
    char *p[5];
    for (int k = 0; k < pl->it->nops; k++) p[k] = pl->it->data[k] + begin * tt_itemsizes[pl->it->dtype[k]];
    pl->loop(p, end - begin);
}

static void run_range(void *context, int64_t begin, int64_t end) {
    const plan *pl = context;
    const tt_iter *it = pl->it;
    int last = it->ndim - 1;
    int64_t row = it->shape[last];
    /* Two buffers an operand: as stored, and as computed. 64-byte aligned for the loops' sake. */
    char raw[TT_BLOCK * TT_MAX_ITEMSIZE] __attribute__((aligned(64)));
    char buffers[5][TT_BLOCK * TT_MAX_ITEMSIZE] __attribute__((aligned(64)));
    char *p[5];
    for (int k = 1; k < it->nops; k++)
        if (pl->one[k]) { /* one element for all: filled once */
            int64_t n = end - begin < TT_BLOCK ? end - begin : TT_BLOCK;
            int size = tt_itemsizes[it->compute[k]];
            tt_isa->casts[it->dtype[k]][it->compute[k]](buffers[k], it->data[k], 1);
            tt_move(buffers[k] + size, size, buffers[k], 0, n - 1, size);
            p[k] = buffers[k];
        }
    for (int64_t at = begin; at < end;) {
        int64_t n = end - at < TT_BLOCK ? end - at : TT_BLOCK;
        int64_t in_row = at % row;
        if (row >= ROW && n > row - in_row) n = row - in_row;
        bool one_row = in_row + n <= row;
        int64_t outer_index = at / row;
        for (int k = 0; k < it->nops; k++) {
            if (pl->one[k]) continue;
            int size = tt_itemsizes[it->dtype[k]];
            char *where = NULL; /* the n elements, if they lie together */
            if (pl->flat[k]) where = it->data[k] + at * size;
            else if (one_row && it->strides[k][last] == size) {
                where = it->data[k] + in_row * size;
                int64_t rest = outer_index;
                for (int d = last - 1; d >= 0; d--) {
                    where += rest % it->shape[d] * it->strides[k][d];
                    rest /= it->shape[d];
                }
            }
            bool same = it->dtype[k] == it->compute[k];
            if (where && same) p[k] = where;
            else if (k == 0) p[0] = buffers[0];
            else {
                if (!where) {
                    where = same ? buffers[k] : raw;
                    move_block(it, k, at, n, where, true);
                }
                if (!same) tt_isa->casts[it->dtype[k]][it->compute[k]](buffers[k], where, n);
                p[k] = buffers[k];
            }
        }
        if (pl->loop) pl->loop(p, n);
        else if (p[0] != buffers[0]) memcpy(p[0], p[1], (size_t)(n * tt_itemsizes[it->dtype[0]]));
        else p[0] = p[1];
        char *result = p[0];
        if (it->dtype[0] != it->compute[0]) {
            char *to = pl->flat[0] ? it->data[0] + at * tt_itemsizes[it->dtype[0]] : raw;
            tt_isa->casts[it->compute[0]][it->dtype[0]](to, result, n);
            if (!pl->flat[0]) move_block(it, 0, at, n, raw, false);
        } else if (result == buffers[0] || (!pl->loop && result == p[1])) move_block(it, 0, at, n, result, false);
        at += n;
    }
}

/* A copy or cast between flat operands needs no blocks. */
static void cast_range(void *context, int64_t begin, int64_t end) {
    const tt_iter *it = ((const plan *)context)->it;
    tt_isa->casts[it->dtype[1]][it->dtype[0]](it->data[0] + begin * tt_itemsizes[it->dtype[0]],
                                              it->data[1] + begin * tt_itemsizes[it->dtype[1]], end - begin);
}

/* A copy whose operands are dense along different dimensions: tile by tile, through a buffer that stays in L1. So every
 * line of memory is gone to once, and whole. */
#define TILE 64 /* elements */

typedef struct {
    const tt_iter *it;
    int dense; /* the dimension along which operand 1 is; operand 0 is along the last */
    int64_t rows, cols; /* tiles along these two */
} transposition;

/* The lines are too far apart for the processor to foresee them. */
#define TRANSPOSE(T)                                                                                                   \
    for (int64_t c = 0; c < cols; c++) {                                                                               \
        const char *line = from + c * from_step;                                                                       \
        for (int64_t b = 0; c + 8 < cols && b < rows * size; b += 64) __builtin_prefetch(line + 8 * from_step + b);    \
        for (int64_t r = 0; r < rows; r++) ((T *)buffer)[r * TILE + c] = ((const T *)line)[r];                         \
    }

static void transpose_tiles(void *context, int64_t begin, int64_t end) {
    const transposition *t = context;
    const tt_iter *it = t->it;
    int last = it->ndim - 1, size = tt_itemsizes[it->dtype[0]];
    int64_t from_step = it->strides[1][last], to_step = it->strides[0][t->dense];
    char buffer[TILE * TILE * TT_MAX_ITEMSIZE] __attribute__((aligned(64)));
    for (; begin < end; begin++) {
        int64_t c = begin % t->cols * TILE, rest = begin / t->cols, r = rest % t->rows * TILE;
        int64_t cols = it->shape[last] - c < TILE ? it->shape[last] - c : TILE;
        int64_t rows = it->shape[t->dense] - r < TILE ? it->shape[t->dense] - r : TILE;
        char *to = it->data[0] + r * to_step + c * size, *from = it->data[1] + r * size + c * from_step;
        rest /= t->rows;
        for (int d = last - 1; d >= 0; d--) {
            if (d == t->dense) continue;
            to += rest % it->shape[d] * it->strides[0][d];
            from += rest % it->shape[d] * it->strides[1][d];
            rest /= it->shape[d];
        }
        switch (size) {
        case 1: TRANSPOSE(uint8_t) break;
        case 2: TRANSPOSE(uint16_t) break;
        case 4: TRANSPOSE(uint32_t) break;
        case 8: TRANSPOSE(uint64_t) break;
        default: TRANSPOSE(tt_complex128) break;
        }
        for (int64_t k = 0; k < rows; k++) memcpy(to + k * to_step, buffer + k * TILE * size, (size_t)(cols * size));
    }
}

static bool run_transposition(const tt_iter *it) {
    transposition t = {.it = it, .dense = -1};
    int last = it->ndim - 1;
    int64_t size = tt_itemsizes[it->dtype[0]], outer = 1;
    if (it->dtype[0] != it->dtype[1] || it->strides[0][last] != size || it->shape[last] < 8) return false;
    if (it->strides[1][last] == size || it->strides[1][last] == 0) return false;
    for (int d = 0; d < last; d++)
        if (it->strides[1][d] == size && it->shape[d] >= 8) t.dense = d;
    if (t.dense < 0) return false;
    for (int d = 0; d < last; d++)
        if (d != t.dense) outer *= it->shape[d];
    t.rows = (it->shape[t.dense] + TILE - 1) / TILE;
    t.cols = (it->shape[last] + TILE - 1) / TILE;
    tt_parallel(outer * t.rows * t.cols, 8, transpose_tiles, &t);
    return true;
}

void tt_iter_run(const tt_iter *it, tt_loop loop, int64_t grain) {
    if (!loop && run_transposition(it)) return;
    plan pl = {.it = it, .loop = loop};
    bool as_wanted = loop;
    for (int k = 0; k < it->nops; k++) {
        int64_t dense = tt_itemsizes[it->dtype[k]];
        pl.flat[k] = pl.one[k] = true;
        for (int d = it->ndim - 1; d >= 0; d--) {
            pl.flat[k] &= it->strides[k][d] == dense;
            pl.one[k] &= it->strides[k][d] == 0;
            dense *= it->shape[d];
        }
        pl.one[k] &= k > 0;
        as_wanted &= pl.flat[k] && it->dtype[k] == it->compute[k];
    }
    grain = (grain + TT_BLOCK - 1) / TT_BLOCK * TT_BLOCK;
    bool copy = !loop && pl.flat[0] && pl.flat[1];
    tt_parallel_to_and_fro(it->numel, grain, copy ? cast_range : as_wanted ? flat_range : run_range, &pl);
}
