/* Blocks of images as columns, and back. Planes, of one channel of one image, are shared out among threads; a folded
 * element's sum is over the taps in order. */
#include "backend/plain.h"
#include "cpu/cpu.h"
#include <string.h>

#define GRAIN 32768 /* elements that are worth a thread */

typedef struct {
    const tt_unfold_work *w;
    char *image, *columns; /* contiguous, of one dtype */
} job;

/* The blocks [*first, *end) along dimension d whose tap lies within the image, at element *at of it for the first. */
static void inside(const tt_unfold_work *w, int d, int64_t tap, int64_t *first, int64_t *end, int64_t *at) {
    int64_t offset = tap * w->dilation[d] - w->padding[d], stride = w->stride[d];
    *first = offset >= 0 ? 0 : (-offset + stride - 1) / stride;
    *end = offset >= w->size[d] ? 0 : (w->size[d] - 1 - offset) / stride + 1;
    if (*end > w->blocks[d]) *end = w->blocks[d];
    if (*first > *end) *first = *end;
    *at = offset + *first * stride;
}

/* Walks over a plane's taps and rows of blocks: `row` is done for `n` blocks, whose columns begin at `to`, and whose
 * elements are from[j step]. */
#define WALK(T, row, outside)                                                                                          \
    const job *j = context;                                                                                            \
    const tt_unfold_work *w = j->w;                                                                                    \
    int64_t area = w->size[0] * w->size[1], blocks = w->blocks[0] * w->blocks[1];                                      \
    int64_t step = w->stride[1];                                                                                       \
    for (int64_t plane = begin; plane < end; plane++) {                                                                \
        T *image = (T *)j->image + plane * area;                                                                       \
        T *to = (T *)j->columns + plane * w->taps[0] * w->taps[1] * blocks;                                            \
        outside;                                                                                                       \
        for (int64_t tap = 0; tap < w->taps[0] * w->taps[1]; tap++, to += blocks) {                                    \
            int64_t y0, y1, x0, x1, y, x;                                                                              \
            inside(w, 0, tap / w->taps[1], &y0, &y1, &y);                                                              \
            inside(w, 1, tap % w->taps[1], &x0, &x1, &x);                                                              \
            for (int64_t k = y0; k < y1; k++) {                                                                        \
                T *restrict from = image + (y + (k - y0) * w->stride[0]) * w->size[1] + x;                             \
                T *restrict column = to + k * w->blocks[1] + x0;                                                       \
                int64_t n = x1 - x0;                                                                                   \
                row                                                                                                    \
            }                                                                                                          \
        }                                                                                                              \
    }

#define UNFOLD(name, T)                                                                                                \
    static void unfold_##name(void *context, int64_t begin, int64_t end) {                                             \
        WALK(T, for (int64_t i = 0; i < n; i++) column[i] = from[i * step];                                            \
             , memset(to, 0, (size_t)(w->taps[0] * w->taps[1] * blocks) * sizeof(T)))                                  \
    }
UNFOLD(8, uint8_t)
UNFOLD(16, uint16_t)
UNFOLD(32, uint32_t)
UNFOLD(64, uint64_t)
UNFOLD(128, tt_complex128)

#define FOLD(name, T, ADD)                                                                                             \
    static void fold_##name(void *context, int64_t begin, int64_t end) {                                               \
        WALK(T, for (int64_t i = 0; i < n; i++) ADD(from[i * step], column[i]);                                        \
             , memset(image, 0, (size_t)area * sizeof(T)))                                                             \
    }
#define PLUS(a, b) a += b
#define OR(a, b) a |= b
#define PLUS_PARTS(a, b) a.re += b.re, a.im += b.im
FOLD(f32, float, PLUS)
FOLD(f64, double, PLUS)
FOLD(bool, uint8_t, OR)
FOLD(c64, tt_complex64, PLUS_PARTS)
FOLD(c128, tt_complex128, PLUS_PARTS)

static tt_range_fn unfolder(int dtype) {
    switch (tt_itemsizes[dtype]) {
    case 1: return unfold_8;
    case 2: return unfold_16;
    case 4: return unfold_32;
    case 8: return unfold_64;
    default: return unfold_128;
    }
}

static tt_range_fn folder(int dtype) {
    switch (dtype) {
    case TT_F32: return fold_f32;
    case TT_F64: return fold_f64;
    case TT_C64: return fold_c64;
    case TT_C128: return fold_c128;
    default: return fold_bool;
    }
}

bool tt_cpu_unfold(const tt_unfold_work *w) {
    tt_array *from = w->fold ? w->columns : w->image, *out = w->fold ? w->image : w->columns;
    int dtype = w->fold && from->dtype != TT_BOOL ? tt_compute_dtype(from->dtype) : from->dtype;
    tt_plain operand = {0};
    tt_wide wide;
    bool ok = tt_wide_start(&wide, out, dtype) && tt_plain_take(&operand, from, dtype);
    if (ok) {
        job j = {w, w->fold ? wide.array->data : operand.array->data, w->fold ? operand.array->data : wide.array->data};
        int64_t work = w->taps[0] * w->taps[1] * w->blocks[0] * w->blocks[1] + w->size[0] * w->size[1] + 1;
        tt_parallel(w->batch * w->channels, work >= GRAIN ? 1 : GRAIN / work, w->fold ? folder(dtype) : unfolder(dtype),
                    &j);
    }
    tt_plain_done(&operand, 1);
    return tt_wide_end(&wide, ok);
}
