/* Correlations of bfloat16 by AMX whose source is multiplied where it lies: Note [Convolutions as products] in conv.h.
 *
 * A tile's rows may lie at any distance. So 16 places that follow each other along the last axis, a run, are a tile of
 * each tap and each 32 channels, without being packed. Where taps reach out of the source, a task copies what it needs
 * of it, zeros around, into memory of its own, once for all taps. The sums have the order of those in bf16_conv.c, so
 * bits do not depend on which file computes. 3 x 3 taps, 64 channels, 56 x 56, batch 32, one core of a Xeon: 15.5 ms
 * packed, 7.5 in runs. */
#include "cpu/bf16_conv.h"
#include "cpu/bf16_tiles.h"
#include "cpu/cpu.h"
#include <string.h>

#define RUN 16
#define RUNS 16 /* of a task */
#define WIDTH (TT_TILES_SIZE / 16)
#define SLICE 18 /* tiles along k that are multiplied at a time: with a run's, they are little more than an L1 cache */
#define COPIED (1 << 18) /* elements of the source that a task may copy */
#define CHANNELS 512 /* of the target, of a task */
#define TASKS 16 /* wanted */
#define GRAIN (1 << 20) /* multiplications that are worth a thread */

/* How places and source are divided. */
typedef struct {
    const tt_correlation *c;
    bool direct; /* no tap reaches out of the source */
    int64_t run, runs; /* places of a run, runs of a line of places */
    int64_t lines, across; /* of a task: so many lines along axis 1; or a part of one, which has so many */
    int64_t tiles, all; /* along k: of a tap, and in all */
    int64_t low[TT_CONV_DIMS], size[TT_CONV_DIMS]; /* of a task's copy: where it begins, relative to the first place */
} division;

/* From the first tap's elements of `places` places to the last one's. */
static int64_t extent(const tt_conv_axis *x, int64_t places) {
    return (places - 1) * x->step + (x->taps - 1) * (x->spacing < 0 ? -x->spacing : x->spacing) + 1;
}

static division divide(const tt_correlation *c, int64_t lines) {
    const tt_conv_axis *last = &c->axis[2];
    division v = {.c = c, .direct = true, .tiles = c->in / WIDTH, .lines = lines};
    v.runs = pieces(last->places, RUN);
    v.run = pieces(last->places, v.runs);
    v.across = pieces(v.runs, RUNS);
    v.all = c->taps * v.tiles;
    for (int d = 0; d < TT_CONV_DIMS; d++) {
        const tt_conv_axis *x = &c->axis[d];
        v.low[d] = x->first + (x->spacing < 0 ? (x->taps - 1) * x->spacing : 0);
        v.direct &= v.low[d] >= 0 && v.low[d] + extent(x, x->places) <= x->size;
        v.size[d] = extent(x, d == 0 ? 1 : d == 1 ? v.lines : least(last->places, least(v.runs, RUNS) * v.run));
    }
    return v;
}

static int64_t most_lines(const tt_correlation *c) {
    return most(1, least(RUNS / pieces(c->axis[2].places, RUN), c->axis[1].places));
}

bool tt_bf16_runs_fit(const tt_correlation *c) {
    if (tt_tiles() != TT_TILES_BY_AMX || !c->taps || c->in % WIDTH) return false;
    division v = divide(c, most_lines(c));
    bool full = 4 * c->axis[2].places >= 3 * RUN * v.runs;
    return full && (v.direct || v.size[0] * v.size[1] * v.size[2] <= COPIED / c->in);
}

/* A task's memory. */
typedef struct {
    uint16_t *copy;
    float *sums;
    int64_t *offsets; /* of tile k in the source or the copy */
    int64_t line, place; /* elements from one to the next there */
    char *memory;
} room;

static bool make_room(room *r, const division *v) {
    const tt_correlation *c = v->c;
    int64_t pairs = pieces(v->lines * least(v->runs, RUNS), 2) * pieces(c->out_block, 2 * RUN),
            copied = v->direct ? 0 : v->size[0] * v->size[1] * v->size[2] * c->in;
    int64_t sizes[3] = {pairs * 4096, copied * 2, v->all * 8};
    char *at[3];
    if (!(r->memory = tt_conv_memory(3, sizes, at))) return false;
    r->sums = (float *)at[0];
    r->copy = (uint16_t *)at[1];
    r->offsets = (int64_t *)at[2];
    r->place = v->direct ? c->axis[2].step * c->axis[2].source : c->axis[2].step * c->in;
    r->line = v->direct ? c->axis[1].step * c->axis[1].source : c->axis[1].step * v->size[2] * c->in;
    for (int64_t t = 0, index[TT_CONV_DIMS]; t < c->taps; t++) {
        int64_t offset = tt_conv_tap(c, t, index), at_tap = 0;
        for (int d = 0; d < TT_CONV_DIMS; d++)
            at_tap = at_tap * v->size[d] + c->axis[d].first + index[d] * c->axis[d].spacing - v->low[d];
        for (int64_t k = 0; k < v->tiles; k++)
            r->offsets[t * v->tiles + k] = (v->direct ? offset : at_tap * c->in) + k * WIDTH;
    }
    return true;
}

/* The part of the source, of one image and group, that begins at these coordinates, perhaps outside. */
static void copy_part(uint16_t *to, const division *v, const uint16_t *from, const int64_t *at) {
    const tt_correlation *c = v->c;
    const tt_conv_axis *x = c->axis;
    int64_t in = c->in, before = least(v->size[2], most(0, -at[2])),
            there = most(0, least(x[2].size - at[2], v->size[2]) - before), after = v->size[2] - before - there;
    for (int64_t i = at[0]; i < at[0] + v->size[0]; i++)
        for (int64_t j = at[1]; j < at[1] + v->size[1]; j++, to += v->size[2] * in) {
            if (i < 0 || i >= x[0].size || j < 0 || j >= x[1].size || !there) {
                memset(to, 0, (size_t)(v->size[2] * in) * 2);
                continue;
            }
            const uint16_t *line = from + i * x[0].source + j * x[1].source + (at[2] + before) * x[2].source;
            memset(to, 0, (size_t)(before * in) * 2);
            if (x[2].source == in) memcpy(to + before * in, line, (size_t)(there * in) * 2);
            else
                for (int64_t k = 0; k < there; k++)
                    memcpy(to + (before + k) * in, line + k * x[2].source, (size_t)in * 2);
            memset(to + (before + there) * in, 0, (size_t)(after * in) * 2);
        }
}

/* The places of a task: lines [line, line + lines) of an image and a plane, of each the runs [first, first + runs). */
typedef struct {
    int64_t image, plane, line, lines, first, runs;
} part;

static part find(const division *v, int64_t block) {
    const tt_conv_axis *x = v->c->axis;
    int64_t down = pieces(x[1].places, v->lines), place = block / v->across;
    part p = {.first = block % v->across * RUNS, .line = place % down * v->lines};
    p.plane = place / down % x[0].places;
    p.image = place / down / x[0].places;
    p.lines = least(v->lines, x[1].places - p.line);
    p.runs = least(RUNS, v->runs - p.first);
    return p;
}

/* The first place of a part's run; the last run of a line may begin among the places of the one before. */
static int64_t run_begins(const division *v, const part *p, int64_t k) {
    return least((p->first + k % p->runs) * v->run, v->c->axis[2].places - v->run);
}

static void multiply(const room *r, const division *v, const part *p, int64_t g, int64_t first_out, int64_t m) {
    const tt_correlation *c = v->c;
    const tt_conv_axis *x = c->axis;
    int64_t q[TT_CONV_DIMS] = {p->plane, p->line, run_begins(v, p, 0)}, at[TT_CONV_DIMS], source = 0;
    const uint16_t *from = (const uint16_t *)c->source + p->image * c->source_batch + g * c->in;
    for (int d = 0; d < TT_CONV_DIMS; d++) {
        at[d] = q[d] * x[d].step + v->low[d];
        source += q[d] * x[d].step * x[d].source;
    }
    if (!v->direct) copy_part(r->copy, v, from, at);
    const uint16_t *begin = v->direct ? from + source : r->copy;
    const uint16_t *weight =
        (const uint16_t *)c->packed + (g * pieces(c->out, 16) + first_out / 16) * v->all * TT_TILES_SIZE;
    const float *bias = c->bias ? (const float *)c->bias + g * c->out + first_out : NULL;
    uint16_t *target = (uint16_t *)c->target + p->image * c->target_batch + g * c->out + first_out +
                       (x[0].start + p->plane * x[0].stride) * x[0].target;
    int64_t slices = pieces(v->all, SLICE), slice = pieces(v->all, slices), count = p->lines * p->runs;
    for (int64_t k = 0; k < v->all; k += slice) {
        bool ends = k + slice >= v->all;
        float *sums = r->sums;
        for (int64_t j = 0; j < m; j += 2 * RUN)
            for (int64_t i = 0; i < count; i += 2, sums += slices > 1 ? 1024 : 0) {
                int64_t two = least(2, count - i), places[2];
                const uint16_t *rows[2] = {NULL, NULL};
                for (int64_t h = 0; h < two; h++) {
                    int64_t line = (i + h) / p->runs;
                    places[h] = run_begins(v, p, i + h);
                    rows[h] = begin + line * r->line + (places[h] - q[2]) * r->place;
                }
                tt_tiles_multiply_rows(rows[0], rows[1], r->place * 2, r->offsets + k,
                                       weight + j / 16 * v->all * TT_TILES_SIZE + k * TT_TILES_SIZE,
                                       v->all * TT_TILES_SIZE, m - j > RUN, least(slice, v->all - k), sums, k > 0);
                for (int64_t h = 0; ends && h < two; h++) {
                    int64_t line = x[1].start + (p->line + (i + h) / p->runs) * x[1].stride,
                            place = x[2].start + places[h] * x[2].stride;
                    tt_tiles_round(sums + h * 512, v->run, least(2 * RUN, m - j), bias ? bias + j : NULL,
                                   target + line * x[1].target + place * x[2].target + j, x[2].stride * x[2].target);
                }
            }
    }
}

static void correlate(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    division v = divide(c, c->block);
    room r;
    if (!make_room(&r, &v)) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return;
    }
    tt_tiles_begin_rows(v.run);
    for (int64_t item = begin; item < end; item++) {
        int64_t outs = item / c->blocks, g = outs / c->out_blocks, first_out = outs % c->out_blocks * c->out_block;
        part p = find(&v, item % c->blocks);
        multiply(&r, &v, &p, g, first_out, least(c->out_block, c->out - first_out));
    }
    tt_tiles_end();
    tt_scratch_free(r.memory);
}

void tt_bf16_correlate_runs(tt_correlation *c) {
    int64_t line = c->axis[2].places, planes = c->batch * c->axis[0].places, across = pieces(pieces(line, RUN), RUNS);
    c->block = most_lines(c);
    c->out_block = least(CHANNELS, pieces(c->out, 16) * 16);
    for (;;) {
        bool halve = c->out_block > 64 && (c->block == 1 || c->block * line < c->out_block);
        c->blocks = planes * pieces(c->axis[1].places, c->block) * across;
        c->out_blocks = pieces(c->out, c->out_block);
        if (c->groups * c->blocks * c->out_blocks >= TASKS || (!halve && c->block == 1)) break;
        if (halve) c->out_block = pieces(c->out_block, 64) * 32;
        else c->block = pieces(c->block, 2);
    }
    int64_t work = c->block * least(line, RUNS * RUN) * least(c->out_block, c->out) * c->rows + 1;
    tt_parallel(c->groups * c->out_blocks * c->blocks, most(1, GRAIN / work), correlate, c);
}
