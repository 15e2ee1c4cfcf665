/* The variance (TT_OP 1: its root) and (TT_OP 2) log sum exp of contiguous rows, which are read once. TT_D0: the rows'
 * dtype, TT_D1: that computed in. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/rows_args.h"
#define TT_ARGS tt_statistics_args
#define TT_INPUTS 1
typedef TT_TYPE(TT_D1) number;
typedef TT_TYPE(TT_D0) stored_type;
#include "cuda/device/rows.cuh"
#define TT_OF(f, x) TT_JOIN4(tt_, f, _, TT_D1)(x)

struct values {
    number x[TT_E];
};

static TT_DEVICE void fetch(const TT_ARGS &p, const row &r, values &v, int first) { fetch_x(p, r, v.x, first); }

static TT_DEVICE void work(const TT_ARGS &p, const row &r, values &held) {
#if TT_OP == 2
    number top = top_of(p, r, held);
    top = top - top == 0 ? top : 0; /* as the CPU: where it is infinite */
    const number sum =
        reduced<1, number>(p, r, held, plus(), [&](values &v, int e, int) { return TT_OF(exp, v.x[e] - top); });
    const number result = TT_OF(log, sum) + top;
#else
    bring(p, r);
    number mean = reduced<0, number>(p, r, held, plus(), [](values &v, int e, int) { return v.x[e]; });
    mean = mean / (number)r.n;
    const number sum = reduced<1, number>(p, r, held, plus(), [&](values &v, int e, int) {
        const number d = v.x[e] - mean;
        return d * d;
    });
    const number result = TT_OP ? TT_OF(sqrt, sum / (number)p.by) : sum / (number)p.by;
#endif
    if (r.start == 0) ((stored_type *)p.out)[r.at] = (stored_type)TT_CONVERT(TT_D1, TT_D0, result);
}

#include "cuda/device/rows_kernel.cuh"
