/* Scans: operands as contiguous arrays of [outer][n][inner], the middle dimension scanned. The walk is sequential along
 * it; other dimensions are shared out among threads and, for inner > 1, vectorised. float32 accumulates in double.
 *
 * Note [The order of a scan]
 * Sums and products are taken so that a device need not do it one element after another: in chunks of CHUNK elements,
 * each on its own from its first element on, and blocks of TT_BLOCK. What came before a chunk is the totals of the
 * blocks before its own, joined in order, and then the totals of the chunks before it in its block, joined in order; that is
 * joined with each of the chunk's own results. A device finds the blocks' totals first. */
#include "cuda/host/cuda.h"
#include "cpu/simd.h"
#include "scalar/scans.h"
#include "api/scan.h"
#include <string.h>

#define STRIP 128 /* neighbouring scans walked together */
#define GRAIN 16384
#define CHUNK 32

enum { SUM, PROD, LOGSUMEXP };

typedef struct {
    int64_t outer, n, inner, strips;
    const char *a, *b;
    char *out;
    int64_t *index;
    bool reverse;
} walk;

typedef void (*strip_fn)(const walk *w, int64_t at, int64_t width); /* elements at, at + inner, ... and neighbours */

#define JOIN_SUM(x, y) ((x) + (y))
#define JOIN_PROD(x, y) ((x) * (y))
#define JOIN_SUM_I64(x, y) ((int64_t)((uint64_t)(x) + (uint64_t)(y)))
#define JOIN_PROD_I64(x, y) ((int64_t)((uint64_t)(x) * (uint64_t)(y)))

#define SCAN(name, T, A, JOIN)                                                                  \
    static void name(const walk *w, int64_t at, int64_t width) {                                \
        const T *x = (const T *)w->a + at;                                                      \
        T *out = (T *)w->out + at;                                                              \
        A acc[STRIP], before[STRIP], chunks[STRIP], blocks[STRIP];                              \
        int64_t step = w->reverse ? -w->inner : w->inner, i = w->reverse ? (w->n - 1) * w->inner : 0; \
        for (int64_t j0 = 0; j0 < w->n; j0 += CHUNK) {                                          \
            int64_t n = w->n - j0 < CHUNK ? w->n - j0 : CHUNK, in_block = j0 % TT_BLOCK;        \
            for (int64_t k = 0; k < width; k++) {                                               \
                if (j0 == TT_BLOCK) blocks[k] = chunks[k];                                      \
                else if (j0 && !in_block) blocks[k] = JOIN(blocks[k], chunks[k]);               \
                if (j0) before[k] = j0 < TT_BLOCK ? chunks[k] : in_block ? JOIN(blocks[k], chunks[k]) : blocks[k]; \
            }                                                                                   \
            if (width == 1) { /* in registers */                                                \
                A one = x[i], earlier = before[0];                                              \
                int64_t here = i;                                                               \
                out[here] = (T)(j0 ? JOIN(earlier, one) : one);                                 \
                for (int64_t j = 1; j < n; j++) {                                               \
                    one = JOIN(one, x[here += step]);                                           \
                    out[here] = (T)(j0 ? JOIN(earlier, one) : one);                             \
                }                                                                               \
                acc[0] = one;                                                                   \
            } else {                                                                            \
                for (int64_t k = 0; k < width; k++) {                                           \
                    acc[k] = x[i + k];                                                          \
                    out[i + k] = (T)(j0 ? JOIN(before[k], acc[k]) : acc[k]);                    \
                }                                                                               \
                for (int64_t j = 1; j < n; j += 2) { /* two at a time: the sums move less */    \
                    int64_t more = j + 1 < n ? step : 0;                                        \
                    const T *from = x + i + j * step, *from2 = from + more;                     \
                    T *to = out + i + j * step, *to2 = to + more;                               \
                    if (j0 && more) {                                                           \
                        TT_INDEPENDENT                                                          \
                        for (int64_t k = 0; k < width; k++) {                                   \
                            A one = JOIN(acc[k], from[k]), two = JOIN(one, from2[k]), earlier = before[k]; \
                            to[k] = (T)JOIN(earlier, one);                                      \
                            to2[k] = (T)JOIN(earlier, two);                                     \
                            acc[k] = two;                                                       \
                        }                                                                       \
                    } else {                                                                    \
                        TT_INDEPENDENT                                                          \
                        for (int64_t k = 0; k < width; k++) {                                   \
                            acc[k] = JOIN(acc[k], from[k]);                                     \
                            to[k] = (T)(j0 ? JOIN(before[k], acc[k]) : acc[k]);                 \
                            if (more) {                                                         \
                                acc[k] = JOIN(acc[k], from2[k]);                                \
                                to2[k] = (T)acc[k];                                             \
                            }                                                                   \
                        }                                                                       \
                    }                                                                           \
                }                                                                               \
            }                                                                                   \
            for (int64_t k = 0; k < width; k++) chunks[k] = in_block ? JOIN(chunks[k], acc[k]) : acc[k]; \
            i += n * step;                                                                      \
        }                                                                                       \
    }
SCAN(sum_f32, float, double, JOIN_SUM)
SCAN(sum_f64, double, double, JOIN_SUM)
SCAN(sum_i64, int64_t, int64_t, JOIN_SUM_I64)
SCAN(prod_f32, float, double, JOIN_PROD)
SCAN(prod_f64, double, double, JOIN_PROD)
SCAN(prod_i64, int64_t, int64_t, JOIN_PROD_I64)

/* One element after another: a join costs too much to do it twice for each. */
#define LOGSUMEXP(X)                                                                            \
    static void logsumexp_##X(const walk *w, int64_t at, int64_t width) {                       \
        const TT_C_##X *x = (const TT_C_##X *)w->a + at;                                        \
        TT_C_##X *out = (TT_C_##X *)w->out + at;                                                \
        double acc[STRIP];                                                                      \
        int64_t step = w->reverse ? -w->inner : w->inner, i = w->reverse ? (w->n - 1) * w->inner : 0; \
        for (int64_t k = 0; k < width; k++) out[i + k] = x[i + k], acc[k] = x[i + k];           \
        for (int64_t j = 1; j < w->n; j++) {                                                    \
            i += step;                                                                          \
            for (int64_t k = 0; k < width; k++) {                                               \
                acc[k] = tt_log_add_f64(acc[k], x[i + k]);                                      \
                out[i + k] = (TT_C_##X)acc[k];                                                  \
            }                                                                                   \
        }                                                                                       \
    }
LOGSUMEXP(f32)
LOGSUMEXP(f64)

#define RECUR(name, T)                                                                          \
    static void name(const walk *w, int64_t at, int64_t width) {                                \
        const T *a = (const T *)w->a + at, *b = (const T *)w->b + at;                           \
        T *out = (T *)w->out + at;                                                              \
        int64_t step = w->reverse ? -w->inner : w->inner;                                       \
        int64_t i = w->reverse ? (w->n - 1) * w->inner : 0;                                     \
        for (int64_t k = 0; k < width; k++) out[i + k] = b[i + k];                              \
        for (int64_t j = 1; j < w->n; j++) {                                                    \
            i += step;                                                                          \
            for (int64_t k = 0; k < width; k++) out[i + k] = b[i + k] + a[i + k] * out[i - step + k]; \
        }                                                                                       \
    }
RECUR(recur_f32, float)
RECUR(recur_f64, double)

#define EXTREME(name, T, BEATS)                                                                 \
    static void name(const walk *w, int64_t at, int64_t width) {                                \
        const T *x = (const T *)w->a + at;                                                      \
        T *out = (T *)w->out + at;                                                              \
        int64_t *index = w->index + at;                                                         \
        for (int64_t k = 0; k < width; k++) out[k] = x[k], index[k] = 0;                        \
        if (width == 1) { /* in registers */                                                    \
            T best = x[0];                                                                      \
            int64_t where = 0;                                                                  \
            for (int64_t j = 1, i = w->inner; j < w->n; j++, i += w->inner) {                   \
                bool wins = BEATS(x[i], best);                                                  \
                best = wins ? x[i] : best;                                                      \
                where = wins ? j : where;                                                       \
                out[i] = best;                                                                  \
                index[i] = where;                                                               \
            }                                                                                   \
            return;                                                                             \
        }                                                                                       \
        for (int64_t j = 1, i = w->inner; j < w->n; j++, i += w->inner)                         \
            for (int64_t k = i; k < i + width; k++) {                                           \
                T best = out[k - w->inner];                                                     \
                bool wins = BEATS(x[k], best);                                                  \
                out[k] = wins ? x[k] : best;                                                    \
                index[k] = wins ? j : index[k - w->inner];                                      \
            }                                                                                   \
    }
#define EXTREMES(X) EXTREME(cummax_##X, TT_C_##X, TT_AT_LEAST) EXTREME(cummin_##X, TT_C_##X, TT_AT_MOST)
EXTREMES(b8) EXTREMES(u8) EXTREMES(i8) EXTREMES(i16) EXTREMES(i32) EXTREMES(i64) EXTREMES(f32) EXTREMES(f64)
#define OF(X) [TT_CODE_##X] = {cummin_##X, cummax_##X}
static const strip_fn extremes[TT_NUM_DTYPES][2] = {OF(b8), OF(u8), OF(i8), OF(i16), OF(i32), OF(i64), OF(f32), OF(f64)};
static const strip_fn scans[3][TT_NUM_DTYPES] = {
    [SUM] = {[TT_I64] = sum_i64, [TT_F32] = sum_f32, [TT_F64] = sum_f64},
    [PROD] = {[TT_I64] = prod_i64, [TT_F32] = prod_f32, [TT_F64] = prod_f64},
    [LOGSUMEXP] = {[TT_F32] = logsumexp_f32, [TT_F64] = logsumexp_f64},
};
static const char *const names[3] = {"cumsum", "cumprod", "logcumsumexp"};

typedef struct {
    walk w;
    strip_fn fn;
} job;

static void run_strips(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    for (int64_t u = begin; u < end; u++) {
        int64_t left = u % j->w.strips * STRIP, width = j->w.inner - left < STRIP ? j->w.inner - left : STRIP;
        j->fn(&j->w, u / j->w.strips * j->w.n * j->w.inner + left, width);
    }
}

/* op: of TT_SCAN_ ... ; false: a kernel could not be launched. */
static bool run(job *j, int op, const tt_array *like, int64_t dim) {
    walk *w = &j->w;
    w->outer = w->inner = w->n = 1;
    for (int d = 0; d < like->ndim; d++) *(d < dim ? &w->outer : d == dim ? &w->n : &w->inner) *= like->shape[d];
    if (!like->numel) return true;
    if (tt_device) {
        tt_scan_args p = {.outer = w->outer, .n = w->n, .inner = w->inner, .a = w->a, .b = w->b, .out = w->out,
                          .index = w->index};
        int number = tt_compute_dtype(like->dtype), acc = op < TT_SCAN_RECUR && number == TT_F32 ? TT_F64 : number;
        return tt_cuda_scan(op, like->dtype, acc, w->reverse, &p);
    }
    w->strips = (w->inner + STRIP - 1) / STRIP;
    int64_t cost = w->n * (w->inner < STRIP ? w->inner : STRIP);
    tt_parallel(w->outer * w->strips, cost >= GRAIN ? 1 : GRAIN / cost, run_strips, j);
    return true;
}

static tt_array *unless(bool failed, tt_array *out) {
    if (!failed) return out;
    tt_free(out);
    return NULL;
}

static bool good_dim(const char *op, const tt_array *a, int64_t *dim) {
    int64_t n = a->ndim ? a->ndim : 1;
    if (*dim < -n || *dim >= n) {
        tt_fail(TT_INDEX_ERROR, "%s: Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)", op,
                (long long)-n, (long long)n - 1, (long long)*dim);
        return false;
    }
    if (*dim < 0) *dim += n;
    return true;
}

/* `a` row-major in `dtype`, new or another descriptor of the same. */
static tt_array *row_major(tt_array *a, int dtype) {
    if (a->dtype == dtype) return a->flags & TT_FLAG_CONTIGUOUS ? tt_alias(a) : tt_contiguous_now(a);
    tt_array *out = tt_empty(dtype, a->ndim, a->shape);
    if (out && tt_copy_now(out, a) < 0) {
        tt_free(out);
        return NULL;
    }
    return out;
}

/* A scan's result in the dtype asked for. */
static tt_array *as_dtype(tt_array *out, int dtype) {
    if (!out || out->dtype == dtype) return out;
    tt_array *cast = tt_cast_now(out, dtype);
    tt_free(out);
    return cast;
}

tt_array *tt_scan(int op, tt_array *a, int64_t dim, int reverse, int dtype) {
    TT_ON_DEVICE(NULL, names[op], 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!good_dim(names[op], a, &dim)) return NULL;
    int result = dtype >= 0 ? dtype : op != LOGSUMEXP && tt_is_integral(a->dtype) ? TT_I64 : a->dtype;
    int compute = tt_is_integral(result) ? TT_I64 : tt_compute_dtype(result);
    job j = {.fn = scans[op][compute]};
    if (!j.fn) return tt_fail(TT_RUNTIME_ERROR, "%s: not implemented for '%s'", names[op], tt_dtype_names[result]);
    if (tt_device && tt_is_floating(result) && op != LOGSUMEXP) compute = result; /* its kernels convert */
    tt_array *x = row_major(a, compute), *out = x ? tt_empty(compute, a->ndim, a->shape) : NULL;
    if (out) {
        j.w = (walk){.a = x->data, .out = out->data, .reverse = reverse};
        out = unless(!run(&j, op, out, dim), out);
    }
    if (x) tt_free(x);
    return as_dtype(out, result);
}

tt_array *tt_scan_extreme(int largest, tt_array *a, int64_t dim, tt_array **indices) {
    TT_ON_DEVICE(NULL, largest ? "cummax" : "cummin", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!good_dim(largest ? "cummax" : "cummin", a, &dim)) return NULL;
    int compute = tt_compute_dtype(a->dtype), kept = tt_device ? a->dtype : compute; /* there kernels convert */
    tt_array *x = row_major(a, kept), *out = x ? tt_empty(kept, a->ndim, a->shape) : NULL;
    *indices = out ? tt_empty(TT_I64, a->ndim, a->shape) : NULL;
    if (*indices) {
        job j = {.fn = extremes[compute][largest]};
        j.w = (walk){.a = x->data, .out = out->data, .index = (int64_t *)(*indices)->data};
        out = unless(!run(&j, largest ? TT_SCAN_MAX : TT_SCAN_MIN, out, dim), out);
    } else if (out) {
        tt_free(out);
        out = NULL;
    }
    if (x) tt_free(x);
    out = as_dtype(out, a->dtype);
    if (!out && *indices) tt_free(*indices);
    return out;
}

tt_array *tt_recur(tt_array *a, tt_array *b, int64_t dim, int reverse) {
    TT_ON_DEVICE(NULL, "recur", 2, ((tt_array *[]){a, b}));
    if (!tt_ready(a) || !tt_ready(b)) return tt_decline();
    if (!good_dim("recur", a, &dim)) return NULL;
    if (!tt_same_shape(a, b) || a->dtype != b->dtype || !tt_is_floating(a->dtype))
        return tt_fail(TT_RUNTIME_ERROR, "recur: expected two tensors of one shape and one floating dtype");
    int compute = tt_compute_dtype(a->dtype);
    tt_array *x = row_major(a, compute), *y = x ? row_major(b, compute) : NULL;
    tt_array *out = y ? tt_empty(compute, a->ndim, a->shape) : NULL;
    if (out) {
        job j = {.fn = compute == TT_F32 ? recur_f32 : recur_f64};
        j.w = (walk){.a = x->data, .b = y->data, .out = out->data, .reverse = reverse};
        out = unless(!run(&j, TT_SCAN_RECUR, out, dim), out);
    }
    if (x) tt_free(x);
    if (y) tt_free(y);
    return as_dtype(out, a->dtype);
}
