/* Note [Rows of a power of two] in cpu/fft.h, for parts of type T and vectors of LANES parts: the steps of a transform.
 * Included by fft.c for each. Between steps numbers lie as LANES real parts, LANES imaginary ones, the next real ones,
 * ... */
typedef T OF(vector) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
typedef MASK OF(mask) __attribute__((vector_size(BYTES)));
#define vec OF(vector)
#define NUMBERS (LANES / 2) /* complex ones of a vector, where parts alternate */

#if LANES == 16
#define EACH(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7), f(8), f(9), f(10), f(11), f(12), f(13), f(14), f(15)
#elif LANES == 8
#define EACH(f) f(0), f(1), f(2), f(3), f(4), f(5), f(6), f(7)
#elif LANES == 4
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
#define EVEN(t) (2 * (t))
#define ODD(t) (2 * (t) + 1)
#define LOW(t) ((t) / 2 + (t) % 2 * LANES) /* of a and b in turns */
#define HIGH(t) ((t) / 2 + (t) % 2 * LANES + LANES / 2)
#define LOWER(t) ((t) < LANES / 2 ? (t) : (t) + LANES / 2) /* half of a, and of b */
#define UPPER(t) ((t) < LANES / 2 ? (t) + LANES / 2 : (t) + LANES)
#define OTHER_PART(t) ((t) ^ 1)
#define BACKWARDS(t) (LANES - 2 - (t) / 2 * 2 + (t) % 2)
/* The first number of b, then those of a, backwards from its last. */
#define FROM_NEXT(t) ((t) < 2 ? LANES + (t) : LANES - (t) / 2 * 2 + (t) % 2)

#define SIGN_OF_ODD(t) ((t) % 2 ? SIGN : 0)
INLINE vec OF(conjugate)(vec x) { return (vec)((OF(mask))x ^ (OF(mask)){EACH(SIGN_OF_ODD)}); }
INLINE vec OF(other)(vec x) { return SHUFFLE(x, x, OTHER_PART); }
INLINE vec OF(at)(const T *p) { return *(const vec *)p; }

typedef struct {
    vec re, im;
} OF(number);
#define number OF(number)
INLINE number OF(plus)(number a, number b) { return (number){a.re + b.re, a.im + b.im}; }
INLINE number OF(minus)(number a, number b) { return (number){a.re - b.re, a.im - b.im}; }
INLINE number OF(plus_i)(number a, number b) { return (number){a.re - b.im, a.im + b.re}; } /* a + i b */
INLINE number OF(minus_i)(number a, number b) { return (number){a.re + b.im, a.im - b.re}; }
INLINE number OF(times)(number a, vec re, vec im) { return (number){a.re * re - a.im * im, a.re * im + a.im * re}; }
/* The same in lanes of the mask; in others the root is 1, by which an infinite number is not to be multiplied. */
INLINE number OF(times_in)(OF(mask) mask, number a, vec re, vec im) {
    number b = OF(times)(a, re, im);
    return (number){(vec)(((OF(mask))b.re & mask) | ((OF(mask))a.re & ~mask)),
                    (vec)(((OF(mask))b.im & mask) | ((OF(mask))a.im & ~mask))};
}
INLINE number OF(load)(const T *x) { return (number){OF(at)(x), OF(at)(x + LANES)}; }
INLINE void OF(store)(T *y, number a) {
    *(vec *)y = a.re;
    *(vec *)(y + LANES) = a.im;
}
/* Parts that alternate in two vectors; those of a transform back are exchanged: it is forwards then. */
INLINE number OF(apart)(vec a, vec b, const bool back) {
    vec even = SHUFFLE(a, b, EVEN), odd = SHUFFLE(a, b, ODD);
    return back ? (number){odd, even} : (number){even, odd};
}
INLINE void OF(store_alternating)(T *y, number a, const bool back) {
    vec even = back ? a.im : a.re, odd = back ? a.re : a.im;
    *(vec *)y = SHUFFLE(even, odd, LOW);
    *(vec *)(y + LANES) = SHUFFLE(even, odd, HIGH);
}

/* The transforms of 4 and of 8 numbers, and of as many as there are. */
INLINE void OF(four)(number *v, const int step) {
    number *a = v, *b = v + step, *c = b + step, *d = c + step;
    number ac = OF(plus)(*a, *c), a_c = OF(minus)(*a, *c), bd = OF(plus)(*b, *d), b_d = OF(minus)(*b, *d);
    *a = OF(plus)(ac, bd);
    *b = OF(minus_i)(a_c, b_d);
    *c = OF(minus)(ac, bd);
    *d = OF(plus_i)(a_c, b_d);
}
#define SQRT_HALF ((T)0.70710678118654752440)
INLINE void OF(eight)(number *v) {
    number even[4], odd[4];
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) {
        even[i] = OF(plus)(v[i], v[i + 4]);
        odd[i] = OF(minus)(v[i], v[i + 4]);
    }
    number first = {(odd[1].re + odd[1].im) * SQRT_HALF, (odd[1].im - odd[1].re) * SQRT_HALF};
    number third = {(odd[3].im - odd[3].re) * SQRT_HALF, (odd[3].re + odd[3].im) * -SQRT_HALF};
    number ac = OF(minus_i)(odd[0], odd[2]), a_c = OF(plus_i)(odd[0], odd[2]);
    number bd = OF(plus)(first, third), b_d = OF(minus)(first, third);
    OF(four)(even, 1);
#pragma GCC unroll 4
    for (int i = 0; i < 4; i++) v[2 * i] = even[i];
    v[1] = OF(plus)(ac, bd);
    v[3] = OF(minus_i)(a_c, b_d);
    v[5] = OF(minus)(ac, bd);
    v[7] = OF(plus_i)(a_c, b_d);
}
INLINE void OF(few)(const int count, number *v) {
    if (count == 2) {
        number sum = OF(plus)(v[0], v[1]);
        v[1] = OF(minus)(v[0], v[1]);
        v[0] = sum;
    }
    if (count == 4) OF(four)(v, 1);
    if (count == 8) OF(eight)(v);
}

/* Of 8 vectors, LANES parts each: the parts of the vectors' first lanes, then those of the second ones, ... */
#if BYTES == 64 /* each pass turns the bits of a part's place, vector and lane, by one */
INLINE void OF(turn)(vec *v) {
#pragma GCC unroll 3
    for (int pass = 0; pass < 3; pass++) {
        vec to[8];
#pragma GCC unroll 4
        for (int i = 0; i < 4; i++) {
            to[2 * i] = SHUFFLE(v[i], v[i + 4], LOW);
            to[2 * i + 1] = SHUFFLE(v[i], v[i + 4], HIGH);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) v[i] = to[i];
    }
}
#else /* within 16 bytes, and then, where vectors are twice as long, by halves */
#define INNER ((int)(16 / sizeof(T)))
#define LOW_INNER(t) ((t) / INNER * INNER + (t) % INNER / 2 + (t) % 2 * LANES)
#define HIGH_INNER(t) (LOW_INNER(t) + INNER / 2)
INLINE void OF(turn)(vec *v) {
    vec to[8];
#pragma GCC unroll 2
    for (int pass = 1; pass < INNER; pass *= 2) {
#pragma GCC unroll 8
        for (int i = 0; i < 8; i += 2) {
            const vec *low = v + i / INNER * INNER + i % INNER / 2, *high = low + INNER / 2;
            to[i] = SHUFFLE(*low, *high, LOW_INNER);
            to[i + 1] = SHUFFLE(*low, *high, HIGH_INNER);
        }
#pragma GCC unroll 8
        for (int i = 0; i < 8; i++) v[i] = to[i];
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        int lane = i / (8 / LANES), from = i % (8 / LANES) * LANES + lane % INNER;
        to[i] = LANES == INNER ? v[from]
                : lane < INNER ? SHUFFLE(v[from], v[from + INNER], LOWER)
                               : SHUFFLE(v[from], v[from + INNER], UPPER);
    }
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) v[i] = to[i];
}
#endif

/* Of each of 8 places, `each` numbers of as many rows as fill two vectors. */
INLINE void OF(collect)(const int each, const T *const *x, T *to) {
    for (int r = 0; r < LANES / each; r++)
        for (int j = 0; j < 8; j++)
            memcpy(to + 2 * (j * LANES + r * each), x[r] + 2 * j * each, 2 * (size_t)each * sizeof(T));
}

#define ITSELF(t) (t)
#define ALL ((OF(mask)){0} - 1)
/* A step of radix 8: numbers q + m/8 {0, 1, ..., 7} of LANES q, times roots, to 8 q + {0, 1, ..., 7}. The mask has the
 * lanes of all q but 0. */
INLINE void OF(first_of)(number *v, const T *roots, int64_t width, OF(mask) mask) {
    vec re[8], im[8];
    OF(eight)(v);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) {
        const T *root = roots + 2 * (i - 1) * width;
        if (i) v[i] = OF(times_in)(mask, v[i], OF(at)(root), OF(at)(root + width));
        re[i] = v[i].re;
        im[i] = v[i].im;
    }
    OF(turn)(re);
    OF(turn)(im);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) v[i] = (number){re[i], im[i]};
}

INLINE void OF(first_places)(const T *low, const T *high, int64_t step, const T *roots, int64_t width, OF(mask) mask,
                             const bool back, T *y) {
    number v[8];
#pragma GCC unroll 8
    for (int j = 0; j < 8; j++) v[j] = OF(apart)(OF(at)(low + j * step), OF(at)(high + j * step), back);
    OF(first_of)(v, roots, width, mask);
#pragma GCC unroll 8
    for (int i = 0; i < 8; i++) OF(store)(y + 2 * i * LANES, v[i]);
}
/* Where a row has fewer q than a vector lanes, lanes are of some rows. */
INLINE void OF(first_step)(int64_t m, const T *roots, const bool back, const T *const *x, T *y) {
    T collected[2 * 8 * LANES] __attribute__((aligned(64)));
    int64_t each = m / 8, width = each < TT_FFT_LANES ? TT_FFT_LANES : each, step = 2 * each;
    const T *low = x[0], *high = low + LANES;
    if (step == LANES) high = x[1];
    else if (step < LANES) {
        if (each == 2) OF(collect)(2, x, collected);
        else OF(collect)(4, x, collected);
        low = collected;
        high = low + LANES;
        step = 2 * LANES;
    }
    OF(mask) mask = ((OF(mask)){EACH(ITSELF)} & ((OF(mask)){0} + (MASK)(each - 1))) != 0;
    OF(first_places)(low, high, step, roots, width, mask, back, y);
    for (int64_t q = LANES; q < each; q += LANES)
        OF(first_places)(low + 2 * q, high + 2 * q, step, roots + q, width, ALL, back, y + 2 * 8 * q);
}

/* A step of `radix` for one p: numbers p + n/radix {0, 1, ...} of each of `s` sequences of n, times powers of a root,
 * to radix p + {0, 1, ...}. */
INLINE void OF(step_of)(const int radix, int64_t n, int64_t s, const T *roots, int64_t power, const T *x, T *y) {
    for (int64_t q = 0; q < s; q += LANES) {
        number v[8];
#pragma GCC unroll 8
        for (int j = 0; j < radix; j++) v[j] = OF(load)(x + 2 * (n / radix * j * s + q));
        OF(few)(radix, v);
#pragma GCC unroll 8
        for (int j = 0; j < radix; j++) {
            const T *root = roots + 2 * j * power;
            if (j && power) v[j] = OF(times)(v[j], (vec){0} + root[0], (vec){0} + root[1]);
            OF(store)(y + 2 * (j * s + q), v[j]);
        }
    }
}
/* Roots of order n are `apart`. */
INLINE void OF(step)(const int radix, int64_t n, int64_t s, const T *roots, int64_t apart, const T *x, T *y) {
    OF(step_of)(radix, n, s, roots, 0, x, y);
    for (int64_t p = 1; p < n / radix; p++)
        OF(step_of)(radix, n, s, roots, p * apart, x + 2 * p * s, y + 2 * p * radix * s);
}

/* The last one, of as many numbers as sequences have. */
INLINE void OF(last_step)(const int n, int64_t s, const bool back, const T *x, T *y) {
    for (int64_t q = 0; q < s; q += LANES) {
        number v[8];
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) v[j] = OF(load)(x + 2 * (j * s + q));
        OF(few)(n, v);
#pragma GCC unroll 8
        for (int j = 0; j < n; j++) OF(store_alternating)(y + 2 * (j * s + q), v[j], back);
    }
}

#if LANES > 8 /* the step after the first one, whose sequences are half as long as a vector */
INLINE number OF(lower)(number a, number b) { return (number){SHUFFLE(a.re, b.re, LOWER), SHUFFLE(a.im, b.im, LOWER)}; }
INLINE number OF(upper)(number a, number b) { return (number){SHUFFLE(a.re, b.re, UPPER), SHUFFLE(a.im, b.im, UPPER)}; }

/* For two p, from v[0], v[apart], ... to v[0], v[1], ...: the numbers of one p, then those of the other. */
INLINE void OF(second_of)(const int radix, const int apart, number *v, const T *roots, int64_t places, OF(mask) mask) {
    number w[8];
#pragma GCC unroll 8
    for (int j = 0; j < radix; j++) w[j] = v[apart * j];
    OF(few)(radix, w);
#pragma GCC unroll 8
    for (int j = 1; j < radix; j++) {
        const T *root = roots + 2 * (j - 1) * places;
        w[j] = OF(times_in)(mask, w[j], OF(at)(root), OF(at)(root + places));
    }
#pragma GCC unroll 4
    for (int j = 0; j < radix; j += 2) {
        v[j / 2] = OF(lower)(w[j], w[j + 1]);
        v[(radix + j) / 2] = OF(upper)(w[j], w[j + 1]);
    }
}
#define BUT_FIRST ((OF(mask)){EACH(ITSELF)} >= LANES / 2) /* p = 0 */
INLINE void OF(second_places)(const int radix, int64_t n, const T *roots, OF(mask) mask, const T *x, T *y) {
    number v[8];
#pragma GCC unroll 8
    for (int j = 0; j < radix; j++) v[j] = OF(load)(x + 2 * 8 * (n / radix) * j);
    OF(second_of)(radix, 1, v, roots, 8 * (n / radix), mask);
#pragma GCC unroll 8
    for (int j = 0; j < radix; j++) OF(store)(y + 2 * LANES * j, v[j]);
}
INLINE void OF(second_step)(const int radix, int64_t n, const T *roots, const T *x, T *y) {
    OF(second_places)(radix, n, roots, BUT_FIRST, x, y);
    for (int64_t p = 2; p < n / radix; p += 2)
        OF(second_places)(radix, n, roots + 8 * p, ALL, x + 2 * 8 * p, y + 2 * 8 * radix * p);
}

/* Of two rows, where it is the last step. */
INLINE void OF(last_of_two)(const int n, const bool back, const T *x, const T *x2, T *y, T *y2) {
    number v[8];
#pragma GCC unroll 4
    for (int j = 0; j < n; j += 2) {
        number a = OF(load)(x + 16 * j), b = OF(load)(x2 + 16 * j);
        v[j] = OF(lower)(a, b);
        v[j + 1] = OF(upper)(a, b);
    }
    OF(few)(n, v);
#pragma GCC unroll 8
    for (int j = 0; j < n; j++) {
        vec even = back ? v[j].im : v[j].re, odd = back ? v[j].re : v[j].im;
        *(vec *)(y + 16 * j) = SHUFFLE(even, odd, LOW);
        *(vec *)(y2 + 16 * j) = SHUFFLE(even, odd, HIGH);
    }
}
#endif

/* What the first step has left of two rows in `x`, by way of `room`, to both of `y`; of long ones, of one alone. */
INLINE void OF(other_steps)(int64_t m, const tt_fft_roots *roots, const bool back, T *x, T *room, T *const *y) {
    int64_t n = m / 8, s = 8;
#if LANES > 8
    if (n <= 8) {
        if (n == 2) OF(last_of_two)(2, back, x, x + 2 * m, y[0], y[1]);
        else if (n == 4) OF(last_of_two)(4, back, x, x + 2 * m, y[0], y[1]);
        else OF(last_of_two)(8, back, x, x + 2 * m, y[0], y[1]);
        return;
    }
#endif
    while (n > 8) {
        int radix = tt_fft_radix(n);
#if LANES > 8
        if (s == 8 && radix == 4) OF(second_step)(4, n, roots->second, x, room);
        else if (s == 8) OF(second_step)(8, n, roots->second, x, room);
        else
#endif
            if (radix == 4)
            OF(step)(4, n, s, roots->later, s / 8, x, room);
        else OF(step)(8, n, s, roots->later, s / 8, x, room);
        n /= radix;
        s *= radix;
        T *from = x;
        x = room;
        room = from;
    }
    if (n == 2) OF(last_step)(2, s, back, x, y[0]);
    else if (n == 4) OF(last_step)(4, s, back, x, y[0]);
    else OF(last_step)(8, s, back, x, y[0]);
}
