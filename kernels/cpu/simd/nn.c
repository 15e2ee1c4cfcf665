/* Rows of softmax, normalisation and classification losses. Every sum is taken in LANES interleaved partial sums and
 * then over those in a fixed order, so that its bits depend neither on the instruction set nor on threads. */
#include "../simd.h"
#include "../nn.h"
#include "../../scalar/arith.h"

#define LANES 32

/* for every i < n: BODY, where l is the lane of i */
#define OVER_LANES(BODY)                                             \
    {                                                                \
        int64_t i0 = 0;                                              \
        for (; i0 + LANES <= n; i0 += LANES) {                       \
            TT_INDEPENDENT                                           \
            for (int l = 0; l < LANES; l++) { int64_t i = i0 + l; BODY; } \
        }                                                            \
        for (int l = 0; i0 + l < n; l++) { int64_t i = i0 + l; BODY; }  \
    }

#define LOOPS(T, C)                                                                               \
    static C add_lanes_##T(C *s) {                                                                \
        for (int width = LANES / 2; width; width /= 2)                                            \
            for (int l = 0; l < width; l++) s[l] += s[l + width];                                 \
        return s[0];                                                                              \
    }                                                                                             \
    static C maximum_##T(const C *x, int64_t n) {                                                 \
        C top[LANES];                                                                             \
        for (int l = 0; l < LANES; l++) top[l] = -(C)__builtin_inff();                            \
        OVER_LANES(top[l] = x[i] > top[l] ? x[i] : top[l])                                        \
        for (int l = 1; l < LANES; l++) top[0] = top[l] > top[0] ? top[l] : top[0];               \
        return top[0];                                                                            \
    }                                                                                             \
    static C sum_exp_##T(const C *x, int64_t n, C top) {                                          \
        C s[LANES] = {0};                                                                         \
        OVER_LANES(s[l] += tt_exp_##T(x[i] - top))                                                \
        return add_lanes_##T(s);                                                                  \
    }                                                                                             \
    static void softmax_##T(void *to, const void *from, int64_t n, bool log) {                    \
        C *out = to, s[LANES] = {0};                                                              \
        const C *x = from;                                                                        \
        C top = maximum_##T(x, n);                                                                \
        if (log) {                                                                                \
            C shift = tt_log_##T(sum_exp_##T(x, n, top));                                         \
            TT_INDEPENDENT                                                                        \
            for (int64_t i = 0; i < n; i++) out[i] = x[i] - top - shift;                          \
            return;                                                                               \
        }                                                                                         \
        OVER_LANES(C e = tt_exp_##T(x[i] - top); out[i] = e; s[l] += e)                           \
        C scale = 1 / add_lanes_##T(s);                                                           \
        TT_INDEPENDENT                                                                            \
        for (int64_t i = 0; i < n; i++) out[i] *= scale;                                          \
    }                                                                                             \
    static void top_row_##T(C *restrict top, const C *restrict x, int64_t m) {                    \
        for (int64_t c = 0; c < m; c++) top[c] = x[c] > top[c] ? x[c] : top[c];                   \
    }                                                                                             \
    static void exp_row_##T(C *restrict out, C *restrict s, const C *restrict x, const C *restrict top, int64_t m) { \
        for (int64_t c = 0; c < m; c++) {                                                         \
            C e = tt_exp_##T(x[c] - top[c]);                                                      \
            out[c] = e;                                                                           \
            s[c] += e;                                                                            \
        }                                                                                         \
    }                                                                                             \
    static void shift_row_##T(C *restrict out, C *restrict s, const C *restrict x, const C *restrict top, int64_t m) { \
        for (int64_t c = 0; c < m; c++) {                                                         \
            out[c] = x[c] - top[c];                                                               \
            s[c] += tt_exp_##T(x[c] - top[c]);                                                    \
        }                                                                                         \
    }                                                                                             \
    static void softmax_columns_##T(void *to, const void *from, int64_t n, int64_t inner, int64_t m, bool log) { \
        C *out = to, top[TT_NN_COLUMNS], s[TT_NN_COLUMNS];                                        \
        const C *x = from;                                                                        \
        for (int64_t c = 0; c < m; c++) top[c] = -(C)__builtin_inff(), s[c] = 0;                  \
        for (int64_t i = 0; i < n; i++) top_row_##T(top, x + i * inner, m);                       \
        for (int64_t i = 0; i < n; i++)                                                           \
            (log ? shift_row_##T : exp_row_##T)(out + i * inner, s, x + i * inner, top, m);       \
        for (int64_t c = 0; c < m; c++) s[c] = log ? tt_log_##T(s[c]) : 1 / s[c];                 \
        for (int64_t i = 0; i < n; i++) {                                                         \
            C *row = out + i * inner;                                                             \
            TT_INDEPENDENT                                                                        \
            for (int64_t c = 0; c < m; c++) row[c] = log ? row[c] - s[c] : row[c] * s[c];         \
        }                                                                                         \
    }                                                                                             \
    static void softmax_backward_##T(void *to, const void *pg, const void *py, int64_t n, bool log) { \
        C *out = to, s[LANES] = {0};                                                              \
        const C *g = pg, *y = py;                                                                 \
        if (log) {                                                                                \
            OVER_LANES(s[l] += g[i])                                                              \
            C sum = add_lanes_##T(s);                                                             \
            TT_INDEPENDENT                                                                        \
            for (int64_t i = 0; i < n; i++) out[i] = g[i] - tt_exp_##T(y[i]) * sum;               \
        } else {                                                                                  \
            OVER_LANES(s[l] += g[i] * y[i])                                                       \
            C sum = add_lanes_##T(s);                                                             \
            TT_INDEPENDENT                                                                        \
            for (int64_t i = 0; i < n; i++) out[i] = y[i] * (g[i] - sum);                         \
        }                                                                                         \
    }                                                                                             \
    static void softmax_backward_columns_##T(void *to, const void *pg, const void *py, int64_t n, int64_t inner, \
                                             int64_t m, bool log) {                               \
        C s[TT_NN_COLUMNS] = {0};                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                         \
            const C *g = (const C *)pg + i * inner, *y = (const C *)py + i * inner;               \
            for (int64_t c = 0; c < m; c++) s[c] += log ? g[c] : g[c] * y[c];                     \
        }                                                                                         \
        for (int64_t i = 0; i < n; i++) {                                                         \
            const C *g = (const C *)pg + i * inner, *y = (const C *)py + i * inner;               \
            C *out = (C *)to + i * inner;                                                         \
            TT_INDEPENDENT                                                                        \
            for (int64_t c = 0; c < m; c++)                                                       \
                out[c] = log ? g[c] - tt_exp_##T(y[c]) * s[c] : y[c] * (g[c] - s[c]);             \
        }                                                                                         \
    }                                                                                             \
    static void norm_##T(void *to, const void *from, const void *pw, const void *pb, int64_t n, double eps, bool rms, \
                         void *pm, void *pr) {                                                    \
        C *out = to, s[LANES] = {0}, mean = 0;                                                    \
        const C *x = from, *w = pw, *b = pb;                                                      \
        if (!rms) {                                                                               \
            OVER_LANES(s[l] += x[i])                                                              \
            mean = add_lanes_##T(s) / (C)n;                                                       \
            for (int l = 0; l < LANES; l++) s[l] = 0;                                             \
        }                                                                                         \
        OVER_LANES(C d = x[i] - mean; s[l] += d * d)                                              \
        C rstd = 1 / tt_sqrt_##T(add_lanes_##T(s) / (C)n + (C)eps);                               \
        *(C *)pm = mean;                                                                          \
        *(C *)pr = rstd;                                                                          \
        if (w && b) {                                                                             \
            TT_INDEPENDENT                                                                        \
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i] + b[i];          \
        } else if (w) {                                                                           \
            TT_INDEPENDENT                                                                        \
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i];                 \
        } else if (b) {                                                                           \
            TT_INDEPENDENT                                                                        \
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd + b[i];                 \
        } else {                                                                                  \
            TT_INDEPENDENT                                                                        \
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd;                        \
        }                                                                                         \
    }                                                                                             \
    /* with h the normalised row and d = g w: (d - mean(d) - h mean(d h)) rstd */                 \
    static void norm_backward_##T(void *to, const void *pg, const void *px, const void *pw, int64_t n, bool rms, \
                                  const void *pm, const void *pr) {                               \
        C *out = to, s[LANES] = {0}, sh[LANES] = {0}, mean = *(const C *)pm, rstd = *(const C *)pr; \
        const C *g = pg, *x = px, *w = pw;                                                        \
        OVER_LANES(C d = w ? g[i] * w[i] : g[i]; s[l] += d; sh[l] += d * ((x[i] - mean) * rstd))  \
        C md = rms ? 0 : add_lanes_##T(s) / (C)n, mh = add_lanes_##T(sh) / (C)n;                  \
        TT_INDEPENDENT                                                                            \
        for (int64_t i = 0; i < n; i++) {                                                         \
            C d = w ? g[i] * w[i] : g[i];                                                         \
            out[i] = (d - md - (x[i] - mean) * rstd * mh) * rstd;                                 \
        }                                                                                         \
    }                                                                                             \
    static void columns_##T(void *sums, const void *pg, const void *px, const void *pm, const void *pr, int64_t rows, \
                            int64_t n) {                                                          \
        C *s = sums;                                                                              \
        for (int64_t r = 0; r < rows; r++) {                                                      \
            const C *g = (const C *)pg + r * n;                                                   \
            if (px) {                                                                             \
                const C *x = (const C *)px + r * n;                                               \
                C mean = ((const C *)pm)[r], rstd = ((const C *)pr)[r];                           \
                TT_INDEPENDENT                                                                    \
                for (int64_t i = 0; i < n; i++) s[i] += g[i] * ((x[i] - mean) * rstd);            \
            } else {                                                                              \
                TT_INDEPENDENT                                                                    \
                for (int64_t i = 0; i < n; i++) s[i] += g[i];                                     \
            }                                                                                     \
        }                                                                                         \
    }                                                                                             \
    static double class_loss_##T(const void *from, int64_t r, const tt_classes *c, void *ptop, void *plog) { \
        int64_t n = c->classes, t = c->target[r];                                                 \
        const C *x = (const C *)from + r * n, *w = c->weight;                                     \
        C top = 0, log_sum = 0;                                                                   \
        if (c->logits) {                                                                          \
            top = maximum_##T(x, n);                                                              \
            log_sum = tt_log_##T(sum_exp_##T(x, n, top));                                         \
            *(C *)ptop = top;                                                                     \
            *(C *)plog = log_sum;                                                                 \
        }                                                                                         \
        if (t == c->ignore) return 0;                                                             \
        double loss = (w ? (double)w[t] : 1) * (double)((top - x[t]) + log_sum);                  \
        if (c->smoothing == 0) return loss;                                                       \
        C s[LANES] = {0};                                                                         \
        OVER_LANES(s[l] += (w ? w[i] : 1) * ((top - x[i]) + log_sum))                             \
        return (1 - c->smoothing) * loss + c->smoothing / (double)n * (double)add_lanes_##T(s);   \
    }                                                                                             \
    static void class_loss_backward_##T(void *to, const void *from, int64_t r, const tt_classes *c, double grad, \
                                        const void *ptop, const void *plog) {                     \
        int64_t n = c->classes, t = c->target[r];                                                 \
        C *out = (C *)to + r * n;                                                                 \
        const C *x = (const C *)from + r * n, *w = c->weight;                                     \
        if (t == c->ignore) {                                                                     \
            for (int64_t i = 0; i < n; i++) out[i] = 0;                                           \
            return;                                                                               \
        }                                                                                         \
        double hit = (w ? (double)w[t] : 1) * (1 - c->smoothing), share = c->smoothing / (double)n; \
        if (c->logits) {                                                                          \
            C top = *(const C *)ptop, log_sum = *(const C *)plog;                                 \
            C scale = (C)(grad * (hit + share * c->weight_sum));                                  \
            TT_INDEPENDENT                                                                        \
            for (int64_t i = 0; i < n; i++) out[i] = scale * tt_exp_##T(x[i] - top - log_sum);    \
        } else                                                                                    \
            for (int64_t i = 0; i < n; i++) out[i] = 0;                                           \
        if (share != 0)                                                                           \
            for (int64_t i = 0; i < n; i++) out[i] -= (C)(grad * share) * (w ? w[i] : 1);         \
        out[t] -= (C)(grad * hit);                                                                \
    }

LOOPS(f32, float)
LOOPS(f64, double)

#define TABLE(T)                                                                                  \
    {softmax_##T, softmax_columns_##T, softmax_backward_##T, softmax_backward_columns_##T, norm_##T,       \
     norm_backward_##T, columns_##T, class_loss_##T, class_loss_backward_##T}
const tt_nn_table TT_LOCAL(tt_nn) = {TABLE(f32), TABLE(f64)};
