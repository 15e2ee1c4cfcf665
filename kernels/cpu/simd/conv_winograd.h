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
    int64_t all = OF(winograd_step)(pieces(c->out, TILE_ROWS) * c->in * TILE_ROWS), at[9];
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

/* Tasks: blocks of lines of tiles x blocks of the target's channels. */
static void OF(winograd)(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    int64_t down = pieces(c->axis[1].places, 2), across = pieces(c->axis[2].places, 2), lines = c->batch * down;
    int64_t wide = pieces(c->block * across, LANES) * LANES, blocks = pieces(c->out, TILE_ROWS);
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
        int64_t first = item / c->out_blocks * c->block, last = least(lines, first + c->block);
        int64_t n = (last - first) * across, begin_out = item % c->out_blocks * c->out_block;
        int64_t end_out = least(c->out, begin_out + c->out_block);
        for (int64_t k = 0; k < c->in; k++) OF(winograd_source)
        (c, (const T *)c->source + k * c->source_channel, first, last, lines_of, v + k * wide, of_source);
        for (int element = 0; element < 16; element++) {
            const T *u = (const T *)c->packed + element * of_weight;
            for (int64_t k = 0; k < c->in; k += c->slice)
                for (int64_t s = 0; s < n; s += COLUMNS)
                    for (int64_t o = begin_out; o < end_out; o += TILE_ROWS) {
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
                        OF(product)(least(TILE_ROWS, end_out - o), (int)pieces(least(COLUMNS, n - s), LANES), false, x);
                    }
        }
        for (int64_t o = begin_out; o < end_out; o++) {
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

/* A line of tiles of the target's channels [first, first + outs), as columns: to[element][strip][tile][packed_by] from
 * tile `at` on. `two`: memory for [strip][2 lines][2 across][packed_by], zeros where there are no places. */
static void OF(winograd_gradient)(const tt_correlation *c, int64_t first, int64_t outs, int64_t line,
                                  tt_conv_place *places, T *two, T *to, int64_t at, int64_t of_strip,
                                  int64_t of_element) {
    const tt_conv_axis *y = &c->axis[1], *x = &c->axis[2];
    int64_t down = pieces(y->places, 2), across = pieces(x->places, 2), by = c->packed_by, of_two = 4 * across * by;
    int64_t row = line % down * 2, strips = pieces(outs, by);
    const T *target = (const T *)c->target + first * c->target_channel;
    for (int64_t a = 0; a < 2; a++) {
        T *packed = two + a * 2 * across * by;
        if (row + a < y->places) {
            for (int64_t j = 0; j < x->places; j++)
                places[j].target = line / down * c->target_batch + (row + a) * y->target + j;
            OF(pack_target)(c, target, outs, places, x->places, packed, of_two);
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

/* Tasks: parts of the lines of tiles x blocks of the source's channels x blocks of the target's. S: packed,
 * [part][element][in][out, padded]. */
static void OF(winograd_weigh)(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    int64_t down = pieces(c->axis[1].places, 2), across = pieces(c->axis[2].places, 2), lines = c->batch * down;
    int64_t wide = pieces(c->slice * across, LANES) * LANES, by = c->packed_by, strips = pieces(c->out_block, by),
            all = pieces(c->out, by) * by;
    int64_t split = OF(winograd_room)(&c->axis[2], c->slice, down, across);
    int64_t of_source = OF(winograd_step)(c->in_block * wide), of_strip = wide * by;
    int64_t of_target = OF(winograd_step)(strips * of_strip), of_sum = OF(winograd_step)(c->in * all);
    int64_t elements = 16 * (of_source + of_target) + strips * 4 * across * by + split + 2 * LANES;
    int64_t room = pieces(elements * (int64_t)sizeof(T), 64) * 64, rows = c->in_block * (int64_t)sizeof(T *);
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
        int64_t first_out = item % c->out_blocks * c->out_block, block = item / c->out_blocks;
        int64_t first_in = block % c->in_blocks * c->in_block, part = block / c->in_blocks;
        int64_t ins = least(c->in_block, c->in - first_in), outs = least(c->out_block, c->out - first_out);
        int64_t stop = least(lines, (part + 1) * c->block);
        T *sums = (T *)c->packed + 16 * part * of_sum + first_in * all + first_out;
        for (int64_t first = part * c->block; first < stop; first += c->slice) {
            int64_t last = least(stop, first + c->slice), n = (last - first) * across;
            for (int64_t k = 0; k < ins; k++) OF(winograd_source)
            (c, (const T *)c->source + (first_in + k) * c->source_channel, first, last, lines_of, v + k * wide,
             of_source);
            for (int64_t line = first; line < last; line++) OF(winograd_gradient)
            (c, first_out, outs, line, places, two, g, (line - first) * across, of_strip, of_target);
            for (int element = 0; element < 16; element++) {
                for (int64_t k = 0; k < ins; k++) pointers[k] = v + element * of_source + k * wide;
                for (int64_t o = 0; o < outs; o += by) {
                    T *out = sums + element * of_sum + o;
                    OF(operands)
                    x = {.k = n,
                         .rows = pointers,
                         .run = n,
                         .b = g + element * of_target + o / by * of_strip,
                         .b_step = by,
                         .kind = first > part * c->block ? MATRIX : NOTHING,
                         .add = out,
                         .add_step = all,
                         .out = out,
                         .out_step = all};
                    OF(product)(ins, (int)pieces(least(by, outs - o), LANES), true, x);
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
    int64_t by = c->packed_by, all = pieces(c->out, by) * by, of_sum = OF(winograd_step)(c->in * all);
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
