/* Note [Fewer multiplications]: correlations of 3 x 3 taps and step 1, by Winograd's minimal filtering F(2 x 2, 3 x 3)
 * (Lavin and Gray, arXiv:1509.09308). Tiles of 2 x 2 places see 4 x 4 elements of the source. These, V, and the weight,
 * U, are transformed (sums of a few elements); then each of the 16 elements is a product of matrices, (out x in) (in x
 * tiles), so that a place costs 4 multiplications for 9. What comes out, M, is transformed to 2 x 2 places again.
 * An infinite or NaN element of the source would spoil its tile's other places, too: then all is done without this.
 * Included by conv.c for float32. */

/* From one of the 16 elements to the next, in each of U, V and M: not a multiple of what a cache tells lines apart
 * by. */
static int64_t OF(winograd_step)(int64_t elements) { return elements + LANES; }

#define CHUNK 16 /* channels of the source that are transformed together: stores of several lines to each element */

/* The taps of `ins` channels of the source for `outs` of the target, and 0 beyond: g[tap][in][TILE_ROWS]. */
static void OF(winograd_taps)(const tt_correlation *c, const T *from, const int64_t *at, int64_t outs, int64_t ins,
                              T g[9][CHUNK * TILE_ROWS]) {
    if (outs < TILE_ROWS) memset(g, 0, 9 * CHUNK * TILE_ROWS * sizeof(T));
    for (int64_t o = 0; o < outs; o++)
        for (int64_t k = 0; k < ins; k++) {
            const T *taps = from + o * c->weight_out + k * c->weight_in;
            for (int t = 0; t < 9; t++) g[t][k * TILE_ROWS + o] = taps[at[t]];
        }
}

/* 16 elements of U for blocks of TILE_ROWS channels of the target: [element][block][in][TILE_ROWS]. */
static void OF(winograd_weight)(void *context, int64_t begin, int64_t end) {
    const tt_correlation *c = context;
    const tt_conv_axis *y = &c->axis[1], *x = &c->axis[2];
    int64_t all = OF(winograd_step)(up(c->out, TILE_ROWS) * c->in * TILE_ROWS), at[9];
    for (int i = 0; i < 3; i++)
        for (int j = 0; j < 3; j++)
            at[3 * i + j] = (y->tap + (y->spacing < 0 ? 2 - i : i) * y->tap_step) * y->weight +
                            (x->tap + (x->spacing < 0 ? 2 - j : j) * x->tap_step) * x->weight;
    for (int64_t item = begin; item < end; item++)
        for (int64_t k = 0; k < c->in; k += CHUNK) {
            int64_t first = item * TILE_ROWS, ins = least(CHUNK, c->in - k);
            const T *from = (const T *)c->weight + first * c->weight_out + k * c->weight_in;
            T g[9][CHUNK * TILE_ROWS] __attribute__((aligned(64))),
                *to = (T *)c->packed + (item * c->in + k) * TILE_ROWS;
            OF(winograd_taps)(c, from, at, least(TILE_ROWS, c->out - first), ins, g);
            TT_INDEPENDENT
            for (int n = 0; n < (int)ins * TILE_ROWS; n++) {
                T h[4][3];
#pragma GCC unroll 3
                for (int j = 0; j < 3; j++) {
                    T sum = g[j][n] + g[6 + j][n], middle = g[3 + j][n];
                    h[0][j] = g[j][n];
                    h[1][j] = (T)0.5 * (sum + middle);
                    h[2][j] = (T)0.5 * (sum - middle);
                    h[3][j] = g[6 + j][n];
                }
#pragma GCC unroll 4
                for (int i = 0; i < 4; i++) {
                    T sum = h[i][0] + h[i][2];
                    to[4 * i * all + n] = h[i][0];
                    to[(4 * i + 1) * all + n] = (T)0.5 * (sum + h[i][1]);
                    to[(4 * i + 2) * all + n] = (T)0.5 * (sum - h[i][1]);
                    to[(4 * i + 3) * all + n] = h[i][2];
                }
            }
        }
}

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
    return 4 * (lines + up(lines, down) + 1) * (across + 1) + across + 2 * LANES;
}

/* winograd_source where lines are narrow. What is written beyond the last tile is of no use, and does no harm. */
static void OF(winograd_narrow_source)(const tt_correlation *c, const T *source, int64_t first, int64_t end, T *memory,
                                       T *to, int64_t of_element) {
    const tt_conv_axis *y = &c->axis[1], *x = &c->axis[2];
    int64_t down = up(y->places, 2), across = up(x->places, 2), tiles = (end - first) * across, of = tiles + 2 * LANES;
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
    int64_t down = up(y->places, 2), across = up(x->places, 2), line = across + 1, tiles = 0;
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
    int64_t down = up(y->places, 2), across = up(x->places, 2), tiles = (end - first) * across, of = tiles + 2 * LANES;
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
    int64_t down = up(y->places, 2), across = up(x->places, 2);
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

/* Tasks: blocks of lines of tiles. */
static void OF(winograd)(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    int64_t down = up(c->axis[1].places, 2), across = up(c->axis[2].places, 2), lines = c->batch * down;
    int64_t wide = up(c->block * across, LANES) * LANES, blocks = up(c->out, TILE_ROWS);
    int64_t split = OF(winograd_room)(&c->axis[2], c->block, down, across);
    int64_t of_source = OF(winograd_step)(c->in * wide), of_target = OF(winograd_step)(c->out * wide);
    int64_t of_weight = OF(winograd_step)(blocks * c->in * TILE_ROWS);
    T *memory = tt_scratch((split + 16 * (of_source + of_target) + 2 * LANES) * (int64_t)sizeof(T));
    if (!memory) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return;
    }
    T *v = (T *)(((uintptr_t)memory + BYTES - 1) / BYTES * BYTES), *m = v + 16 * of_source;
    T *lines_of = m + 16 * of_target;
    memset(v, 0, (size_t)(16 * of_source) * sizeof(T)); /* tiles beyond the last one of a vector */
    memset(lines_of, 0, (size_t)split * sizeof(T));
    vec strange = {0};
    for (int64_t item = begin; item < end; item++) {
        int64_t first = item * c->block, last = least(lines, first + c->block), n = (last - first) * across;
        for (int64_t k = 0; k < c->in; k++) OF(winograd_source)
        (c, (const T *)c->source + k * c->source_channel, first, last, lines_of, v + k * wide, of_source);
        for (int element = 0; element < 16; element++) {
            const T *u = (const T *)c->packed + element * of_weight;
            for (int64_t k = 0; k < c->in; k += c->slice)
                for (int64_t s = 0; s < n; s += COLUMNS)
                    for (int64_t o = 0; o < c->out; o += TILE_ROWS) {
                        T *out = m + element * of_target + o * wide + s;
                        OF(operands)
                        x = {.k = least(c->slice, c->in - k),
                             .a = u + (o * c->in + k * TILE_ROWS),
                             .a_step = TILE_ROWS,
                             .b = v + element * of_source + k * wide + s,
                             .b_step = wide,
                             .kind = k ? MATRIX : NOTHING,
                             .add = out,
                             .add_step = wide,
                             .out = out,
                             .out_step = wide};
                        OF(product)(least(TILE_ROWS, c->out - o), (int)up(least(COLUMNS, n - s), LANES), false, x);
                    }
        }
        for (int64_t o = 0; o < c->out; o++) {
            T *to = (T *)c->target + o * c->target_channel;
            T bias = c->bias ? ((const T *)c->bias)[o] : 0;
            strange += OF(winograd_target)(c, m + o * wide, of_target, bias, first, last, to, lines_of);
        }
    }
    T spoiled = 0;
    for (int k = 0; k < LANES; k++) spoiled += strange[k];
    if (spoiled != 0) __atomic_store_n(&c->spoiled, true, __ATOMIC_RELAXED);
    tt_scratch_free(memory);
}

/* The gradient of weight: the other way round, F(3 x 3, 2 x 2). V as before, the target's tiles of 2 x 2 places are
 * what is moved across them; S, 16 elements of [in][out], are sums over all tiles. */

/* A line of tiles of the target, with channels as columns: to[element][strip][tile][packed_by] from tile `at` on.
 * `two`: memory for [strip][2 lines][2 across][packed_by], zeros where there are no places. */
static void OF(winograd_gradient)(const tt_correlation *c, int64_t line, tt_conv_place *places, T *two, T *to,
                                  int64_t at, int64_t of_strip, int64_t of_element) {
    const tt_conv_axis *y = &c->axis[1], *x = &c->axis[2];
    int64_t down = up(y->places, 2), across = up(x->places, 2), by = c->packed_by, of_two = 4 * across * by;
    int64_t row = line % down * 2, strips = up(c->out, by);
    for (int64_t a = 0; a < 2; a++) {
        T *packed = two + a * 2 * across * by;
        if (row + a < y->places) {
            for (int64_t j = 0; j < x->places; j++)
                places[j].target = line / down * c->target_batch + (row + a) * y->target + j;
            OF(pack_target)(c, (const T *)c->target, c->out, places, x->places, packed, of_two);
        } else
            for (int64_t s = 0; s < strips; s++) memset(packed + s * of_two, 0, (size_t)(2 * across * by) * sizeof(T));
    }
    vec half = SPLAT((T)0.5);
    for (int64_t s = 0; s < strips; s++)
        for (int64_t j = 0; j < across; j++)
            for (int64_t o = 0; o < by; o += LANES) {
                const T *g = two + s * of_two + 2 * j * by + o;
                vec h[4][2];
#pragma GCC unroll 2
                for (int b = 0; b < 2; b++) {
                    vec high = *(const vec *)(g + b * by), low = *(const vec *)(g + (2 * across + b) * by);
                    h[0][b] = high;
                    h[1][b] = half * (high + low);
                    h[2][b] = half * (high - low);
                    h[3][b] = low;
                }
                T *out = to + s * of_strip + (at + j) * by + o;
#pragma GCC unroll 4
                for (int a = 0; a < 4; a++, out += 4 * of_element) {
                    *(vec *)out = h[a][0];
                    *(vec *)(out + of_element) = half * (h[a][0] + h[a][1]);
                    *(vec *)(out + 2 * of_element) = half * (h[a][0] - h[a][1]);
                    *(vec *)(out + 3 * of_element) = h[a][1];
                }
            }
}

/* Tasks: parts of the lines of tiles x blocks of the source's channels. S: packed, [part][element][in][out, padded]. */
static void OF(winograd_weigh)(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    int64_t down = up(c->axis[1].places, 2), across = up(c->axis[2].places, 2), lines = c->batch * down;
    int64_t wide = up(c->slice * across, LANES) * LANES, by = c->packed_by, strips = up(c->out, by), all = strips * by;
    int64_t split = OF(winograd_room)(&c->axis[2], c->slice, down, across);
    int64_t of_source = OF(winograd_step)(c->in_block * wide), of_strip = wide * by;
    int64_t of_target = OF(winograd_step)(strips * of_strip), of_sum = OF(winograd_step)(c->in * all);
    int64_t elements = 16 * (of_source + of_target) + strips * 4 * across * by + split + 2 * LANES;
    int64_t room = up(elements * (int64_t)sizeof(T), 64) * 64, rows = c->in_block * (int64_t)sizeof(T *);
    char *memory = tt_scratch(room + rows + c->axis[2].places * (int64_t)sizeof(tt_conv_place));
    if (!memory) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return;
    }
    T *v = (T *)(((uintptr_t)memory + BYTES - 1) / BYTES * BYTES), *g = v + 16 * of_source;
    T *two = g + 16 * of_target, *lines_of = two + strips * 4 * across * by;
    const T **pointers = (const T **)(memory + room);
    tt_conv_place *places = (tt_conv_place *)(memory + room + rows);
    memset(two, 0, (size_t)(strips * 4 * across * by + split) * sizeof(T));
    for (int64_t item = begin; item < end; item++) {
        int64_t part = item / c->in_blocks, first_in = item % c->in_blocks * c->in_block;
        int64_t ins = least(c->in_block, c->in - first_in), stop = least(lines, (part + 1) * c->block);
        T *sums = (T *)c->packed + 16 * part * of_sum + first_in * all;
        for (int64_t first = part * c->block; first < stop; first += c->slice) {
            int64_t last = least(stop, first + c->slice), n = (last - first) * across;
            for (int64_t k = 0; k < ins; k++) OF(winograd_source)
            (c, (const T *)c->source + (first_in + k) * c->source_channel, first, last, lines_of, v + k * wide,
             of_source);
            for (int64_t line = first; line < last; line++)
                OF(winograd_gradient)(c, line, places, two, g, (line - first) * across, of_strip, of_target);
            for (int element = 0; element < 16; element++) {
                for (int64_t k = 0; k < ins; k++) pointers[k] = v + element * of_source + k * wide;
                for (int64_t s = 0; s < strips; s++) {
                    T *out = sums + element * of_sum + s * by;
                    OF(operands)
                    x = {.k = n,
                         .rows = pointers,
                         .run = n,
                         .b = g + element * of_target + s * of_strip,
                         .b_step = by,
                         .kind = first > part * c->block ? MATRIX : NOTHING,
                         .add = out,
                         .add_step = all,
                         .out = out,
                         .out_step = all};
                    OF(product)(ins, (int)(by / LANES), true, x);
                }
            }
        }
    }
    tt_scratch_free(memory);
}

#define INS 4 /* channels of the source and of the target whose taps are stored together */
#define OUTS 64

/* From S the weight's gradient. Tasks: the source's channels. */
static void OF(winograd_add_parts)(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    const tt_conv_axis *y = &c->axis[1], *x = &c->axis[2];
    int64_t by = c->packed_by, all = up(c->out, by) * by, of_sum = OF(winograd_step)(c->in * all);
    vec strange = {0};
    for (int64_t k0 = begin; k0 < end; k0 += INS)
        for (int64_t o = 0; o < c->out; o += OUTS) {
            int64_t ins = least(INS, end - k0), outs = least(OUTS, c->out - o);
            T found[INS * 9][OUTS] __attribute__((aligned(64)));
            for (int64_t k = 0; k < ins; k++)
                for (int64_t n = 0; n < outs; n += LANES) {
                    vec s[4][4], v[3][4];
                    const T *from = (const T *)c->packed + (k0 + k) * all + o + n;
#pragma GCC unroll 16
                    for (int e = 0; e < 16; e++) {
                        s[e / 4][e % 4] = *(const vec *)(from + e * of_sum);
                        __builtin_prefetch(from + e * of_sum + all); /* the next channel of the source */
                        for (int64_t part = 1; part < c->parts; part++)
                            s[e / 4][e % 4] += *(const vec *)(from + (16 * part + e) * of_sum);
                    }
                    for (int b = 0; b < 4; b++) {
                        v[0][b] = s[0][b] + s[1][b] + s[2][b];
                        v[1][b] = s[1][b] - s[2][b];
                        v[2][b] = s[1][b] + s[2][b] - s[3][b];
                    }
                    for (int a = 0; a < 3; a++) {
                        vec r[3] = {v[a][0] + v[a][1] + v[a][2], v[a][1] - v[a][2], v[a][1] + v[a][2] - v[a][3]};
                        strange = FMA(r[0] + r[1] + r[2], ((vec){0}), strange);
                        for (int b = 0; b < 3; b++) *(vec *)(found[9 * k + 3 * a + b] + n) = r[b];
                    }
                }
            for (int64_t i = 0; i < outs; i++)
                for (int64_t k = 0; k < ins; k++) {
                    T *to = (T *)c->weight + (k0 + k) * c->weight_in + (o + i) * c->weight_out;
                    for (int t = 0; t < 9; t++) to[t / 3 * y->weight + t % 3 * x->weight] = found[9 * k + t][i];
                }
        }
    T spoiled = 0;
    for (int k = 0; k < LANES; k++) spoiled += strange[k];
    if (spoiled != 0) __atomic_store_n(&c->spoiled, true, __ATOMIC_RELAXED);
}

#undef CHUNK
#undef INS
#undef OUTS
