/* Note [Rows of a power of two] in cpu/fft.h, by the steps of fft_step_loops.h. Included by fft.c for each type. */

/* What real_row says of other numbers, for those at both ends, and for the one in the middle, whose w is i or -i. */
INLINE void OF(ends)(int64_t m, const T *roots, bool forward, T first, T last, T re, T im, T *y) {
    y[0] = first + last;
    y[forward ? 2 * m : 1] = first - last;
    if (forward) y[1] = y[2 * m + 1] = 0;
    T d = im + im;
    y[m] = (re + re) * (forward ? (T)0.5 : 1) - d * roots[m];
    y[m + 1] = d * roots[2 * m + 3];
}

/* From m numbers of even and odd elements to the m + 1 of the real row, or back, with a factor of 2 and roots of the
 * other direction. With e = a + conj(b), d = a - conj(b) and the root w: forwards (e - i w d) / 2, back e + i w d; the
 * number at the other end is the conjugate of that with the other sign. */
static void OF(real_row)(int64_t m, const T *roots, bool forward, const T *x, T *y) {
    const T *re = roots, *im = re + m + 2, half = forward ? (T)0.5 : 1;
    vec next = OF(at)(x); /* whose first number the vector before it lacks */
    for (int64_t k = 0; k < m / 2; k += NUMBERS) {
        vec a = OF(at)(x + 2 * k), before = OF(at)(x + 2 * (m - k - NUMBERS));
        vec b = OF(conjugate)(SHUFFLE(before, next, FROM_NEXT));
        vec even = (a + b) * half, d = a - b, odd = OF(other)(d) * OF(at)(re + 2 * k) + d * OF(at)(im + 2 * k);
        vec back = OF(conjugate)(even - odd);
        *(vec *)(y + 2 * k) = even + odd;
        *(vec *)(y + 2 * (m - k - NUMBERS + 1)) = SHUFFLE(back, back, BACKWARDS);
        next = before;
    }
    OF(ends)(m, roots, forward, x[0], x[forward ? 1 : 2 * m], x[m], x[m + 1], y);
}

/* The transform of 8 LANES numbers, which registers hold from the first step to the last: on one core of a Xeon,
 * 4096 real rows of 256 take 0.36 ms; through memory, as others, 0.48. */
INLINE void OF(held_of)(const tt_fft_roots *roots, const bool back, const bool finite, const T *x, number *v) {
    number w[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) w[j] = OF(apart)(OF(at)(x + 2 * j * LANES), OF(at)(x + (2 * j + 1) * LANES), back);
    OF(first_of)(w, roots->first, TT_FFT_LANES, finite ? ALL : (OF(mask)){EACH(ITSELF)} != 0);
    const int n = LANES > 8 ? 4 : LANES, some = 8 / n;
#if LANES > 8
    number u[8] = {w[1], w[1], w[3], w[3], w[5], w[5], w[7], w[7]};
    OF(second_of)(4, 2, w, roots->second, 2 * LANES, finite ? ALL : BUT_FIRST);
    OF(second_of)(4, 2, u, (const T *)roots->second + LANES, 2 * LANES, ALL);
#pragma GCC unroll 4
    for (int j = 0; j < 4; j++) w[4 + j] = u[j];
#endif
#pragma GCC unroll 8
    for (int q = 0; q < some; q++) {
        number z[8];
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) z[j] = w[some * j + q];
        OF(few)(n, z);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) v[some * j + q] = z[j];
    }
}
static __attribute__((noinline)) void OF(held_again)(const tt_fft_roots *roots, bool back, const T *x, T *numbers) {
    number v[8];
    if (back) OF(held_of)(roots, true, false, x, v);
    else OF(held_of)(roots, false, false, x, v);
    for (int j = 0; j < 8; j++) OF(store)(numbers + 2 * j * LANES, v[j]);
}
/* Where a number is not finite, their sum is not: then once more, past roots that are 1. */
INLINE void OF(held)(const tt_fft_roots *roots, const bool back, const T *x, number *v) {
    OF(held_of)(roots, back, true, x, v);
    T sum = v[0].re[0] + v[0].im[0];
    if (sum - sum == 0) return;
    T again[2 * 8 * LANES] __attribute__((aligned(64)));
    OF(held_again)(roots, back, x, again);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) v[j] = OF(load)(again + 2 * j * LANES);
}
INLINE void OF(held_row)(const tt_fft_roots *roots, const bool back, const T *x, T *y) {
    number v[8];
    OF(held)(roots, back, x, v);
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) OF(store_alternating)(y + 2 * j * LANES, v[j], back);
}
#define REVERSED(t) ((t) ? LANES - (t) : LANES) /* the first of b, those of a backwards */
#define LOW_BACK(t) (LANES - 1 - (t) / 2 + (t) % 2 * LANES)
#define HIGH_BACK(t) (LANES / 2 - 1 - (t) / 2 + (t) % 2 * LANES)
static void OF(held_real_row)(const tt_fft_roots *roots, const T *x, T *y) {
    number v[8];
    OF(held)(roots, false, x, v);
#pragma GCC unroll 4
    for (int k = 0; k < 4; k++) {
        const T *root = (const T *)roots->real_apart + k * LANES;
        vec re = OF(at)(root), im = OF(at)(root + 4 * LANES);
        number a = v[k], next = v[k ? 8 - k : 0],
               b = {SHUFFLE(v[7 - k].re, next.re, REVERSED), SHUFFLE(v[7 - k].im, next.im, REVERSED)};
        number even = {(a.re + b.re) * (T)0.5, (a.im - b.im) * (T)0.5}, d = {a.re - b.re, a.im + b.im};
        number odd = {d.im * re + d.re * im, d.im * im - d.re * re};
        number sum = OF(plus)(even, odd), rest = OF(minus)(even, odd);
        OF(store_alternating)(y + 2 * k * LANES, sum, false);
        rest.im = -rest.im;
        *(vec *)(y + 2 * (8 * LANES - (k + 1) * LANES + 1)) = SHUFFLE(rest.re, rest.im, LOW_BACK);
        *(vec *)(y + 2 * (8 * LANES - (k + 1) * LANES + 1) + LANES) = SHUFFLE(rest.re, rest.im, HIGH_BACK);
    }
    OF(ends)(8 * LANES, roots->real, true, v[0].re[0], v[0].im[0], v[4].re[0], v[4].im[0], y);
}

/* `count` numbers of each row, of `parts` parts, to where they lie together; or back. */
INLINE void OF(gather)(const tt_fft_rows *w, const int parts, int64_t count, T *rows, int64_t pitch) {
    for (int64_t k = 0; k < count; k++)
        for (int64_t r = 0; r < w->rows; r++)
            memcpy(rows + r * pitch + k * parts, w->in[r] + k * w->stride_in, (size_t)parts * sizeof(T));
}
INLINE void OF(scatter)(const tt_fft_rows *w, const int parts, int64_t count, const T *rows, int64_t pitch) {
    for (int64_t k = 0; k < count; k++)
        for (int64_t r = 0; r < w->rows; r++)
            memcpy(w->out[r] + k * w->stride_out, rows + r * pitch + k * parts, (size_t)parts * sizeof(T));
}

/* Asks for the parts of the row `ahead` of row r, if rows lie as the first two do. */
INLINE void OF(fetch)(char *const *rows, int64_t r, int64_t ahead, int64_t parts, const bool written) {
    uintptr_t from = (uintptr_t)rows[r] + (uintptr_t)ahead * ((uintptr_t)rows[1] - (uintptr_t)rows[0]);
    for (int64_t k = 0; k < parts; k += 64 / (int)sizeof(T)) {
        void *line = (void *)(from + (uintptr_t)k * sizeof(T));
        if (written) __builtin_prefetch(line, 1);
        else __builtin_prefetch(line, 0);
    }
}

INLINE void OF(scale)(T *y, int64_t parts, double scale) {
    for (int64_t k = 0; scale != 1 && k < parts; k++) y[k] *= (T)scale;
}

/* As many rows at once as fill a vector: from where their numbers lie together, or from copies. */
INLINE void OF(rows)(const tt_fft_rows *w, const bool back) {
    bool real = w->from_real || w->to_real;
    int64_t m = real ? w->size / 2 : w->size, in = 2 * m + 2 * w->to_real, out = 2 * m + 2 * w->from_real;
    int64_t parts_in = 2 - w->from_real, parts_out = 2 - w->to_real, pitch = TT_FFT_PITCH(w->size);
    int64_t together = m < 8 * LANES ? 8 * LANES / m : 1, finished = LANES > 8 && together > 1 ? 2 : 1;
    T *work = w->room, *room = work + pitch, *even_odd = room + pitch, *copies = even_odd + pitch;
    bool there = w->stride_in == parts_in * (int64_t)sizeof(T), place = w->stride_out == parts_out * (int64_t)sizeof(T);
    if (!there && w->from_real) OF(gather)(w, 1, in, copies, pitch);
    else if (!there) OF(gather)(w, 2, in / 2, copies, pitch);
    for (int64_t r = 0; m == 8 * LANES && r < w->rows; r++) {
        const T *x = there ? (const T *)w->in[r] : copies + r * pitch;
        T *y = place ? (T *)w->out[r] : copies + r * pitch;
        if (there) OF(fetch)(w->in, r, 4, in, false); /* 0.95 of the time */
        if (place) OF(fetch)(w->out, r, 4, out, true);
        if (w->to_real) {
            OF(real_row)(m, w->roots.real, false, x, work);
            x = work;
        }
        if (w->from_real) OF(held_real_row)(&w->roots, x, y);
        else OF(held_row)(&w->roots, back, x, y);
        OF(scale)(y, out, w->scale);
    }
    for (int64_t first = 0; m != 8 * LANES && first < w->rows; first += together) {
        const T *x[TT_FFT_TOGETHER];
        int64_t count = least(together, w->rows - first);
        for (int64_t r = 0; r < together; r++) {
            int64_t row = first + least(r, count - 1);
            x[r] = there ? (const T *)w->in[row] : copies + row * pitch;
            if (!w->to_real) continue;
            if (r < count) OF(real_row)(m, w->roots.real, false, x[r], even_odd + 2 * m * r);
            x[r] = even_odd + 2 * m * least(r, count - 1);
        }
        OF(first_step)(m, w->roots.first, back, x, work);
        for (int64_t r = 0; r < count; r += finished) {
            T *y[2], *z[2];
            for (int k = 0; k < 2; k++) {
                int64_t row = first + least(r + k, count - 1);
                y[k] = place ? (T *)w->out[row] : copies + row * pitch; /* x has been read, or is no copy */
                z[k] = w->from_real ? even_odd + 2 * m * k : y[k];
            }
            OF(other_steps)(m, &w->roots, back, work + 2 * m * r, room, z);
            for (int64_t k = 0; k < finished && r + k < count; k++) {
                if (w->from_real) OF(real_row)(m, w->roots.real, true, z[k], y[k]);
                OF(scale)(y[k], out, w->scale);
                if (place) OF(fetch)(w->out, first + r + k, 2, out, true); /* 0.9 of the time */
            }
        }
    }
    if (!place && w->to_real) OF(scatter)(w, 1, out, copies, pitch);
    else if (!place) OF(scatter)(w, 2, out / 2, copies, pitch);
}
static void OF(run)(const tt_fft_rows *w) {
    if (w->forward && !w->to_real) OF(rows)(w, false);
    else OF(rows)(w, true);
}

#undef number
#undef vec
#undef EACH
