/* Note [A long row] in cpu/fft.h, for parts of type T. Included by fft.c for each. Numbers lie as vectors (re, im),
 * (re, im), ... */
typedef T OF(lanes) __attribute__((vector_size(BYTES), may_alias));
typedef T OF(anywhere) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
typedef MASK OF(lane_mask) __attribute__((vector_size(BYTES)));
#define vec OF(lanes)

/* A step of radix 4: numbers p + n/4 {0, 1, 2, 3} of each of `s` sequences of n, to 4 p + {0, 1, 2, 3}. The roots of
 * order n are s apart. */
INLINE void OF(step_4)(int64_t n, int64_t s, const T *roots, const vec *x, vec *y) {
    for (int64_t p = 0; p < n / 4; p++, x += 2 * s, y += 8 * s) {
        const T *w1 = roots + 2 * p * s, *w2 = w1 + 2 * p * s, *w3 = w2 + 2 * p * s;
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

/* Lane k of the result is lane of[k] of both vectors, one after the other. */
#ifdef __clang__
INLINE vec OF(shuffle)(vec a, vec b, OF(lane_mask) of) {
    vec out;
    for (int k = 0; k < LANES; k++) out[k] = of[k] < LANES ? a[of[k]] : b[of[k] - LANES];
    return out;
}
#else
INLINE vec OF(shuffle)(vec a, vec b, OF(lane_mask) of) { return __builtin_shuffle(a, b, of); }
#endif

/* Note [A long row] */
static void OF(join)(const tt_fft_long *w, int64_t begin, int64_t end) {
    int64_t part = w->size / TT_FFT_PARTS;
    bool together = w->stride_out == 2 * (int64_t)sizeof(T);
    OF(lane_mask) even, odd, low, high, back_low, back_high;
    for (int k = 0; k < LANES; k++) {
        even[k] = 2 * k;
        odd[k] = 2 * k + 1;
        low[k] = k / 2 + k % 2 * LANES;
        high[k] = low[k] + LANES / 2;
        back_low[k] = LANES - 1 - k / 2 + k % 2 * LANES;
        back_high[k] = back_low[k] - LANES / 2;
    }
    for (int64_t k = begin * LANES; k < end * LANES && k < w->count; k += LANES) {
        vec numbers[2][2 * TT_FFT_PARTS]; /* 16 of them are two steps of radix 4 */
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
        OF(step_4)(TT_FFT_PARTS, 1, w->few, numbers[0], numbers[1]);
        OF(step_4)(TT_FFT_PARTS / 4, 4, w->few, numbers[1], numbers[0]);
        const vec *z = numbers[0];
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

#undef vec
