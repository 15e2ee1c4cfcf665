/* Substitution for elements of type T. Included by triangle.c for each. */

/* `width` right-hand sides: row after row, each once those are known that it needs. */
INLINE void OF(substitute)(const tt_triangle *t, const T *a, T *b, int width) {
    for (int done = 0; done < t->n; done++) {
        int i = t->upper ? t->n - 1 - done : done;
        int first = t->upper ? i + 1 : 0, end = t->upper ? t->n : i;
        const T *row = a + i * t->row;
        T *x = b + i * t->step, sums[WIDTH];
        for (int j = 0; j < width; j++) sums[j] = x[j];
        for (int k = first; k < end; k++) {
            T factor = row[k * t->col];
            const T *known = b + k * t->step;
            for (int j = 0; j < width; j++) sums[j] -= factor * known[j];
        }
        T pivot = t->unit ? 1 : row[i * t->col];
        for (int j = 0; j < width; j++) x[j] = sums[j] / pivot;
    }
}

static void OF(solve)(const tt_triangle *t, const T *a, T *b) {
    _Alignas(64) T some[TT_TRIANGLE_ROWS * TT_TRIANGLE_COLUMNS];
    tt_triangle last = *t;
    int64_t j = 0, left;
    last.step = TT_TRIANGLE_COLUMNS;
    for (; j + WIDTH <= t->count; j += WIDTH) OF(substitute)(t, a, b + j, WIDTH);
    for (; j + TT_TRIANGLE_COLUMNS <= t->count; j += TT_TRIANGLE_COLUMNS)
        OF(substitute)(t, a, b + j, TT_TRIANGLE_COLUMNS);
    if (!(left = t->count - j)) return;
    for (int i = 0; i < t->n; i++)
        for (int k = 0; k < TT_TRIANGLE_COLUMNS; k++)
            some[i * TT_TRIANGLE_COLUMNS + k] = k < left ? b[i * t->step + j + k] : 0;
    OF(substitute)(&last, a, some, TT_TRIANGLE_COLUMNS);
    for (int i = 0; i < t->n; i++)
        memcpy(b + i * t->step + j, some + i * TT_TRIANGLE_COLUMNS, (size_t)left * sizeof(T));
}

#undef T
#undef OF
