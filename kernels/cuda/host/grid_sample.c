/* Images sampled at places of a grid, on a device. The gradient of the images is a sum for each element over the places
 * that take it: which those are is found by sorting, so that the sum has one order. */
#include "backend/now.h"
#include "backend/plain.h"
#include "cuda/device/grid_sample_args.h"
#include "cuda/host/radix.h"

#define MAX_BLOCKS_Y 1024
#define BLOCKS (16 * TT_CUDA_ENOUGH)

static bool launch(int op, int more, const tt_grid_work *w, const tt_sample_args *p, int64_t threads, int64_t y) {
    int variant = (w->dims == 3) | w->mode << TT_SAMPLE_MODE | w->padding << TT_SAMPLE_PADDING |
                  (w->align ? TT_SAMPLE_ALIGN : 0) | more;
    int compute = tt_compute_dtype(w->input->dtype);
    return TT_LAUNCH(tt_key(TT_FAMILY_grid_sample, op, variant, w->input->dtype, compute, 0, 0, 0),
                     (threads + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, y < MAX_BLOCKS_Y ? y : MAX_BLOCKS_Y,
                     TT_CUDA_THREADS, 0, *p);
}

/* out = in, of (batch, n, m) the last two dimensions exchanged */
static bool transpose(tt_array *out, const char *data, int64_t batch, int64_t n, int64_t m, const tt_array *owner) {
    int64_t shape[3] = {batch, m, n}, strides[3] = {n * m, 1, m}, plain[3] = {n * m, n, 1};
    tt_array from = *owner, to = *out;
    from.data = (char *)data;
    from.ndim = to.ndim = 3;
    from.shape = to.shape = shape;
    from.strides = strides;
    to.strides = plain;
    from.numel = to.numel = batch * n * m;
    tt_update_flags(&from);
    tt_update_flags(&to);
    return tt_copy_now(&to, &from) == 0;
}

static bool sum_up(const tt_grid_work *w, tt_sample_args *p, const tt_array *g, tt_radix_sort *sort) {
    int64_t shape[3] = {w->batch, w->places, w->channels}, flat[2] = {p->elements, w->channels};
    tt_array *rows = tt_empty(g->dtype, 3, shape), *sums = tt_empty(g->dtype, 2, flat);
    bool ok = rows && sums && transpose(rows, g->data, w->batch, w->channels, w->places, g) &&
              tt_fill_now(sums, TT_KIND_FLOAT, 0, 0) == 0;
    if (ok) {
        p->keys = sort->keys->data;
        p->order = (const uint32_t *)sort->numbers->data;
        p->g = rows->data;
        p->out = sums->data;
        while (p->lanes_log < 6 && 1 << p->lanes_log < w->channels) p->lanes_log++;
        ok = launch(TT_SAMPLE_SUMS, sort->wide ? TT_SAMPLE_WIDE : 0, w, p, p->terms << p->lanes_log,
                    (w->channels + (1 << p->lanes_log) - 1) >> p->lanes_log) &&
             transpose(w->out, sums->data, w->batch, p->elements / w->batch, w->channels, sums);
    }
    if (rows) tt_free(rows);
    if (sums) tt_free(sums);
    return ok;
}

static bool of_input(const tt_grid_work *w, tt_sample_args *p, const tt_array *g) {
    int bits = 64 - __builtin_clzll((uint64_t)p->elements), taps = 1 << w->mode;
    p->terms = w->batch * w->places * taps * taps * (w->dims == 3 ? taps : 1);
    tt_radix_sort sort = {.n = 0};
    tt_array *weights = tt_cuda_temporary(tt_compute_dtype(g->dtype), p->terms);
    bool ok = weights && tt_radix_sort_begin(&sort, p->terms, bits > 32) && tt_radix_sort_room(&sort);
    if (ok) {
        p->keys = sort.keys->data;
        p->weights = weights->data;
        ok = launch(TT_SAMPLE_TERMS, sort.wide ? TT_SAMPLE_WIDE : 0, w, p, w->batch * w->places, 1) &&
             tt_radix_sort_keys(&sort, bits, 0) && sum_up(w, p, g, &sort);
    }
    tt_radix_sort_end(&sort);
    if (weights) tt_free(weights);
    return ok;
}

bool tt_cuda_grid_sample(const tt_grid_work *w) {
    tt_array *all[3] = {w->input, w->grid, w->g};
    int64_t n = w->batch * w->places, blocks = (n + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS,
            groups = BLOCKS / blocks + 1;
    tt_plain in[3] = {{0}};
    bool ok = true;
    for (int k = 0; k < 3; k++) ok = ok && tt_plain_take(&in[k], all[k], w->input->dtype);
    if (ok) {
        tt_sample_args p = {.input = tt_plain_data(&in[0]),
                            .grid = tt_plain_data(&in[1]),
                            .g = tt_plain_data(&in[2]),
                            .out = w->out->data,
                            .batch = w->batch,
                            .channels = w->channels,
                            .places = w->places,
                            .elements = w->batch * w->size[0] * w->size[1] * w->size[2],
                            .size = {w->size[0], w->size[1], w->size[2]}};
        if (w->what == TT_GRID_OF_INPUT) ok = of_input(w, &p, in[2].array);
        else if (w->what == TT_GRID_OF_GRID) ok = launch(TT_SAMPLE_OF_GRID, 0, w, &p, n, 1);
        else ok = launch(TT_SAMPLE_RESULT, 0, w, &p, n, groups < w->channels ? groups : w->channels);
    }
    tt_plain_done(in, 3);
    return ok;
}
