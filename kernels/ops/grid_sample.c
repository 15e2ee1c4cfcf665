/* Images sampled at places of a grid: the result is allocated. */
#include "api/grid_sample.h"
#include "backend/backend.h"

int tt_grid_sample_fits(tt_array *input, tt_array *grid) {
    return tt_backend_of(input->storage->device)->grid_sample && input->storage->device == grid->storage->device &&
           input->numel && grid->numel && tt_is_floating(input->dtype);
}

static bool take_sizes(tt_grid_work *w, const tt_array *input, const tt_array *grid) {
    w->dims = input->ndim - 2;
    if (w->dims < 2 || w->dims > 3 || grid->ndim != input->ndim || grid->shape[grid->ndim - 1] != w->dims ||
        grid->shape[0] != input->shape[0] || grid->dtype != input->dtype) {
        tt_fail(TT_RUNTIME_ERROR, "grid_sample: input and grid do not fit");
        return false;
    }
    w->batch = input->shape[0];
    w->channels = input->shape[1];
    w->places = grid->numel / w->batch / w->dims;
    for (int k = 0; k < 3; k++) w->size[k] = k < 3 - w->dims ? 1 : input->shape[k - (3 - w->dims) + 2];
    return true;
}

static tt_array *sampled(tt_grid_work w) {
    static const char op[] = "grid_sample";
    tt_array *all[] = {w.input, w.grid, w.g};
    TT_ON_DEVICE(NULL, op, 3, all);
    for (int k = 0; k < 3; k++)
        if (all[k] && !tt_ready(all[k])) return tt_decline();
    if (!take_sizes(&w, w.input, w.grid)) return NULL;
    int64_t shape[5] = {w.batch, w.channels};
    for (int d = 0; d < w.dims; d++) shape[2 + d] = w.grid->shape[1 + d];
    if (w.g &&
        (w.g->ndim != w.dims + 2 || w.g->numel != w.batch * w.channels * w.places || w.g->dtype != w.input->dtype))
        return tt_fail(TT_RUNTIME_ERROR, "%s: the gradient does not fit", op);
    const tt_array *like = w.what == TT_GRID_OF_INPUT ? w.input : w.grid;
    w.out = tt_empty(w.input->dtype, w.dims + 2, w.what == TT_GRID_RESULT ? shape : like->shape);
    if (!w.out || TT_WORK(op, grid_sample, &w)) return w.out;
    tt_free(w.out);
    return NULL;
}

tt_array *tt_grid_sample(tt_array *input, tt_array *grid, int mode, int padding, int align) {
    return sampled((tt_grid_work){
        .what = TT_GRID_RESULT, .input = input, .grid = grid, .mode = mode, .padding = padding, .align = align});
}

static tt_array *gradient(int what, tt_array *g, tt_array *input, tt_array *grid, int mode, int padding, int align) {
    return sampled((tt_grid_work){
        .what = what, .input = input, .grid = grid, .g = g, .mode = mode, .padding = padding, .align = align});
}

tt_array *tt_grid_sample_of_input(tt_array *g, tt_array *input, tt_array *grid, int mode, int padding, int align) {
    return gradient(TT_GRID_OF_INPUT, g, input, grid, mode, padding, align);
}

tt_array *tt_grid_sample_of_grid(tt_array *g, tt_array *input, tt_array *grid, int mode, int padding, int align) {
    return gradient(TT_GRID_OF_GRID, g, input, grid, mode, padding, align);
}
