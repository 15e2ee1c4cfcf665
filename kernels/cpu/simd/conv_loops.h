/* The tasks of a convolution. Included by conv.c for each type of elements T. */

/* A task's memory, from one allocation. */
typedef struct {
    T *panel, *packed, *sums;
    tt_conv_place *places;
    runs *of;
    uint32_t *within;
    const T **pointers;
    tt_conv_taps taps;
    const tt_correlation *taps_of;
    char *memory;
} OF(room);

static bool OF(make_room)(OF(room) * r, const tt_correlation *c, int64_t panel, int64_t packed, int64_t sums,
                          int64_t places, int64_t pointers) {
    int64_t masks = 0, taps = 0;
    for (const tt_correlation *phase = c; phase < c + c->phases; phase++) {
        masks = most(masks, phase->axis[0].taps + phase->axis[1].taps + phase->axis[2].taps);
        taps = most(taps, phase->taps);
    }
    int64_t vectors = pieces(places, LANES),
            sizes[8] = {panel * (int64_t)sizeof(T),      packed * (int64_t)sizeof(T),
                        sums * (int64_t)sizeof(T),       places * (int64_t)sizeof(tt_conv_place),
                        vectors * (int64_t)sizeof(runs), vectors * masks * (int64_t)sizeof(uint32_t),
                        pointers * (int64_t)sizeof(T *), taps * (int64_t)sizeof(tt_conv_tap_at)};
    char *at[8];
    if (!(r->memory = tt_conv_memory(8, sizes, at))) return false;
    r->panel = (T *)at[0];
    r->packed = (T *)at[1];
    r->sums = (T *)at[2];
    r->places = (tt_conv_place *)at[3];
    r->of = (runs *)at[4];
    r->within = (uint32_t *)at[5];
    r->pointers = (const T **)at[6];
    r->taps.tap = (tt_conv_tap_at *)at[7];
    r->taps_of = NULL;
    return true;
}

/* Do n places lie next to each other? */
static bool OF(dense)(const tt_conv_place *p, int64_t n) {
    for (int64_t k = 1; k < n; k++)
        if (p[k].target != p[k - 1].target + 1) return false;
    return true;
}

/* Sums [row][place] to the target, where places of a line are `step` elements apart: a run at a time. */
static void OF(store_lines)(const tt_conv_place *p, int64_t count, int64_t step, const T *sums, int64_t rows, T *target,
                            int64_t of_row) {
    for (int64_t j = 0, n; j < count; j += n) {
        for (n = 1; n < LANES && j + n < count && p[j + n].target == p[j].target + n * step;) n++;
        uint32_t mask = n == LANES ? ALL_LANES : (1u << n) - 1;
        for (int64_t i = 0; i < rows; i++)
            OF(store)(step, mask, target + i * of_row + p[j].target, *(const vec *)(sums + i * COLUMNS + j));
    }
}

/* Channels of the target are rows, a strip of COLUMNS places columns. */
static void OF(correlate_strip)(const tt_correlation *c, int64_t item, OF(room) * r) {
    int64_t part = item / c->blocks, g = part / c->out_blocks, first_out = part % c->out_blocks * c->out_block;
    int64_t first = item % c->blocks * COLUMNS, count = least(COLUMNS, c->batch * c->places - first), row = 0;
    if (count <= 0) return; /* another phase has more places */
    int64_t m = least(c->out_block, c->out - first_out), channel = g * c->out + first_out;
    int64_t step = c->axis[DIMS - 1].stride * c->axis[DIMS - 1].target, vectors = pieces(count, LANES);
    const T *from = (const T *)c->source + g * c->in * c->source_channel;
    const T *bias = c->bias ? (const T *)c->bias + channel : NULL;
    const T *weight =
        (const T *)c->packed + (g * pieces(c->out, TILE_ROWS) + first_out / TILE_ROWS) * c->rows * TILE_ROWS;
    T *target = (T *)c->target + channel * c->target_channel;
    const tt_conv_place *p = r->places;
    tt_conv_locate(c, first, count, r->places);
    OF(find_runs)(c, p, count, r->of, r->within);
    do {
        int64_t k = least(c->slice, c->rows - row);
        bool is_first = row == 0, is_last = row + k == c->rows;
        bool direct = is_last && count % LANES == 0 && OF(dense)(p, count);
        OF(unfold)(c, from, c->in, row, row + k, r->of, r->within, vectors, r->panel, COLUMNS);
        for (int64_t o = 0; o < m; o += TILE_ROWS) {
            T *sums = r->sums + o * COLUMNS, *to = target + o * c->target_channel;
            OF(operands)
            x = {.k = k,
                 .a = weight + o * c->rows + row * TILE_ROWS,
                 .a_step = TILE_ROWS,
                 .b = r->panel,
                 .b_step = COLUMNS,
                 .kind = !is_first ? MATRIX
                         : bias    ? OF_ROWS
                                   : NOTHING,
                 .add = is_first ? bias ? bias + o : NULL : sums,
                 .add_step = COLUMNS,
                 .out = direct ? to + p->target : sums,
                 .out_step = direct ? c->target_channel : COLUMNS};
            int64_t rows = least(TILE_ROWS, m - o);
            OF(product)(rows, (int)vectors, false, x);
            if (is_last && !direct) OF(store_lines)(p, count, step, sums, rows, to, c->target_channel);
        }
        row += k;
    } while (row < c->rows);
}

static void OF(correlate)(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    OF(room) r = {0}; /* gcc does not see that without memory nothing reads it */
    int64_t slice = 0;
    for (int64_t p = 0; p < c->phases; p++) slice = most(slice, c[p].slice);
    if (!OF(make_room)(&r, c, slice * COLUMNS, 0, c->out_block * COLUMNS + LANES, COLUMNS, 0)) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t item = begin; item < end; item++)
        for (int64_t p = 0; p < c->phases; p++) OF(correlate_strip)(c + p, item, &r);
    tt_scratch_free(r.memory);
}

/* Channels lie next to each other: places are rows, channels of the target columns. */
static void OF(correlate_rows)(const tt_correlation *c, int64_t item, OF(room) * r, const T *zeros) {
    int64_t part = item / c->blocks, g = part / c->out_blocks, first_out = part % c->out_blocks * c->out_block;
    int64_t first = item % c->blocks * c->block, n = least(c->block, c->batch * c->places - first), row = 0;
    if (n <= 0) return; /* another phase has more places */
    int64_t m = least(c->out_block, c->out - first_out), channel = g * c->out + first_out;
    int64_t by = c->packed_by, wide = pieces(c->out_block, by) * by;
    const T *from = (const T *)c->source + g * c->in;
    const T *weight = (const T *)c->packed + (g * pieces(c->out, by) + first_out / by) * c->rows * by;
    T *target = (T *)c->target + channel;
    if (c->bias) {
        memset(r->packed, 0, (size_t)wide * sizeof(T));
        memcpy(r->packed, (const T *)c->bias + channel, (size_t)m * sizeof(T));
    }
    const tt_conv_place *p = r->places;
    tt_conv_locate(c, first, n, r->places);
    if (r->taps_of != c) tt_conv_find_taps(c, &r->taps);
    r->taps_of = c;
    OF(point)(c, &r->taps, from, zeros, p, n, r->pointers, c->block);
    int64_t step = n > 1 ? p[1].target - p[0].target : 0;
    bool even = m % LANES == 0; /* whole vectors, at equal distances: sums need no way through memory of ours */
    for (int64_t k = 1; k < n; k++) even &= p[k].target == p[k - 1].target + step;
    do {
        int64_t k = least(c->slice, c->rows - row);
        bool is_first = row == 0, direct = even && row + k == c->rows;
        for (int64_t o = 0; o < m; o += by) {
            OF(operands)
            x = {.k = k,
                 .rows = r->pointers + (c->in ? row / c->in : 0) * c->block,
                 .run = c->in,
                 .first = c->in ? row % c->in : 0,
                 .a_step = c->block,
                 .b = weight + o * c->rows + row * by,
                 .b_step = by,
                 .kind = !is_first || c->bias ? MATRIX : NOTHING,
                 .add = is_first ? r->packed + o : r->sums + o,
                 .add_step = is_first ? 0 : wide,
                 .out = direct ? target + p->target + o : r->sums + o,
                 .out_step = direct ? step : wide};
            OF(product)(n, (int)pieces(least(by, m - o), LANES), true, x);
        }
        row += k;
    } while (row < c->rows);
    for (int64_t j = 0; j < n && !even; j++) memcpy(target + p[j].target, r->sums + j * wide, (size_t)m * sizeof(T));
}

static void OF(correlate_last)(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    OF(room) r;
    int64_t wide = pieces(c->out_block, c->packed_by) * c->packed_by, block = 0, pointers = 0;
    for (int64_t p = 0; p < c->phases; p++) {
        block = most(block, c[p].block);
        pointers = most(pointers, c[p].taps * c[p].block);
    }
    if (!OF(make_room)(&r, c, c->in, wide, block * wide, block, pointers)) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return;
    }
    memset(r.panel, 0, (size_t)c->in * sizeof(T));
    for (int64_t item = begin; item < end; item++)
        for (int64_t p = 0; p < c->phases; p++) OF(correlate_rows)(c + p, item, &r, r.panel);
    tt_scratch_free(r.memory);
}

/* A task's sums [tap, channel][out], to the weight's gradient or to a part of it, (groups, out, in, taps). */
static void OF(store_weight)(const tt_correlation *c, const T *sums, int64_t wide, int64_t part, int64_t g,
                             int64_t first_in, int64_t ins, int64_t first_out, int64_t outs) {
    int64_t index[DIMS], group = c->out * c->rows, of_out = c->rows, of_in = c->taps;
    T *to = (T *)c->packed + part * c->groups * group;
    if (!c->packed) {
        to = (T *)c->weight;
        group = c->weight_group;
        of_out = c->weight_out;
        of_in = c->weight_in;
    }
    to += g * group + first_in * of_in + first_out * of_out;
    for (int64_t o = 0; o < outs; o += LANES) /* a cache line of the sums */
        for (int64_t t = 0; t < c->taps; t++) {
            int64_t offset = t;
            tt_conv_tap(c, t, index);
            if (!c->packed) {
                offset = 0;
                for (int d = 0; d < DIMS; d++) offset += index[d] * c->axis[d].weight;
            }
            for (int64_t k = 0; k < ins; k++)
                for (int64_t i = o; i < least(outs, o + LANES); i++)
                    to[offset + k * of_in + i * of_out] = sums[(t * ins + k) * wide + i];
        }
}

/* The gradient of weight, [tap, channel][out]: for each slice of places the unfolded input times the target's. */
static void OF(weigh_any)(void *context, int64_t begin, int64_t end, bool last) {
    tt_correlation *c = context;
    OF(room) r;
    int64_t all = c->batch * c->places, vectors = pieces(c->slice, LANES), by = c->packed_by,
            wide = pieces(c->out_block, by) * by;
    int64_t places = vectors * LANES, most_rows = c->in_block * c->taps, strip = places * by;
    if (!OF(make_room)(&r, c, places * most_rows, places * wide, most_rows * wide, places, most_rows)) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t k = 0; k < most_rows; k++) r.pointers[k] = r.panel + k * places; /* where `unfold` puts rows */
    for (int64_t item = begin; item < end; item++) {
        int64_t outs = item % c->out_blocks, ins = item / c->out_blocks % c->in_blocks;
        int64_t group = item / c->out_blocks / c->in_blocks, part = group / c->groups, g = group % c->groups;
        int64_t first_out = outs * c->out_block, m = least(c->out_block, c->out - first_out);
        int64_t first_in = ins * c->in_block, channels = least(c->in_block, c->in - first_in);
        int64_t rows = channels * c->taps, stop = least(all, (part + 1) * c->block);
        const T *from = (const T *)c->source + (g * c->in + first_in) * c->source_channel;
        const T *target = (const T *)c->target + (g * c->out + first_out) * c->target_channel;
        memset(r.sums, 0, (size_t)(rows * wide) * sizeof(T));
        for (int64_t first = part * c->block; first < stop; first += c->slice) {
            int64_t n = least(c->slice, stop - first);
            tt_conv_locate(c, first, n, r.places);
            if (last) OF(unfold_last)(c, from, channels, 0, rows, r.places, n, r.panel, most_rows);
            else {
                OF(find_runs)(c, r.places, n, r.of, r.within);
                OF(unfold)(c, from, channels, 0, rows, r.of, r.within, pieces(n, LANES), r.panel, places);
            }
            OF(pack_target)(c, target, m, r.places, n, r.packed, strip);
            for (int64_t o = 0; o < m; o += by) {
                OF(operands)
                x = {.k = n,
                     .a = r.panel,
                     .a_step = most_rows,
                     .rows = r.pointers,
                     .run = n,
                     .b = r.packed + o / by * strip,
                     .b_step = by,
                     .kind = MATRIX,
                     .add = r.sums + o,
                     .add_step = wide,
                     .out = r.sums + o,
                     .out_step = wide};
                OF(product)(rows, (int)pieces(least(by, m - o), LANES), !last, x);
            }
        }
        OF(store_weight)(c, r.sums, wide, part, g, first_in, channels, first_out, m);
    }
    tt_scratch_free(r.memory);
}
static void OF(weigh)(void *context, int64_t begin, int64_t end) { OF(weigh_any)(context, begin, end, false); }
static void OF(weigh_last)(void *context, int64_t begin, int64_t end) { OF(weigh_any)(context, begin, end, true); }

/* The gradient of weight as the sum of its parts, in their order. */
static void OF(add_parts)(void *context, int64_t begin, int64_t end) {
    const tt_correlation *c = context;
    int64_t index[DIMS], all = c->groups * c->out * c->rows;
    for (int64_t item = begin; item < end; item++) {
        const T *from = (const T *)c->packed + item * c->rows;
        T *to = (T *)c->weight + item / c->out * c->weight_group + item % c->out * c->weight_out;
        for (int64_t t = 0; t < c->taps; t++) {
            int64_t offset = 0;
            tt_conv_tap(c, t, index);
            for (int d = 0; d < DIMS; d++) offset += index[d] * c->axis[d].weight;
            for (int64_t k = 0; k < c->in; k++) {
                T sum = 0;
                for (int64_t part = 0; part < c->parts; part++) sum += from[part * all + k * c->taps + t];
                to[offset + k * c->weight_in] = sum;
            }
        }
    }
}
