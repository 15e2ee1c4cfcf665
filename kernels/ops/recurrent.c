/* Layers of recurrent networks: operands are checked against each other, and results are allocated. */
#include "api/recurrent.h"
#include "backend/backend.h"
#include <limits.h>
#include <string.h>

#define NAME(name, gates, kept) #name,
#define GATES(name, gates, kept) gates,
#define KEPT(name, gates, kept) kept,
static const char *const names[] = {TT_RECURRENT_KINDS(NAME)};
static const int gates_of[] = {TT_RECURRENT_KINDS(GATES)}, kept_of[] = {TT_RECURRENT_KINDS(KEPT)};

int tt_recurrent_kind(const char *name) {
    for (int k = 0; k < TT_NUM_RECURRENT_KINDS; k++)
        if (!strcmp(names[k], name)) return k;
    return -1;
}

static bool fits(const tt_recurrent_work *w, int dtype, const char *name, const tt_array *a, int64_t rows,
                 int64_t cols) {
    char have[TT_SHAPE_TEXT], want[TT_SHAPE_TEXT];
    int64_t shape[2] = {rows, cols};
    if (!a) return true;
    int skip = a->ndim == 1 && rows == 1; /* a bias */
    if (a->dtype != dtype || !(a->flags & TT_FLAG_CONTIGUOUS))
        tt_fail(TT_RUNTIME_ERROR, "%s: expected %s contiguous and of %s, but got %s", names[w->kind], name,
                tt_dtype_names[dtype], tt_dtype_names[a->dtype]);
    else if (a->ndim + skip != 2 || a->shape[1 - skip] != cols || (!skip && a->shape[0] != rows))
        tt_fail(TT_RUNTIME_ERROR, "%s: expected %s of shape %s, but got %s", names[w->kind], name,
                tt_shape_text(want, 2, shape), tt_shape_text(have, a->ndim, a->shape));
    else return true;
    return false;
}

/* Fills in the sizes, and gives the number of rows; -1: an error. */
static int64_t check(tt_recurrent_work *w) {
    int64_t rows = 0, most = w->h0->shape[0];
    bool half = tt_is_half(w->stored);
    w->dtype = half ? TT_F32 : w->stored;
    if (w->h0->ndim != 2 || (w->dtype != TT_F32 && w->dtype != TT_F64) || (half && w->h0->storage->device)) {
        tt_fail(TT_RUNTIME_ERROR,
                "%s: expected a first state of two dimensions, of a floating dtype that the device "
                "has kernels for",
                names[w->kind]);
        return -1;
    }
    w->batch = w->h0->shape[0], w->hidden = w->h0->shape[1];
    w->gates = gates_of[w->kind], w->kept = kept_of[w->kind];
    if (w->batch > INT_MAX || w->gates * w->hidden > INT_MAX) {
        tt_fail(TT_RUNTIME_ERROR, "%s: states are too large", names[w->kind]);
        return -1;
    }
    for (int64_t t = 0; t < w->steps; t++) {
        if (w->sizes[t] < 0 || w->sizes[t] > most) {
            tt_fail(TT_RUNTIME_ERROR, "%s: batch sizes must not grow, nor be larger than the number of states",
                    names[w->kind]);
            return -1;
        }
        rows += most = w->sizes[t];
    }
    int dtype = w->dtype, stored = w->stored;
    bool fit = fits(w, stored, "inputs", w->x, rows, w->gates * w->hidden) &&
               fits(w, stored, "weights", w->w, w->gates * w->hidden, w->hidden) &&
               fits(w, dtype, "a bias", w->b, 1, w->gates * w->hidden) &&
               fits(w, stored, "a first state", w->h0, w->batch, w->hidden) &&
               fits(w, dtype, "a first state", w->c0, w->batch, w->hidden) &&
               fits(w, stored, "states", w->y, rows, w->hidden) && fits(w, dtype, "states", w->c, rows, w->hidden) &&
               fits(w, dtype, "gates", w->saved, rows, w->kept * w->hidden) &&
               fits(w, stored, "a gradient", w->g, rows, w->hidden) &&
               fits(w, dtype, "a gradient", w->g_c, rows, w->hidden);
    return fit ? rows : -1;
}

static bool make(tt_array **to, bool wanted, int dtype, int64_t rows, int64_t cols) {
    int64_t shape[2] = {rows, cols};
    return !wanted || (*to = tt_empty(dtype, 2, shape));
}

/* The results, or, after a failure, none. */
static void give(bool ok, int n, tt_array *const *made, tt_array **to) {
    for (int k = 0; k < n; k++) {
        if (!ok && made[k]) tt_free(made[k]);
        to[k] = ok ? made[k] : NULL;
    }
}

tt_array *tt_recurrent(int kind, tt_array *x, tt_array *w, tt_array *b, tt_array *h0, tt_array *c0, int64_t steps,
                       int64_t *sizes, int reverse, tt_array **more) {
    tt_array *in[5] = {x, w, b, h0, c0}, *all[3];
    TT_ON_DEVICE(NULL, names[kind], 5, in);
    for (int k = 0; k < 5; k++)
        if (in[k] && !tt_ready(in[k])) return tt_decline();
    tt_recurrent_work j = {.kind = kind,
                           .stored = x->dtype,
                           .steps = steps,
                           .sizes = sizes,
                           .reverse = reverse,
                           .x = x,
                           .w = w,
                           .b = b,
                           .h0 = h0,
                           .c0 = c0};
    int64_t rows = check(&j);
    if (rows < 0) return NULL;
    bool ok = make(&j.y, true, j.stored, rows, j.hidden) &&
              make(&j.c, kind == TT_RECURRENT_lstm, j.dtype, rows, j.hidden) &&
              make(&j.saved, j.kept, j.dtype, rows, j.kept * j.hidden) &&
              (!j.y->numel || TT_WORK(names[kind], recurrent, &j));
    give(ok, 3, (tt_array *[]){j.y, j.c, j.saved}, all);
    more[0] = all[1];
    more[1] = all[2];
    return all[0];
}

tt_array *tt_recurrent_backward(int kind, tt_array *g, tt_array *g_c, tt_array *w, tt_array *y, tt_array *c,
                                tt_array *gates, tt_array *h0, tt_array *c0, int64_t steps, int64_t *sizes, int reverse,
                                tt_array **more) {
    tt_array *in[8] = {g, g_c, w, y, c, gates, h0, c0}, *all[3];
    TT_ON_DEVICE(NULL, names[kind], 8, in);
    for (int k = 0; k < 8; k++)
        if (in[k] && !tt_ready(in[k])) return tt_decline();
    tt_recurrent_work j = {.kind = kind,
                           .stored = w->dtype,
                           .steps = steps,
                           .sizes = sizes,
                           .reverse = reverse,
                           .w = w,
                           .h0 = h0,
                           .c0 = c0,
                           .y = y,
                           .c = c,
                           .saved = gates,
                           .g = g,
                           .g_c = g_c};
    int64_t rows = check(&j);
    if (rows < 0) return NULL;
    bool ok = make(&j.of_x, true, j.stored, rows, j.gates * j.hidden) &&
              make(&j.of_h, kind == TT_RECURRENT_gru, j.stored, rows, j.gates * j.hidden) &&
              make(&j.of_first, j.kept, j.dtype, j.batch, j.hidden) && TT_WORK(names[kind], recurrent_backward, &j);
    give(ok, 3, (tt_array *[]){j.of_x, j.of_h, j.of_first}, all);
    more[0] = all[1];
    more[1] = all[2];
    return all[0];
}
