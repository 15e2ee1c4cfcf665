/* Convolutions: the plan. Note [Convolutions as products] in conv.h. */
#include "cpu/conv_runs.h"
#include "backend/plain.h"
#include "cpu/cpu.h"
#include <string.h>

TT_ISA_TABLES(tt_conv_table, tt_conv_tables)

#define STRIP_BYTES 36864   /* of a panel that stays in the first-level cache */
#define PANEL_BYTES 262144  /* in the second-level one */
#define TASKS 32            /* wanted, for many cores */
#define WINOGRAD_CHANNELS 24 /* half of their harmonic mean */
#define WINOGRAD_PLACES 256
#define WINOGRAD_LINE (1 << 18) /* tiles of a line times channels, which a task has in memory 16 times */
#define GRAIN (1 << 16)     /* multiplications that are worth a thread */

void tt_conv_locate(const tt_correlation *c, int64_t first, int64_t n, tt_conv_place *places) {
    int64_t index = first % c->places, image = first / c->places, q[TT_CONV_DIMS];
    for (int d = TT_CONV_DIMS - 1; d >= 0; d--) {
        q[d] = index % c->axis[d].places;
        index /= c->axis[d].places;
    }
    for (int64_t k = 0; k < n; k++) {
        tt_conv_place *p = places + k;
        p->source = image * c->source_batch;
        p->target = image * c->target_batch;
        for (int d = 0; d < TT_CONV_DIMS; d++) {
            const tt_conv_axis *x = &c->axis[d];
            p->at[d] = q[d] * x->step;
            p->source += p->at[d] * x->source;
            p->target += (x->start + q[d] * x->stride) * x->target;
        }
        int d = TT_CONV_DIMS - 1;
        while (d >= 0 && ++q[d] == c->axis[d].places) q[d--] = 0;
        if (d < 0) image++;
    }
}

int64_t tt_conv_tap(const tt_correlation *c, int64_t t, int64_t *index) {
    int64_t offset = 0;
    for (int d = TT_CONV_DIMS - 1; d >= 0; d--) {
        const tt_conv_axis *x = &c->axis[d];
        index[d] = t % x->taps;
        t /= x->taps;
        offset += (x->first + index[d] * x->spacing) * x->source;
    }
    return offset;
}

int64_t tt_conv_weight_tap(const tt_correlation *c, int64_t t) {
    int64_t index[TT_CONV_DIMS], offset = 0;
    tt_conv_tap(c, t, index);
    for (int d = 0; d < TT_CONV_DIMS; d++)
        offset += (c->axis[d].tap + index[d] * c->axis[d].tap_step) * c->axis[d].weight;
    return offset;
}

void tt_conv_find_taps(const tt_correlation *c, tt_conv_taps *taps) {
    int64_t index[TT_CONV_DIMS];
    for (int d = 0; d < TT_CONV_DIMS; d++) {
        const tt_conv_axis *x = &c->axis[d];
        int64_t end = x->first + most(0, x->taps - 1) * x->spacing;
        taps->low[d] = -least(x->first, end);
        taps->high[d] = x->size - most(x->first, end);
    }
    for (int64_t t = 0; t < c->taps; t++) {
        taps->tap[t].offset = tt_conv_tap(c, t, index);
        for (int d = 0; d < TT_CONV_DIMS; d++) taps->tap[t].at[d] = c->axis[d].first + index[d] * c->axis[d].spacing;
    }
}

/* The strides of an array (batch, channels, *sizes) along its last dimensions; of one with fewer, the first are 0. */
static void last_strides(const tt_array *a, int64_t *to) {
    for (int d = 0; d < TT_CONV_DIMS; d++) {
        int from = d - TT_CONV_DIMS + a->ndim;
        to[d] = from < 2 ? 0 : a->strides[from];
    }
}

/* What a correlation from `source` to `target` with `weight` has in common for all phases. */
static tt_correlation correlation(const tt_conv_work *w, const tt_array *source, const tt_array *weight,
                                  const tt_array *target, bool transposed) {
    tt_correlation c = {.batch = w->batch,
                        .groups = w->groups,
                        .in = transposed ? w->out : w->in,
                        .out = transposed ? w->in : w->out,
                        .source_batch = source->strides[0],
                        .source_channel = source->strides[1],
                        .target_batch = target->strides[0],
                        .target_channel = target->strides[1],
                        .weight_group = w->out * weight->strides[0],
                        .weight_in = weight->strides[transposed ? 0 : 1],
                        .weight_out = weight->strides[transposed ? 1 : 0],
                        .source = source->data,
                        .weight = weight->data,
                        .target = target->data,
                        .phases = 1,
                        .last = w->channels_last};
    int64_t strides[3][TT_CONV_DIMS];
    last_strides(source, strides[0]);
    last_strides(target, strides[1]);
    last_strides(weight, strides[2]);
    for (int d = 0; d < TT_CONV_DIMS; d++) {
        c.axis[d].source = strides[0][d];
        c.axis[d].target = strides[1][d];
        c.axis[d].weight = strides[2][d];
    }
    return c;
}

static void count(tt_correlation *c) {
    c->taps = c->places = 1;
    for (int d = 0; d < TT_CONV_DIMS; d++) {
        c->taps *= c->axis[d].taps;
        c->places *= c->axis[d].places;
    }
    c->rows = c->taps * c->in;
}

/* The axes of the result. */
static void forward_axes(const tt_conv_work *w, tt_correlation *c) {
    for (int d = 0; d < TT_CONV_DIMS; d++) {
        tt_conv_axis *x = &c->axis[d];
        x->places = w->places[d];
        x->step = w->stride[d];
        x->first = -w->padding[d];
        x->spacing = w->dilation[d];
        x->size = w->size[d];
        x->taps = w->taps[d];
        x->tap = 0;
        x->tap_step = 1;
        x->start = 0;
        x->stride = 1;
    }
    count(c);
}

static int64_t common_divisor(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

/* The axis of a phase of the gradient of input: elements x = phase + q stride, to which tap k brings what the result
 * has at place (x + padding - k dilation) / stride, where that is whole. */
static void phase_axis(const tt_conv_work *w, int d, int64_t phase, tt_conv_axis *x) {
    int64_t stride = w->stride[d], dilation = w->dilation[d];
    x->places = phase < w->size[d] ? (w->size[d] - 1 - phase) / stride + 1 : 0;
    x->step = 1;
    x->size = w->places[d];
    x->start = phase;
    x->stride = stride;
    int64_t divisor = common_divisor(stride, dilation), at = phase + w->padding[d];
    x->tap_step = stride / divisor;
    x->tap = 0; /* the first tap that meets whole places, if one does */
    while (x->tap < x->tap_step && x->tap < w->taps[d] && (at - x->tap * dilation) % stride != 0) x->tap++;
    bool some = x->tap < x->tap_step && x->tap < w->taps[d];
    x->taps = some ? (w->taps[d] - 1 - x->tap) / x->tap_step + 1 : 0;
    x->first = some ? (at - x->tap * dilation) / stride : 0;
    x->spacing = -(dilation / divisor);
}

/* Planes of groups of one channel, in parts of `out_block` lines of `in_block` places, for which a first-level cache
 * has room with all that they see of the source. A single line's taps may be anywhere. */
static void divide_planes(tt_correlation *c, int size) {
    const tt_conv_axis *x = c->axis;
    c->in_block = least(x[2].places, 1024);
    int64_t line = (c->in_block * x[2].step + 64) * most(1, x[0].taps) * size, spacing = x[1].spacing;
    int64_t room = STRIP_BYTES / line - 1 - (x[1].taps - 1) * (spacing < 0 ? -spacing : spacing);
    int64_t lines = room < 0 || !x[1].taps ? 1 : room / x[1].step + 1;
    c->out_block = most(1, least(x[1].places, lines));
}

/* Has each group one channel, of the source and of the target? */
static bool is_depthwise(const tt_correlation *c) { return c->in == 1 && c->out == 1; }

static bool run_depthwise(tt_correlation *c, const tt_conv_loops *loops, int size) {
    int64_t lanes = loops->lanes, all = c->batch * c->places;
    if (c->last) {
        c->packed = tt_scratch(c->taps * pieces(c->groups, lanes) * lanes * size + 1);
        if (!c->packed) return false;
        tt_parallel(c->groups, most(1, GRAIN / (c->taps + 1)), loops->pack_depthwise, c);
        c->block = most(1, GRAIN / (c->groups * (c->taps + 4)));
        tt_parallel(pieces(all, c->block), 1, loops->depthwise[1], c);
        tt_scratch_free(c->packed);
    } else {
        divide_planes(c, size);
        int64_t parts =
            c->axis[0].places * pieces(c->axis[1].places, c->out_block) * pieces(c->axis[2].places, c->in_block);
        int64_t work = c->out_block * c->in_block * (c->taps + 4);
        tt_parallel(c->batch * c->groups * parts, most(1, GRAIN / work), loops->depthwise[0], c);
    }
    if (c->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for lines of a convolution");
    return !c->failed;
}

/* The width of blocks of columns that divide so many: tiles of nearly one width. */
static int64_t even_columns(int64_t columns, const tt_conv_loops *loops) {
    int64_t vectors = pieces(columns, loops->lanes), in_tile = loops->tile_columns / loops->lanes;
    return pieces(vectors, pieces(vectors, in_tile)) * loops->lanes;
}

static void halve(int64_t channels, int64_t unit, int64_t *block, int64_t *blocks) {
    *block = pieces(pieces(*block, 2), unit) * unit;
    *blocks = pieces(channels, *block);
}

/* Halves blocks of channels, multiples of `unit`, while there are too few tasks: each task does again what it shares
 * with others, but no sum changes. */
static void share_channels(int64_t tasks, int64_t enough, int64_t channels, int64_t unit, int64_t *block,
                           int64_t *blocks) {
    *blocks = pieces(channels, *block);
    while (tasks * *blocks < enough && *block > 2 * unit) halve(channels, unit, block, blocks);
}

#define CHANNELS 8 /* of a source, the fewest that are shared out */

/* The same for the gradient of weight, whose tasks share what is made of both operands: the longer side is halved,
 * where a channel of the source is `taps` rows, and two tasks come to a thread. The gradient of weight of 256 by 256
 * channels, 8 x 8, batch 32, on 16 threads: 3.7 -> 1.5 ms. */
static void share_weight(tt_correlation *c, int64_t tasks, int64_t taps) {
    c->in_blocks = pieces(c->in, c->in_block);
    c->out_blocks = pieces(c->out, c->out_block);
    while (tasks * c->in_blocks * c->out_blocks < 2 * tt_get_num_threads()) {
        bool of_in = c->in_block >= 2 * CHANNELS, of_out = c->out_block >= 2 * c->packed_by;
        if (of_in && (!of_out || c->in_block * taps >= c->out_block))
            halve(c->in, CHANNELS, &c->in_block, &c->in_blocks);
        else if (of_out) halve(c->out, c->packed_by, &c->out_block, &c->out_blocks);
        else break;
    }
}

/* Is it of that kind, and worth the transforms? */
static bool suits_winograd(const tt_conv_work *w, int dtype) {
    const int64_t *places = w->computed == w->input ? w->size : w->places;
    bool fits = dtype == TT_F32 && w->groups == 1 && !w->channels_last && places[0] == 1 && w->taps[0] == 1;
    for (int d = 1; d < TT_CONV_DIMS; d++) fits &= w->taps[d] == 3 && w->stride[d] == 1 && w->dilation[d] == 1;
    fits &= pieces(places[2], 2) * (w->in + w->out) <= WINOGRAD_LINE;
    return fits && w->in * w->out >= WINOGRAD_CHANNELS * (w->in + w->out) &&
           w->batch * places[1] * places[2] >= WINOGRAD_PLACES;
}

static bool run_winograd(tt_correlation *c, const tt_conv_loops *loops, int size) {
    const tt_conv_table *table = tt_conv_tables[tt_isa_index];
    int64_t rows = loops->tile_rows, blocks = pieces(c->out, rows), columns = loops->tile_columns;
    int64_t across = pieces(c->axis[2].places, 2), lines = c->batch * pieces(c->axis[1].places, 2);
    if (!(c->packed = tt_scratch(16 * (blocks * rows * c->in + columns) * size))) return false;
    tt_parallel(blocks, most(1, GRAIN / (c->in * 256)), table->winograd_weight, c);
    int64_t most_rows = STRIP_BYTES / (columns * size);
    c->slice = pieces(c->in, pieces(c->in, most_rows));
    int64_t tiles = most(columns, least(4 * columns, pieces(lines * across, tt_get_num_threads())));
    c->block = most(1, least(lines, tiles / across));
    c->out_block = blocks * rows;
    int64_t enough = tt_get_num_threads() / 2 + 1; /* then fewer than two threads come to a task */
    share_channels(pieces(lines, c->block), enough, c->out, 2 * rows, &c->out_block, &c->out_blocks);
    tt_parallel(pieces(lines, c->block) * c->out_blocks, 1, table->winograd, c);
    tt_scratch_free(c->packed);
    if (c->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for tiles of a convolution");
    return !c->failed;
}

/* Correlations of one source and one target as products: packs their weights, and shares tasks out. What is near in
 * the target is computed in turn, for it is in a cache: the gradient of input of 128 channels, 56 x 56, stride 2, batch
 * 32, on one core 71 -> 56 ms. */
static bool run_products(tt_correlation *c, int64_t phases, const tt_conv_loops *loops, int size) {
    int64_t columns = loops->tile_columns, most_rows = STRIP_BYTES / (columns * size), all = 0, rows = 0, packed = 0;
    int64_t by = c->last ? even_columns(c->out, loops) : loops->tile_rows, packed_blocks = pieces(c->out, by);
    int64_t unit = c->last ? by : 4 * loops->tile_rows;
    c->phases = phases;
    c->blocks = 0;
    for (tt_correlation *p = c; p < c + phases; p++) {
        p->packed_by = by;
        p->slice = p->rows ? pieces(p->rows, pieces(p->rows, most_rows)) : 1;
        p->block = columns;
        if (c->last) p->block = most(loops->tile_rows, least(128, PANEL_BYTES / (p->slice * size)) / 8 * 8);
        c->blocks = most(c->blocks, pieces(p->batch * p->places, p->block));
        all = most(all, p->batch * p->places);
        rows += p->rows;
    }
    if (__builtin_mul_overflow(c->groups * packed_blocks * by * size, rows, &packed))
        return tt_fail(TT_OUT_OF_MEMORY, "out of memory for the weight of a convolution"), false;
    char *memory = tt_scratch(packed ? packed : 1);
    if (!memory) return false;
    c->out_block = pieces(c->out, unit) * unit;
    share_channels(c->groups * c->blocks, TASKS, c->out, unit, &c->out_block, &c->out_blocks);
    packed = 0;
    for (tt_correlation *p = c; p < c + phases; p++) {
        p->packed = memory + packed;
        packed += c->groups * packed_blocks * by * size * p->rows;
        p->blocks = c->blocks;
        p->out_block = c->out_block;
        p->out_blocks = c->out_blocks;
    }
    tt_parallel(phases * c->groups * packed_blocks, most(1, GRAIN * phases / (rows * by + 1)), loops->pack, c);
    int64_t work =
        least(c->block, all) * least(c->out_block, c->out) * (rows + 4 * phases); /* zeros are written, too */
    tt_parallel(c->groups * c->out_blocks * c->blocks, most(1, GRAIN / work), loops->correlate[c->last], c);
    tt_scratch_free(memory);
    if (c->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for a panel of a convolution");
    return !c->failed;
}

/* One correlation. Without loops it is computed in tiles. */
static bool run(tt_correlation *c, const tt_conv_loops *loops, int size) {
    if (!c->batch || !c->places) return true;
    if (!loops) return tt_bf16_correlate(c);
    if (is_depthwise(c)) return run_depthwise(c, loops, size);
    if (size == 4 && tt_runs_fit(c, TT_F32)) {
        if (!tt_correlate_parts(c)) return false;
        if (!c->spoiled) return true;
        c->spoiled = false;
    }
    if (c->winograd) {
        if (!run_winograd(c, loops, size)) return false;
        if (!c->spoiled) return true;
    }
    return run_products(c, 1, loops, size);
}

#define TOGETHER 16 /* phases; those of strides up to 4 in two dimensions */

static bool run_phases(const tt_conv_work *w, tt_correlation *c, const tt_conv_loops *loops, int size) {
    int64_t phases[TT_CONV_DIMS], p[TT_CONV_DIMS], n = 0;
    tt_correlation together[TOGETHER];
    bool alone = !loops || is_depthwise(c) || c->winograd;
    for (int d = 0; d < TT_CONV_DIMS; d++) phases[d] = least(w->stride[d], w->size[d]);
    for (p[0] = 0; p[0] < phases[0]; p[0]++)
        for (p[1] = 0; p[1] < phases[1]; p[1]++)
            for (p[2] = 0; p[2] < phases[2]; p[2]++) {
                for (int d = 0; d < TT_CONV_DIMS; d++) phase_axis(w, d, p[d], &c->axis[d]);
                count(c);
                if (alone || (size == 4 && tt_runs_fit(c, TT_F32))) {
                    if (!run(c, loops, size)) return false;
                } else if (c->batch && c->places) together[n++] = *c;
                if (n == TOGETHER && !run_products(together, n, loops, size)) return false;
                n %= TOGETHER;
            }
    return !n || run_products(together, n, loops, size);
}

static bool run_winograd_weight(tt_correlation *c, const tt_conv_loops *loops, int size) {
    const tt_conv_table *table = tt_conv_tables[tt_isa_index];
    int64_t columns = loops->tile_columns, across = pieces(c->axis[2].places, 2);
    int64_t lines = c->batch * pieces(c->axis[1].places, 2);
    c->packed_by = even_columns(c->out, loops);
    c->in_block = c->in > 128 ? 128 : 64;
    c->in_blocks = pieces(c->in, c->in_block);
    c->slice = most(1, least(lines, (c->in_block + c->out > 192 ? 4 : 2) * columns / across));
    c->parts = most(1, least(pieces(TASKS / 4, c->in_blocks), lines / (4 * c->slice)));
    c->block = pieces(pieces(lines, c->parts), c->slice) * c->slice;
    c->parts = pieces(lines, c->block);
    c->out_block = pieces(c->out, c->packed_by) * c->packed_by;
    share_weight(c, c->parts, 1);
    int64_t elements = c->in * pieces(c->out, c->packed_by) * c->packed_by + columns;
    if (!(c->packed = tt_scratch(16 * c->parts * elements * size))) return false;
    tt_parallel(c->parts * c->in_blocks * c->out_blocks, 1, table->winograd_weigh, c);
    if (!c->failed) tt_parallel(c->in, most(1, GRAIN / (c->out * 64)), table->winograd_add_parts, c);
    tt_scratch_free(c->packed);
    if (c->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for tiles of a convolution");
    return !c->failed;
}

/* The gradient of weight: `c` is the correlation that makes the result, whose gradient is the target. The places are
 * divided into parts where there are too few other tasks. */
static bool run_weight(tt_correlation *c, const tt_conv_loops *loops, int size) {
    if (!loops) return tt_bf16_weigh(c);
    int64_t columns = loops->tile_columns, all = c->batch * c->places, tasks, unit;
    bool depthwise = is_depthwise(c);
    if (c->winograd) {
        if (!run_winograd_weight(c, loops, size)) return false;
        if (!c->spoiled) return true;
    }
    c->slice = STRIP_BYTES / (columns * size);
    c->slice = most(1, least(c->slice, pieces(all, 16) * 16));
    c->out_block = least(4, pieces(c->out, columns)) * columns;
    c->out_blocks = pieces(c->out, c->out_block);
    c->packed_by = even_columns(least(c->out, c->out_block), loops);
    c->in_block = most(1, least(c->in, 288 / c->taps));
    c->in_block = pieces(c->in, pieces(c->in, c->in_block));
    c->in_blocks = pieces(c->in, c->in_block);
    if (c->in_block * c->taps > 4096) c->slice = least(c->slice, 16); /* the panel of a filter of very many taps */
    if (!depthwise) tasks = c->groups * c->out_blocks * c->in_blocks, unit = c->slice;
    else if (c->last) tasks = pieces(c->groups, columns / 3 * 4), unit = 64;
    else tasks = c->groups, unit = most(1, c->places), divide_planes(c, size);
    int64_t units = pieces(all, unit);
    c->parts = most(1, least(pieces(TASKS / 2, tasks), depthwise && !c->last ? units : units / 4));
    c->block = most(1, pieces(units, c->parts)) * unit;
    c->parts = most(1, pieces(all, c->block));
    int64_t enough = 4 * tt_get_num_threads(); /* tasks; the fewer, the fewer times the target is packed */
    while (!depthwise && c->in_blocks > 1 && c->parts * (tasks / c->in_blocks) * pieces(c->in_blocks, 2) >= enough &&
           c->in_block * c->taps <= 288) {
        tasks /= c->in_blocks;
        c->in_block *= 2;
        c->in_blocks = pieces(c->in, c->in_block);
        tasks *= c->in_blocks;
    }
    if (!depthwise) {
        share_weight(c, c->parts * c->groups, c->taps);
        tasks = c->groups * c->out_blocks * c->in_blocks;
    } else if (c->last) { /* whole lines of channels, where tasks are enough: memory is read as it lies */
        c->in_block = columns / 3 * 32;
        while (c->in_block > columns / 3 * 4 && c->parts * pieces(c->groups, c->in_block) < enough) c->in_block /= 2;
        tasks = pieces(c->groups, c->in_block);
    }
    int64_t elements = c->groups * c->out * c->rows, block = least(c->block, all);
    c->packed = NULL;
    if (c->parts > 1 && !(c->packed = tt_scratch(c->parts * elements * size))) return false;
    int64_t work = block * least(c->out_block, c->out) * least(c->in_block, c->in) * c->taps + 1;
    tt_parallel(c->parts * tasks, most(1, GRAIN / work), (depthwise ? loops->weigh_depthwise : loops->weigh)[c->last],
                c);
    if (c->packed && !c->failed)
        tt_parallel(c->groups * c->out, most(1, GRAIN / (c->parts * c->rows + 1)), loops->add_parts, c);
    tt_scratch_free(c->packed);
    if (c->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for a panel of a convolution");
    return !c->failed;
}

/* The strides of an array whose channels lie next to each other. */
static void last_layout(const tt_array *a, int64_t *strides) {
    int64_t step = a->shape[1];
    strides[1] = 1;
    for (int d = a->ndim - 1; d >= 2; d--) {
        strides[d] = step;
        step *= a->shape[d];
    }
    strides[0] = step;
}

static bool is_laid_out(const tt_array *a, bool last) {
    int64_t strides[TT_CONV_DIMS + 2];
    if (!last) return a->flags & TT_FLAG_CONTIGUOUS;
    last_layout(a, strides);
    bool fine = true;
    for (int d = 1; d < a->ndim; d++) fine &= a->strides[d] == strides[d];
    return fine;
}

/* An operand of dtype `compute`, laid out as the work says: itself, or a copy. */
static bool take(tt_plain *p, tt_array *a, const tt_conv_work *w, bool any_strides) {
    int64_t strides[TT_CONV_DIMS + 2];
    *p = (tt_plain){a, NULL};
    if (a->dtype == w->compute && (any_strides || is_laid_out(a, w->channels_last))) return true;
    if (!w->channels_last || any_strides) return tt_plain_copy(p, a, w->compute);
    last_layout(a, strides);
    p->array = p->copy = tt_empty_strided(w->compute, a->ndim, a->shape, strides);
    return p->copy && tt_copy_now(p->copy, a) == 0;
}

/* Where the result is computed: itself, or an array of another dtype or layout that is to be copied. */
static tt_array *place_of(const tt_conv_work *w, int dtype, bool tiled) {
    tt_array *a = w->computed;
    int64_t strides[TT_CONV_DIMS + 2];
    if (a->dtype == dtype && (!tiled || is_laid_out(a, true))) return a;
    memcpy(strides, a->strides, sizeof *strides * (size_t)a->ndim);
    if (tiled && a != w->weight) last_layout(a, strides);
    return tt_empty_strided(dtype, a->ndim, a->shape, strides);
}

bool tt_cpu_conv(const tt_conv_work *given) {
    tt_conv_work work = *given, *w = &work;
    tt_array *arrays[4] = {w->input, w->weight, w->result, w->bias};
    int computed = w->computed == w->input ? 0 : w->computed == w->weight ? 1 : 2, wide = w->compute;
    bool winograd = suits_winograd(w, wide), tiled = tt_bf16_conv_fits(w, winograd), ok = true;
    if (tiled) w->compute = TT_BF16, w->channels_last = true;
    int size = tt_itemsizes[w->compute];
    tt_plain operands[4] = {{0}};
    tt_array *made = place_of(w, computed == 1 ? wide : w->compute, tiled);
    ok = made != NULL;
    for (int k = 0; k < 4 && ok; k++) {
        if (k == computed) operands[k].array = made;
        else if (k == 3) ok = tt_plain_take(&operands[k], arrays[k], wide);
        else ok = take(&operands[k], arrays[k], w, k == 1 && !tiled);
    }
    if (ok) {
        const tt_array *input = operands[0].array, *weight = operands[1].array, *result = operands[2].array;
        const tt_conv_loops *loops = NULL;
        if (!tiled) loops = &tt_conv_tables[tt_isa_index]->types[wide == TT_F32 ? 0 : wide == TT_F64 ? 1 : 2];
        bool transposed = computed == 0;
        tt_correlation c =
            transposed ? correlation(w, result, weight, input, true) : correlation(w, input, weight, result, false);
        c.bias = operands[3].array ? operands[3].array->data : NULL;
        c.winograd = winograd;
        if (transposed) ok = run_phases(w, &c, loops, size);
        else {
            forward_axes(w, &c);
            ok = computed == 2 ? run(&c, loops, size) : run_weight(&c, loops, size);
        }
    }
    tt_plain_done(operands, 4);
    if (made && made != w->computed) {
        ok = ok && tt_copy_now(w->computed, made) == 0;
        tt_free(made);
    }
    return ok;
}
