/* Recurrent layers on a device: of each step one product with the weights, and a kernel for the gates. */
#include "backend/now.h"
#include "core/sizes.h"
#include "cuda/device/recurrent_args.h"
#include "cuda/host/cuda.h"
#include <string.h>

static char *row_of(const tt_array *a, int64_t row, int64_t width) {
    return a ? a->data + row * width * tt_itemsizes[a->dtype] : NULL;
}

/* A step, and its neighbours' first rows in the order of time, or in the layer's own. */
typedef struct {
    int64_t row, rows, before, known, after, shared;
} step;

/* The s-th that is computed; `starts`: the first row of each. */
static step step_at(const tt_recurrent_work *w, const int64_t *starts, int64_t s, bool back) {
    int64_t t = w->reverse != back ? w->steps - 1 - s : s, by = w->reverse ? -1 : 1;
    int64_t before = t - by, after = t + by;
    step k = {.row = starts[t], .rows = w->sizes[t]};
    if (before >= 0 && before < w->steps) k.before = starts[before], k.known = least(k.rows, w->sizes[before]);
    if (after >= 0 && after < w->steps) k.after = starts[after], k.shared = least(k.rows, w->sizes[after]);
    return k;
}

static bool launch(const tt_recurrent_work *w, bool back, const tt_recurrent_args *p) {
    int op = w->kind + (back ? TT_RECURRENT_BACK : 0);
    int64_t blocks = (p->rows * p->hidden + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS;
    return TT_LAUNCH(tt_key(TT_FAMILY_recurrent, op, 0, w->dtype, 0, 0, 0, 0), blocks, 1, TT_CUDA_THREADS, 0, *p);
}

/* product = states w^T, of rows of one place */
static bool forward_product(const tt_recurrent_work *w, int64_t rows, const char *states, char *product) {
    tt_gemm g = {.m = rows,
                 .n = w->gates * w->hidden,
                 .k = w->hidden,
                 .lda = w->hidden,
                 .ldb = w->hidden,
                 .count = 1,
                 .dtype = w->dtype,
                 .trans = 2,
                 .layer = true};
    return !rows || tt_cuda_multiply(&g, states, w->w->data, product);
}

static bool forward(const tt_recurrent_work *w, const step *k, char *product) {
    int64_t h = w->hidden, all = w->gates * h;
    const tt_array *states = w->c ? w->c : w->y;
    tt_recurrent_args p = {.rows = k->rows,
                           .hidden = h,
                           .known = k->known,
                           .before = row_of(states, k->before, h),
                           .first = w->c ? w->c0->data : w->h0->data,
                           .x = row_of(w->x, k->row, all),
                           .product = product,
                           .b = w->b->data,
                           .gates = row_of(w->saved, k->row, w->kept * h),
                           .c = row_of(w->c, k->row, h),
                           .y = row_of(w->y, k->row, h)};
    return forward_product(w, k->known, row_of(w->y, k->before, h), product) &&
           forward_product(w, k->rows - k->known, row_of(w->h0, k->known, h),
                           product + k->known * all * tt_itemsizes[w->dtype]) &&
           launch(w, false, &p);
}

static bool backward(const tt_recurrent_work *w, const step *k, char *product) {
    int64_t h = w->hidden, all = w->gates * h;
    const tt_array *states = w->c ? w->c : w->y, *of_h = w->of_h ? w->of_h : w->of_x;
    tt_gemm g = {.m = k->shared, .n = h, .k = all, .lda = all, .ldb = h, .count = 1, .dtype = w->dtype, .layer = true};
    tt_recurrent_args p = {.rows = k->rows,
                           .hidden = h,
                           .known = k->known,
                           .before = row_of(states, k->before, h),
                           .first = w->c ? w->c0->data : w->h0->data,
                           .product = product,
                           .gates = row_of(w->saved, k->row, w->kept * h),
                           .c = row_of(w->c, k->row, h),
                           .y = row_of(w->y, k->row, h),
                           .shared = k->shared,
                           .g = row_of(w->g, k->row, h),
                           .g_c = row_of(w->g_c, k->row, h),
                           .of_first = row_of(w->of_first, 0, h),
                           .of_x = row_of(w->of_x, k->row, all),
                           .of_h = row_of(w->of_h, k->row, all)};
    return (!k->shared || tt_cuda_multiply(&g, row_of(of_h, k->after, all), w->w->data, product)) &&
           launch(w, true, &p);
}

static bool run(const tt_recurrent_work *w, bool back) {
    int64_t *starts = tt_scratch((w->steps + 1) * (int64_t)sizeof *starts), rows = 0;
    tt_array *product = NULL;
    for (int64_t t = 0; starts && t < w->steps; t++) {
        starts[t] = rows;
        rows += w->sizes[t];
    }
    bool ok = starts;
    if (ok && rows && w->hidden)
        ok = (product = tt_cuda_temporary(w->dtype, w->batch * (back ? 1 : w->gates) * w->hidden));
    for (int64_t s = 0; ok && product && s < w->steps; s++) {
        step k = step_at(w, starts, s, back);
        ok = !k.rows || (back ? backward(w, &k, product->data) : forward(w, &k, product->data));
    }
    if (product) tt_free(product);
    tt_scratch_free(starts);
    return ok;
}

bool tt_cuda_recurrent(const tt_recurrent_work *w) { return run(w, false); }

bool tt_cuda_recurrent_backward(const tt_recurrent_work *w) {
    if (w->of_first && tt_fill_now(w->of_first, TT_KIND_INT, 0, 0) < 0) return false;
    return run(w, true);
}
