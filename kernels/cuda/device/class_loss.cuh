/* Losses of classifications, one for each contiguous row, their derivative, and the weights of their terms, as TT_OP
 * says: the steps of kernels/cpu/simd/nn.c. TT_D0: the rows' dtype, TT_D1: that computed in, which class weights have;
 * TT_D2: that of rows' losses.
 * A target that is no class is reported (Note [Faults]), and makes the row's loss NaN, and its gradient. */
#pragma once
#include "cuda/device/common_case.cuh"
#include "cuda/device/rows_args.h"
#define TT_ARGS tt_class_args
#define TT_INPUTS 1
#define TT_SMOOTHED (TT_OP & TT_CLASS_SMOOTHED)
#define TT_READS ((TT_OP & TT_CLASS_LOGITS) || !(TT_OP & (TT_CLASS_BACKWARD | TT_CLASS_TARGETS)))
typedef TT_TYPE(TT_D1) number;
typedef TT_TYPE(TT_D0) stored_type;
#include "cuda/device/rows.cuh"
#define TT_OF(f, x) TT_JOIN4(tt_, f, _, TT_D1)(x)
#define TT_NAN TT_CONVERT(f32, TT_D1, TT_NAN_F32)

struct values {
    number x[TT_E];
};

static TT_DEVICE void fetch(const TT_ARGS &p, const row &r, values &v, int first) {
#if TT_READS
    fetch_x(p, r, v.x, first);
#endif
}

static TT_DEVICE void put(const TT_ARGS &p, const row &r, int i, number x) {
    ((stored_type *)p.out)[r.at * r.n + i] = (stored_type)TT_CONVERT(TT_D1, TT_D0, x);
}

static TT_DEVICE void report(const TT_ARGS &p, const row &r, int64_t target) {
    tt_report(p.fault, TT_FAULT_TARGET, target, r.n, (TT_OP & ~TT_CLASS_SMOOTHED) != 0);
}

static TT_DEVICE void work(const TT_ARGS &p, const row &r, values &held) {
    const int64_t t = p.target[r.at];
    const bool ignored = t == p.ignore, good = t >= 0 && t < r.n;
    const number *w = (const number *)p.weight;
    const double share = TT_SMOOTHED ? p.smoothing / (double)r.n : 0;
#if TT_OP & TT_CLASS_TARGETS
    if (!ignored && !good && r.start == 0) report(p, r, t);
    over_elements(p, r, held, [&](values &, int, int i) {
        const double q = (share + (i == t ? 1 - p.smoothing : 0)) * (w ? (double)w[i] : 1);
        put(p, r, i, ignored ? (number)0 : good ? (number)q : TT_NAN);
    });
#elif TT_OP & TT_CLASS_BACKWARD
    if (ignored || !good) {
        over_elements(p, r, held, [&](values &, int, int i) { put(p, r, i, ignored ? (number)0 : TT_NAN); });
        return;
    }
    double grad = (double)((const number *)p.g)[p.each_row ? r.at : 0];
    if (p.divisor) grad /= (double)*(const number *)p.divisor;
    const double hit = (w ? (double)w[t] : 1) * (1 - p.smoothing);
    const number of_all = (number)(grad * share), of_target = (number)(grad * hit);
#if TT_READS
    const number top = ((const number *)p.top)[r.at], log_sum = ((const number *)p.log_sum)[r.at];
    const number scale = (number)(grad * (hit + share * (p.weight_sum ? *p.weight_sum : (double)r.n)));
#endif
    over_elements(p, r, held, [&](values &v, int e, int i) {
        number d = 0;
#if TT_READS
        d = scale * TT_OF(exp_down, v.x[e] - top - log_sum);
#endif
        if (TT_SMOOTHED) d -= of_all * (w ? w[i] : 1);
        if (i == t) d -= of_target;
        put(p, r, i, d);
    });
#else
    number top = 0, log_sum = 0;
#if TT_OP & TT_CLASS_LOGITS
    top = top_of(p, r, held);
    log_sum = TT_OF(log, (reduced<1, number>(p, r, held, plus(),
                                             [&](values &v, int e, int) { return TT_OF(exp_down, v.x[e] - top); })));
#endif
    number sum = 0;
    if (TT_SMOOTHED)
        sum = reduced<2, number>(p, r, held, plus(), [&](values &v, int e, int i) {
            return (w && TT_INSIDE(r, i) ? w[i] : 1) * ((top - v.x[e]) + log_sum);
        });
    if (r.start) return;
    ((number *)p.top)[r.at] = top;
    ((number *)p.log_sum)[r.at] = log_sum;
    double loss = 0, weight = 0;
    if (!ignored && !good) {
        loss = weight = (double)TT_NAN;
        report(p, r, t);
    } else if (!ignored) {
        const number x = TT_CONVERT(TT_D0, TT_D1, ((const stored_type *)p.x)[r.at * r.n + t]);
        weight = w ? (double)w[t] : 1;
        loss = weight * (double)((top - x) + log_sum);
        if (TT_SMOOTHED) loss = (1 - p.smoothing) * loss + share * (double)sum;
    }
    if (p.losses) {
        p.losses[r.at] = loss;
        p.losses[p.rows + r.at] = weight;
    } else ((TT_TYPE(TT_D2) *)p.out)[r.at] = (TT_TYPE(TT_D2))TT_CONVERT(TT_D1, TT_D2, (number)loss);
#endif
}

#include "cuda/device/rows_kernel.cuh"
