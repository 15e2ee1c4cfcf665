/* layer_norm and rms_norm of contiguous rows, and (TT_OP 1) their derivative: the steps of kernels/cpu/simd/nn.c.
 * TT_D0: the dtype of rows, weight and bias, TT_D1: that computed in, which statistics have. */
#pragma once
#include "cuda/device/prelude.cuh"
#include "cuda/device/rows_args.h"
#define TT_ARGS tt_norm_args
#define TT_INPUTS (TT_OP ? 2 : 1)
#define TT_HAS(bit) (TT_VARIANT >> TT_ROW_OWN & (bit))
typedef TT_TYPE(TT_D1) number;
typedef TT_TYPE(TT_D0) stored_type;
#include "cuda/device/rows.cuh"
#define TT_OF(f, x) TT_JOIN4(tt_, f, _, TT_D1)(x)

struct values {
    number x[TT_E];
#if TT_OP
    number d[TT_E]; /* the gradient of the normalised row */
#endif
};

static TT_DEVICE void fetch(const TT_ARGS &p, const row &r, values &v, int first) {
    fetch_x(p, r, v.x, first);
#if TT_OP
    const stored_type *w = (const stored_type *)p.weight;
    stored_type raw[TT_E];
    fetch_row((const stored_type *)p.g + r.at * r.n, r, raw, v.d, first);
    if (TT_HAS(TT_NORM_WEIGHT)) {
#pragma unroll
        for (int e = 0; e < TT_E; e++)
            if (TT_INSIDE(r, first + e * TT_LANES)) v.d[e] = v.d[e] * TT_CONVERT(TT_D0, TT_D1, w[first + e * TT_LANES]);
    }
#endif
}

static TT_DEVICE void work(const TT_ARGS &p, const row &r, values &held) {
    stored_type *out = (stored_type *)p.out + r.at * r.n;
    number mean = 0;
    bring(p, r);
#if TT_OP
    if (!TT_HAS(TT_NORM_RMS)) mean = ((const number *)p.mean)[r.at];
    const number rstd = ((const number *)p.rstd)[r.at];
    number md = 0;
    if (!TT_HAS(TT_NORM_RMS))
        md = reduced<0, number>(p, r, held, plus(), [](values &v, int e, int) { return v.d[e]; }) / (number)r.n;
    const number mh = reduced<1, number>(p, r, held, plus(),
                                         [&](values &v, int e, int) { return v.d[e] * ((v.x[e] - mean) * rstd); }) /
                      (number)r.n;
    over_elements(p, r, held, [&](values &v, int e, int i) {
        const number dx = (v.d[e] - md - (v.x[e] - mean) * rstd * mh) * rstd;
        out[i] = (stored_type)TT_CONVERT(TT_D1, TT_D0, dx);
    });
#else
    if (!TT_HAS(TT_NORM_RMS)) {
        mean = reduced<0, number>(p, r, held, plus(), [](values &v, int e, int) { return v.x[e]; });
        mean = mean / (number)r.n;
        if (r.start == 0) ((number *)p.mean)[r.at] = mean;
    }
    const number sum = reduced<1, number>(p, r, held, plus(), [&](values &v, int e, int) {
        const number d = v.x[e] - mean;
        return d * d;
    });
    const number rstd = 1 / TT_OF(sqrt, sum / (number)r.n + (number)p.eps);
    if (r.start == 0) ((number *)p.rstd)[r.at] = rstd;
    const stored_type *w = (const stored_type *)p.weight, *b = (const stored_type *)p.bias;
    over_elements(p, r, held, [&](values &v, int e, int i) {
        number h = (v.x[e] - mean) * rstd;
        if (TT_HAS(TT_NORM_WEIGHT)) h = h * TT_CONVERT(TT_D0, TT_D1, w[i]);
        if (TT_HAS(TT_NORM_BIAS)) h = h + TT_CONVERT(TT_D0, TT_D1, b[i]);
        out[i] = (stored_type)TT_CONVERT(TT_D1, TT_D0, h);
    });
#endif
}

#include "cuda/device/rows_kernel.cuh"
