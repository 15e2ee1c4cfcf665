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
#if TT_CACHED && !TT_LOG && !defined(TT_APPROXIMATE) && (TT_IS(TT_D0, f16) || TT_IS(TT_D0, bf16))
#define TT_ROUNDED 1
#include "cuda/device/rounded.cuh"
#else
#define TT_ROUNDED 0
#endif
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

/* What becomes of an element, which is a power already where one can stay. */
struct results {
    number top, last;
    TT_DEVICE stored_type of(number x) const {
        const bool there = TT_FORM != TT_ROW_LONG || TT_CHANGEABLE;
        const number y = TT_LOG ? x - top - last : (there ? x : TT_OF(exp_down, x - top)) * last;
        return (stored_type)TT_CONVERT(TT_D1, TT_D0, y);
    }
#if TT_CACHED
    TT_DEVICE stored_type operator()(stored_type x) const { return of(TT_CONVERT(TT_D0, TT_D1, x)); }
    TT_DEVICE pack operator()(const pack &x) const {
#if TT_ROUNDED
        /* to 2^-17.8 as far as exp(-48), which is 2^-69.2 */
        return tt_rounded<TT_WIDTH>(
            TT_JOIN2(tt_both_, TT_D0),
            [&](int i, float &low, float &high) {
                const float y = tt_approximate_exp_f32(TT_CONVERT(TT_D0, TT_D1, x.at[i]) - top) * last;
                low = tt_fma_f32(y, 1.0f - 0x1.2p-18f, last * -0x1p-76f);
                high = tt_fma_f32(y, 1.0f + 0x1.2p-18f, last * 0x1p-76f);
            },
            [&](int i) { return (*this)(x.at[i]); });
#else
        pack y;
#pragma unroll
        for (int i = 0; i < TT_WIDTH; i++) y.at[i] = (*this)(x.at[i]);
        return y;
#endif
    }
#endif
};

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
    const results result = {top, last};
#if TT_CACHED
    write_row(p, r, out, result);
#else
    over_elements(p, r, held, [&](values &v, int e, int i) { out[i] = result.of(v.x[e]); });
#endif
#endif
}

#include "cuda/device/rows_kernel.cuh"
