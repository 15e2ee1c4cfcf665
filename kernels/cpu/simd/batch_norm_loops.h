/* Channels of elements of type T; simd/batch_norm.c includes this file for each dtype, with OF(name) the function's
 * name. */

static void OF(sums)(void *sum, void *products, const void *pg, const void *px, const void *pm, int64_t n) {
    const T *g = pg, *x = px, mean = *(const T *)pm;
    T s[LANES], p[LANES];
    int64_t i = 0;
    for (int l = 0; l < LANES; l++) s[l] = p[l] = -(T)0; /* -0 + x is x for every x */
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) {
            s[l] += g[i + l];
            p[l] += g[i + l] * (x[i + l] - mean);
        }
    for (int l = 0; i + l < n; l++) {
        s[l] += g[i + l];
        p[l] += g[i + l] * (x[i + l] - mean);
    }
    for (int h = LANES / 2; h > 0; h /= 2)
        for (int l = 0; l < h; l++) {
            s[l] += s[l + h];
            p[l] += p[l + h];
        }
    *(T *)sum = s[0];
    *(T *)products = p[0];
}

static void OF(sums_rows)(void *sum, void *products, const char *g, const char *x, const void *pm, int64_t step,
                          int64_t n, int64_t w, tt_cast_loop widen) {
    const T *mean = pm;
    T rooms[2 * TIMES][TT_BATCH_TILE / sizeof(T)] __attribute__((aligned(64)));
    for (int64_t r0 = 0; r0 < n; r0 += TIMES * LANES)
        for (int64_t r = r0; r < n && r < r0 + LANES; r++) {
            T *s = (T *)sum + (r - r0) * w, *p = (T *)products + (r - r0) * w;
            int64_t at = r * step, next = LANES * step;
            if (r0 == 0) {
                TT_INDEPENDENT
                for (int64_t c = 0; c < w; c++) s[c] = p[c] = -(T)0;
            }
            if (r + 3 * LANES < n) {
                const T *of_g[TIMES], *of_x[TIMES];
                for (int k = 0; k < TIMES; k++) {
                    of_g[k] = tt_as_read(g + at + k * next, rooms[2 * k], w, widen);
                    of_x[k] = tt_as_read(x + at + k * next, rooms[2 * k + 1], w, widen);
                }
                const T *ga = of_g[0], *gb = of_g[1], *gc = of_g[2], *gd = of_g[3];
                const T *xa = of_x[0], *xb = of_x[1], *xc = of_x[2], *xd = of_x[3];
                TT_INDEPENDENT
                for (int64_t c = 0; c < w; c++) {
                    T m = mean[c];
                    s[c] = (((s[c] + ga[c]) + gb[c]) + gc[c]) + gd[c];
                    p[c] = (((p[c] + ga[c] * (xa[c] - m)) + gb[c] * (xb[c] - m)) + gc[c] * (xc[c] - m)) +
                           gd[c] * (xd[c] - m);
                }
            } else
                for (int64_t k = r; k < n; k += LANES) {
                    const T *ga = tt_as_read(g + k * step, rooms[0], w, widen);
                    const T *xa = tt_as_read(x + k * step, rooms[1], w, widen);
                    TT_INDEPENDENT
                    for (int64_t c = 0; c < w; c++) {
                        s[c] += ga[c];
                        p[c] += ga[c] * (xa[c] - mean[c]);
                    }
                }
        }
}

static void OF(gather)(void *to, const void *from, int64_t start, int64_t inner, int64_t pitch, int64_t n) {
    T *out = to;
    const T *x = from;
    for (int64_t done = 0; done < n; start = 0, x += pitch) {
        int64_t m = inner - start < n - done ? inner - start : n - done;
        TT_INDEPENDENT
        for (int64_t i = 0; i < m; i++) out[done + i] = x[start + i];
        done += m;
    }
}

static void OF(normalize)(void *to, const void *from, const tt_batch_numbers *c, int64_t n, int64_t row) {
    T *out = to;
    const T *x = from, *shift = c->shift, *scale = c->scale;
    if (row) {
        for (const T *end = x + n; x < end; x += row, out += row) {
            TT_INDEPENDENT
            for (int64_t i = 0; i < row; i++) out[i] = shift[i] + x[i] * scale[i];
        }
    } else {
        T a = *shift, b = *scale;
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = a + x[i] * b;
    }
}

static void OF(gradient)(void *to, const void *pg, const void *px, const tt_batch_numbers *c, int64_t n, int64_t row) {
    T *out = to;
    const T *g = pg, *x = px, *mean = c->mean, *scale = c->scale, *shift = c->shift, *slope = c->slope;
    if (row && slope) {
        for (const T *end = x + n; x < end; x += row, g += row, out += row) {
            TT_INDEPENDENT
            for (int64_t i = 0; i < row; i++) out[i] = (shift[i] + (x[i] - mean[i]) * slope[i]) + g[i] * scale[i];
        }
    } else if (row) {
        for (const T *end = g + n; g < end; g += row, out += row) {
            TT_INDEPENDENT
            for (int64_t i = 0; i < row; i++) out[i] = g[i] * scale[i];
        }
    } else if (slope) {
        T a = *shift, m = *mean, b = *slope, d = *scale;
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = (a + (x[i] - m) * b) + g[i] * d;
    } else {
        T d = *scale;
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = g[i] * d;
    }
}

static void OF(rsqrt)(void *variance, int64_t n, double eps) {
    T *v = variance;
    for (int64_t i = 0; i < n; i++) v[i] = OF(tt_rsqrt)(v[i] + (T)eps);
}

static void OF(fill)(void *x, const void *value, int64_t n) {
    T v = *(const T *)value;
    for (int64_t i = 0; i < n; i++) ((T *)x)[i] = v;
}

static void OF(divide)(void *x, int64_t n, double by) {
    for (int64_t i = 0; i < n; i++) ((T *)x)[i] /= (T)by;
}

static void OF(multiply)(void *x, int64_t n, double by) {
    for (int64_t i = 0; i < n; i++) ((T *)x)[i] *= (T)by;
}

static void OF(mix)(void *x, const void *value, int64_t n, double part, double factor) {
    for (int64_t i = 0; i < n; i++) ((T *)x)[i] += (T)part * (((const T *)value)[i] * (T)factor);
}

static void OF(affine)(void *pscale, void *pshift, const void *pw, const void *pb, const void *pm, const void *pr,
                       int64_t n) {
    T *scale = pscale, *shift = pshift;
    const T *w = pw, *b = pb, *mean = pm, *rstd = pr;
    for (int64_t i = 0; i < n; i++) {
        scale[i] = w ? rstd[i] * w[i] : rstd[i];
        shift[i] = b ? b[i] - mean[i] * scale[i] : -mean[i] * scale[i];
    }
}

static void OF(slopes)(void *pscale, void *pshift, void *pslope, void *of_weight, void *of_bias, const void *pw,
                       const void *pr, const void *psum, const void *pproducts, int64_t n, double count) {
    T *scale = pscale, *shift = pshift, *slope = pslope, by = -(T)count;
    const T *w = pw, *rstd = pr, *sum = psum, *products = pproducts;
    for (int64_t i = 0; i < n; i++) {
        T along = products[i] * rstd[i];
        scale[i] = w ? rstd[i] * w[i] : rstd[i];
        shift[i] = scale[i] * sum[i] / by;
        slope[i] = scale[i] * rstd[i] * along / by;
        ((T *)of_weight)[i] = along;
        ((T *)of_bias)[i] = sum[i];
    }
}

static void OF(group_slopes)(void *pscale, void *pshift, void *pslope, void *pproducts, const void *psum,
                             const void *pw, const void *pr, int64_t n, double count) {
    T *scale = pscale, *shift = pshift, *slope = pslope, *products = pproducts, s = 0, p = 0, by = -(T)count;
    const T *w = pw, *sum = psum, rstd = *(const T *)pr;
    for (int64_t i = 0; i < n; i++) {
        products[i] *= rstd;
        s += w ? sum[i] * w[i] : sum[i];
        p += w ? products[i] * w[i] : products[i];
    }
    for (int64_t i = 0; i < n; i++) {
        scale[i] = w ? rstd * w[i] : rstd;
        shift[i] = rstd * s / by;
        slope[i] = rstd * rstd * p / by;
    }
}

#undef T
#undef OF
