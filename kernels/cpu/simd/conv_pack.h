/* Packing: blocks of the weight, and panels of what a convolution unfolds. Included by conv.c for each type of elements
 * T. */

/* LANES elements at p[k step] for the lanes of a mask, else 0. */
INLINE vec OF(spaced)(int64_t step, uint32_t mask, const T *p) {
    vec v = {0};
    if (step == 1) return LANES_OF(v, mask, p);
    if (step == 2) return EVEN_LANES_OF(v, mask, p);
    for (int k = 0; k < LANES; k++)
        if (mask >> k & 1) v[k] = p[k * step];
    return v;
}

INLINE void OF(store)(int64_t step, uint32_t mask, T *p, vec v) {
    if (step == 1 && mask == ALL_LANES) *(vec *)p = v;
    else if (step == 1) STORE_LANES(p, mask, v);
    else if (step == 2) STORE_EVEN_LANES(p, mask, v);
    else
        for (int k = 0; k < LANES; k++)
            if (mask >> k & 1) p[k * step] = v[k];
}

/* Of each phase blocks of `by` channels of the target: element [row][channel], 0 for channels beyond the last. */
static void OF(pack_weight)(void *context, int64_t begin, int64_t end) {
    const tt_correlation *phases = context;
    int64_t by = phases->packed_by, blocks = pieces(phases->out, by), of_phase = phases->groups * blocks;
    for (int64_t number = begin; number < end; number++) {
        const tt_correlation *c = phases + number / of_phase;
        int64_t item = number % of_phase, first = item % blocks * by, n = least(by, c->out - first);
        T *to = (T *)c->packed + item * c->rows * by;
        const T *from = (const T *)c->weight + item / blocks * c->weight_group + first * c->weight_out;
        if (n < by) memset(to, 0, (size_t)(c->rows * by) * sizeof(T));
        for (int64_t t = 0; t < c->taps; t++) {
            const T *tap = from + tt_conv_weight_tap(c, t);
            for (int64_t k = 0; k < c->in; k++, to += by)
                for (int64_t i = 0; i < n; i++) to[i] = tap[k * c->weight_in + i * c->weight_out];
        }
    }
}

/* What a panel's vectors hold: the runs of `places`, and for each tap's index along each dimension the lanes for which
 * it lies within the source. */
static void OF(find_runs)(const tt_correlation *c, const tt_conv_place *places, int64_t n, runs *to, uint32_t *within) {
    int64_t step = run_step(c);
    for (int64_t first = 0; first < n; first += LANES, to++) {
        const tt_conv_place *p = places + first;
        int lanes = (int)least(LANES, n - first);
        uint32_t all = (1u << lanes) - 1;
        bool one_line = p[lanes - 1].source == p->source + (lanes - 1) * step;
        for (int d = 0; d < DIMS - 1; d++) one_line &= p[lanes - 1].at[d] == p->at[d];
        to->n = 0;
        if (one_line) {
            to->n = 1;
            to->at[0] = p->source;
            to->lanes[0] = all;
        }
        for (int k = 0; k < lanes && !one_line; k++) {
            if (!k || p[k].source != p[k - 1].source + step) {
                to->lanes[to->n] = 0;
                to->at[to->n++] = p[k].source - k * step;
            }
            to->lanes[to->n - 1] |= 1u << k;
        }
        int64_t lane_at[LANES] = {0};
        for (int d = 0; d < DIMS; d++) {
            for (int k = 0; k < lanes; k++) lane_at[k] = p[k].at[d];
            for (int64_t t = 0; t < c->axis[d].taps; t++) {
                int64_t at = c->axis[d].first + t * c->axis[d].spacing, size = c->axis[d].size;
                uint32_t mask = 0;
                if (one_line && d < DIMS - 1) mask = (uint64_t)(p->at[d] + at) < (uint64_t)size ? all : 0;
                else
                    for (int k = 0; k < LANES; k++)
                        mask |= (uint32_t)((uint64_t)(lane_at[k] + at) < (uint64_t)size) << k;
                *within++ = mask & all;
            }
        }
    }
}

/* A vector of each row. Of more than two runs one after the other, whose masks and places stay in registers. */
#define ADD_RUNS(LANES_AT)                                                                                             \
    if (count <= 2)                                                                                                    \
        for (int64_t k = 0; k < n; k++) {                                                                              \
            vec one = LANES_AT(((vec){0}), lanes[0], at[0] + k * step);                                                \
            *(vec *)(out + k * to_step) = count == 1 ? one : LANES_AT(one, lanes[1], at[1] + k * step);                \
        }                                                                                                              \
    else                                                                                                               \
        for (int r = 0; r < count; r++)                                                                                \
            for (int64_t k = 0; k < n; k++) {                                                                          \
                vec *place = (vec *)(out + k * to_step);                                                               \
                *place = LANES_AT(r ? *place : (vec){0}, lanes[r], at[r] + k * step);                                  \
            }

/* Rows [row, end) of (tap, channel) unfolded: to[r][vector] for `vectors` vectors of places. */
static void OF(unfold)(const tt_correlation *c, const T *from, int64_t channels, int64_t row, int64_t end,
                       const runs *of, const uint32_t *within, int64_t vectors, T *to, int64_t to_step) {
    int64_t index[DIMS], masks = 0, step = c->source_channel;
    for (int d = 0; d < DIMS; d++) masks += c->axis[d].taps;
    while (row < end) {
        int64_t first = row % channels, n = least(channels - first, end - row);
        const T *tap = from + tt_conv_tap(c, row / channels, index) + first * step;
        for (int64_t v = 0; v < vectors; v++) {
            const uint32_t *w = within + v * masks;
            uint32_t mask =
                w[index[0]] & w[c->axis[0].taps + index[1]] & w[c->axis[0].taps + c->axis[1].taps + index[2]];
            uint32_t lanes[16];
            const T *at[16];
            int count = 0;
            for (int r = 0; r < of[v].n; r++) {
                lanes[count] = of[v].lanes[r] & mask;
                at[count] = tap + of[v].at[r];
                count += lanes[count] != 0;
            }
            T *out = to + v * LANES;
            if (!count)
                for (int64_t k = 0; k < n; k++) *(vec *)(out + k * to_step) = (vec){0};
            else if (run_step(c) == 2) {
                ADD_RUNS(EVEN_LANES_OF)
            } else if (count == 1 && lanes[0] == ALL_LANES)
                for (int64_t k = 0; k < n; k++) {
                    __builtin_prefetch(at[0] + k * step + COLUMNS); /* the next strip */
                    *(vec *)(out + k * to_step) = *(const vec *)(at[0] + k * step);
                }
            else { ADD_RUNS(LANES_OF) }
        }
        to += n * to_step;
        row += n;
    }
}

#undef ADD_RUNS

/* The same where channels lie next to each other: to[place][row]. */
static void OF(unfold_last)(const tt_correlation *c, const T *from, int64_t channels, int64_t row, int64_t end,
                            const tt_conv_place *places, int64_t n, T *to, int64_t to_step) {
    int64_t index[DIMS], at[DIMS];
    while (row < end) {
        int64_t first = row % channels, count = least(channels - first, end - row);
        const T *tap = from + tt_conv_tap(c, row / channels, index) + first;
        for (int d = 0; d < DIMS; d++) at[d] = c->axis[d].first + index[d] * c->axis[d].spacing;
        for (int64_t k = 0; k < n; k++) {
            const tt_conv_place *p = places + k;
            T *out = to + k * to_step;
            bool inside = true;
            for (int d = 0; d < DIMS; d++) inside &= (uint64_t)(p->at[d] + at[d]) < (uint64_t)c->axis[d].size;
            const T *in = tap + p->source;
            int64_t i = 0;
            if (inside) {
                for (; i + LANES <= count; i += LANES) *(vec *)(out + i) = *(const vec *)(in + i);
                for (; i < count; i++) out[i] = in[i];
            } else {
                for (; i + LANES <= count; i += LANES) *(vec *)(out + i) = (vec){0};
                for (; i < count; i++) out[i] = 0;
            }
        }
        to += count;
        row += count;
    }
}

/* Where channels lie next to each other: the first of `places` for each tap, or zeros; to[tap][place]. */
static void OF(point)(const tt_correlation *c, const tt_conv_taps *taps, const T *from, const T *zeros,
                      const tt_conv_place *places, int64_t n, const T **to, int64_t to_step) {
    for (int64_t k = 0; k < n; k++) {
        const tt_conv_place *p = places + k;
        const T *at = from + p->source;
        bool all = tt_conv_has_all(taps, p);
        for (int64_t t = 0; t < c->taps; t++)
            to[t * to_step + k] = all || tt_conv_has(c, taps->tap + t, p) ? at + taps->tap[t].offset : zeros;
    }
}

/* The target's channels at `places` as columns: strips [place][packed_by], 0 for channels beyond the last. */
static void OF(pack_target)(const tt_correlation *c, const T *from, int64_t channels, const tt_conv_place *places,
                            int64_t n, T *to, int64_t to_step) {
    int64_t step = c->target_channel, by = c->packed_by;
    for (int64_t first = 0; first < channels; first += by, to += to_step) {
        int64_t count = least(by, channels - first);
        if (count < by) memset(to, 0, (size_t)(n * by) * sizeof(T));
        int64_t k = 0;
        for (; step != 1 && k + 4 <= n && places[k + 3].target == places[k].target + 3; k += 4) {
            const T *in = from + places[k].target + first * step; /* far apart: the processor does not foresee them */
            for (int64_t i = 0; i < count; i++) __builtin_prefetch(in + i * step + 128 / sizeof(T));
            OF(turn)(in, step, count, 4, to + k * by, by);
        }
        for (; k < n; k++) {
            const T *in = from + places[k].target + first * step;
            T *out = to + k * by;
            if (step == 1) memcpy(out, in, (size_t)count * sizeof(T));
            else
                for (int64_t i = 0; i < count; i++) out[i] = in[i * step];
        }
    }
}
