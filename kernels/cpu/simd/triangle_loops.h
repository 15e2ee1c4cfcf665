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
    int64_t j = 0;
    for (; j + WIDTH <= t->count; j += WIDTH) OF(substitute)(t, a, b + j, WIDTH);
    if (j < t->count) OF(substitute)(t, a, b + j, (int)(t->count - j));
}

#undef T
#undef OF
