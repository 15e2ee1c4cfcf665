/* The loops of products with sparse matrices, for elements T: included by sparse.c for each. */

/* Columns [begin, end) of every row: so no two threads write one element, and its sum has one order. */
static void OF(product)(void *context, int64_t begin, int64_t end) {
    const tt_sparse_work *w = context;
    int64_t k = w->b->shape[1];
    const int64_t *rows = (const int64_t *)w->rows->data, *cols = (const int64_t *)w->cols->data;
    const T *values = (const T *)w->values->data, *b = (const T *)w->b->data;
    T *out = (T *)w->a->data;
    for (int64_t row = 0; row < w->a->shape[0]; row++)
        for (int64_t j = begin; j < end; j++) out[row * k + j] = 0;
    for (int64_t e = 0; e < w->count; e++) {
        const T *from = b + cols[e] * k, value = values[e];
        T *to = out + rows[e] * k;
        for (int64_t j = begin; j < end; j++) to[j] += value * from[j];
    }
}

static void OF(dots)(void *context, int64_t begin, int64_t end) {
    const tt_sparse_work *w = context;
    int64_t k = w->b->shape[1];
    const int64_t *rows = (const int64_t *)w->rows->data, *cols = (const int64_t *)w->cols->data;
    T *values = (T *)w->values->data;
    for (int64_t e = begin; e < end; e++) {
        const T *a = (const T *)w->a->data + rows[e] * k, *b = (const T *)w->b->data + cols[e] * k;
        T sums[LANES] = {0};
        int64_t j = 0;
        for (; j + LANES <= k; j += LANES)
            for (int lane = 0; lane < LANES; lane++) sums[lane] += a[j + lane] * b[j + lane];
        for (int lane = 0; j < k; j++) sums[lane++] += a[j] * b[j];
        for (int half = LANES / 2; half; half /= 2)
            for (int lane = 0; lane < half; lane++) sums[lane] += sums[lane + half];
        values[e] = sums[0];
    }
}

#undef T
#undef OF
