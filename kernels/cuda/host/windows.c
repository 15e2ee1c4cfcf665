/* Windows of images on a device: pooling. */
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
