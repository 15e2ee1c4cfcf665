/* softmax, its logarithm and their derivatives, of contiguous rows: the steps of kernels/cpu/simd/nn.c. TT_OP: bit 0
 * the logarithm, bit 1 the derivative. TT_D0: the rows' dtype, TT_D1: that computed in. */
#pragma once
#include "cuda/device/common_case.cuh"
#include "cuda/device/rows_args.h"
#define TT_ARGS tt_softmax_args
#define TT_LOG (TT_OP & 1)
#define TT_BACKWARD (TT_OP & 2)
#define TT_INPUTS (TT_BACKWARD ? 2 : 1)
typedef TT_TYPE(TT_D1) number;
typedef TT_TYPE(TT_D0) stored_type;
#include "cuda/device/rows.cuh"
#define TT_OF(f, x) TT_JOIN4(tt_, f, _, TT_D1)(x)

struct values {
    number x[TT_E];
#if TT_BACKWARD
    number y[TT_E];
#endif
};

static TT_DEVICE void fetch(const TT_ARGS &p, const row &r, values &v, int first) {
    fetch_x(p, r, v.x, first);
#if TT_BACKWARD
    stored_type raw[TT_E];
    fetch_row((const stored_type *)p.y + r.at * r.n, r, raw, v.y, first);
#endif
}

static TT_DEVICE void work(const TT_ARGS &p, const row &r, values &held) {
    stored_type *out = (stored_type *)p.out + r.at * r.n;
#if TT_BACKWARD
    bring(p, r);
    const number sum =
        reduced<0, number>(p, r, held, plus(), [](values &v, int e, int) { return TT_LOG ? v.x[e] : v.x[e] * v.y[e]; });
    over_elements(p, r, held, [&](values &v, int e, int i) {
        const number g = TT_LOG ? v.x[e] - TT_OF(exp_down, v.y[e]) * sum : v.y[e] * (v.x[e] - sum);
        out[i] = (stored_type)TT_CONVERT(TT_D1, TT_D0, g);
    });
#else
    const number top = top_of(p, r, held);
    const number sum = reduced<1, number, !TT_LOG>(p, r, held, plus(), [&](values &v, int e, int) {
        const number power = TT_OF(exp_down, v.x[e] - top);
        if (!TT_LOG) v.x[e] = power;
        return power;
    });
    const number last = TT_LOG ? TT_OF(log, sum) : TT_OF(inverse, sum);
    const auto result = [&](number x) { /* which is a power already where one can stay */
                                        const bool there = TT_FORM != TT_ROW_LONG || TT_CHANGEABLE;
                                        const number y =
                                            TT_LOG ? x - top - last : (there ? x : TT_OF(exp_down, x - top)) * last;
                                        return (stored_type)TT_CONVERT(TT_D1, TT_D0, y);
    };
#if TT_CACHED
    write_row(p, r, out, [&](stored_type x) { return result(TT_CONVERT(TT_D0, TT_D1, x)); });
#else
    over_elements(p, r, held, [&](values &v, int e, int i) { out[i] = result(v.x[e]); });
#endif
#endif
}

#include "cuda/device/rows_kernel.cuh"
