/* Tiles of Note [Fewer multiplications] in conv_winograd.h: V from lines of the source, and the places of the target
 * from M. Included by conv.c for float32. */

/* A line of `n` elements, of which the first is at place `from`, as two lines of every other one. */
static void OF(split_line)(const T *line, int64_t size, int64_t from, int64_t n, T *even, T *odd) {
    int64_t k = 0, whole = least(n, (size - from) / 2);
    for (; k < n && from + 2 * k < 0; k++) { /* before the line's beginning */
        even[k] = 0;
        odd[k] = from + 2 * k + 1 < 0 || from + 2 * k + 1 >= size ? 0 : line[from + 2 * k + 1];
    }
    for (; k < whole; k++) {
        even[k] = line[from + 2 * k];
        odd[k] = line[from + 2 * k + 1];
    }
    for (; k < n; k++) {
        even[k] = from + 2 * k < size ? line[from + 2 * k] : 0;
        odd[k] = 0;
    }
}

/* The 16 elements of V's tiles from those of the source. */
INLINE void OF(winograd_elements)(vec d[4][4], vec r[4][4]) {
    vec h[4][4];
#pragma GCC unroll 4
    for (int b = 0; b < 4; b++) {
        h[0][b] = d[0][b] - d[2][b];
        h[1][b] = d[1][b] + d[2][b];
        h[2][b] = d[2][b] - d[1][b];
        h[3][b] = d[1][b] - d[3][b];
    }
#pragma GCC unroll 4
    for (int a = 0; a < 4; a++) {
        r[a][0] = h[a][0] - h[a][2];
        r[a][1] = h[a][1] + h[a][2];
        r[a][2] = h[a][2] - h[a][1];
        r[a][3] = h[a][1] - h[a][3];
    }
}

/* Does a line fit into a vector? Then several lines of tiles are transformed together, those of small images too. */
static bool OF(is_narrow)(const tt_conv_axis *x) { return x->size <= LANES && x->places <= LANES; }

typedef int32_t OF(lanes) __attribute__((vector_size(BYTES)));

/* Elements of two vectors, by their numbers. */
INLINE vec OF(picked)(vec a, vec b, OF(lanes) number) {
#ifdef __clang__
    vec r;
    for (int k = 0; k < LANES; k++) r[k] = number[k] < LANES ? a[number[k]] : b[number[k] - LANES];
    return r;
#else
    return __builtin_shuffle(a, b, number);
#endif
}

/* Memory for lines of tiles: for two lines of the source each, apart by whether they and the places in them are even;
 * or for their 16 elements, tile after tile. */
static int64_t OF(winograd_room)(const tt_conv_axis *x, int64_t lines, int64_t down, int64_t across) {
    if (OF(is_narrow)(x)) return 16 * (lines * across + 2 * LANES);
    return 4 * (lines + pieces(lines, down) + 1) * (across + 1) + across + 2 * LANES;
}

/* winograd_source where lines are narrow. What is written beyond the last tile is of no use, and does no harm. */
static void OF(winograd_narrow_source)(const tt_correlation *c, const T *source, int64_t first, int64_t end, T *memory,
                                       T *to, int64_t of_element) {
    const tt_conv_axis *y = &c->axis[1], *x = &c->axis[2];
    int64_t down = pieces(y->places, 2), across = pieces(x->places, 2), tiles = (end - first) * across,
            of = tiles + 2 * LANES;
    int64_t top = y->first + 2 * least(0, y->spacing), left = x->first + 2 * least(0, x->spacing);
    OF(lanes) pick[4]; /* of a line of the source, and behind it zeros */
    for (int b = 0; b < 4; b++)
        for (int j = 0; j < LANES; j++) {
            int64_t at = left + 2 * j + b;
            pick[b][j] = at >= 0 && at < x->size ? (int32_t)at : LANES;
        }
    uint32_t whole = x->size == LANES ? ALL_LANES : (1u << x->size) - 1;
    vec none = {0};
    for (int64_t k = first; k < end;) { /* lines of one image */
        int64_t row = k % down, n = least(down - row, end - k);
        const T *image = source + k / down * c->source_batch;
        T *place = memory + (k - first) * across;
        for (int64_t i = 0; i < 2 * n + 2; i++) { /* a line is of a tile and of the one above */
            int64_t at = top + 2 * row + i;
            vec line = none;
            if (at >= 0 && at < y->size) {
                __builtin_prefetch(image + c->source_channel + at * y->source);
                line = LANES_OF(none, whole, image + at * y->source);
            }
            T *low = place + i / 2 * across + i % 2 * 4 * of, *high = low - across + 8 * of;
#pragma GCC unroll 4
            for (int b = 0; b < 4; b++) {
                vec picked = OF(picked)(line, none, pick[b]);
                if (i < 2 * n) *(vec *)(low + b * of) = picked;
                if (i > 1) *(vec *)(high + b * of) = picked;
            }
        }
        k += n;
    }
    for (int64_t t = 0; t < tiles; t += LANES) {
        vec d[4][4], r[4][4];
#pragma GCC unroll 16
        for (int e = 0; e < 16; e++) d[e / 4][e % 4] = *(const vec *)(memory + e * of + t);
        OF(winograd_elements)(d, r);
#pragma GCC unroll 16
        for (int e = 0; e < 16; e++) *(vec *)(to + e * of_element + t) = r[e / 4][e % 4];
    }
}

/* V of one channel for lines of tiles [first, end) of all images: to[element * of_element + tile]. `split`:
 * winograd_room. */
static void OF(winograd_source)(const tt_correlation *c, const T *source, int64_t first, int64_t end, T *split, T *to,
                                int64_t of_element) {
    const tt_conv_axis *y = &c->axis[1], *x = &c->axis[2];
    int64_t down = pieces(y->places, 2), across = pieces(x->places, 2), line = across + 1, tiles = 0;
    int64_t top = y->first + 2 * least(0, y->spacing), left = x->first + 2 * least(0, x->spacing);
    if (OF(is_narrow)(x)) {
        OF(winograd_narrow_source)(c, source, first, end, split, to, of_element);
        return;
    }
    while (first < end) { /* lines of one image */
        int64_t image = first / down, row = first % down, n = least(down - row, end - first), plane = (n + 1) * line;
        const T *from = source + image * c->source_batch;
        for (int64_t k = 0; k < 2 * (n + 1); k++) {
            int64_t at = top + 2 * row + k;
            T *even = split + k % 2 * 2 * plane + k / 2 * line;
            if (at >= 0 && at < y->size) {
                const T *in = from + at * y->source;
                for (int64_t j = 0; j < x->size; j += LANES) __builtin_prefetch(in + c->source_channel + j);
                OF(split_line)(in, x->size, left, line, even, even + plane);
            } else
                for (int64_t j = 0; j < line; j++) even[j] = even[plane + j] = 0;
        }
        for (int64_t k = 0; k < n; k++)
            for (int64_t j = 0; j < across; j += LANES) {
                vec d[4][4], r[4][4];
#pragma GCC unroll 4
                for (int a = 0; a < 4; a++)
#pragma GCC unroll 4
                    for (int b = 0; b < 4; b++)
                        d[a][b] = *(const vec *)(split + (a % 2 * 2 + b % 2) * plane + (k + a / 2) * line + j + b / 2);
                OF(winograd_elements)(d, r);
                int64_t count = least(LANES, across - j);
                uint32_t lanes = count == LANES ? ALL_LANES : (1u << count) - 1;
                T *at = to + tiles + k * across + j;
#pragma GCC unroll 4
                for (int a = 0; a < 4; a++, at += 4 * of_element) {
                    if (count == LANES)
                        for (int b = 0; b < 4; b++) *(vec *)(at + b * of_element) = r[a][b];
                    else
                        for (int b = 0; b < 4; b++) STORE_LANES(at + b * of_element, lanes, r[a][b]);
                }
            }
        tiles += n * across;
        first += n;
    }
}

/* A line's places from two vectors of every other one. */
INLINE void OF(join_line)(T *to, vec even, vec odd, int64_t n) {
    vec halves[2];
    OF(lanes) low, high;
#pragma GCC unroll 16
    for (int k = 0; k < LANES; k++) {
        low[k] = k / 2 + k % 2 * LANES;
        high[k] = LANES / 2 + low[k];
    }
    halves[0] = OF(picked)(even, odd, low);
    halves[1] = OF(picked)(even, odd, high);
    if (n == 2 * LANES) {
        *(vec *)to = halves[0];
        *(vec *)(to + LANES) = halves[1];
        return;
    }
    STORE_LANES(to, n >= LANES ? ALL_LANES : (1u << n) - 1, halves[0]);
    if (n > LANES) STORE_LANES(to + LANES, (1u << (n - LANES)) - 1, halves[1]);
}

/* The tiles' 2 x 2 places, from M's elements at `from`: of two lines, the even places and the odd ones. */
INLINE void OF(winograd_places)(const T *from, int64_t of_element, vec add, vec even[2], vec odd[2]) {
    vec m[4][4], v[2][4];
#pragma GCC unroll 4
    for (int a = 0; a < 4; a++)
#pragma GCC unroll 4
        for (int b = 0; b < 4; b++) m[a][b] = *(const vec *)(from + (4 * a + b) * of_element);
#pragma GCC unroll 4
    for (int b = 0; b < 4; b++) {
        v[0][b] = m[0][b] + m[1][b] + m[2][b];
        v[1][b] = m[1][b] - m[2][b] - m[3][b];
    }
#pragma GCC unroll 2
    for (int a = 0; a < 2; a++) {
        even[a] = v[a][0] + v[a][1] + v[a][2] + add;
        odd[a] = v[a][1] - v[a][2] - v[a][3] + add;
    }
}

/* winograd_target where lines are narrow. */
static vec OF(winograd_narrow_target)(const tt_correlation *c, const T *from, int64_t of_element, T bias, int64_t first,
                                      int64_t end, T *target, T *memory) {
    const tt_conv_axis *y = &c->axis[1], *x = &c->axis[2];
    int64_t down = pieces(y->places, 2), across = pieces(x->places, 2), tiles = (end - first) * across,
            of = tiles + 2 * LANES;
    vec strange = {0}, add = SPLAT(bias);
    for (int64_t t = 0; t < tiles; t += LANES) {
        vec even[2], odd[2];
        OF(winograd_places)(from + t, of_element, add, even, odd);
#pragma GCC unroll 2
        for (int a = 0; a < 2; a++) {
            strange = FMA(even[a] + odd[a], ((vec){0}), strange);
            *(vec *)(memory + 2 * a * of + t) = even[a];
            *(vec *)(memory + (2 * a + 1) * of + t) = odd[a];
        }
    }
    for (int64_t k = first; k < end; k++) {
        const T *line = memory + (k - first) * across;
        T *to = target + k / down * c->target_batch + k % down * 2 * y->target;
        for (int64_t a = 0, lines = least(2, y->places - k % down * 2); a < lines; a++, to += y->target, line += 2 * of)
            OF(join_line)(to, *(const vec *)line, *(const vec *)(line + of), x->places);
    }
    return strange;
}

/* One channel of the target, from M. Returns NaNs if a place is not finite. `memory`: winograd_room. */
static vec OF(winograd_target)(const tt_correlation *c, const T *from, int64_t of_element, T bias, int64_t first,
                               int64_t end, T *target, T *memory) {
    const tt_conv_axis *y = &c->axis[1], *x = &c->axis[2];
    int64_t down = pieces(y->places, 2), across = pieces(x->places, 2);
    if (OF(is_narrow)(x)) return OF(winograd_narrow_target)(c, from, of_element, bias, first, end, target, memory);
    vec strange = {0}, add = SPLAT(bias);
    for (; first < end; first++, from += across) {
        T *to = target + first / down * c->target_batch + first % down * 2 * y->target;
        for (int64_t j = 0; j < across; j += LANES) {
            vec even[2], odd[2];
            OF(winograd_places)(from + j, of_element, add, even, odd);
            int64_t places = least(2 * LANES, x->places - 2 * j);
#pragma GCC unroll 2
            for (int a = 0; a < 2; a++) {
                if (first % down * 2 + a >= y->places) break;
                if (across - j >= LANES) strange = FMA(even[a] + odd[a], ((vec){0}), strange);
                else
                    for (int k = 0; k < across - j; k++) strange[0] += (even[a][k] + odd[a][k]) * 0;
                OF(join_line)(to + a * y->target + 2 * j, even[a], odd[a], places);
            }
        }
    }
    return strange;
}
