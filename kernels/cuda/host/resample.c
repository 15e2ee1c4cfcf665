/* Resampling on a device: one kernel makes the matrix of each dimension, in the memory of a temporary array, another
 * one applies them. */
#include "backend/plain.h"
#include "cuda/device/resample_args.h"
#include "cuda/host/cuda.h"
#include <math.h>

#define NARROW ((int64_t)1 << 31) /* what 32-bit arithmetic does not reach */
#define MOST_ROOM 8 /* weights of an axis that a thread holds */
#define BLOCKS (16 * TT_CUDA_ENOUGH)

/* About how many of a matrix's rows an element is in. */
static int64_t rows_with(const tt_resampling *r) {
    double reach = r->mode == TT_TAPS_CUBIC ? 4 : r->mode == TT_TAPS_LINEAR || r->antialias ? 2 : 1;
    double times = r->scale > 0 ? ceil(reach / r->scale) + 1 : (double)r->out;
    return times < (double)r->out ? (int64_t)times : r->out;
}

/* Where the matrices lie: words of the temporary array, from `memory` on; how many. */
static int64_t lay_out(tt_resample_axis *axes, const tt_resample_work *w, int size, char *memory) {
    int64_t words = 0;
    for (int k = 0; k < 3; k++) {
        tt_resample_axis *a = &axes[k];
        const tt_resampling *r = &w->axes[k];
        int64_t room = tt_resample_room(r), *at = (int64_t *)memory + words;
        words += 2 * r->out + (w->backward ? 2 * r->in : 0) + (r->out * room * size + 7) / 8;
        if (!memory) continue;
        *a = (tt_resample_axis){.room = room, .rule = *r};
        a->start = (tt_i64 *)at;
        a->count = a->start + r->out;
        a->first = a->count + r->out;
        a->times = a->first + (w->backward ? r->in : 0);
        a->weights = (char *)(a->times + (w->backward ? r->in : 0));
    }
    return words;
}

static bool make_matrices(const tt_resample_axis *axes, int compute, bool backward) {
    tt_resample_taps_args p;
    int64_t rows = 1;
    for (int k = 0; k < 3; k++) {
        p.axes[k] = axes[k];
        rows = axes[k].rule.out > rows ? axes[k].rule.out : rows;
        rows = backward && axes[k].rule.in > rows ? axes[k].rule.in : rows;
    }
    return TT_LAUNCH(tt_key(TT_FAMILY_resample_taps, backward, 0, compute, 0, 0, 0, 0),
                     (rows + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 3, TT_CUDA_THREADS, 0, p);
}

static bool apply(const tt_resample_work *w, tt_resample_args *p, int compute) {
    int64_t room = 1;
    int dims = 3;
    p->in = p->out = w->inner;
    for (int k = 0; k < 3; k++) {
        const tt_resampling *r = &w->axes[k];
        int64_t taps = w->backward ? rows_with(r) : p->axes[k].room;
        p->from_size[k] = w->backward ? r->out : r->in;
        p->to_size[k] = w->backward ? r->in : r->out;
        p->by_size[k] = tt_divider_of(p->to_size[k] < NARROW ? p->to_size[k] : 1);
        p->in *= p->from_size[k];
        p->out *= p->to_size[k];
        room = taps > room ? taps : room;
        if (dims == 3 - k && r->in == 1 && r->out == 1 && k < 2) dims--;
    }
    if (room > MOST_ROOM) room = MOST_ROOM;
    p->places = p->out;
    p->by_inner = tt_divider_of(w->inner < NARROW ? w->inner : 1);
    int variant = (p->in >= NARROW || p->out >= NARROW ? TT_RESAMPLE_WIDE : 0) | (w->inner > 1 ? TT_RESAMPLE_LAST : 0) |
                  (p->out > p->in ? TT_RESAMPLE_GROWS : 0) | (int)(room - 1) << TT_RESAMPLE_ROOM |
                  dims << TT_RESAMPLE_DIMS;
    int64_t blocks = (p->places + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, groups = BLOCKS / blocks + 1;
    return TT_LAUNCH(tt_key(TT_FAMILY_resample, w->backward, variant, w->from->dtype, compute, 0, 0, 0), blocks,
                     groups < w->outer ? groups : w->outer, TT_CUDA_THREADS, 0, *p);
}

bool tt_cuda_resample(const tt_resample_work *w) {
    int compute = tt_compute_dtype(w->from->dtype) == TT_F64 ? TT_F64 : TT_F32;
    tt_resample_args p = {.to = w->to->data, .planes = w->outer, .inner = w->inner};
    tt_array *memory = tt_cuda_temporary(TT_I64, lay_out(p.axes, w, tt_itemsizes[compute], NULL));
    tt_plain from = {0};
    bool ok = memory && tt_plain_take(&from, w->from, w->from->dtype);
    if (ok) {
        p.from = tt_plain_data(&from);
        lay_out(p.axes, w, tt_itemsizes[compute], memory->data);
        ok = make_matrices(p.axes, compute, w->backward) && apply(w, &p, compute);
    }
    tt_plain_done(&from, 1);
    if (memory) tt_free(memory);
    return ok;
}
