/* Scans: operands as contiguous arrays of [outer][n][inner], the middle dimension scanned. Iteration is sequential
 * along it; other dimensions are shared out among threads and, for inner > 1, vectorised. float32 accumulates in
 * double.
 * Note [The order of a scan] in backend/scan.h. */
#include "cpu/cpu.h"
#include "backend/plain.h"
#include "scalar/arith.h"
#include "scalar/cast.h"
#include "scalar/complex.h"
#include "scalar/reducers.h"
#include "scalar/scans.h"

#define STRIP 128 /* neighbouring scans computed together */
#define GRAIN 16384
#define CHUNK TT_SCAN_CHUNK

enum { SUM = TT_SCAN_SUM, PROD = TT_SCAN_PROD, LOGSUMEXP = TT_SCAN_LOGSUMEXP };

typedef struct {
    int64_t outer, n, inner, strips;
    const char *a, *b;
    char *out;
    int64_t *index;
    bool reverse;
} iterator;

typedef void (*strip_fn)(const iterator *w, int64_t at,
                         int64_t width); /* elements at, at + inner, ... and neighbours */

#define FUNCTION sum_f32
#define T float
#define A double
#define JOIN TT_PLUS_f64
#include "cpu/scan_loop.h"
#define FUNCTION prod_f32
#define T float
#define A double
#define JOIN TT_TIMES_f64
#include "cpu/scan_loop.h"
#define FUNCTION sum_f64
#define T double
#define A double
#define JOIN TT_PLUS_f64
#include "cpu/scan_loop.h"
#define FUNCTION prod_f64
#define T double
#define A double
#define JOIN TT_TIMES_f64
#include "cpu/scan_loop.h"
#define FUNCTION sum_i64
#define T int64_t
#define A int64_t
#define JOIN TT_PLUS_i64
#include "cpu/scan_loop.h"
#define FUNCTION prod_i64
#define T int64_t
#define A int64_t
#define JOIN TT_TIMES_i64
#include "cpu/scan_loop.h"

/* Complex numbers, one after another, in double: acc[k] and the next one, z, are joined. */
#define COMPLEX_SCAN(name, X, JOINED)                                                                                  \
    static void name##_##X(const iterator *w, int64_t at, int64_t width) {                                             \
        const TT_C_##X *x = (const TT_C_##X *)w->a + at;                                                               \
        TT_C_##X *out = (TT_C_##X *)w->out + at;                                                                       \
        int64_t step = w->reverse ? -w->inner : w->inner, i = w->reverse ? (w->n - 1) * w->inner : 0;                  \
        tt_complex128 acc[STRIP];                                                                                      \
        for (int64_t k = 0; k < width; k++) out[i + k] = x[i + k], acc[k] = tt_cast_##X##_c128(x[i + k]);              \
        for (int64_t j = 1; j < w->n; j++) {                                                                           \
            i += step;                                                                                                 \
            for (int64_t k = 0; k < width; k++) {                                                                      \
                tt_complex128 z = tt_cast_##X##_c128(x[i + k]);                                                        \
                acc[k] = JOINED;                                                                                       \
                out[i + k] = tt_cast_c128_##X(acc[k]);                                                                 \
            }                                                                                                          \
        }                                                                                                              \
    }
COMPLEX_SCAN(prod, c64, tt_mul_c128(acc[k], z))
COMPLEX_SCAN(prod, c128, tt_mul_c128(acc[k], z))
COMPLEX_SCAN(logsumexp, c64, tt_logaddexp_c128(z, acc[k]))
COMPLEX_SCAN(logsumexp, c128, tt_logaddexp_c128(z, acc[k]))

#define ROW logsumexp_row_f32
#define T float
#define JOIN tt_log_add_wide
#define PART tt_log_part_wide
#define SHARE tt_log_share_wide
#define TOTAL tt_log_total_wide
#include "cpu/log_scan_row.h"
#define FUNCTION logsumexp_f32
#define ALONE logsumexp_row_f32
#define T float
#define A double
#define JOIN tt_log_add_wide
#define PART tt_log_part_wide
#define SHARE tt_log_share_wide
#define TOTAL tt_log_total_wide
#include "cpu/scan_loop.h"
#define ROW logsumexp_row_f64
#define T double
#define JOIN tt_log_add_f64
#define PART tt_log_part_f64
#define SHARE tt_log_share_f64
#define TOTAL tt_log_total_f64
#include "cpu/log_scan_row.h"
#define FUNCTION logsumexp_f64
#define ALONE logsumexp_row_f64
#define T double
#define A double
#define JOIN tt_log_add_f64
#define PART tt_log_part_f64
#define SHARE tt_log_share_f64
#define TOTAL tt_log_total_f64
#include "cpu/scan_loop.h"

#define RECUR(X)                                                                                                       \
    static void recur_##X(const iterator *w, int64_t at, int64_t width) {                                              \
        const TT_C_##X *a = (const TT_C_##X *)w->a + at, *b = (const TT_C_##X *)w->b + at;                             \
        TT_C_##X *out = (TT_C_##X *)w->out + at;                                                                       \
        int64_t step = w->reverse ? -w->inner : w->inner, i = w->reverse ? (w->n - 1) * w->inner : 0;                  \
        for (int64_t k = 0; k < width; k++) out[i + k] = b[i + k];                                                     \
        for (int64_t j = 1; j < w->n; j++) {                                                                           \
            i += step;                                                                                                 \
            for (int64_t k = 0; k < width; k++)                                                                        \
                out[i + k] = tt_add_##X(b[i + k], tt_mul_##X(a[i + k], out[i - step + k]));                            \
        }                                                                                                              \
    }
RECUR(f32)
RECUR(f64)
RECUR(c64)
RECUR(c128)

#define EXTREME(name, T, BEATS)                                                                                        \
    static void name(const iterator *w, int64_t at, int64_t width) {                                                   \
        const T *x = (const T *)w->a + at;                                                                             \
        T *out = (T *)w->out + at;                                                                                     \
        int64_t *index = w->index + at;                                                                                \
        for (int64_t k = 0; k < width; k++) out[k] = x[k], index[k] = 0;                                               \
        if (width == 1) { /* in registers */                                                                           \
            T best = x[0];                                                                                             \
            int64_t where = 0;                                                                                         \
            for (int64_t j = 1, i = w->inner; j < w->n; j++, i += w->inner) {                                          \
                bool wins = BEATS(x[i], best);                                                                         \
                best = wins ? x[i] : best;                                                                             \
                where = wins ? j : where;                                                                              \
                out[i] = best;                                                                                         \
                index[i] = where;                                                                                      \
            }                                                                                                          \
            return;                                                                                                    \
        }                                                                                                              \
        for (int64_t j = 1, i = w->inner; j < w->n; j++, i += w->inner)                                                \
            for (int64_t k = i; k < i + width; k++) {                                                                  \
                T best = out[k - w->inner];                                                                            \
                bool wins = BEATS(x[k], best);                                                                         \
                out[k] = wins ? x[k] : best;                                                                           \
                index[k] = wins ? j : index[k - w->inner];                                                             \
            }                                                                                                          \
    }
#define EXTREMES(X) EXTREME(cummax_##X, TT_C_##X, TT_AT_LEAST) EXTREME(cummin_##X, TT_C_##X, TT_AT_MOST)
EXTREMES(b8)
EXTREMES(u8)
EXTREMES(i8)
EXTREMES(i16)
EXTREMES(i32)
EXTREMES(i64)
EXTREMES(f32)
EXTREMES(f64)
#define OF(X) [TT_CODE_##X] = {cummin_##X, cummax_##X}
static const strip_fn extremes[TT_NUM_DTYPES][2] = {OF(b8),  OF(u8),  OF(i8),  OF(i16),
                                                    OF(i32), OF(i64), OF(f32), OF(f64)};
static const strip_fn scans[3][TT_NUM_DTYPES] = {
    /* the sums of complex numbers are those of their parts, side by side */
    [SUM] = {[TT_I64] = sum_i64, [TT_F32] = sum_f32, [TT_F64] = sum_f64, [TT_C64] = sum_f32, [TT_C128] = sum_f64},
    [PROD] =
        {[TT_I64] = prod_i64, [TT_F32] = prod_f32, [TT_F64] = prod_f64, [TT_C64] = prod_c64, [TT_C128] = prod_c128},
    [LOGSUMEXP] =
        {[TT_F32] = logsumexp_f32, [TT_F64] = logsumexp_f64, [TT_C64] = logsumexp_c64, [TT_C128] = logsumexp_c128},
};
typedef struct {
    iterator w;
    strip_fn fn;
} job;

static void run_strips(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    for (int64_t u = begin; u < end; u++) {
        int64_t left = u % j->w.strips * STRIP, width = j->w.inner - left < STRIP ? j->w.inner - left : STRIP;
        j->fn(&j->w, u / j->w.strips * j->w.n * j->w.inner + left, width);
    }
}

static strip_fn loop_of(int op, int dtype) {
    switch (op) {
    case TT_SCAN_RECUR:
        return dtype == TT_F32 ? recur_f32 : dtype == TT_F64 ? recur_f64 : dtype == TT_C64 ? recur_c64 : recur_c128;
    case TT_SCAN_MIN:
    case TT_SCAN_MAX: return extremes[dtype][op == TT_SCAN_MAX];
    default: return scans[op][dtype];
    }
}

bool tt_cpu_scan(const tt_scan_work *s) {
    int dtype = s->compute;
    tt_plain p[2] = {{0}};
    tt_wide wide = {0};
    bool ok =
        tt_plain_take(&p[0], s->a, dtype) && tt_plain_take(&p[1], s->b, dtype) && tt_wide_start(&wide, s->out, dtype);
    if (ok) {
        job j = {.w = {.outer = 1,
                       .n = 1,
                       .inner = 1,
                       .a = tt_plain_data(&p[0]),
                       .b = tt_plain_data(&p[1]),
                       .out = wide.array->data,
                       .index = s->index ? (int64_t *)s->index->data : NULL,
                       .reverse = s->reverse},
                 .fn = loop_of(s->op, dtype)};
        iterator *w = &j.w;
        for (int d = 0; d < s->out->ndim; d++)
            *(d < s->dim ? &w->outer : d == s->dim ? &w->n : &w->inner) *= s->out->shape[d];
        if (tt_is_complex(dtype) && s->op == TT_SCAN_SUM) w->inner *= 2;
        w->strips = (w->inner + STRIP - 1) / STRIP;
        int64_t cost = w->n * (w->inner < STRIP ? w->inner : STRIP);
        tt_parallel(w->outer * w->strips, cost >= GRAIN ? 1 : GRAIN / cost, run_strips, &j);
    }
    tt_plain_done(p, 2);
    return tt_wide_end(&wide, ok);
}
