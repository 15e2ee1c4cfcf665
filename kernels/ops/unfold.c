/* Blocks of images as columns, and back: operands are checked, and what they make is allocated. */
#include "api/conv.h"
#include "backend/backend.h"

/* Reads the geometry, and counts blocks; false and an error where they do not fit. */
static bool take_geometry(const char *op, tt_unfold_work *w, const int64_t *geometry) {
    for (int d = 0; d < 2; d++) {
        int64_t reach, padded;
        w->taps[d] = geometry[d];
        w->dilation[d] = geometry[2 + d];
        w->padding[d] = geometry[4 + d];
        w->stride[d] = geometry[6 + d];
        bool counts = w->taps[d] > 0 && w->dilation[d] > 0 && w->stride[d] > 0 && w->padding[d] >= 0 &&
                      w->size[d] >= 0 && !__builtin_mul_overflow(w->taps[d], w->dilation[d], &reach) &&
                      reach < INT64_MAX / 4 && !__builtin_mul_overflow(w->padding[d], 2, &padded) &&
                      padded < INT64_MAX / 4 && w->size[d] < INT64_MAX / 4;
        if (!counts) return tt_fail(TT_RUNTIME_ERROR, "%s: the sizes are too large, or not positive", op), false;
        int64_t rest = w->size[d] + padded - (reach - w->dilation[d] + 1);
        w->blocks[d] = rest < 0 ? 0 : rest / w->stride[d] + 1;
    }
    return true;
}

static tt_array *make(const char *op, tt_unfold_work *w) {
    int64_t image[4] = {w->batch, w->channels, w->size[0], w->size[1]}, taps, rows, blocks;
    tt_array *from = w->fold ? w->columns : w->image, **out = w->fold ? &w->image : &w->columns;
    if (__builtin_mul_overflow(w->taps[0], w->taps[1], &taps) || __builtin_mul_overflow(taps, w->channels, &rows) ||
        __builtin_mul_overflow(w->blocks[0], w->blocks[1], &blocks))
        return tt_fail(TT_RUNTIME_ERROR, "%s: the sizes are too large", op);
    int64_t columns[3] = {w->batch, rows, blocks};
    if (w->fold && (from->shape[1] != rows || from->shape[2] != blocks))
        return tt_fail(TT_RUNTIME_ERROR, "%s: expected columns of shape (%lld, %lld, %lld)", op, (long long)w->batch,
                       (long long)rows, (long long)blocks);
    if (!(*out = tt_empty(from->dtype, w->fold ? 4 : 3, w->fold ? image : columns))) return NULL;
    if (!(*out)->numel || TT_WORK(op, unfold, w)) return *out;
    tt_free(*out);
    return NULL;
}

tt_array *tt_unfold(tt_array *image, int64_t *geometry) {
    TT_ON_DEVICE(NULL, "unfold", 1, &image);
    if (!tt_ready(image)) return tt_decline();
    if (image->ndim != 4) return tt_fail(TT_RUNTIME_ERROR, "unfold: expected 4 dimensions, got %d", image->ndim);
    tt_unfold_work w = {.image = image,
                        .batch = image->shape[0],
                        .channels = image->shape[1],
                        .size = {image->shape[2], image->shape[3]}};
    return take_geometry("unfold", &w, geometry) ? make("unfold", &w) : NULL;
}

tt_array *tt_fold(tt_array *columns, int64_t *size, int64_t *geometry) {
    TT_ON_DEVICE(NULL, "fold", 1, &columns);
    if (!tt_ready(columns)) return tt_decline();
    if (columns->ndim != 3) return tt_fail(TT_RUNTIME_ERROR, "fold: expected 3 dimensions, got %d", columns->ndim);
    if (tt_is_integral(columns->dtype) && columns->dtype != TT_BOOL)
        return tt_fail(TT_NOT_IMPLEMENTED, "fold: not implemented for '%s'", tt_dtype_names[columns->dtype]);
    tt_unfold_work w = {.columns = columns, .fold = true, .batch = columns->shape[0], .size = {size[0], size[1]}};
    if (!take_geometry("fold", &w, geometry)) return NULL;
    if (w.taps[0] > columns->shape[1] || w.taps[1] > columns->shape[1])
        return tt_fail(TT_RUNTIME_ERROR, "fold: there are fewer rows than taps");
    w.channels = columns->shape[1] / (w.taps[0] * w.taps[1]);
    return make("fold", &w);
}
