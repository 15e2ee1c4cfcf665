/* Rows of elements of type T; simd/attention.c includes this file for each dtype, with OF(name) the function's name. */

static T OF(join)(T *s) {
#pragma GCC unroll 5
    for (int h = LANES / 2; h > 0; h /= 2)
        for (int l = 0; l < h; l++) s[l] += s[l + h];
    return s[0];
}

/* Applies the mask to row r, and gives how many keys it sees at most: those from the first on. */
static int64_t OF(mask)(const tt_attention_tile *t, int64_t r) {
    int64_t n = t->seen >= t->cols ? t->cols : t->seen + r, step = t->mask_col;
    T *x = (T *)t->scores + r * t->cols, hidden = -(T)__builtin_inff();
    n = n < 0 ? 0 : n < t->cols ? n : t->cols;
    if (!t->mask) return n;
    if (t->mask_is_bool) {
        const uint8_t *m = (const uint8_t *)t->mask + r * t->mask_row;
        if (step == 1) {
            TT_INDEPENDENT
            for (int64_t i = 0; i < n; i++) x[i] = m[i] ? x[i] : hidden;
        } else
            for (int64_t i = 0; i < n; i++) x[i] = m[i * step] ? x[i] : hidden;
    } else {
        const T *m = (const T *)t->mask + r * t->mask_row;
        if (step == 1) {
            TT_INDEPENDENT
            for (int64_t i = 0; i < n; i++) x[i] += m[i];
        } else
            for (int64_t i = 0; i < n; i++) x[i] += m[i * step];
    }
    return n;
}

/* Whole vectors of a row's n scores, the rest of the last one hidden: exponentials one by one are slow. */
static int64_t OF(whole)(const tt_attention_tile *t, int64_t r, int64_t n) {
    int64_t whole = least(pieces(n, LANES) * LANES, t->cols);
    for (int64_t i = n; i < whole; i++) ((T *)t->scores)[r * t->cols + i] = -(T)__builtin_inff();
    return whole;
}

static T OF(largest)(const T *x, int64_t n, T top) {
    T s[LANES];
    int64_t i = 0;
    for (int l = 0; l < LANES; l++) s[l] = top;
    for (; i + LANES <= n; i += LANES)
        for (int l = 0; l < LANES; l++) s[l] = x[i + l] > s[l] ? x[i + l] : s[l];
    for (int l = 0; i + l < n; l++) s[l] = x[i + l] > s[l] ? x[i + l] : s[l];
#pragma GCC unroll 5
    for (int h = LANES / 2; h > 0; h /= 2)
        for (int l = 0; l < h; l++) s[l] = s[l + h] > s[l] ? s[l + h] : s[l];
    return s[0];
}

/* x = exp(x - shift); gives the sum */
static T OF(shifted)(T *x, int64_t n, T shift) {
    T s[LANES] = {0};
    int64_t i = 0;
    for (; i + LANES <= n; i += LANES) {
        TT_INDEPENDENT
        for (int l = 0; l < LANES; l++) {
            T e = OF(tt_exp)(x[i + l] - shift);
            x[i + l] = e;
            s[l] += e;
        }
    }
    for (int l = 0; i + l < n; l++) {
        T e = OF(tt_exp)(x[i + l] - shift);
        x[i + l] = e;
        s[l] += e;
    }
    return OF(join)(s);
}

static void OF(exponentials)(const tt_attention_tile *t, void *ptop, void *psum, void *pout, int64_t width,
                             int64_t ld) {
    T *top = ptop, *sum = psum;
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t n = OF(mask)(t, r), whole = OF(whole)(t, r, n);
        T *x = (T *)t->scores + r * t->cols, *out = (T *)pout + r * ld,
          before = t->first ? -(T)__builtin_inff() : top[r];
        T now = OF(largest)(x, whole, before);
        T shift = now == -(T)__builtin_inff() ? 0 : now; /* nothing seen yet: of minus infinities the sum is 0 */
        T of_row = OF(shifted)(x, whole, shift);
        for (int64_t i = n; i < t->cols; i++) x[i] = 0;
        top[r] = now;
        if (t->first) {
            sum[r] = of_row;
            continue;
        }
        T by = OF(tt_exp)(before - shift);
        sum[r] = by * sum[r] + of_row;
        if (by == 1) continue;
        TT_INDEPENDENT
        for (int64_t i = 0; i < width; i++) out[i] *= by;
    }
}

static void OF(finish)(void *pout, int64_t rows, int64_t width, int64_t ld, const void *ptop, const void *psum,
                       void *plse) {
    const T *top = ptop, *sum = psum;
    T *lse = plse;
    for (int64_t r = 0; r < rows; r++) {
        T *out = (T *)pout + r * ld, by = sum[r] == 0 ? 0 : 1 / sum[r];
        lse[r] = sum[r] == 0 ? (T)__builtin_inff() : top[r] + OF(tt_log)(sum[r]);
        TT_INDEPENDENT
        for (int64_t i = 0; i < width; i++) out[i] *= by;
    }
}

static void OF(weights)(const tt_attention_tile *t, const void *plse) {
    const T *lse = plse;
    for (int64_t r = 0; r < t->rows; r++) {
        int64_t n = OF(mask)(t, r), whole = OF(whole)(t, r, n);
        T *x = (T *)t->scores + r * t->cols, shift = lse[r];
        TT_INDEPENDENT
        for (int64_t i = 0; i < whole; i++) x[i] = OF(tt_exp)(x[i] - shift);
        for (int64_t i = n; i < t->cols; i++) x[i] = 0;
    }
}

static void OF(multiply)(void *out, const void *pa, const void *pb, int64_t n) {
    const T *a = pa, *b = pb;
    TT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) ((T *)out)[i] = a[i] * b[i];
}

static void OF(dots)(void *to, const void *pa, int64_t lda, const void *pb, int64_t ldb, int64_t rows, int64_t width) {
    for (int64_t r = 0; r < rows; r++) {
        const T *a = (const T *)pa + r * lda, *b = (const T *)pb + r * ldb;
        T s[LANES] = {0};
        int64_t i = 0;
        for (; i + LANES <= width; i += LANES)
            for (int l = 0; l < LANES; l++) s[l] += a[i + l] * b[i + l];
        for (int l = 0; i + l < width; l++) s[l] += a[i + l] * b[i + l];
        ((T *)to)[r] = OF(join)(s);
    }
}

static void OF(slopes)(void *pg, const void *pp, const void *pk, const void *pdelta, int64_t rows, int64_t cols) {
    for (int64_t r = 0; r < rows; r++) {
        T *g = (T *)pg + r * cols, delta = ((const T *)pdelta)[r];
        const T *p = (const T *)pp + r * cols, *k = (const T *)pk + r * cols;
        if (p == k) {
            TT_INDEPENDENT
            for (int64_t i = 0; i < cols; i++) g[i] = p[i] * (g[i] - delta);
        } else {
            TT_INDEPENDENT
            for (int64_t i = 0; i < cols; i++) g[i] = k[i] * g[i] - p[i] * delta;
        }
    }
}

static void OF(add)(void *to, const void *from, int64_t n) {
    TT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) ((T *)to)[i] += ((const T *)from)[i];
}

#undef T
#undef OF
