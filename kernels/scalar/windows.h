/* Windows of pooling along one dimension, on the CPU and in CUDA's kernels. */
#pragma once
#include "bits.h"

typedef struct {
    tt_i64 in, out;      /* sizes of the input and of the result */
    tt_i64 taps, stride; /* stride 0: adaptive, the input's length over the result's */
    tt_i64 padding, step; /* step: from one element of a window to the next */
} tt_window_axis;

/* What window i takes: `count` elements from `first` on, and how many places it spans, those of the padding among
 * them. start: where it begins, unless that follows from i. */
typedef struct {
    tt_i64 first, count, span;
} tt_window;

TT_FN tt_window tt_window_from(const tt_window_axis *a, tt_i64 start) {
    tt_i64 reach = a->in + a->padding, end = start + (a->taps - 1) * a->step + 1;
    tt_i64 last = end < a->in ? end : a->in, skipped = start < 0 ? (-start + a->step - 1) / a->step : 0;
    tt_i64 first = start + skipped * a->step;
    tt_window w = {first, last > first ? (last - first - 1) / a->step + 1 : 0, (end < reach ? end : reach) - start};
    return w;
}

TT_FN tt_window tt_window_at(const tt_window_axis *a, tt_i64 i) {
    if (a->stride) return tt_window_from(a, i * a->stride - a->padding);
    tt_i64 first = i / a->out * a->in + i % a->out * a->in / a->out;
    tt_i64 end = ((i + 1) * a->in + a->out - 1) / a->out;
    tt_window w = {first, end - first, end - first};
    return w;
}
