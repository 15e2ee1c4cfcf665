/* How scans join what came before with what comes next. */
#pragma once
#define TT_CHUNK 32
#define TT_INDEXED (TT_OP >= TT_SCAN_MIN)
#define TT_COSTS (TT_OP == TT_SCAN_LOGSUMEXP) /* a join has a hundred instructions */
#define TT_GOES_ON (TT_COSTS && !TT_IS_COMPLEX(TT_D1)) /* results go on from what came before */
#define TT_QUICK (TT_GOES_ON && TT_IS(TT_D2, f32)) /* scan_quick.cuh */
#define TT_FEW (TT_CODE(TT_D2) == TT_CODE_f64 ? 1 : 4) /* copies of a long loop body */
#define TT_COPIES(many) (TT_COSTS ? 1 : (many))
typedef TT_TYPE(TT_D0) element_type;
typedef TT_TYPE(TT_D1) acc_type;
typedef TT_TYPE(TT_D2) number;

#include "cuda/device/accumulator.cuh"

static TT_DEVICE number number_of(element_type x) { return (number)TT_CONVERT(TT_D0, TT_D2, x); }

static TT_DEVICE accumulator first_of(element_type x, int64_t at) {
    return accumulated(TT_CONVERT(TT_D2, TT_D1, number_of(x)), at);
}

static TT_DEVICE element_type result_of(const accumulator &a) {
    return (element_type)TT_CONVERT(TT_D2, TT_D0, (number)TT_CONVERT(TT_D1, TT_D2, a.value));
}

#if TT_IS(TT_D2, f32)
static TT_DEVICE double log_add(double a, double b) { return tt_log_add_wide(a, b); }
static TT_DEVICE double log_part(double top, double x) { return tt_log_part_wide(top, x); }
static TT_DEVICE double log_share(double top, double x) { return tt_log_share_wide(top, x); }
static TT_DEVICE double log_total(double top, double sum) { return tt_log_total_wide(top, sum); }
#else
static TT_DEVICE double log_add(double a, double b) { return tt_log_add_f64(a, b); }
static TT_DEVICE double log_part(double top, double x) { return tt_log_part_f64(top, x); }
static TT_DEVICE double log_share(double top, double x) { return tt_log_share_f64(top, x); }
static TT_DEVICE double log_total(double top, double sum) { return tt_log_total_f64(top, sum); }
#endif
#if TT_IS_COMPLEX(TT_D1)
static TT_DEVICE tt_complex128 log_add(tt_complex128 a, tt_complex128 b) { return tt_logaddexp_c128(b, a); }
#endif

/* a, and after it b */
static TT_DEVICE accumulator join(const accumulator &a, const accumulator &b) {
    accumulator r;
#if TT_INDEXED
    const bool wins = TT_OP == TT_SCAN_MAX ? TT_AT_LEAST(b.value, a.value) : TT_AT_MOST(b.value, a.value);
    r.value = wins ? b.value : a.value;
    r.at = wins ? b.at : a.at;
#elif TT_OP == TT_SCAN_SUM
    r.value = a.value + b.value;
#elif TT_OP == TT_SCAN_PROD
    r.value = a.value * b.value;
#elif TT_OP == TT_SCAN_LOGSUMEXP
    r.value = log_add(a.value, b.value);
#else
    r = b;
#endif
    return r;
}

/* What a chunk of `many` elements gives, without what came before it; the j-th is element(j), the first in place
 * `start`. With TT_GOES_ON up_to(j, top, sum) gets the largest of all, and what the first up to the j-th add up to
 * beside it. */
template <bool whole, typename F, typename G>
static TT_DEVICE accumulator total_of(int many, int64_t start, const F &element, const G &up_to) {
#if TT_GOES_ON
    number most = number_of(element(0));
    acc_type sum = 0;
#pragma unroll
    for (int j = 1; j < TT_CHUNK; j++)
        if (whole || j < many) {
            const number x = number_of(element(j));
            most = (most != most) | (most > x) ? most : x;
        }
    const acc_type top = TT_CONVERT(TT_D2, TT_D1, most);
#pragma unroll(whole ? TT_FEW : 1)
    for (int j = 0; j < TT_CHUNK; j++)
        if (whole || j < many) {
            sum += log_part(top, first_of(element(j), 0).value);
            up_to(j, top, sum);
        }
    return accumulated(log_total(top, sum), 0);
#else
    accumulator total = first_of(element(0), start);
#pragma unroll
    for (int j = 1; j < TT_CHUNK; j++)
        if (whole || j < many) total = join(total, first_of(element(j), start + j));
    return total;
#endif
}

#if TT_GOES_ON
/* The logarithm of a sum of exponentials that grows: tt_log_sum. */
struct growing {
    acc_type top, sum;
    TT_DEVICE void start(acc_type x) { top = x, sum = 1; }
    TT_DEVICE void add(acc_type x) {
        sum = tt_log_sum(top, sum, x, log_share(top, x));
        top = tt_log_top(top, x);
    }
    TT_DEVICE accumulator total() const { return accumulated(log_total(top, sum), 0); }
};
#endif
