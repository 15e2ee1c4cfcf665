/* Convolutions whose groups have one channel each: sums of shifted lines. Included by conv.c for each type
 * of elements T. */

/* What a task of one plane works on: lines of the source as vectors find them, without edges and strides. Element
 * k step + r of a line lies at [r][k - least], with zeros around; a line outside of the source is one of zeros. */
typedef struct {
    int64_t step, least, width; /* of the source along a line; the first position, and positions, in whole vectors */
    int64_t chunks, lines, around; /* vectors of places in a line; lines of places; lines of the source for one tap */
    int64_t *at; /* of each tap along a line, where its vector begins */
    int64_t *of_weight; /* of each tap, where it is in the weight */
    T *buffer, *weights, *sums;
    const T **line; /* [line of places][tap across lines] */
    uint32_t *masks; /* of each vector of a line of the source, the lanes within it */
    int64_t part; /* for which line and masks were found */
    char *memory;
} OF(plane);

static int64_t OF(below)(int64_t a, int64_t by) { return a >= 0 ? a / by : -((-a + by - 1) / by); }

static bool OF(make_plane)(OF(plane) * p, tt_correlation *c) {
    const tt_conv_axis *x = c->axis, *last = &c->axis[2];
    int64_t across = x[0].taps * x[1].taps, first = last->first, end = first;
    if (last->taps) end += (last->taps - 1) * last->spacing;
    p->step = last->step;
    p->lines = c->out_block;
    p->chunks = pieces(c->in_block, LANES);
    p->least = OF(below)(least(first, end), p->step);
    p->width = pieces(OF(below)(first > end ? first : end, p->step) - p->least + p->chunks * LANES, LANES) * LANES;
    p->part = -1;
    p->around = x[1].taps;
    if (p->lines > 1)
        p->around =
            (p->lines - 1) * x[1].step + (x[1].taps - 1) * (x[1].spacing < 0 ? -x[1].spacing : x[1].spacing) + 1;
    int64_t buffer = pieces((x[0].taps * p->around * p->step + p->step) * p->width * (int64_t)sizeof(T), 64) * 64;
    int64_t taps = pieces(c->taps * (int64_t)sizeof(T), 64) * 64;
    int64_t pointers = p->lines * across * (int64_t)sizeof(T *), at = (last->taps + c->taps) * (int64_t)sizeof(int64_t);
    int64_t masks = p->step * p->width / LANES * (int64_t)sizeof(uint32_t);
    char *room = p->memory = tt_scratch(buffer + 2 * taps + at + pointers + masks);
    if (!room) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return false;
    }
    p->buffer = (T *)room;
    p->weights = (T *)(room + buffer);
    p->sums = (T *)(room + buffer + taps);
    p->at = (int64_t *)(room + buffer + 2 * taps);
    p->of_weight = p->at + last->taps;
    p->line = (const T **)(p->of_weight + c->taps);
    p->masks = (uint32_t *)(p->line + p->lines * across);
    memset(p->buffer, 0, (size_t)(p->step * p->width) * sizeof(T)); /* the line of zeros */
    for (int64_t t = 0; t < last->taps; t++) {
        int64_t o = first + t * last->spacing, k = OF(below)(o, p->step);
        p->at[t] = (o - k * p->step) * p->width + k - p->least;
    }
    for (int64_t t = 0; t < c->taps; t++) p->of_weight[t] = tt_conv_weight_tap(c, t);
    return true;
}

#define AHEAD (4096 / (int64_t)sizeof(T)) /* lines are short: without it memory is waited for */

/* A line of the source, from the position of place `q` on. */
static void OF(copy_line)(const OF(plane) * p, const tt_correlation *c, const T *from, int64_t q, T *to) {
    int64_t step = p->step * c->axis[2].source;
    const uint32_t *mask = p->masks;
    from += (p->least + q) * step;
    for (int64_t k = 0; k < p->width * step; k += 64 / (int64_t)sizeof(T)) __builtin_prefetch(from + k + AHEAD);
    for (int64_t r = 0; r < p->step; r++, to += p->width, from += c->axis[2].source)
        if (step == 1)
            for (int64_t k = 0; k < p->width; k += LANES, mask++)
                *(vec *)(to + k) =
                    *mask == ALL_LANES ? *(const vec *)(from + k) : LANES_OF(((vec){0}), *mask, from + k);
        else if (step == 2)
            for (int64_t k = 0; k < p->width; k += LANES, mask++)
                *(vec *)(to + k) = EVEN_LANES_OF(((vec){0}), *mask, from + k * 2);
        else
            for (int64_t k = 0; k < p->width; k += LANES, mask++)
                for (int lane = 0; lane < LANES; lane++) to[k + lane] = *mask >> lane & 1 ? from[(k + lane) * step] : 0;
}

/* Lines of places [q1, q1 + n) of the plane, at q0, from place q on. */
typedef struct {
    int64_t number, n, g, q0, q1, lines, q, places; /* number: within its plane */
} OF(part);

static OF(part) OF(part_of)(const tt_correlation *c, int64_t item) {
    const tt_conv_axis *x = c->axis;
    int64_t columns = pieces(x[2].places, c->in_block), rows = pieces(x[1].places, c->out_block);
    int64_t parts = columns * rows * x[0].places, plane = item / parts;
    OF(part) p = {.number = item % parts, .g = plane % c->groups, .n = plane / c->groups};
    p.q = p.number % columns * c->in_block;
    p.q1 = p.number / columns % rows * c->out_block;
    p.q0 = p.number / columns / rows;
    p.lines = least(c->out_block, x[1].places - p.q1);
    p.places = least(c->in_block, x[2].places - p.q);
    return p;
}

/* Where each line of places finds its taps, and which lanes of the source's lines are within it. */
static void OF(find_lines)(OF(plane) * p, const tt_correlation *c, const OF(part) * at, int64_t lowest) {
    const tt_conv_axis *x = c->axis;
    int64_t length = p->step * p->width, across = x[0].taps * x[1].taps;
    uint32_t *mask = p->masks;
    p->part = at->number;
    for (int64_t r = 0; r < p->step; r++)
        for (int64_t k = 0; k < p->width; k += LANES, mask++) {
            *mask = 0;
            for (int64_t lane = 0; lane < LANES; lane++) {
                int64_t element = (p->least + at->q + k + lane) * p->step + r;
                *mask |= (uint32_t)((uint64_t)element < (uint64_t)x[2].size) << lane;
            }
        }
    for (int64_t t = 0; t < across; t++) {
        int64_t t0 = t / x[1].taps, t1 = t % x[1].taps, y = at->q0 * x[0].step + x[0].first + t0 * x[0].spacing;
        for (int64_t l = 0; l < at->lines; l++) {
            int64_t z = (at->q1 + l) * x[1].step + x[1].first + t1 * x[1].spacing;
            bool inside = (uint64_t)y < (uint64_t)x[0].size && (uint64_t)z < (uint64_t)x[1].size;
            int64_t line = t0 * p->around + (p->lines > 1 ? z - lowest : t1);
            p->line[l * across + t] = inside ? p->buffer + (1 + line) * length : p->buffer;
        }
    }
}

static void OF(fill_plane)(OF(plane) * p, const tt_correlation *c, const OF(part) * at) {
    const tt_conv_axis *x = c->axis;
    const T *from = (const T *)c->source + at->n * c->source_batch + at->g * c->source_channel;
    int64_t lowest = at->q1 * x[1].step + x[1].first, length = p->step * p->width;
    if (x[1].spacing < 0) lowest += (x[1].taps - 1) * x[1].spacing;
    if (p->part != at->number) OF(find_lines)(p, c, at, lowest);
    int64_t count = p->lines > 1 ? p->around - (p->lines - at->lines) * x[1].step : p->around;
    for (int64_t t0 = 0; t0 < x[0].taps; t0++) {
        int64_t y = at->q0 * x[0].step + x[0].first + t0 * x[0].spacing;
        T *to = p->buffer + (1 + t0 * p->around) * length;
        for (int64_t k = 0; k < count && (uint64_t)y < (uint64_t)x[0].size; k++, to += length) {
            int64_t z = p->lines > 1 ? lowest + k : at->q1 * x[1].step + x[1].first + k * x[1].spacing;
            if ((uint64_t)z < (uint64_t)x[1].size)
                OF(copy_line)(p, c, from + y * x[0].source + z * x[1].source, at->q, to);
        }
    }
}

#define UNITS 4 /* vectors that are summed at once */

/* Tasks: parts of planes. */
static void OF(depthwise)(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    const tt_conv_axis *x = c->axis;
    int64_t store = x[2].stride * x[2].target, across = x[0].taps * x[1].taps, taps = x[2].taps;
    OF(plane) p;
    if (!OF(make_plane)(&p, c)) return;
    for (int64_t item = begin; item < end; item++) {
        OF(part) at = OF(part_of)(c, item);
        T *to = (T *)c->target + at.n * c->target_batch + at.g * c->target_channel +
                (x[0].start + at.q0 * x[0].stride) * x[0].target + (x[2].start + at.q * x[2].stride) * x[2].target;
        const T *weight = (const T *)c->weight + at.g * c->weight_group;
        for (int64_t t = 0; t < c->taps; t++) p.weights[t] = weight[p.of_weight[t]];
        OF(fill_plane)(&p, c, &at);
        vec bias = c->bias ? (vec)SPLAT(((const T *)c->bias)[at.g]) : (vec){0};
        int64_t chunks = pieces(at.places, LANES), units = at.lines * chunks, next_line = 0, next_offset = 0;
        for (int64_t unit = 0; unit < units; unit += UNITS) {
            const T **line[UNITS];
            int64_t number[UNITS], offset[UNITS];
            vec sum[UNITS];
#pragma GCC unroll 4
            for (int k = 0; k < UNITS; k++) { /* the last vector again, where there are no more */
                number[k] = next_line;
                line[k] = p.line + next_line * across;
                offset[k] = next_offset;
                sum[k] = bias;
                if (unit + k + 1 >= units) continue;
                next_offset += LANES;
                if (next_offset < at.places) continue;
                next_offset = 0;
                next_line++;
            }
            const T *w = p.weights;
            for (int64_t t = 0; t < across; t++) {
                const T *a = line[0][t] + offset[0], *b = line[1][t] + offset[1];
                const T *d = line[2][t] + offset[2], *e = line[3][t] + offset[3];
                for (int64_t l = 0; l < taps; l++, w++) {
                    vec by = SPLAT(*w);
                    sum[0] = FMA(by, *(const vec *)(a + p.at[l]), sum[0]);
                    sum[1] = FMA(by, *(const vec *)(b + p.at[l]), sum[1]);
                    sum[2] = FMA(by, *(const vec *)(d + p.at[l]), sum[2]);
                    sum[3] = FMA(by, *(const vec *)(e + p.at[l]), sum[3]);
                }
            }
#pragma GCC unroll 4
            for (int k = 0; k < UNITS; k++)
                if (unit + k < units) {
                    int64_t n = least(LANES, at.places - offset[k]);
                    OF(store)
                    (store, n == LANES ? ALL_LANES : (1u << n) - 1,
                     to + (x[1].start + (at.q1 + number[k]) * x[1].stride) * x[1].target + offset[k] * store, sum[k]);
                }
        }
    }
    tt_scratch_free(p.memory);
}
#undef UNITS

/* The gradient of weight, of a dense target. Tasks: parts of the batch x groups; the products of a part of a plane are
 * summed lane by lane. */
static void OF(weigh_depthwise)(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    const tt_conv_axis *x = c->axis;
    int64_t across = x[0].taps * x[1].taps, taps = x[2].taps;
    int64_t tasks = pieces(x[2].places, c->in_block) * pieces(x[1].places, c->out_block) * x[0].places;
    OF(plane) p;
    if (!OF(make_plane)(&p, c)) return;
    for (int64_t item = begin; item < end; item++) {
        int64_t part = item / c->groups, g = item % c->groups, images = c->block / c->places;
        memset(p.sums, 0, (size_t)c->taps * sizeof(T));
        for (int64_t n = part * images; n < least(c->batch, (part + 1) * images); n++)
            for (int64_t task = 0; task < tasks; task++) {
                OF(part) at = OF(part_of)(c, (n * c->groups + g) * tasks + task);
                const T *target =
                    (const T *)c->target + n * c->target_batch + g * c->target_channel + at.q0 * x[0].target + at.q;
                OF(fill_plane)(&p, c, &at);
                int64_t chunks = pieces(at.places, LANES), rest = at.places - (chunks - 1) * LANES;
                uint32_t end_mask = rest == LANES ? ALL_LANES : (1u << rest) - 1;
                for (int64_t t = 0; t < across; t++)
                    for (int64_t l = 0; l < taps; l += 3) {
                        vec sum[3] = {{0}, {0}, {0}};
                        int64_t a = p.at[l], b = p.at[least(l + 1, taps - 1)], d = p.at[least(l + 2, taps - 1)];
                        for (int64_t k = 0; k < at.lines; k++) {
                            const T *in = p.line[k * across + t], *out = target + (at.q1 + k) * x[1].target;
                            for (int64_t v = 0; v < chunks; v++) {
                                vec by = LANES_OF(((vec){0}), v == chunks - 1 ? end_mask : ALL_LANES, out + v * LANES);
                                sum[0] = FMA(by, *(const vec *)(in + a + v * LANES), sum[0]);
                                sum[1] = FMA(by, *(const vec *)(in + b + v * LANES), sum[1]);
                                sum[2] = FMA(by, *(const vec *)(in + d + v * LANES), sum[2]);
                            }
                        }
                        for (int64_t k = 0; k < least(3, taps - l); k++)
                            for (int lane = 0; lane < LANES; lane++) p.sums[t * taps + l + k] += sum[k][lane];
                    }
            }
        OF(store_weight)(c, p.sums, 1, part, g, 0, 1, 0, 1);
    }
    tt_scratch_free(p.memory);
}

#undef AHEAD
#define WIDE 4 /* vectors of channels that are summed at once */
#define AT_ONCE 64 /* places that are located at once */

/* What a task of channels next to each other works on: places, and the taps that lie within the source for one. */
typedef struct {
    tt_conv_place places[AT_ONCE];
    tt_conv_taps taps;
    int64_t *lists; /* of all taps, and of some: their offsets in the source, and their numbers */
} OF(around);

static bool OF(make_around)(OF(around) * a, const tt_correlation *c) {
    int64_t n = c->taps + 1, of_taps = n * (int64_t)sizeof(tt_conv_tap_at);
    if (!(a->taps.tap = tt_scratch(of_taps + 4 * n * (int64_t)sizeof(int64_t)))) return false;
    tt_conv_find_taps(c, &a->taps);
    a->lists = (int64_t *)(a->taps.tap + n);
    for (int64_t t = 0; t < c->taps; t++) {
        a->lists[t] = a->taps.tap[t].offset;
        a->lists[n + t] = t;
    }
    return true;
}

/* The taps of a place: how many, their offsets and their numbers. */
INLINE int64_t OF(look_around)(OF(around) * a, const tt_correlation *c, const tt_conv_place *p, const int64_t **at,
                               const int64_t **of) {
    int64_t n = c->taps + 1, *some = a->lists + 2 * n, count = 0;
    *at = a->lists;
    *of = *at + n;
    if (tt_conv_has_all(&a->taps, p)) return c->taps;
    *at = some;
    *of = some + n;
    for (int64_t t = 0; t < c->taps; t++) {
        some[count] = a->taps.tap[t].offset;
        some[n + count] = t;
        count += tt_conv_has(c, a->taps.tap + t, p);
    }
    return count;
}

/* Channels lie next to each other. Tasks: blocks of places. The packed weight is [tap][group], its end filled up. */
static void OF(depthwise_last)(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    int64_t stop = least(c->batch * c->places, end * c->block), wide = pieces(c->groups, LANES) * LANES;
    OF(around) a;
    if (!OF(make_around)(&a, c)) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return;
    }
    const T *weight = (const T *)c->packed, *bias = (const T *)c->bias;
    for (int64_t first = begin * c->block; first < stop; first += AT_ONCE) {
        int64_t places = least(AT_ONCE, stop - first);
        tt_conv_locate(c, first, places, a.places);
        for (int64_t k = 0; k < places; k++) {
            const int64_t *at, *of, count = OF(look_around)(&a, c, a.places + k, &at, &of);
            const T *source = (const T *)c->source + a.places[k].source;
            T *out = (T *)c->target + a.places[k].target;
            int64_t g = 0;
            for (; g + WIDE * LANES <= c->groups; g += WIDE * LANES) {
                vec sum[WIDE];
                for (int v = 0; v < WIDE; v++) sum[v] = bias ? *(const vec *)(bias + g + v * LANES) : (vec){0};
                for (int64_t t = 0; t < count; t++)
                    for (int v = 0; v < WIDE; v++)
                        sum[v] = FMA(*(const vec *)(weight + of[t] * wide + g + v * LANES),
                                     *(const vec *)(source + at[t] + g + v * LANES), sum[v]);
                for (int v = 0; v < WIDE; v++) *(vec *)(out + g + v * LANES) = sum[v];
            }
            for (; g < c->groups; g += LANES) {
                uint32_t mask = c->groups - g >= LANES ? ALL_LANES : (1u << (c->groups - g)) - 1;
                vec sum = bias ? OF(spaced)(1, mask, bias + g) : (vec){0};
                for (int64_t t = 0; t < count; t++)
                    sum = FMA(*(const vec *)(weight + of[t] * wide + g), OF(spaced)(1, mask, source + at[t] + g), sum);
                OF(store)(1, mask, out + g, sum);
            }
        }
    }
    tt_scratch_free(a.taps.tap);
}

/* Tasks: groups. */
static void OF(pack_depthwise)(void *context, int64_t begin, int64_t end) {
    const tt_correlation *c = context;
    int64_t wide = pieces(c->groups, LANES) * LANES;
    for (int64_t t = 0; t < c->taps; t++) {
        const T *w = (const T *)c->weight + tt_conv_weight_tap(c, t);
        for (int64_t g = begin; g < end; g++) ((T *)c->packed)[t * wide + g] = w[g * c->weight_group];
        if (end == c->groups) memset((T *)c->packed + t * wide + end, 0, (size_t)(wide - end) * sizeof(T));
    }
}

/* The gradient of weight. Tasks: parts of the places x blocks of channels. */
static void OF(weigh_depthwise_last)(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    int64_t all = c->batch * c->places, wide = c->in_block, blocks = pieces(c->groups, wide);
    char *room = tt_scratch(c->taps * wide * (int64_t)sizeof(T) + 64);
    T *sums = (T *)(room + (64 - (uintptr_t)room % 64) % 64); /* vectors lie in one cache line each */
    OF(around) a;
    if (!room || !OF(make_around)(&a, c)) {
        tt_scratch_free(room);
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        int64_t part = item / blocks, g = item % blocks * wide, n = least(wide, c->groups - g);
        int64_t stop = least(all, (part + 1) * c->block);
        const T *target = (const T *)c->target + g;
        memset(sums, 0, (size_t)(c->taps * wide) * sizeof(T));
        for (int64_t first = part * c->block; first < stop; first += AT_ONCE) {
            int64_t places = least(AT_ONCE, stop - first);
            tt_conv_locate(c, first, places, a.places);
            for (int64_t k = 0; k < places; k++) {
                const int64_t *at, *of, count = OF(look_around)(&a, c, a.places + k, &at, &of);
                const T *source = (const T *)c->source + g + a.places[k].source, *out = target + a.places[k].target;
                int64_t v = 0;
                for (; v + 2 * LANES <= n; v += 2 * LANES) {
                    vec one = *(const vec *)(out + v), two = *(const vec *)(out + v + LANES);
                    for (int64_t t = 0; t < count; t++) {
                        vec *sum = (vec *)(sums + of[t] * wide + v);
                        const vec *in = (const vec *)(source + at[t] + v);
                        sum[0] = FMA(one, in[0], sum[0]);
                        sum[1] = FMA(two, in[1], sum[1]);
                    }
                }
                for (; v < n; v += LANES) {
                    uint32_t mask = n - v >= LANES ? ALL_LANES : (1u << (n - v)) - 1;
                    vec gradient = OF(spaced)(1, mask, out + v);
                    for (int64_t t = 0; t < count; t++) {
                        vec *sum = (vec *)(sums + of[t] * wide + v);
                        *sum = FMA(gradient, OF(spaced)(1, mask, source + at[t] + v), *sum);
                    }
                }
            }
        }
        for (int64_t k = 0; k < n; k++) OF(store_weight)(c, sums + k, wide, part, g + k, 0, 1, 0, 1);
    }
    tt_scratch_free(a.taps.tap);
    tt_scratch_free(room);
}
#undef WIDE
#undef AT_ONCE
