/* How images are resampled along one dimension, on the CPU and in CUDA's kernels: element j of the result is the sum of
 * `count` neighbours from `start` on, with weights. Coordinates are those of PyTorch, in the dtype that it computes
 * them in. */
#pragma once
#include "bits.h"

enum { TT_TAPS_NEAREST, TT_TAPS_NEAREST_EXACT, TT_TAPS_LINEAR, TT_TAPS_CUBIC }; /* the modes of api/resample.h */

typedef struct {
    tt_i64 in, out;
    double scale; /* the step in the input for one of the result */
    int mode, align, antialias, single; /* single: coordinates are of float32 */
} tt_resampling;

typedef struct {
    tt_i64 start, count;
} tt_taps;

#define TT_FEW_TAPS 4 /* that there are at most without antialias */

TT_FN double tt_resample_rounded(const tt_resampling *r, double x) { return r->single ? (double)(float)x : x; }

TT_FN double tt_resample_cubic(double x, double a) {
    x = fabs(x);
    if (x < 1) return ((a + 2) * x - (a + 3)) * x * x + 1;
    return x < 2 ? (((x - 5) * x + 8) * x - 4) * a : 0;
}

/* Taps that an element has at most. */
TT_FN tt_i64 tt_resample_room(const tt_resampling *r) {
    double reach = r->mode == TT_TAPS_CUBIC ? 2 : 1;
    if (r->antialias) return 2 * (tt_i64)ceil(reach * (r->scale > 1 ? r->scale : 1)) + 1;
    return r->mode < TT_TAPS_LINEAR ? 1 : r->mode == TT_TAPS_LINEAR ? 2 : 4;
}

/* With antialias: element i's taps, and the weight of tap k before all are divided by their sum. */
TT_FN double tt_resample_center(const tt_resampling *r, tt_i64 i) {
    return tt_resample_rounded(r, r->scale * tt_resample_rounded(r, (double)i + 0.5));
}

TT_FN tt_taps tt_smooth_taps(const tt_resampling *r, tt_i64 i) {
    double reach = r->mode == TT_TAPS_CUBIC ? 2 : 1, center = tt_resample_center(r, i);
    double support = tt_resample_rounded(r, r->scale >= 1 ? reach * r->scale : reach);
    tt_i64 first = (tt_i64)tt_resample_rounded(r, center - support + 0.5), last, n, room = tt_resample_room(r);
    first = first > 0 ? first : 0;
    last = (tt_i64)tt_resample_rounded(r, center + support + 0.5);
    n = (last < r->in ? last : r->in) - first;
    tt_taps taps = {first, n < 0 ? 0 : n > room ? room : n};
    return taps;
}

TT_FN double tt_smooth_weight(const tt_resampling *r, tt_i64 i, tt_taps taps, tt_i64 k) {
    double stretch = r->scale >= 1 ? 1 / r->scale : 1;
    double x = tt_resample_rounded(r, ((double)(k + taps.start) - tt_resample_center(r, i) + 0.5) * stretch);
    return r->mode == TT_TAPS_CUBIC ? tt_resample_cubic(x, -0.5) : fabs(x) < 1 ? 1 - fabs(x) : 0;
}

/* Without: element i's taps and their weights. */
TT_FN tt_taps tt_few_taps(const tt_resampling *r, tt_i64 i, double *w) {
    tt_i64 last = r->in - 1;
    tt_taps taps = {0, 1};
    if (r->mode < TT_TAPS_LINEAR) {
        float at = (float)i + (r->mode == TT_TAPS_NEAREST_EXACT ? 0.5f : 0);
        tt_i64 from = (tt_i64)floorf(at * (float)r->scale);
        taps.start = from < last ? from : last;
        w[0] = 1;
        return taps;
    }
    double x = r->align ? tt_resample_rounded(r, r->scale * (double)i)
                        : tt_resample_rounded(r, tt_resample_rounded(r, r->scale * ((double)i + 0.5)) - 0.5);
    if (r->mode == TT_TAPS_LINEAR) {
        if (r->in == r->out) x = (double)i;
        x = x > 0 ? x : 0;
        tt_i64 from = (tt_i64)x < last ? (tt_i64)x : last;
        double rest = tt_resample_rounded(r, x - (double)from);
        rest = rest > 1 ? 1 : rest;
        taps.start = from;
        taps.count = from < last ? 2 : 1;
        w[0] = from < last ? tt_resample_rounded(r, 1 - rest) : 1;
        w[1] = rest;
        return taps;
    }
    double base = floor(x), t = tt_resample_rounded(r, x - base);
    tt_i64 from = (tt_i64)base - 1, begin = from < 0 ? 0 : from > last ? last : from;
    tt_i64 end = from + 3 < 0 ? 0 : from + 3 > last ? last : from + 3;
    for (tt_i64 k = 0; k < 4; k++) w[k] = 0;
    for (tt_i64 k = 0; k < 4; k++) { /* those beyond an end are of the element there */
        tt_i64 at = from + k < begin ? begin : from + k > end ? end : from + k;
        w[at - begin] += tt_resample_cubic(t + 1 - (double)k, -0.75);
    }
    taps.start = begin;
    taps.count = end - begin + 1;
    return taps;
}
