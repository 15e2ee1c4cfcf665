/* The loops of resampling for elements of type T; included by resample.c. */

/* out[i] = the sum over k of w[k] in[k step + i], for i < n */
static inline void OF(sum_rows)(T *out, const T *in, int64_t step, const T *w, int64_t count, int64_t n) {
    if (count == 0) {
        memset(out, 0, (size_t)n * sizeof(T));
        return;
    }
    if (count == 1 && w[0] == 1) {
        memcpy(out, in, (size_t)n * sizeof(T));
        return;
    }
    const T *second = in + (count > 1 ? step : 0);
    T w0 = w[0], w1 = count > 1 ? w[1] : 0;
    if (count == 1) {
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = w0 * in[i];
    } else {
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] = w0 * in[i] + w1 * second[i];
    }
    for (int64_t k = 2; k < count; k++) {
        const T *more = in + k * step, weight = w[k];
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) out[i] += weight * more[i];
    }
}

/* Neighbours in one row. */
static inline void OF(sum_row)(T *out, const T *in, const tt_resample_matrix *m, const T *weights) {
    int64_t j = 0;
    for (; j < m->out && m->count[j] == 2; j++) {
        const T *x = in + m->start[j], *w = weights + m->first[j];
        out[j] = w[0] * x[0] + w[1] * x[1];
    }
    for (; j < m->out; j++) {
        const T *x = in + m->start[j], *w = weights + m->first[j];
        T sum = m->count[j] ? w[0] * x[0] : 0;
        for (int64_t k = 1; k < m->count[j]; k++) sum += w[k] * x[k];
        out[j] = sum;
    }
}

static void OF(resample)(void *pout, int64_t out_stride, const void *pin, int64_t in_stride, int64_t width, int64_t pre,
                         int64_t post, const tt_resample_matrix *m, const void *weights) {
    bool whole = out_stride == width && in_stride == width;
    int64_t n = whole ? post * width : width, runs = whole ? 1 : post;
    for (int64_t p = 0; p < pre; p++) {
        T *out = (T *)pout + p * m->out * post * out_stride;
        const T *in = (const T *)pin + p * m->in * post * in_stride;
        if (n == 1 && runs == 1) {
            OF(sum_row)(out, in, m, weights);
            continue;
        }
        for (int64_t j = 0; j < m->out; j++)
            for (int64_t r = 0; r < runs; r++) OF(sum_rows)
        (out + (j * post + r) * out_stride, in + (m->start[j] * post + r) * in_stride, post * in_stride,
         (const T *)weights + m->first[j], m->count[j], n);
    }
}

#undef T
#undef OF
