/* Note [Rows of a power of two] in cpu/fft.h, for parts of type T and vectors of WIDTH parts. Included by fft.c for
 * each. */
typedef T OF(vector) __attribute__((vector_size(WIDTH * sizeof(T)), aligned(sizeof(T)), may_alias));
typedef MASK OF(mask) __attribute__((vector_size(WIDTH * sizeof(T))));
#define vec OF(vector)
#define NUMBERS (WIDTH / 2) /* complex ones in a vector */

#if WIDTH == 16
#define EACH(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
#elif WIDTH == 8
#define EACH(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
#elif WIDTH == 4
#define EACH(f) f(0), f(1), f(2), f(3)
#else
#define EACH(f) f(0), f(1)
#endif

/* Part t of the result is part f(t) of a and b, one after the other. */
#ifdef __clang__
#define SHUFFLE(a, b, f) __builtin_shufflevector(a, b, EACH(f))
#else
#define SHUFFLE(a, b, f) __builtin_shuffle(a, b, (OF(mask)){EACH(f)})
#endif
#define OTHER_PART(t) ((t) ^ 1)
#define BACKWARDS(t) (WIDTH - 2 - (t) / 2 * 2 + (t) % 2)
/* The first number of b, then those of a, backwards from its last. */
#define FROM_NEXT(t) ((t) < 2 ? WIDTH + (t) : WIDTH - (t) / 2 * 2 + (t) % 2)
/* `g` numbers of a, as many of b, the next ones of a, ...: from the lower or the higher half of both. */
#define ZIP(g, high, t)                                                                                                \
    ((t) / 2 / (g) % 2 * WIDTH + 2 * ((t) / 2 / (2 * (g)) * (g) + (t) / 2 % (g) + (high) * NUMBERS / 2) + (t) % 2)
#define LOW_1(t) ZIP(1, 0, t)
#define HIGH_1(t) ZIP(1, 1, t)
#define LOW_2(t) ZIP(2, 0, t)
#define HIGH_2(t) ZIP(2, 1, t)
#define LOW_4(t) ZIP(4, 0, t)
#define HIGH_4(t) ZIP(4, 1, t)
/* The first numbers of a, the others of b. */
#define FIRST_1(t) ((t) < 2 ? (t) : WIDTH + (t))
#define FIRST_4(t) ((t) < 8 ? (t) : WIDTH + (t))

#define SIGN_OF_ODD(t) ((t) % 2 ? SIGN : 0)
#define SIGN_OF_EVEN(t) ((t) % 2 ? 0 : SIGN)
INLINE vec OF(negate)(vec x, OF(mask) signs) { return (vec)((OF(mask))x ^ signs); }
INLINE vec OF(conjugate)(vec x) { return OF(negate)(x, (OF(mask)){EACH(SIGN_OF_ODD)}); }
INLINE vec OF(other)(vec x) { return SHUFFLE(x, x, OTHER_PART); }
INLINE vec OF(at)(const T *p) { return *(const vec *)p; }
/* x times numbers, of which `re` holds (re, re) and `im` holds (-im, im). */
INLINE vec OF(times)(vec x, vec re, vec im) { return x * re + OF(other)(x) * im; }

/* A step of radix 4: numbers p + n/4 {0, 1, 2, 3} of each of `s` sequences of n, which go to 4 p + {0, 1, 2, 3}.
 * `turn` has the signs of a quarter's turn. */
typedef struct {
    vec v[4];
} OF(four);
INLINE OF(four) OF(radix_4)(const T *x, int64_t quarter, OF(mask) turn) {
    vec a = OF(at)(x), b = OF(at)(x + 2 * quarter), c = OF(at)(x + 4 * quarter), d = OF(at)(x + 6 * quarter);
    vec ac = a + c, a_c = a - c, bd = b + d, b_d = OF(negate)(OF(other)(b - d), turn);
    return (OF(four)){{ac + bd, a_c + b_d, ac - bd, a_c - b_d}};
}

/* One whose sequences are at most as long as a vector: each number has its roots in `roots`, n s / 4 numbers each,
 * first the real parts of the root's first power. What a vector then holds for one p goes to four places. Roots of p =
 * 0 are 1, by which an infinite number is not to be multiplied. */
INLINE void OF(short_step)(const int s, int64_t n, const T *roots, OF(mask) turn, const T *x, T *y) {
    int64_t quarter = n / 4 * s;
    for (int64_t i = 0; i < quarter; i += NUMBERS) {
        OF(four) f = OF(radix_4)(x + 2 * i, quarter, turn);
        vec *v = f.v;
        if (i >= s || NUMBERS > s) {
#pragma GCC unroll 3
            for (int j = 1; j < 4; j++) {
                const T *root = roots + 2 * i + (j - 1) * 4 * quarter;
                vec turned = OF(times)(v[j], OF(at)(root), OF(at)(root + 2 * quarter));
                if (i >= s) v[j] = turned;
                else v[j] = s == 1 ? SHUFFLE(v[j], turned, FIRST_1) : SHUFFLE(v[j], turned, FIRST_4);
            }
        }
        vec *to = (vec *)(y + 8 * i);
        if (NUMBERS <= s) {
            for (int j = 0; j < 4; j++) *(vec *)(y + 2 * (i % s + i / s * 4 * s + j * s)) = v[j];
            continue;
        }
        vec low = s == 1 ? SHUFFLE(v[0], v[1], LOW_1) : SHUFFLE(v[0], v[1], LOW_4);
        vec low2 = s == 1 ? SHUFFLE(v[2], v[3], LOW_1) : SHUFFLE(v[2], v[3], LOW_4);
        vec high = s == 1 ? SHUFFLE(v[0], v[1], HIGH_1) : SHUFFLE(v[0], v[1], HIGH_4);
        vec high2 = s == 1 ? SHUFFLE(v[2], v[3], HIGH_1) : SHUFFLE(v[2], v[3], HIGH_4);
        if (NUMBERS == 2 * s) {
            to[0] = low;
            to[1] = low2;
            to[2] = high;
            to[3] = high2;
        } else {
            to[0] = SHUFFLE(low, low2, LOW_2);
            to[1] = SHUFFLE(low, low2, HIGH_2);
            to[2] = SHUFFLE(high, high2, LOW_2);
            to[3] = SHUFFLE(high, high2, HIGH_2);
        }
    }
}
static void OF(first_step)(int64_t n, const T *roots, OF(mask) turn, const T *x, T *y) {
    OF(short_step)(1, n, roots, turn, x, y);
}
static void OF(second_step)(int64_t n, const T *roots, OF(mask) turn, const T *x, T *y) {
    OF(short_step)(4, n, roots, turn, x, y);
}

/* One whose sequences are some vectors; roots of order n are `step` apart. */
static void OF(long_step)(int64_t n, int64_t s, const T *roots, int64_t step, OF(mask) turn, const T *x, T *y) {
    for (int64_t p = 0; p < n / 4; p++, x += 2 * s, y += 8 * s) {
        vec re[3], im[3];
        for (int j = 0; j < 3; j++) {
            re[j] = (vec){0} + roots[2 * (j + 1) * p * step];
            im[j] = OF(negate)((vec){0} + roots[2 * (j + 1) * p * step + 1], (OF(mask)){EACH(SIGN_OF_EVEN)});
        }
        for (int64_t q = 0; q < s; q += NUMBERS) {
            OF(four) f = OF(radix_4)(x + 2 * q, n / 4 * s, turn);
            *(vec *)(y + 2 * q) = f.v[0];
#pragma GCC unroll 3
            for (int j = 1; j < 4; j++)
                *(vec *)(y + 2 * (q + j * s)) = p ? OF(times)(f.v[j], re[j - 1], im[j - 1]) : f.v[j];
        }
    }
}

static void OF(last_step)(int64_t s, const T *x, T *y) {
    for (int64_t q = 0; q < 2 * s; q += WIDTH) {
        vec a = OF(at)(x + q), b = OF(at)(x + q + 2 * s);
        *(vec *)(y + q) = a + b;
        *(vec *)(y + q + 2 * s) = a - b;
    }
}

/* A step for n = 8 and the last one at once. */
static void OF(last_steps)(int64_t s, const T *roots, int64_t step, OF(mask) turn, const T *x, T *y) {
    vec re[3], im[3];
    for (int j = 0; j < 3; j++) {
        re[j] = (vec){0} + roots[2 * (j + 1) * step];
        im[j] = OF(negate)((vec){0} + roots[2 * (j + 1) * step + 1], (OF(mask)){EACH(SIGN_OF_EVEN)});
    }
    for (int64_t q = 0; q < s; q += NUMBERS) {
        OF(four) a = OF(radix_4)(x + 2 * q, 2 * s, turn), b = OF(radix_4)(x + 2 * (q + s), 2 * s, turn);
#pragma GCC unroll 4
        for (int j = 0; j < 4; j++) {
            vec other = j ? OF(times)(b.v[j], re[j - 1], im[j - 1]) : b.v[j];
            *(vec *)(y + 2 * (q + j * s)) = a.v[j] + other;
            *(vec *)(y + 2 * (q + (j + 4) * s)) = a.v[j] - other;
        }
    }
}

/* The transform of m numbers of x, which may be one of the two rows to work in, to `y`, which may not. */
static void OF(transform)(int64_t m, const tt_fft_roots *roots, bool forward, const T *x, T *work[2], T *y) {
    OF(mask) turn = forward ? (OF(mask)){EACH(SIGN_OF_ODD)} : (OF(mask)){EACH(SIGN_OF_EVEN)};
    for (int64_t n = m, s = 1;; n /= 4, s *= 4) {
        if (n == 8 && s > 4) {
            OF(last_steps)(s, roots->later, s / 16, turn, x, y);
            return;
        }
        T *to = n <= 4 ? y : work[x == work[0]];
        if (n == 2) OF(last_step)(s, x, to);
        else if (s == 1) OF(first_step)(n, roots->first, turn, x, to);
        else if (s == 4) OF(second_step)(n, roots->second, turn, x, to);
        else OF(long_step)(n, s, roots->later, s / 16, turn, x, to);
        if (n <= 4) return;
        x = to;
    }
}

/* From m numbers of even and odd elements to the m + 1 of the real row, or back, with a factor of 2 and roots of the
 * other direction. With e = a + conj(b), d = a - conj(b) and the root w: forwards (e - i w d) / 2, back e + i w d; the
 * number at the other end is the conjugate of that with the other sign. */
static void OF(real_row)(int64_t m, const tt_fft_roots *roots, bool forward, const T *x, T *y) {
    const T *re = roots->real, *im = re + m + 2, half = forward ? (T)0.5 : 1;
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
    T first = x[0], last = x[forward ? 1 : 2 * m];
    y[0] = first + last;
    y[forward ? 2 * m : 1] = first - last;
    if (forward) y[1] = y[2 * m + 1] = 0;
    T d = x[m + 1] + x[m + 1]; /* of the number in the middle, whose w is i or -i */
    y[m] = (x[m] + x[m]) * half - d * re[m];
    y[m + 1] = d * im[m + 1];
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

/* Row r: from where it lies if its numbers lie together, or from a copy of it. */
static void OF(run)(const tt_fft_rows *w) {
    bool real = w->from_real || w->to_real;
    int64_t m = real ? w->size / 2 : w->size, in = 2 * m + 2 * w->to_real, out = 2 * m + 2 * w->from_real;
    int64_t parts_in = 2 - w->from_real, parts_out = 2 - w->to_real, pitch = TT_FFT_PITCH(w->size);
    T *room = w->room, *work[2] = {room, room + pitch}, *even_odd = room + 2 * pitch, *copies = even_odd + pitch;
    bool there = w->stride_in == parts_in * (int64_t)sizeof(T), place = w->stride_out == parts_out * (int64_t)sizeof(T);
    intptr_t ahead = 2 * ((intptr_t)w->out[1] - (intptr_t)w->out[0]);
    if (!there && w->from_real) OF(gather)(w, 1, in, copies, pitch);
    else if (!there) OF(gather)(w, 2, in / 2, copies, pitch);
    for (int64_t r = 0; r < w->rows; r++) {
        const T *x = there ? (const T *)w->in[r] : copies + r * pitch;
        T *y = place ? (T *)w->out[r] : copies + r * pitch; /* x has been read by then, or is no copy */
        for (int64_t k = 0; place && k < out; k += 64 / (int)sizeof(T)) /* the row after the next: 0.9 of the time */
            __builtin_prefetch((void *)((uintptr_t)w->out[r] + (uintptr_t)ahead + (uintptr_t)k * sizeof(T)), 1);
        if (w->to_real) {
            OF(real_row)(m, &w->roots, false, x, work[0]);
            x = work[0];
        }
        OF(transform)(m, &w->roots, w->forward && !w->to_real, x, work, w->from_real ? even_odd : y);
        if (w->from_real) OF(real_row)(m, &w->roots, true, even_odd, y);
        for (int64_t k = 0; w->scale != 1 && k < out; k++) y[k] *= (T)w->scale;
    }
    if (!place && w->to_real) OF(scatter)(w, 1, out, copies, pitch);
    else if (!place) OF(scatter)(w, 2, out / 2, copies, pitch);
}

#undef vec
#undef EACH
