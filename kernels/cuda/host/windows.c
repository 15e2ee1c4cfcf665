/* Windows of images on a device: pooling, and blocks as columns. */
#include "backend/plain.h"
#include "cuda/device/windows_args.h"
#include "cuda/host/cuda.h"

#define NARROW ((int64_t)1 << 31) /* what 32-bit arithmetic does not reach */

static tt_divider divider(int64_t size) { return tt_divider_of(size < NARROW ? size : 1); }

/* Fills in what follows from the axes; the variant. */
static int plan(tt_pool_args *p, const tt_pool_work *w) {
    bool backward = w->what >= TT_POOL_MAX_BACKWARD, adaptive = w->axes[2].stride == 0;
    int variant = (w->inner > 1 ? TT_POOL_LAST : 0) | (adaptive ? TT_POOL_ADAPTIVE : w->starts ? TT_POOL_STARTS : 0);
    int64_t most = p->numel > w->in * w->inner ? p->numel : w->in * w->inner; /* the largest number that comes up */
    most = most > w->out * w->inner ? most : w->out * w->inner;
    for (int k = 0; k < 3; k++) {
        const tt_window_axis *a = &w->axes[k];
        int64_t reach = adaptive ? (a->in + 1) * (a->out + 1)
                                 : a->in + 2 * a->padding + a->taps * a->step + (a->out + 1) * a->stride;
        most = reach > most ? reach : most;
        p->axes[k] = *a;
        p->by_size[k] = divider(backward ? a->in : a->out);
        p->by_step[k] = divider(adaptive ? a->out : a->stride);
    }
    if (most >= NARROW) variant |= TT_POOL_WIDE;
    int64_t taps = w->axes[2].taps;
    bool small = !adaptive && !w->starts && w->axes[0].taps == 1 && w->axes[1].taps == taps && (taps == 2 || taps == 3);
    return variant | (small ? (int)taps << TT_POOL_TAPS : 0);
}

bool tt_cuda_pool(const tt_pool_work *w) {
    int dtype = w->from->dtype, compute = tt_is_integral(dtype) ? TT_I64 : tt_compute_dtype(dtype);
    tt_plain in[3] = {{0}};
    bool marks = w->what == TT_POOL_MAX && w->index, ok = tt_plain_take(&in[0], w->from, dtype) &&
                                                          tt_plain_take(&in[1], marks ? NULL : w->index, TT_I64) &&
                                                          tt_plain_take(&in[2], w->starts, TT_I64);
    if (ok) {
        tt_pool_args p = {.from = tt_plain_data(&in[0]),
                          .to = w->to->data,
                          .places = marks ? (int64_t *)w->index->data : (int64_t *)tt_plain_data(&in[1]),
                          .starts = (const int64_t *)tt_plain_data(&in[2]),
                          .numel = w->to->numel,
                          .inner = w->inner,
                          .in = w->in * w->inner,
                          .out = w->out * w->inner,
                          .divisor = w->divisor,
                          .first_axis = 3 - w->dims,
                          .padding = w->padding,
                          .by_inner = divider(w->inner)};
        int variant = plan(&p, w) | (marks ? TT_POOL_PLACES : 0);
        ok = TT_LAUNCH(tt_key(TT_FAMILY_pool, (int)w->what, variant, dtype, compute, 0, 0, 0),
                       (p.numel + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, p);
    }
    tt_plain_done(in, 3);
    return ok;
}

bool tt_cuda_unfold(const tt_unfold_work *w) {
    tt_array *from = w->fold ? w->columns : w->image, *to = w->fold ? w->image : w->columns;
    int dtype = from->dtype, compute = dtype == TT_BOOL || !w->fold ? dtype : tt_compute_dtype(dtype);
    tt_plain operand = {0};
    tt_unfold_args p = {.numel = to->numel};
    int64_t most = w->image->numel > w->columns->numel ? w->image->numel : w->columns->numel;
    if (!tt_plain_take(&operand, from, dtype)) return false;
    p.image = w->fold ? to->data : operand.array->data;
    p.columns = w->fold ? operand.array->data : to->data;
    for (int d = 0; d < 2; d++) {
        p.size[d] = w->size[d];
        p.taps[d] = w->taps[d];
        p.dilation[d] = w->dilation[d];
        p.padding[d] = w->padding[d];
        p.stride[d] = w->stride[d];
        p.blocks[d] = w->blocks[d];
        p.by_size[d] = divider(w->size[d]);
        p.by_taps[d] = divider(w->taps[d]);
        p.by_stride[d] = divider(w->stride[d]);
        p.by_blocks[d] = divider(w->blocks[d]);
        int64_t reach = w->size[d] + 2 * w->padding[d] + w->stride[d] + w->taps[d] * w->dilation[d];
        most = reach > most ? reach : most;
    }
    bool ok = TT_LAUNCH(tt_key(TT_FAMILY_unfold, w->fold, most >= NARROW ? TT_POOL_WIDE : 0, dtype, compute, 0, 0, 0),
                        (p.numel + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, p);
    tt_plain_done(&operand, 1);
    return ok;
}
