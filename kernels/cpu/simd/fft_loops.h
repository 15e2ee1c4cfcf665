/* The steps of a transform, for parts of type T. Included by fft.c for each. Numbers lie as vectors (re, im), (re, im),
 * ... */
typedef T OF(vector) __attribute__((vector_size(BYTES), may_alias));
typedef T OF(anywhere) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
typedef MASK OF(mask) __attribute__((vector_size(BYTES)));
#define vec OF(vector)
#define LANES ((int)(BYTES / sizeof(T)))

/* LANES vectors as a matrix, transposed: blocks of half the size change places, then those within them. `lanes` has,
 * for each size, which lanes the first and the second vector of a pair get from both. */
#ifdef __clang__
static void OF(find_lanes)(OF(mask) * lanes) { (void)lanes; }
INLINE void OF(transpose)(vec *v, const OF(mask) * lanes) {
    (void)lanes;
    for (int i = 0; i < LANES; i++)
        for (int j = 0; j < i; j++) {
            T other = v[i][j];
            v[i][j] = v[j][i];
            v[j][i] = other;
        }
}
#else
static void OF(find_lanes)(OF(mask) * lanes) {
    for (int half = LANES / 2; half; half /= 2, lanes += 2)
        for (int k = 0; k < LANES; k++) {
            lanes[0][k] = k & half ? LANES + k - half : k;
            lanes[1][k] = k & half ? LANES + k : k + half;
        }
}
INLINE void OF(transpose)(vec *v, const OF(mask) * lanes) {
#pragma GCC unroll 4
    for (int half = LANES / 2; half; half /= 2, lanes += 2)
#pragma GCC unroll 16
        for (int i = 0; i < LANES; i++)
            if (!(i & half)) {
                vec a = v[i], b = v[i + half];
                v[i] = __builtin_shuffle(a, b, lanes[0]);
                v[i + half] = __builtin_shuffle(a, b, lanes[1]);
            }
}
#endif

/* The rows' parts as vectors, `count` numbers of `parts` parts each; 0 for those that rows do not have. */
static void OF(load)(const tt_fft_rows *w, int64_t count, int parts, vec *to) {
    int64_t have = w->count_in < count ? w->count_in : count, k = 0, all = have * parts;
    OF(mask) lanes[8];
    OF(find_lanes)(lanes);
    int64_t ahead = LANES * ((intptr_t)w->in[1] - (intptr_t)w->in[0]); /* the rows after these */
    if (w->stride_in == parts * (int64_t)sizeof(T))
        for (; k + LANES <= all; k += LANES) {
            vec v[LANES];
#pragma GCC unroll 16
            for (int r = 0; r < LANES; r++) {
                v[r] = *(const OF(anywhere) *)((const T *)w->in[r] + k);
                __builtin_prefetch((const char *)((uintptr_t)w->in[r] + (uintptr_t)(ahead + k * (int64_t)sizeof(T))));
            }
            OF(transpose)(v, lanes);
#pragma GCC unroll 16
            for (int r = 0; r < LANES; r++) to[k + r] = v[r];
        }
    for (; k < all; k++)
        for (int r = 0; r < LANES; r++)
            ((T *)to)[k * LANES + r] = ((const T *)(w->in[r] + k / parts * w->stride_in))[k % parts];
    for (; k < count * parts; k++) to[k] = (vec){0};
}

static void OF(store)(const tt_fft_rows *w, int parts, const vec *from) {
    int64_t k = 0, all = w->count_out * parts;
    OF(mask) lanes[8];
    OF(find_lanes)(lanes);
    if (w->stride_out == parts * (int64_t)sizeof(T))
        for (; k + LANES <= all; k += LANES) {
            vec v[LANES];
#pragma GCC unroll 16
            for (int r = 0; r < LANES; r++) v[r] = from[k + r];
            OF(transpose)(v, lanes);
#pragma GCC unroll 16
            for (int r = 0; r < LANES; r++)
                if (r < w->rows) *(OF(anywhere) *)((T *)w->out[r] + k) = v[r];
        }
    for (; k < all; k++)
        for (int r = 0; r < w->rows; r++)
            ((T *)(w->out[r] + k / parts * w->stride_out))[k % parts] = ((const T *)from)[k * LANES + r];
}

/* A step of radix 4: numbers p + n/4 {0, 1, 2, 3} of each of `s` sequences of n, to 4 p + {0, 1, 2, 3}. The roots of
 * order n are `step` apart. */
static void OF(step_4)(int64_t n, int64_t s, const T *roots, int64_t step, const vec *x, vec *y) {
    for (int64_t p = 0; p < n / 4; p++, x += 2 * s, y += 8 * s) {
        const T *w1 = roots + 2 * p * step, *w2 = w1 + 2 * p * step, *w3 = w2 + 2 * p * step;
        vec c1 = (vec){0} + w1[0], s1 = (vec){0} + w1[1], c2 = (vec){0} + w2[0], s2 = (vec){0} + w2[1];
        vec c3 = (vec){0} + w3[0], s3 = (vec){0} + w3[1];
        for (int64_t q = 0; q < 2 * s; q += 2) {
            const vec *a = x + q, *b = a + n / 4 * 2 * s, *c = b + n / 4 * 2 * s, *d = c + n / 4 * 2 * s;
            vec *to = y + q;
            vec ac_re = a[0] + c[0], ac_im = a[1] + c[1], a_c_re = a[0] - c[0], a_c_im = a[1] - c[1];
            vec bd_re = b[0] + d[0], bd_im = b[1] + d[1], b_d_re = b[0] - d[0], b_d_im = b[1] - d[1];
            vec re1 = a_c_re + b_d_im, im1 = a_c_im - b_d_re, re2 = ac_re - bd_re, im2 = ac_im - bd_im;
            vec re3 = a_c_re - b_d_im, im3 = a_c_im + b_d_re;
            to[0] = ac_re + bd_re;
            to[1] = ac_im + bd_im;
            if (!p) { /* the roots are 1, by which an infinite number is not to be multiplied */
                to[2 * s] = re1;
                to[2 * s + 1] = im1;
                to[4 * s] = re2;
                to[4 * s + 1] = im2;
                to[6 * s] = re3;
                to[6 * s + 1] = im3;
            } else {
                to[2 * s] = re1 * c1 - im1 * s1;
                to[2 * s + 1] = re1 * s1 + im1 * c1;
                to[4 * s] = re2 * c2 - im2 * s2;
                to[4 * s + 1] = re2 * s2 + im2 * c2;
                to[6 * s] = re3 * c3 - im3 * s3;
                to[6 * s + 1] = re3 * s3 + im3 * c3;
            }
        }
    }
}

/* The transform of n complex numbers, in `x` or in `y`: the roots of order n are `step` apart. */
static vec *OF(transform)(int64_t n, const T *roots, int64_t step, vec *x, vec *y) {
    for (int64_t s = 1;; s *= 4, n /= 4, step *= 4) {
        if (n == 1) return x;
        if (n == 2) break;
        OF(step_4)(n, s, roots, step, x, y);
        vec *other = x;
        x = y;
        y = other;
        if (n == 4) return x;
        if (n == 8) {
            s *= 4;
            for (int64_t q = 0; q < 2 * s; q++) {
                y[q] = x[q] + x[q + 2 * s];
                y[q + 2 * s] = x[q] - x[q + 2 * s];
            }
            return y;
        }
    }
    return x;
}

/* Of m numbers of even and odd elements: the m + 1 of the real row. */
static void OF(after_real)(int64_t m, const T *roots, const vec *z, vec *x) {
    const T half = (T)0.5;
    x[0] = z[0] + z[1];
    x[2 * m] = z[0] - z[1];
    x[1] = x[2 * m + 1] = (vec){0};
    for (int64_t k = 1; k <= m / 2; k++) {
        const vec *a = z + 2 * k, *b = z + 2 * (m - k);
        vec c = (vec){0} + roots[2 * k], s = (vec){0} + roots[2 * k + 1];
        vec even_re = (a[0] + b[0]) * half, even_im = (a[1] - b[1]) * half;
        vec odd_re = (a[1] + b[1]) * half, odd_im = (b[0] - a[0]) * half;
        vec re = odd_re * c - odd_im * s, im = odd_re * s + odd_im * c;
        x[2 * k] = even_re + re;
        x[2 * k + 1] = even_im + im;
        x[2 * (m - k)] = even_re - re;
        x[2 * (m - k) + 1] = im - even_im;
    }
}

/* And back, parts exchanged, with a factor of 2. */
static void OF(before_real)(int64_t m, const T *roots, const vec *x, vec *z) {
    z[0] = x[0] - x[2 * m];
    z[1] = x[0] + x[2 * m];
    for (int64_t k = 1; k <= m / 2; k++) {
        const vec *a = x + 2 * k, *b = x + 2 * (m - k);
        vec c = (vec){0} + roots[2 * k], s = (vec){0} + roots[2 * k + 1];
        vec sum_re = a[0] + b[0], sum_im = a[1] - b[1], rest_re = a[0] - b[0], rest_im = a[1] + b[1];
        vec re = rest_re * c + rest_im * s, im = rest_im * c - rest_re * s;
        z[2 * k + 1] = sum_re - im;
        z[2 * k] = sum_im + re;
        z[2 * (m - k) + 1] = sum_re + im;
        z[2 * (m - k)] = re - sum_im;
    }
}

static void OF(exchange)(int64_t n, vec *z) {
    for (int64_t k = 0; k < 2 * n; k += 2) {
        vec re = z[k];
        z[k] = z[k + 1];
        z[k + 1] = re;
    }
}

static void OF(run)(const tt_fft_rows *w) {
    bool real = w->from_real || w->to_real;
    int64_t n = real ? w->size / 2 : w->size, step = real ? 2 : 1;
    vec *x = (vec *)w->room, *y = x + 2 * w->size + 2;
    OF(load)(w, w->to_real ? n + 1 : w->size, w->from_real ? 1 : 2, x);
    if (w->to_real) {
        OF(before_real)(n, w->roots, x, y);
        vec *other = x;
        x = y;
        y = other;
    } else if (!w->forward) OF(exchange)(n, x);
    vec *z = OF(transform)(n, w->roots, step, x, y);
    if (w->from_real) {
        vec *to = z == x ? y : x;
        OF(after_real)(n, w->roots, z, to);
        z = to;
    } else if (!w->forward || w->to_real) OF(exchange)(n, z);
    if (w->scale != 1)
        for (int64_t k = 0; k < 2 * n + 2 * w->from_real; k++) z[k] *= (T)w->scale;
    OF(store)(w, w->to_real ? 1 : 2, z);
}

/* Lane k of the result is lane of[k] of both vectors, one after the other. */
#ifdef __clang__
INLINE vec OF(shuffle)(vec a, vec b, OF(mask) of) {
    vec out;
    for (int k = 0; k < LANES; k++) out[k] = of[k] < LANES ? a[of[k]] : b[of[k] - LANES];
    return out;
}
#else
INLINE vec OF(shuffle)(vec a, vec b, OF(mask) of) { return __builtin_shuffle(a, b, of); }
#endif

/* Note [A long row] */
static void OF(join)(const tt_fft_long *w, int64_t begin, int64_t end) {
    int64_t part = w->size / TT_FFT_PARTS;
    bool together = w->stride_out == 2 * (int64_t)sizeof(T);
    OF(mask) even, odd, low, high, back_low, back_high;
    for (int k = 0; k < LANES; k++) {
        even[k] = 2 * k;
        odd[k] = 2 * k + 1;
        low[k] = k / 2 + k % 2 * LANES;
        high[k] = low[k] + LANES / 2;
        back_low[k] = LANES - 1 - k / 2 + k % 2 * LANES;
        back_high[k] = back_low[k] - LANES / 2;
    }
    for (int64_t k = begin * LANES; k < end * LANES && k < w->count; k += LANES) {
        vec numbers[2][2 * TT_FFT_PARTS];
        for (int64_t r = 0; r < TT_FFT_PARTS; r++) {
            const OF(anywhere) *from = (const OF(anywhere) *)((const T *)w->parts + 2 * (r * w->pitch + k));
            vec re = OF(shuffle)(from[0], from[1], w->forward ? even : odd);
            vec im = OF(shuffle)(from[0], from[1], w->forward ? odd : even);
            vec c = *(const OF(anywhere) *)((const T *)w->re + r * w->pitch + k);
            vec s = *(const OF(anywhere) *)((const T *)w->im + r * w->pitch + k);
            numbers[0][2 * r] = re;
            numbers[0][2 * r + 1] = im;
            if (!r) continue;
            numbers[0][2 * r] = re * c - im * s;
            numbers[0][2 * r + 1] = re * s + im * c;
        }
        vec *z = OF(transform)(TT_FFT_PARTS, w->roots, 1, numbers[0], numbers[1]);
        int64_t have = w->count - k < LANES ? w->count - k : LANES;
        for (int64_t q = 0; q < TT_FFT_PARTS; q++) {
            vec re = z[2 * q + !w->forward] * (T)w->scale, im = z[2 * q + w->forward] * (T)w->scale;
            bool back = w->from_real && q >= TT_FFT_PARTS / 2; /* the conjugate, from the row's end */
            int64_t at = back ? w->size - q * part - k : q * part + k;
            if (back) im = -im;
            if (together && have == LANES && (k || !back)) {
                OF(anywhere) *to = (OF(anywhere) *)((T *)w->out + 2 * (back ? at - (LANES - 1) : at));
                to[0] = OF(shuffle)(re, im, back ? back_low : low);
                to[1] = OF(shuffle)(re, im, back ? back_high : high);
                continue;
            }
            for (int64_t l = !k && back && q > TT_FFT_PARTS / 2; l < have; l++) { /* the first one is there */
                T *to = (T *)(w->out + (back ? at - l : at + l) * w->stride_out);
                to[0] = re[l];
                to[1] = im[l];
            }
        }
        if (w->from_real && !k) ((T *)w->out)[1] = ((T *)(w->out + w->size / 2 * w->stride_out))[1] = 0;
    }
}

#undef T
#undef MASK
#undef OF
#undef vec
#undef LANES
