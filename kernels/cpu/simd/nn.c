/* Rows of softmax, normalisation and classification losses. Every sum over a row is taken in the tree of
 * Note [The tree of a reduction], so that its bits depend neither on the instruction set nor on threads, and are those
 * of the same function written as elementwise operators and reductions: Note [Rows, recorded] in ../nn_record.c. */
#include "cpu/simd.h"
#include "cpu/nn.h"
#include "cpu/reduce.h"
#include "scalar/arith.h"
#include <string.h>

#define LANES TT_LANES
_Static_assert(LANES == 32, "the lanes are joined in five steps");
#define HALVE(s, h, JOIN)                                                                                              \
    for (int l = 0; l < h; l++) s[l] = JOIN(s[l], s[l + h]);
#define PLUS(a, b) ((a) + (b))
#define LARGER(a, b) ((b) > (a) ? (b) : (a))

/* for every i < n: BODY, where l is the lane of i; BEFORE and AFTER every block */
#define OVER_ROW(BEFORE, BODY, AFTER)                                                                                  \
    {                                                                                                                  \
        int64_t i0 = 0;                                                                                                \
        do {                                                                                                           \
            BEFORE;                                                                                                    \
            int64_t stop = n - i0 < TT_BLOCK ? n : i0 + TT_BLOCK;                                                      \
            for (; i0 + LANES <= stop; i0 += LANES) {                                                                  \
                TT_INDEPENDENT                                                                                         \
                for (int l = 0; l < LANES; l++) {                                                                      \
                    int64_t i = i0 + l;                                                                                \
                    BODY;                                                                                              \
                }                                                                                                      \
            }                                                                                                          \
            for (int l = 0; i0 + l < stop; l++) {                                                                      \
                int64_t i = i0 + l;                                                                                    \
                BODY;                                                                                                  \
            }                                                                                                          \
            i0 = stop;                                                                                                 \
            AFTER;                                                                                                     \
        } while (i0 < n);                                                                                              \
    }

/* sum = the TERMs of all i < n, after BODY for each */
#define ADD_UP(T, C, sum, BODY, TERM)                                                                                  \
    {                                                                                                                  \
        tree_##T tree;                                                                                                 \
        C s[LANES];                                                                                                    \
        tree.waiting = 0;                                                                                              \
        OVER_ROW(clear_##T(s), BODY; s[l] += TERM, block_##T(&tree, s, i0))                                            \
        sum = total_##T(&tree);                                                                                        \
    }

#define LOOPS(T, C)                                                                                                    \
    /* Of the blocks so far: sums of 1, 2, 4 ... blocks that wait for as many to their right. */                       \
    typedef struct {                                                                                                   \
        int waiting;                                                                                                   \
        C sums[56];                                                                                                    \
    } tree_##T;                                                                                                        \
    /* -0 + x is x for every x, so that a lane without elements does not count. */                                     \
    static void clear_##T(C *s) {                                                                                      \
        for (int l = 0; l < LANES; l++) s[l] = -(C)0;                                                                  \
    }                                                                                                                  \
    static void block_##T(tree_##T *t, C *s, int64_t stop) {                                                           \
        HALVE(s, 16, PLUS) HALVE(s, 8, PLUS) HALVE(s, 4, PLUS) HALVE(s, 2, PLUS) HALVE(s, 1, PLUS) C sum = s[0];       \
        for (int64_t k = (stop - 1) / TT_BLOCK; k & 1; k >>= 1) sum = t->sums[--t->waiting] + sum;                     \
        t->sums[t->waiting++] = sum;                                                                                   \
    }                                                                                                                  \
    static C total_##T(tree_##T *t) {                                                                                  \
        C sum = t->sums[--t->waiting];                                                                                 \
        while (t->waiting) sum = t->sums[--t->waiting] + sum;                                                          \
        return sum;                                                                                                    \
    }                                                                                                                  \
    static C maximum_##T(const C *x, int64_t n) {                                                                      \
        C top[LANES], first = -(C)__builtin_inff();                                                                    \
        if (n < LANES) {                                                                                               \
            for (int64_t i = 0; i < n; i++) first = LARGER(first, x[i]);                                               \
            return first;                                                                                              \
        }                                                                                                              \
        for (int l = 0; l < LANES; l++) top[l] = first;                                                                \
        OVER_ROW((void)0, top[l] = LARGER(top[l], x[i]), (void)0)                                                      \
        HALVE(top, 16, LARGER)                                                                                         \
        HALVE(top, 8, LARGER) HALVE(top, 4, LARGER) HALVE(top, 2, LARGER) HALVE(top, 1, LARGER) return top[0];         \
    }                                                                                                                  \
    static C sum_exp_##T(const C *x, int64_t n, C top) {                                                               \
        C sum;                                                                                                         \
        ADD_UP(T, C, sum, , tt_exp_##T(x[i] - top))                                                                    \
        return sum;                                                                                                    \
    }                                                                                                                  \
    static void softmax_##T(void *to, const void *from, int64_t n, bool log) {                                         \
        C *out = to, sum;                                                                                              \
        const C *x = from;                                                                                             \
        C top = maximum_##T(x, n); /* of the numbers; with a NaN, so is the sum */                                     \
        if (log) {                                                                                                     \
            C shift = tt_log_##T(sum_exp_##T(x, n, top));                                                              \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < n; i++) out[i] = x[i] - top - shift;                                               \
            return;                                                                                                    \
        }                                                                                                              \
        ADD_UP(T, C, sum, C e = tt_exp_##T(x[i] - top); out[i] = e, e)                                                 \
        C scale = 1 / sum;                                                                                             \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) out[i] *= scale;                                                               \
    }                                                                                                                  \
    static void top_row_##T(C *restrict top, const C *restrict x, int64_t m) {                                         \
        for (int64_t c = 0; c < m; c++) top[c] = x[c] > top[c] ? x[c] : top[c];                                        \
    }                                                                                                                  \
    static void exp_row_##T(C *restrict out, C *restrict s, const C *restrict x, const C *restrict top, int64_t m) {   \
        for (int64_t c = 0; c < m; c++) {                                                                              \
            C e = tt_exp_##T(x[c] - top[c]);                                                                           \
            out[c] = e;                                                                                                \
            s[c] += e;                                                                                                 \
        }                                                                                                              \
    }                                                                                                                  \
    static void shift_row_##T(C *restrict out, C *restrict s, const C *restrict x, const C *restrict top, int64_t m) { \
        for (int64_t c = 0; c < m; c++) {                                                                              \
            out[c] = x[c] - top[c];                                                                                    \
            s[c] += tt_exp_##T(x[c] - top[c]);                                                                         \
        }                                                                                                              \
    }                                                                                                                  \
    /* Sums down columns: of TT_NN_CHUNK rows one after another, then a binary tree over those. */                     \
    typedef struct {                                                                                                   \
        int waiting;                                                                                                   \
        C sums[48][TT_NN_COLUMNS];                                                                                     \
    } chunks_##T;                                                                                                      \
    static void chunk_##T(chunks_##T *t, C *s, int64_t stop, int64_t m) {                                              \
        for (int64_t k = (stop - 1) / TT_NN_CHUNK; k & 1; k >>= 1) {                                                   \
            const C *left = t->sums[--t->waiting];                                                                     \
            for (int64_t c = 0; c < m; c++) s[c] = left[c] + s[c];                                                     \
        }                                                                                                              \
        memcpy(t->sums[t->waiting++], s, sizeof(C) * (size_t)m);                                                       \
        memset(s, 0, sizeof(C) * (size_t)m);                                                                           \
    }                                                                                                                  \
    static void all_chunks_##T(chunks_##T *t, C *s, int64_t m) {                                                       \
        memcpy(s, t->sums[--t->waiting], sizeof(C) * (size_t)m);                                                       \
        while (t->waiting) {                                                                                           \
            const C *left = t->sums[--t->waiting];                                                                     \
            for (int64_t c = 0; c < m; c++) s[c] = left[c] + s[c];                                                     \
        }                                                                                                              \
    }                                                                                                                  \
    static void softmax_columns_##T(void *to, const void *from, int64_t n, int64_t inner, int64_t m, bool log) {       \
        C *out = to, top[TT_NN_COLUMNS], s[TT_NN_COLUMNS];                                                             \
        const C *x = from;                                                                                             \
        chunks_##T tree;                                                                                               \
        tree.waiting = 0;                                                                                              \
        for (int64_t c = 0; c < m; c++) top[c] = -(C)__builtin_inff(), s[c] = 0;                                       \
        for (int64_t i = 0; i < n; i++) top_row_##T(top, x + i * inner, m);                                            \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            (log ? shift_row_##T : exp_row_##T)(out + i * inner, s, x + i * inner, top, m);                            \
            if (n > TT_NN_CHUNK && (i + 1 == n || (i + 1) % TT_NN_CHUNK == 0)) chunk_##T(&tree, s, i + 1, m);          \
        }                                                                                                              \
        if (tree.waiting) all_chunks_##T(&tree, s, m);                                                                 \
        for (int64_t c = 0; c < m; c++) s[c] = log ? tt_log_##T(s[c]) : 1 / s[c];                                      \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            C *row = out + i * inner;                                                                                  \
            TT_INDEPENDENT                                                                                             \
            for (int64_t c = 0; c < m; c++) row[c] = log ? row[c] - s[c] : row[c] * s[c];                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void softmax_backward_##T(void *to, const void *pg, const void *py, int64_t n, bool log) {                  \
        C *out = to, sum;                                                                                              \
        const C *g = pg, *y = py;                                                                                      \
        if (log) {                                                                                                     \
            ADD_UP(T, C, sum, , g[i])                                                                                  \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < n; i++) out[i] = g[i] - tt_exp_##T(y[i]) * sum;                                    \
        } else {                                                                                                       \
            ADD_UP(T, C, sum, , g[i] * y[i])                                                                           \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < n; i++) out[i] = y[i] * (g[i] - sum);                                              \
        }                                                                                                              \
    }                                                                                                                  \
    static void softmax_backward_columns_##T(void *to, const void *pg, const void *py, int64_t n, int64_t inner,       \
                                             int64_t m, bool log) {                                                    \
        C s[TT_NN_COLUMNS] = {0};                                                                                      \
        chunks_##T tree;                                                                                               \
        tree.waiting = 0;                                                                                              \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const C *g = (const C *)pg + i * inner, *y = (const C *)py + i * inner;                                    \
            for (int64_t c = 0; c < m; c++) s[c] += log ? g[c] : g[c] * y[c];                                          \
            if (n > TT_NN_CHUNK && (i + 1 == n || (i + 1) % TT_NN_CHUNK == 0)) chunk_##T(&tree, s, i + 1, m);          \
        }                                                                                                              \
        if (tree.waiting) all_chunks_##T(&tree, s, m);                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            const C *g = (const C *)pg + i * inner, *y = (const C *)py + i * inner;                                    \
            C *out = (C *)to + i * inner;                                                                              \
            TT_INDEPENDENT                                                                                             \
            for (int64_t c = 0; c < m; c++) out[c] = log ? g[c] - tt_exp_##T(y[c]) * s[c] : y[c] * (g[c] - s[c]);      \
        }                                                                                                              \
    }                                                                                                                  \
    static void norm_##T(void *to, const void *from, const void *pw, const void *pb, int64_t n, double eps, void *pm,  \
                         void *pr) {                                                                                   \
        C *out = to, mean = 0, sum;                                                                                    \
        const C *x = from, *w = pw, *b = pb;                                                                           \
        if (pm) {                                                                                                      \
            ADD_UP(T, C, sum, , x[i])                                                                                  \
            *(C *)pm = mean = sum / (C)n;                                                                              \
        }                                                                                                              \
        ADD_UP(T, C, sum, C d = x[i] - mean, d * d)                                                                    \
        C rstd = 1 / tt_sqrt_##T(sum / (C)n + (C)eps);                                                                 \
        *(C *)pr = rstd;                                                                                               \
        if (w && b) {                                                                                                  \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i] + b[i];                               \
        } else if (w) {                                                                                                \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i];                                      \
        } else if (b) {                                                                                                \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd + b[i];                                      \
        } else {                                                                                                       \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd;                                             \
        }                                                                                                              \
    }                                                                                                                  \
    /* with h the normalised row and d = g w: (d - mean(d) - h mean(d h)) rstd */                                      \
    static void norm_backward_##T(void *to, const void *pg, const void *px, const void *pw, int64_t n, const void *pm, \
                                  const void *pr) {                                                                    \
        C *out = to, sd[LANES], sh[LANES], mean = pm ? *(const C *)pm : 0, rstd = *(const C *)pr;                      \
        const C *g = pg, *x = px, *w = pw;                                                                             \
        tree_##T td, th;                                                                                               \
        td.waiting = th.waiting = 0;                                                                                   \
        OVER_ROW(clear_##T(sd); clear_##T(sh), C d = w ? g[i] * w[i] : g[i]; sd[l] += d;                               \
                 sh[l] += d * ((x[i] - mean) * rstd), block_##T(&td, sd, i0); block_##T(&th, sh, i0))                  \
        C md = pm ? total_##T(&td) / (C)n : 0, mh = total_##T(&th) / (C)n;                                             \
        TT_INDEPENDENT                                                                                                 \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            C d = w ? g[i] * w[i] : g[i];                                                                              \
            out[i] = (d - md - (x[i] - mean) * rstd * mh) * rstd;                                                      \
        }                                                                                                              \
    }                                                                                                                  \
    /* s or, with `fresh`, nothing, and g h of a row */                                                                \
    static void weight_row_##T(C *s, const C *g, const C *x, C m, C k, int64_t w, bool fresh) {                        \
        if (fresh) {                                                                                                   \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < w; i++) s[i] = g[i] * ((x[i] - m) * k);                                            \
        } else {                                                                                                       \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < w; i++) s[i] += g[i] * ((x[i] - m) * k);                                           \
        }                                                                                                              \
    }                                                                                                                  \
    static void weight_##T(void *tile, const void *pg, const void *px, const void *pm, const void *pr, int64_t rows,   \
                           int64_t n, int64_t w) {                                                                     \
        const C *g = pg, *x = px, *m = pm, *k = pr;                                                                    \
        C *s = tile;                                                                                                   \
        int64_t live = rows < LANES ? rows : LANES, half = 0;                                                          \
        if (1 < rows && rows <= LANES) /* a row for each lane: joined for the first time at once */                    \
            for (half = LANES / 2; half >= rows;) half /= 2;                                                           \
        for (int64_t r = 0; r < (half ? half : live); r++) {                                                           \
            int64_t p = r + half;                                                                                      \
            C *to = s + r * w;                                                                                         \
            const C *ga = g + r * n, *gb = g + p * n, *xa = x + r * n, *xb = x + p * n;                                \
            if (half && p < rows) {                                                                                    \
                C ma = m ? m[r] : 0, mb = m ? m[p] : 0, ka = k[r], kb = k[p];                                          \
                TT_INDEPENDENT                                                                                         \
                for (int64_t i = 0; i < w; i++) to[i] = ga[i] * ((xa[i] - ma) * ka) + gb[i] * ((xb[i] - mb) * kb);     \
            } else weight_row_##T(to, ga, xa, m ? m[r] : 0, k[r], w, true);                                            \
        }                                                                                                              \
        if (half) live = half;                                                                                         \
        for (int64_t r0 = LANES; r0 < rows; r0 += 4 * LANES)                                                           \
            for (int64_t r = r0; r < rows && r < r0 + LANES; r++) {                                                    \
                int64_t at = r * n, p = r + LANES, q = p + LANES, t = q + LANES;                                       \
                C *to = s + (r - r0) * w;                                                                              \
                if (t < rows) { /* four at a time: the sums move less */                                               \
                    const C *ga = g + at, *gb = g + p * n, *gc = g + q * n, *gd = g + t * n;                           \
                    const C *xa = x + at, *xb = x + p * n, *xc = x + q * n, *xd = x + t * n;                           \
                    C ma = m ? m[r] : 0, mb = m ? m[p] : 0, mc = m ? m[q] : 0, md = m ? m[t] : 0;                      \
                    C ka = k[r], kb = k[p], kc = k[q], kd = k[t];                                                      \
                    TT_INDEPENDENT                                                                                     \
                    for (int64_t i = 0; i < w; i++)                                                                    \
                        to[i] = (((to[i] + ga[i] * ((xa[i] - ma) * ka)) + gb[i] * ((xb[i] - mb) * kb)) +               \
                                 gc[i] * ((xc[i] - mc) * kc)) +                                                        \
                                gd[i] * ((xd[i] - md) * kd);                                                           \
                } else                                                                                                 \
                    for (p = r; p < rows; p += LANES)                                                                  \
                        weight_row_##T(to, g + p * n, x + p * n, m ? m[p] : 0, k[p], w, false);                        \
            }                                                                                                          \
        for (int64_t h = LANES / 2; h > 0; h /= 2) {                                                                   \
            C *other = s + h * w;                                                                                      \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < (live - h) * w; i++) s[i] += other[i];                                             \
            live = live < h ? live : h;                                                                                \
        }                                                                                                              \
    }                                                                                                                  \
    static double class_loss_##T(const void *from, int64_t r, const tt_classes *c, void *ptop, void *plog) {           \
        int64_t n = c->classes, t = c->target[r];                                                                      \
        const C *x = (const C *)from + r * n, *w = c->weight;                                                          \
        C top = 0, log_sum = 0;                                                                                        \
        if (c->logits) {                                                                                               \
            top = maximum_##T(x, n);                                                                                   \
            log_sum = tt_log_##T(sum_exp_##T(x, n, top));                                                              \
            *(C *)ptop = top;                                                                                          \
            *(C *)plog = log_sum;                                                                                      \
        }                                                                                                              \
        if (t == c->ignore) return 0;                                                                                  \
        double loss = (w ? (double)w[t] : 1) * (double)((top - x[t]) + log_sum);                                       \
        if (c->smoothing == 0) return loss;                                                                            \
        C sum;                                                                                                         \
        ADD_UP(T, C, sum, , (w ? w[i] : 1) * ((top - x[i]) + log_sum))                                                 \
        return (1 - c->smoothing) * loss + c->smoothing / (double)n * (double)sum;                                     \
    }                                                                                                                  \
    static void class_loss_backward_##T(void *to, const void *from, int64_t r, const tt_classes *c, double grad,       \
                                        const void *ptop, const void *plog) {                                          \
        int64_t n = c->classes, t = c->target[r];                                                                      \
        C *out = (C *)to + r * n;                                                                                      \
        const C *x = (const C *)from + r * n, *w = c->weight;                                                          \
        if (t == c->ignore) {                                                                                          \
            for (int64_t i = 0; i < n; i++) out[i] = 0;                                                                \
            return;                                                                                                    \
        }                                                                                                              \
        double hit = (w ? (double)w[t] : 1) * (1 - c->smoothing), share = c->smoothing / (double)n;                    \
        if (c->logits) {                                                                                               \
            C top = *(const C *)ptop, log_sum = *(const C *)plog;                                                      \
            C scale = (C)(grad * (hit + share * c->weight_sum));                                                       \
            TT_INDEPENDENT                                                                                             \
            for (int64_t i = 0; i < n; i++) out[i] = scale * tt_exp_##T(x[i] - top - log_sum);                         \
        } else                                                                                                         \
            for (int64_t i = 0; i < n; i++) out[i] = 0;                                                                \
        if (share != 0)                                                                                                \
            for (int64_t i = 0; i < n; i++) out[i] -= (C)(grad * share) * (w ? w[i] : 1);                              \
        out[t] -= (C)(grad * hit);                                                                                     \
    }

LOOPS(f32, float)
LOOPS(f64, double)

#define TABLE(T)                                                                                                       \
    {softmax_##T,       softmax_columns_##T, softmax_backward_##T, softmax_backward_columns_##T, norm_##T,             \
     norm_backward_##T, weight_##T,          class_loss_##T,       class_loss_backward_##T}
const tt_nn_table TT_LOCAL(tt_nn) = {TABLE(f32), TABLE(f64)};
