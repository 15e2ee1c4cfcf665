/* Pooling over the last dimensions: api/windows.h. */
#pragma once
#include "core/tt.h"
#include "scalar/windows.h"

/* Arrays lie as (outer, *spatial, inner): inner is 1, or the channels where these lie closest together. */
typedef struct {
    enum { TT_POOL_MAX, TT_POOL_AVG, TT_POOL_MAX_BACKWARD, TT_POOL_AVG_BACKWARD } what;
    tt_array *from, *to;     /* backward: of the result's gradient to the input's */
    tt_array *index;         /* int64, of the result's layout: where in its plane a maximum is; NULL: nobody asks */
    tt_array *starts;        /* int64 (outer, out of all axes): where windows begin; NULL: by the axes */
    int64_t outer, inner, in, out; /* in, out: the elements of a plane */
    int dims;                /* of the last of these axes; the others have one element */
    tt_window_axis axes[3];
    bool padding;            /* averages: does it count? */
    int64_t divisor;         /* 0: how many there are */
} tt_pool_work;
