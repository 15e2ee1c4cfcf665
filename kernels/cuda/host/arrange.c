/* Joining, flips, rolls and triangles on a device: geometry for the kernels that move whole units of up to 16 bytes. */
#include "cuda/host/cuda.h"
#include "cuda/device/arrange_args.h"
#include <string.h>

#define UNROLL 4 /* TT_UNROLL in join.cuh */
#define WIDE 8
#define ONE_ROW 16

/* The logarithm of the largest unit that divides all that was or-ed into x. */
static int unit_log(int64_t x) { return __builtin_ctzll((uint64_t)(x | 16)); }

static bool join_some(tt_array *out, int n, tt_array *const *in, int64_t rows, int64_t start, const int64_t *chunks,
                      int64_t pitch) {
    tt_join_args p = {.out = out->data, .rows = rows};
    int64_t all = (int64_t)(intptr_t)out->data | pitch | start, largest = 0;
    int y = 0, variant = rows == 1 ? ONE_ROW : 0;
    for (int k = 0; k < n; k++) all |= (int64_t)(intptr_t)in[k]->data | chunks[k];
    int log = unit_log(all);
    p.pitch = pitch >> log;
    for (int k = 0; k < n; start += chunks[k++]) {
        if (!chunks[k]) continue;
        tt_joined *to = &p.in[y++];
        *to = (tt_joined){.data = in[k]->data, .chunk = chunks[k] >> log, .start = start >> log};
        largest = to->chunk > largest ? to->chunk : largest;
        if (to->chunk < (int64_t)1 << 31) to->by = tt_divider_of(to->chunk);
    }
    if (!y) return true;
    if (rows * largest >= (int64_t)1 << 31) variant |= WIDE;
    return TT_LAUNCH(tt_key(TT_FAMILY_join, 0, variant | log, 0, 0, 0, 0, 0),
                     (rows * largest + TT_CUDA_THREADS * UNROLL - 1) / (TT_CUDA_THREADS * UNROLL), y, TT_CUDA_THREADS,
                     0, p);
}

static bool joins(const tt_array *out, int n, tt_array *const *in) {
    for (int k = 0; k < n; k++)
        if (!(in[k]->flags & TT_FLAG_CONTIGUOUS) || in[k]->dtype != out->dtype) return false;
    return true;
}

static bool join(tt_array *out, int n, tt_array *const *in, int dim, bool stack) {
    int64_t rows = 1, inner = tt_itemsizes[out->dtype], start = 0, chunks[TT_JOIN_INPUTS];
    for (int d = 0; d < dim; d++) rows *= out->shape[d];
    for (int d = dim + 1; d < out->ndim; d++) inner *= out->shape[d];
    if (!out->numel) return true;
    for (int k = 0; k < n; k += TT_JOIN_INPUTS) {
        int some = n - k < TT_JOIN_INPUTS ? n - k : TT_JOIN_INPUTS;
        int64_t sum = 0;
        for (int i = 0; i < some; i++) sum += chunks[i] = inner * (stack ? 1 : in[k + i]->shape[dim]);
        if (!join_some(out, some, in + k, rows, start, chunks, inner * out->shape[dim])) return false;
        start += sum;
    }
    return true;
}

int tt_cuda_join(tt_array *out, int n, tt_array *const *in, int dim, bool stack) {
    return !joins(out, n, in) ? 0 : join(out, n, in, dim, stack) ? 1 : -1;
}

bool tt_cuda_rearrange(tt_array *out, const tt_array *a, const bool *flipped, const int64_t *shift) {
    tt_rearrange_args p = {.out = out->data, .in = a->data};
    int order[TT_MAX_NDIM], n = 0, item = tt_itemsizes[a->dtype], log;
    for (int d = 0; d < a->ndim; d++) { /* dimensions by the output's strides, the least first */
        int at = n;
        if (a->shape[d] == 1) continue;
        while (at > 0 && out->strides[order[at - 1]] > out->strides[d]) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = d;
        n++;
    }
    for (int k = 0; k < n; k++) {
        int d = order[k], last = p.ndim - 1;
        int64_t size = a->shape[d], step = a->strides[d] * item, by = shift ? shift[d] : 0;
        if (flipped && flipped[d]) {
            p.in += (size - 1) * step;
            step = -step;
        }
        if (last >= 0 && !by && !p.shift[last] && step == p.step[last] * p.size[last]) {
            p.size[last] *= size;
            continue;
        }
        if (p.ndim == TT_CUDA_DIMS) return tt_cuda_too_deep(flipped ? "flip" : "roll");
        p.size[p.ndim] = size;
        p.step[p.ndim] = step;
        p.shift[p.ndim++] = by;
    }
    if (p.ndim && p.step[0] == item && !p.shift[0]) { /* the output is dense */
        int64_t all = (int64_t)(intptr_t)p.in | (int64_t)(intptr_t)p.out | p.size[0] * item;
        for (int d = 1; d < p.ndim; d++) all |= p.step[d];
        log = unit_log(all);
        p.size[0] = p.size[0] * item >> log;
        p.step[0] = 1 << log;
    } else log = unit_log(item);
    p.numel = out->numel * item >> log;
    for (int d = 0; d < p.ndim; d++)
        if (p.size[d] < (int64_t)1 << 31) p.by[d] = tt_divider_of(p.size[d]);
    return TT_LAUNCH(tt_key(TT_FAMILY_rearrange, 0, log | (p.numel >= (int64_t)1 << 31 ? WIDE : 0), 0, 0, 0, 0, 0),
                     (p.numel + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, p);
}

bool tt_cuda_zero_triangle(tt_array *a, int64_t diagonal, bool below) {
    int item = tt_itemsizes[a->dtype], stacked = 0;
    int64_t sizes[TT_MAX_NDIM], steps[TT_MAX_NDIM];
    for (int d = 0; d < a->ndim - 2; d++) tt_merge_dim(&stacked, sizes, steps, a->shape[d], a->strides[d]);
    if (stacked + 2 > TT_CUDA_DIMS) return tt_cuda_too_deep(below ? "triu" : "tril");
    tt_triangle_args p = {
        .data = a->data, .numel = a->numel, .edge = diagonal + !below, .below = below, .ndim = stacked + 2};
    for (int d = 0; d < p.ndim; d++) {
        p.size[d] = d < 2 ? a->shape[a->ndim - 1 - d] : sizes[p.ndim - 1 - d];
        p.step[d] = (d < 2 ? a->strides[a->ndim - 1 - d] : steps[p.ndim - 1 - d]) * item;
    }
    return TT_LAUNCH(tt_key(TT_FAMILY_triangle, 0, unit_log(item), 0, 0, 0, 0, 0),
                     (p.numel + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, p);
}
