/* Resampling: the matrix of each dimension is made, and the result allocated. Coordinates are those of PyTorch, computed in
 * the dtype that it computes them in. */
#include "api/resample.h"
#include "backend/backend.h"
#include "ops/layout.h"
#include <math.h>

typedef struct {
    int64_t in, out;
    double scale; /* the step in the input for one of the result */
    int mode;
    bool align, antialias, single; /* single: coordinates are of float32 */
} rule;

static double rounded(const rule *r, double x) { return r->single ? (double)(float)x : x; }

static double scale_of(const rule *r, double factor) {
    if (r->align && r->mode >= TT_LINEAR)
        return r->out > 1 ? rounded(r, rounded(r, (double)(r->in - 1)) / (double)(r->out - 1)) : 0;
    return factor > 0 ? rounded(r, 1 / factor) : rounded(r, (double)r->in / (double)r->out);
}

static double cubic(double x, double a) {
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* Elements that a row of the matrix has at most. */
static int64_t room_of(const rule *r) {
    double reach = r->mode == TT_CUBIC ? 2 : 1;
    if (r->antialias) return 2 * (int64_t)ceil(reach * (r->scale > 1 ? r->scale : 1)) + 1;
    return r->mode < TT_LINEAR ? 1 : r->mode == TT_LINEAR ? 2 : 4;
}

/* Row i: where it starts; how many weights it has. */
static int64_t smooth_row(const rule *r, int64_t i, int64_t *start, double *w) {
    double reach = r->mode == TT_CUBIC ? 2 : 1, stretch = r->scale >= 1 ? 1 / r->scale : 1, total = 0;
    double support = rounded(r, r->scale >= 1 ? reach * r->scale : reach);
    double center = rounded(r, r->scale * rounded(r, (double)i + 0.5));
    int64_t first = (int64_t)rounded(r, center - support + 0.5), last, n, room = room_of(r);
    first = first > 0 ? first : 0;
    last = (int64_t)rounded(r, center + support + 0.5);
    n = (last < r->in ? last : r->in) - first;
    n = n < 0 ? 0 : n > room ? room : n;
    for (int64_t k = 0; k < n; k++) {
        double x = rounded(r, ((double)(k + first) - center + 0.5) * stretch);
        w[k] = r->mode == TT_CUBIC ? cubic(x, -0.5) : fabs(x) < 1 ? 1 - fabs(x) : 0;
        total += w[k];
    }
    for (int64_t k = 0; k < n && total != 0; k++) w[k] /= total;
    *start = first;
    return n;
}

static int64_t row(const rule *r, int64_t i, int64_t *start, double *w) {
    int64_t last = r->in - 1;
    if (r->antialias) return smooth_row(r, i, start, w);
    if (r->mode < TT_LINEAR) {
        float at = (float)i + (r->mode == TT_NEAREST_EXACT ? 0.5f : 0);
        int64_t from = (int64_t)floorf(at * (float)r->scale);
        *start = from < last ? from : last;
        w[0] = 1;
        return 1;
    }
    double x = r->align ? rounded(r, r->scale * (double)i) : rounded(r, rounded(r, r->scale * ((double)i + 0.5)) - 0.5);
    if (r->mode == TT_LINEAR) {
        if (r->in == r->out) x = (double)i;
        x = x > 0 ? x : 0;
        int64_t from = (int64_t)x < last ? (int64_t)x : last;
        double rest = rounded(r, x - (double)from);
        rest = rest > 1 ? 1 : rest;
        *start = from;
        w[0] = from < last ? rounded(r, 1 - rest) : 1;
        w[1] = rest;
        return from < last ? 2 : 1;
    }
    double base = floor(x), t = rounded(r, x - base);
    int64_t from = (int64_t)base - 1, begin = from < 0 ? 0 : from > last ? last : from;
    int64_t end = from + 3 < 0 ? 0 : from + 3 > last ? last : from + 3;
    for (int64_t k = 0; k <= end - begin; k++) w[k] = 0;
    for (int64_t k = 0; k < 4; k++) { /* those beyond an end are of the element there */
        int64_t at = from + k < begin ? begin : from + k > end ? end : from + k;
        w[at - begin] += cubic(t + 1 - (double)k, -0.75);
    }
    *start = begin;
    return end - begin + 1;
}

/* The matrix of r, or its transpose; all of it lies behind *memory, which tt_scratch_free frees. */
static bool matrix(const rule *r, bool transposed, tt_resampling *m, void **memory) {
    int64_t room = room_of(r), rows = transposed ? r->in : r->out, all = r->out * room;
    int64_t bytes = 8 * (3 * r->out + 3 * rows + 2 * all);
    int64_t *start = *memory = tt_scratch(bytes), *count = start + r->out, *first = count + r->out;
    if (!start) return false;
    double *weights = (double *)(first + r->out);
    for (int64_t j = 0; j < r->out; j++) {
        first[j] = j * room;
        count[j] = row(r, j, start + j, weights + first[j]);
    }
    *m = (tt_resampling){r->in, r->out, start, count, first, weights};
    if (!transposed) return true;
    double *turned = weights + all;
    int64_t *begin = (int64_t *)(turned + all), *times = begin + rows, *at = times + rows, filled = 0;
    for (int64_t i = 0, low = 0, high = 0; i < r->in; i++) { /* starts and ends only grow */
        while (low < r->out && start[low] + count[low] <= i) low++;
        high = high > low ? high : low;
        while (high < r->out && start[high] <= i) high++;
        begin[i] = low;
        times[i] = high - low;
        at[i] = filled;
        for (int64_t j = low; j < high; j++)
            turned[filled++] = start[j] + count[j] > i ? weights[first[j] + i - start[j]] : 0;
    }
    *m = (tt_resampling){r->out, r->in, begin, times, at, turned};
    return true;
}

tt_array *tt_resample(tt_array *x, int dims, int64_t *sizes, double *scales, int mode, int align, int antialias,
                      int backward) {
    const char *op = backward ? "interpolate_backward" : "interpolate";
    TT_ON_DEVICE(NULL, op, 1, &x);
    if (!tt_ready(x)) return tt_decline();
    if (dims < 1 || dims > 3 || x->ndim != dims + 2)
        return tt_fail(TT_RUNTIME_ERROR, "%s: expected a tensor of %d dimensions, got %d", op, dims + 2, x->ndim);
    if (!tt_is_floating(x->dtype) && x->dtype != TT_U8)
        return tt_fail(TT_NOT_IMPLEMENTED, "%s: not implemented for '%s'", op, tt_dtype_names[x->dtype]);
    for (int d = 0; d < dims; d++)
        if (sizes[d] < 1 || x->shape[d + 2] < 1)
            return tt_fail(TT_RUNTIME_ERROR, "%s: Input and output sizes should be greater than 0", op);
    tt_resample_work w = {.from = x, .outer = 1, .inner = 1};
    static const int64_t zero[1] = {0}, one[1] = {1};
    static const double whole[1] = {1};
    bool last = tt_channels_are_last(x, dims), ok = true;
    tt_array *to = w.to = tt_spatial(x, x->dtype, dims, sizes, last), *views[2] = {0};
    void *memory[3] = {0};
    if (!to || !to->numel) return to;
    for (int k = 0; k < 3; k++) {
        int d = k - (3 - dims);
        w.axes[k] = (tt_resampling){1, 1, zero, one, zero, whole};
        if (d < 0) continue;
        rule r = {
            backward ? sizes[d] : x->shape[d + 2], backward ? x->shape[d + 2] : sizes[d], 0, mode, align, antialias,
            mode < TT_LINEAR || x->dtype != TT_F64};
        r.scale = scale_of(&r, scales[d]);
        ok = ok && matrix(&r, backward, &w.axes[k], &memory[k]);
    }
    *(last ? &w.inner : &w.outer) = x->shape[1];
    w.outer *= x->shape[0];
    if (last) { ok = ok && (w.from = views[0] = tt_channels_last(x)) && (w.to = views[1] = tt_channels_last(to)); }
    ok = ok && TT_WORK(op, resample, &w);
    for (int k = 0; k < 2; k++)
        if (views[k]) tt_free(views[k]);
    for (int k = 0; k < 3; k++)
        if (memory[k]) tt_scratch_free(memory[k]);
    if (ok) return to;
    tt_free(to);
    return NULL;
}
