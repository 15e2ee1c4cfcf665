/* Rows of elements of type T; simd/nn.c includes this file for each dtype, with OF(name) the function's name. */

/* Of the blocks so far: sums of 1, 2, 4 ... blocks that wait for as many to their right. */
typedef struct {
    int waiting;
    T sums[56];
} OF(tree);

/* -0 + x is x for every x, so that a lane without elements does not count. */
static void OF(clear)(T *s) {
    for (int l = 0; l < LANES; l++) s[l] = -(T)0;
}

static void OF(block)(OF(tree) * t, T *s, int64_t stop) {
    JOIN_LANES(s, PLUS)
    T sum = s[0];
    for (int64_t k = (stop - 1) / TT_BLOCK; k & 1; k >>= 1) sum = t->sums[--t->waiting] + sum;
    t->sums[t->waiting++] = sum;
}

static T OF(total)(OF(tree) * t) {
    T sum = t->sums[--t->waiting];
    while (t->waiting) sum = t->sums[--t->waiting] + sum;
    return sum;
}

static T OF(maximum)(const T *x, int64_t n) {
    T top[LANES], first = -(T)__builtin_inff();
    if (n < LANES) {
        for (int64_t i = 0; i < n; i++) first = LARGER(first, x[i]);
        return first;
    }
    for (int l = 0; l < LANES; l++) top[l] = first;
    OVER_ROW((void)0, top[l] = LARGER(top[l], x[i]), (void)0)
    JOIN_LANES(top, LARGER)
    return top[0];
}

static T OF(sum_exp)(const T *x, int64_t n, T top) {
    T sum;
    ADD_UP(sum, , OF(tt_exp)(x[i] - top))
    return sum;
}

static void OF(softmax)(void *to, const void *from, int64_t n, bool log) {
    T *out = to, sum;
    const T *x = from;
    T top = OF(maximum)(x, n); /* of the numbers; with a NaN, so is the sum */
    if (log) {
        T shift = OF(tt_log)(OF(sum_exp)(x, n, top));
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = x[i] - top - shift;
        return;
    }
    ADD_UP(sum, T e = OF(tt_exp)(x[i] - top); out[i] = e, e)
    T scale = 1 / sum;
    TT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) out[i] *= scale;
}

static void OF(top_row)(T *restrict top, const T *restrict x, int64_t m) {
    for (int64_t c = 0; c < m; c++) top[c] = x[c] > top[c] ? x[c] : top[c];
}

static void OF(exp_row)(T *out, T *s, const T *x, const T *top, int64_t m) {
    TT_INDEPENDENT
    for (int64_t c = 0; c < m; c++) {
        T e = OF(tt_exp)(x[c] - top[c]);
        out[c] = e;
        s[c] += e;
    }
}

static void OF(add_exp_row)(T *restrict s, const T *restrict x, const T *restrict top, int64_t m) {
    for (int64_t c = 0; c < m; c++) s[c] += OF(tt_exp)(x[c] - top[c]);
}

/* Sums down columns: of TT_NN_CHUNK rows one after another, then a binary tree over those. */
typedef struct {
    int waiting;
    T sums[48][TT_NN_COLUMNS];
} OF(chunks);

static void OF(chunk)(OF(chunks) * t, T *s, int64_t stop, int64_t m) {
    for (int64_t k = (stop - 1) / TT_NN_CHUNK; k & 1; k >>= 1) {
        const T *left = t->sums[--t->waiting];
        for (int64_t c = 0; c < m; c++) s[c] = left[c] + s[c];
    }
    memcpy(t->sums[t->waiting++], s, sizeof(T) * (size_t)m);
    memset(s, 0, sizeof(T) * (size_t)m);
}

static void OF(all_chunks)(OF(chunks) * t, T *s, int64_t m) {
    memcpy(s, t->sums[--t->waiting], sizeof(T) * (size_t)m);
    while (t->waiting) {
        const T *left = t->sums[--t->waiting];
        for (int64_t c = 0; c < m; c++) s[c] = left[c] + s[c];
    }
}

static void OF(softmax_columns)(void *to, const void *from, int64_t n, int64_t inner, int64_t m, bool log,
                                const tt_nn_halves *half) {
    T top[TT_NN_COLUMNS], s[TT_NN_COLUMNS], room[TT_NN_COLUMNS] __attribute__((aligned(64)));
    int64_t step = inner * (half ? 2 : (int64_t)sizeof(T)), pitch = half ? m : inner;
    tt_cast_loop widen = half ? half->widen : NULL;
    const char *x = from;
    T *e = half ? half->room : to; /* the exponentials; not of the logarithm */
    OF(chunks) tree;
    tree.waiting = 0;
    for (int64_t c = 0; c < m; c++) top[c] = -(T)__builtin_inff(), s[c] = 0;
    for (int64_t i = 0; i < n; i++) OF(top_row)(top, tt_as_read(x + i * step, room, m, widen), m);
    for (int64_t i = 0; i < n; i++) {
        const T *row = tt_as_read(x + i * step, room, m, widen);
        if (log) OF(add_exp_row)(s, row, top, m);
        else OF(exp_row)(e + i * pitch, s, row, top, m);
        if (n > TT_NN_CHUNK && (i + 1 == n || (i + 1) % TT_NN_CHUNK == 0)) OF(chunk)(&tree, s, i + 1, m);
    }
    if (tree.waiting) OF(all_chunks)(&tree, s, m);
    for (int64_t c = 0; c < m; c++) s[c] = log ? OF(tt_log)(s[c]) : 1 / s[c];
    for (int64_t i = 0; i < n; i++) {
        T *out = half ? room : (T *)to + i * inner;
        if (log) {
            const T *row = tt_as_read(x + i * step, room, m, widen);
            TT_INDEPENDENT
            for (int64_t c = 0; c < m; c++) out[c] = row[c] - top[c] - s[c];
        } else {
            const T *row = e + i * pitch;
            TT_INDEPENDENT
            for (int64_t c = 0; c < m; c++) out[c] = row[c] * s[c];
        }
        if (half) half->narrow((char *)to + i * step, out, m);
    }
}

static void OF(softmax_backward)(void *to, const void *pg, const void *py, int64_t n, bool log) {
    T *out = to, sum;
    const T *g = pg, *y = py;
    if (log) {
        ADD_UP(sum, , g[i])
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = g[i] - OF(tt_exp)(y[i]) * sum;
    } else {
        ADD_UP(sum, , g[i] * y[i])
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = y[i] * (g[i] - sum);
    }
}

static void OF(softmax_backward_columns)(void *to, const void *pg, const void *py, int64_t n, int64_t inner, int64_t m,
                                         bool log, const tt_nn_halves *half) {
    T s[TT_NN_COLUMNS] = {0}, rooms[2][TT_NN_COLUMNS] __attribute__((aligned(64)));
    int64_t step = inner * (half ? 2 : (int64_t)sizeof(T));
    tt_cast_loop widen = half ? half->widen : NULL;
    OF(chunks) tree;
    tree.waiting = 0;
    for (int64_t i = 0; i < n; i++) {
        const T *g = tt_as_read((const char *)pg + i * step, rooms[0], m, widen);
        if (log) {
            for (int64_t c = 0; c < m; c++) s[c] += g[c];
        } else {
            const T *y = tt_as_read((const char *)py + i * step, rooms[1], m, widen);
            for (int64_t c = 0; c < m; c++) s[c] += g[c] * y[c];
        }
        if (n > TT_NN_CHUNK && (i + 1 == n || (i + 1) % TT_NN_CHUNK == 0)) OF(chunk)(&tree, s, i + 1, m);
    }
    if (tree.waiting) OF(all_chunks)(&tree, s, m);
    for (int64_t i = 0; i < n; i++) {
        const T *g = tt_as_read((const char *)pg + i * step, rooms[0], m, widen);
        const T *y = tt_as_read((const char *)py + i * step, rooms[1], m, widen);
        T *out = half ? rooms[0] : (T *)to + i * inner;
        if (log) {
            TT_INDEPENDENT
            for (int64_t c = 0; c < m; c++) out[c] = g[c] - OF(tt_exp)(y[c]) * s[c];
        } else {
            TT_INDEPENDENT
            for (int64_t c = 0; c < m; c++) out[c] = y[c] * (g[c] - s[c]);
        }
        if (half) half->narrow((char *)to + i * step, out, m);
    }
}

static void OF(norm)(void *to, const void *from, const void *pw, const void *pb, int64_t n, double eps, void *pm,
                     void *pr) {
    T *out = to, mean = 0, sum;
    const T *x = from, *w = pw, *b = pb;
    if (pm) {
        ADD_UP(sum, , x[i])
        *(T *)pm = mean = sum / (T)n;
    }
    ADD_UP(sum, T d = x[i] - mean, d * d)
    T rstd = 1 / OF(tt_sqrt)(sum / (T)n + (T)eps);
    *(T *)pr = rstd;
    if (w && b) {
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i] + b[i];
    } else if (w) {
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd * w[i];
    } else if (b) {
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd + b[i];
    } else {
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = (x[i] - mean) * rstd;
    }
}

/* with h the normalised row and d = g w: (d - mean(d) - h mean(d h)) rstd */
static void OF(norm_backward)(void *to, const void *pg, const void *px, const void *pw, int64_t n, const void *pm,
                              const void *pr) {
    T *out = to, sd[LANES], sh[LANES], mean = pm ? *(const T *)pm : 0, rstd = *(const T *)pr;
    const T *g = pg, *x = px, *w = pw;
    OF(tree) td, th;
    td.waiting = th.waiting = 0;
    OVER_ROW(OF(clear)(sd); OF(clear)(sh), T d = w ? g[i] * w[i] : g[i]; sd[l] += d;
             sh[l] += d * ((x[i] - mean) * rstd), OF(block)(&td, sd, i0); OF(block)(&th, sh, i0))
    T md = pm ? OF(total)(&td) / (T)n : 0, mh = OF(total)(&th) / (T)n;
    TT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) {
        T d = w ? g[i] * w[i] : g[i];
        out[i] = (d - md - (x[i] - mean) * rstd * mh) * rstd;
    }
}

/* s or, with `fresh`, nothing, and g h of a row */
static void OF(weight_row)(T *s, const T *g, const T *x, T m, T k, int64_t w, bool fresh) {
    if (fresh) {
        TT_INDEPENDENT
        for (int64_t i = 0; i < w; i++) s[i] = g[i] * ((x[i] - m) * k);
    } else {
        TT_INDEPENDENT
        for (int64_t i = 0; i < w; i++) s[i] += g[i] * ((x[i] - m) * k);
    }
}

static void OF(weight)(void *tile, const char *g, const char *x, const void *pm, const void *pr, int64_t rows,
                       int64_t step, int64_t w, tt_cast_loop widen) {
    const T *m = pm, *k = pr;
    T *s = tile, rooms[8][TT_NN_TILE] __attribute__((aligned(64)));
    int64_t live = rows < LANES ? rows : LANES, half = 0;
#define ROW(room, x, r) tt_as_read((x) + (r) * step, rooms[room], w, widen)
    if (1 < rows && rows <= LANES) /* a row for each lane: joined for the first time at once */
        for (half = LANES / 2; half >= rows;) half /= 2;
    for (int64_t r = 0; r < (half ? half : live); r++) {
        int64_t p = r + half;
        T *to = s + r * w;
        const T *ga = ROW(0, g, r), *xa = ROW(1, x, r);
        if (half && p < rows) {
            const T *gb = ROW(2, g, p), *xb = ROW(3, x, p);
            T ma = m ? m[r] : 0, mb = m ? m[p] : 0, ka = k[r], kb = k[p];
            TT_INDEPENDENT
            for (int64_t i = 0; i < w; i++) to[i] = ga[i] * ((xa[i] - ma) * ka) + gb[i] * ((xb[i] - mb) * kb);
        } else OF(weight_row)(to, ga, xa, m ? m[r] : 0, k[r], w, true);
    }
    if (half) live = half;
    for (int64_t r0 = LANES; r0 < rows; r0 += 4 * LANES)
        for (int64_t r = r0; r < rows && r < r0 + LANES; r++) {
            int64_t p = r + LANES, q = p + LANES, t = q + LANES;
            T *to = s + (r - r0) * w;
            if (t < rows) { /* four at a time: the sums move less */
                const T *ga = ROW(0, g, r), *gb = ROW(1, g, p), *gc = ROW(2, g, q), *gd = ROW(3, g, t);
                const T *xa = ROW(4, x, r), *xb = ROW(5, x, p), *xc = ROW(6, x, q), *xd = ROW(7, x, t);
                T ma = m ? m[r] : 0, mb = m ? m[p] : 0, mc = m ? m[q] : 0, md = m ? m[t] : 0;
                T ka = k[r], kb = k[p], kc = k[q], kd = k[t];
                TT_INDEPENDENT
                for (int64_t i = 0; i < w; i++)
                    to[i] = (((to[i] + ga[i] * ((xa[i] - ma) * ka)) + gb[i] * ((xb[i] - mb) * kb)) +
                             gc[i] * ((xc[i] - mc) * kc)) +
                            gd[i] * ((xd[i] - md) * kd);
            } else
                for (p = r; p < rows; p += LANES)
                    OF(weight_row)(to, ROW(0, g, p), ROW(1, x, p), m ? m[p] : 0, k[p], w, false);
        }
#undef ROW
    for (int64_t h = LANES / 2; h > 0; h /= 2) {
        T *other = s + h * w;
        TT_INDEPENDENT
        for (int64_t i = 0; i < (live - h) * w; i++) s[i] += other[i];
        live = live < h ? live : h;
    }
}

static double OF(class_loss)(const void *from, int64_t r, const tt_classes *c, void *ptop, void *plog) {
    int64_t n = c->classes, t = c->target[r];
    const T *x = (const T *)from + r * n, *w = c->weight;
    T top = 0, log_sum = 0;
    if (c->logits) {
        top = OF(maximum)(x, n);
        log_sum = OF(tt_log)(OF(sum_exp)(x, n, top));
        *(T *)ptop = top;
        *(T *)plog = log_sum;
    }
    if (t == c->ignore) return 0;
    double loss = (w ? (double)w[t] : 1) * (double)((top - x[t]) + log_sum);
    if (c->smoothing == 0) return loss;
    T sum;
    ADD_UP(sum, , (w ? w[i] : 1) * ((top - x[i]) + log_sum))
    return (1 - c->smoothing) * loss + c->smoothing / (double)n * (double)sum;
}

static void OF(class_loss_backward)(void *to, const void *from, int64_t r, const tt_classes *c, double grad,
                                    const void *ptop, const void *plog) {
    int64_t n = c->classes, t = c->target[r];
    T *out = (T *)to + r * n;
    const T *x = (const T *)from + r * n, *w = c->weight;
    if (t == c->ignore) {
        for (int64_t i = 0; i < n; i++) out[i] = 0;
        return;
    }
    double hit = (w ? (double)w[t] : 1) * (1 - c->smoothing), share = c->smoothing / (double)n;
    if (c->logits) {
        T top = *(const T *)ptop, log_sum = *(const T *)plog;
        T scale = (T)(grad * (hit + share * c->weight_sum));
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = scale * OF(tt_exp)(x[i] - top - log_sum);
    } else
        for (int64_t i = 0; i < n; i++) out[i] = 0;
    if (share != 0)
        for (int64_t i = 0; i < n; i++) out[i] -= (T)(grad * share) * (w ? w[i] : 1);
    out[t] -= (T)(grad * hit);
}

#undef T
#undef OF
