/* Correlations by AMX whose source is multiplied as it lies, or nearly: Note [Convolutions as products] in conv.h.
 *
 * A tile's rows may lie at any distance. So up to 16 places that follow each other along the last axis, a run, are a
 * tile of each tap and each 32 channels, without being packed. Where taps reach out of the source, a task copies what
 * it needs of it, zeros around, into memory of its own, once for all taps; float32 is split into parts on the way (Note
 * [Products in parts] in float_parts.c). bfloat16's sums have the order of those in bf16_conv.c, so bits do not depend
 * on which file computes.
 *
 * 3 x 3 taps, 64 channels, 56 x 56, batch 32, channels last, one core of a Xeon: bfloat16 15.5 ms packed, 6.5 in runs;
 * float32 51 ms by AVX-512's products, 30 in runs. */
#include "cpu/conv_runs.h"
#include "cpu/bf16_tiles.h"
#include "cpu/cpu.h"
#include <string.h>

#define RUN 16
#define RUNS 16 /* of a task */
#define WIDTH (TT_TILES_SIZE / 16)
#define PARTS TT_PARTS
#define STEP (PARTS * 2 * TT_TILES_SIZE) /* of 32 rows of a weight in parts, and 32 channels */
#define SLICE 18 /* tiles along k that are multiplied at a time, about */
#define COPIED (1 << 18) /* elements that a task may copy */
#define CHANNELS 512 /* of the target, of a task */
#define TASKS 16 /* wanted */
#define GRAIN (1 << 20) /* multiplications that are worth a thread */

/* How places and source are divided. */
typedef struct {
    const tt_correlation *c;
    bool parts; /* float32 */
    bool direct; /* no tap reaches out of the source, which need not be copied */
    int64_t run, runs; /* places of a run, runs of a line of places */
    int64_t lines, across; /* of a task: so many lines along axis 1; or a part of one, which has so many */
    int64_t tiles, all; /* along k: of a tap, and in all */
    int64_t low[TT_CONV_DIMS], size[TT_CONV_DIMS]; /* of a task's copy: where it begins, relative to the first place */
    int64_t place, copied; /* elements of a place in the copy, and in all */
    int64_t panel, column, step; /* of the weight: columns packed together; elements of 16 of them, and of a tile */
} division;

/* From the first tap's elements of `places` places to the last one's. */
static int64_t extent(const tt_conv_axis *x, int64_t places) {
    return (places - 1) * x->step + (x->taps - 1) * (x->spacing < 0 ? -x->spacing : x->spacing) + 1;
}

static division divide(const tt_correlation *c, bool parts, int64_t lines) {
    const tt_conv_axis *last = &c->axis[2];
    division v = {.c = c, .parts = parts, .direct = !parts, .tiles = pieces(c->in, WIDTH), .lines = lines};
    v.runs = pieces(last->places, RUN);
    v.run = pieces(last->places, v.runs);
    v.across = pieces(v.runs, RUNS);
    v.all = c->taps * v.tiles;
    v.place = parts ? v.tiles * PARTS * WIDTH : c->in;
    v.panel = parts ? 2 * RUN : RUN;
    v.step = parts ? STEP : TT_TILES_SIZE;
    v.column = v.all * v.step * RUN / v.panel;
    for (int d = 0; d < TT_CONV_DIMS; d++) {
        const tt_conv_axis *x = &c->axis[d];
        v.low[d] = x->first + (x->spacing < 0 ? (x->taps - 1) * x->spacing : 0);
        v.direct &= v.low[d] >= 0 && v.low[d] + extent(x, x->places) <= x->size;
        v.size[d] = extent(x, d == 0 ? 1 : d == 1 ? v.lines : least(last->places, least(v.runs, RUNS) * v.run));
    }
    v.copied = v.direct ? 0 : v.place;
    for (int d = 0; d < TT_CONV_DIMS; d++) v.copied = least(v.copied, COPIED + 1) * least(v.size[d], COPIED + 1);
    return v;
}

/* As many lines as make RUNS runs, or as there is room for. */
static division divide_most(const tt_correlation *c, bool parts) {
    division v = divide(c, parts, most(1, least(RUNS / pieces(c->axis[2].places, RUN), c->axis[1].places)));
    while (v.copied > COPIED && v.lines > 1) v = divide(c, parts, pieces(v.lines, 2));
    return v;
}

/* Tiles must be full. In float32, where channels do not lie next to each other, one tap and Winograd's way are
 * faster. */
bool tt_runs_fit(const tt_correlation *c, int dtype) {
    bool parts = dtype == TT_F32;
    if (tt_tiles() != TT_TILES_BY_AMX || !c->taps || (parts && !c->last && (c->winograd || c->taps == 1))) return false;
    division v = divide_most(c, parts);
    int64_t rows = RUN * v.runs, depth = WIDTH * v.tiles;
    if (4 * c->axis[2].places < 3 * rows || v.copied > COPIED) return false;
    return parts ? 4 * c->in >= 3 * depth && c->out >= RUN : c->in == depth;
}

/* A task's memory. */
typedef struct {
    uint16_t *copy;
    float *sums, *fresh; /* of a pair of runs, for 32 channels: what is added to sums */
    int64_t *offsets; /* of tile k in the source or the copy */
    int64_t line, place; /* elements from one to the next there */
    char *memory;
} room;

static bool make_room(room *r, const division *v) {
    const tt_correlation *c = v->c;
    int64_t pairs = pieces(v->lines * least(v->runs, RUNS), 2) * pieces(c->out_block, 2 * RUN);
    int64_t sizes[4] = {pairs * 4096, 4096, v->copied * 2, v->all * 8};
    char *at[4];
    if (!(r->memory = tt_conv_memory(4, sizes, at))) return false;
    r->sums = (float *)at[0];
    r->fresh = (float *)at[1];
    r->copy = (uint16_t *)at[2];
    r->offsets = (int64_t *)at[3];
    r->place = c->axis[2].step * (v->direct ? c->axis[2].source : v->place);
    r->line = c->axis[1].step * (v->direct ? c->axis[1].source : v->size[2] * v->place);
    for (int64_t t = 0, index[TT_CONV_DIMS]; t < c->taps; t++) {
        int64_t offset = tt_conv_tap(c, t, index), at_tap = 0;
        for (int d = 0; d < TT_CONV_DIMS; d++)
            at_tap = at_tap * v->size[d] + c->axis[d].first + index[d] * c->axis[d].spacing - v->low[d];
        if (!v->direct) offset = at_tap * v->place;
        for (int64_t k = 0; k < v->tiles; k++)
            r->offsets[t * v->tiles + k] = offset + k * WIDTH * (v->parts ? PARTS : 1);
    }
    return true;
}

/* Places that follow each other, from element `at` of the source on. */
static void copy_places(uint16_t *to, const division *v, int64_t at, int64_t places) {
    const tt_correlation *c = v->c;
    int64_t step = c->axis[2].source;
    const uint16_t *from = (const uint16_t *)c->source + at;
    if (v->parts) tt_parts_split((const float *)c->source + at, step, c->source_channel, places, c->in, to);
    else if (step == c->in) memcpy(to, from, (size_t)(places * c->in) * 2);
    else
        for (int64_t k = 0; k < places; k++) memcpy(to + k * c->in, from + k * step, (size_t)c->in * 2);
}

/* The part of the source, whose image and group begin at an element, that begins at these coordinates, perhaps
 * outside. */
static void copy_part(uint16_t *to, const division *v, int64_t source, const int64_t *at) {
    const tt_conv_axis *x = v->c->axis;
    int64_t before = least(v->size[2], most(0, -at[2])), there = most(0, least(x[2].size - at[2], v->size[2]) - before),
            after = v->size[2] - before - there;
    for (int64_t i = at[0]; i < at[0] + v->size[0]; i++)
        for (int64_t j = at[1]; j < at[1] + v->size[1]; j++, to += v->size[2] * v->place) {
            if (i < 0 || i >= x[0].size || j < 0 || j >= x[1].size || !there) {
                memset(to, 0, (size_t)(v->size[2] * v->place) * 2);
                continue;
            }
            memset(to, 0, (size_t)(before * v->place) * 2);
            copy_places(to + before * v->place, v,
                        source + i * x[0].source + j * x[1].source + (at[2] + before) * x[2].source, there);
            memset(to + (before + there) * v->place, 0, (size_t)(after * v->place) * 2);
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

/* The sums of a run, for channels from `first` on, to the target. False: some are not finite. */
static bool store(const division *v, const part *p, int64_t k, const float *sums, int64_t first, int64_t channels) {
    const tt_correlation *c = v->c;
    const tt_conv_axis *x = c->axis;
    int64_t q[TT_CONV_DIMS] = {p->plane, p->line + k / p->runs, run_begins(v, p, k)},
            at = p->image * c->target_batch + first * c->target_channel, step = x[2].stride * x[2].target;
    for (int d = 0; d < TT_CONV_DIMS; d++) at += (x[d].start + q[d] * x[d].stride) * x[d].target;
    const float *bias = c->bias ? (const float *)c->bias + first : NULL;
    if (v->parts) return tt_parts_store(sums, v->run, channels, bias, (float *)c->target + at, step, c->target_channel);
    tt_tiles_round(sums, v->run, channels, bias, (uint16_t *)c->target + at, step);
    return true;
}

/* A part's places times m channels of the weight, from first_out on of a group's. */
static bool multiply(const room *r, const division *v, const part *p, int64_t g, int64_t first_out, int64_t m) {
    const tt_correlation *c = v->c;
    const tt_conv_axis *x = c->axis;
    int64_t q[TT_CONV_DIMS] = {p->plane, p->line, run_begins(v, p, 0)}, at[TT_CONV_DIMS];
    int64_t source = p->image * c->source_batch + g * c->in * c->source_channel, count = p->lines * p->runs;
    for (int d = 0; d < TT_CONV_DIMS; d++) at[d] = q[d] * x[d].step + v->low[d];
    if (!v->direct) copy_part(r->copy, v, source, at);
    for (int d = 0; d < TT_CONV_DIMS; d++) source += q[d] * x[d].step * x[d].source;
    const uint16_t *begin = v->direct ? (const uint16_t *)c->source + source : r->copy;
    const uint16_t *weight =
        (const uint16_t *)c->packed + (g * pieces(c->out, v->panel) * v->panel + first_out) / RUN * v->column;
    int64_t slices = pieces(v->all, SLICE), slice = pieces(v->all, slices);
    bool finite = true;
    for (int64_t k = 0; k < v->all; k += slice) {
        float *sums = r->sums;
        int64_t some = least(slice, v->all - k);
        for (int64_t j = 0; j < m; j += 2 * RUN)
            for (int64_t i = 0; i < count; i += 2, sums += slices > 1 ? 1024 : 0) {
                const uint16_t *rows[2] = {NULL, NULL}, *right = weight + j / RUN * v->column + k * v->step;
                for (int64_t h = i; h < least(i + 2, count); h++)
                    rows[h - i] = begin + h / p->runs * r->line + (run_begins(v, p, h) - q[2]) * r->place;
                if (v->parts) {
                    tt_parts_multiply(rows, r->place * 2, r->offsets + k, right, m - j > RUN, some,
                                      k ? r->fresh : sums);
                    if (k) tt_parts_add(sums, r->fresh);
                } else
                    tt_tiles_multiply_rows(rows, r->place * 2, r->offsets + k, right, v->column, m - j > RUN, some,
                                           sums, k > 0);
                for (int64_t h = i; k + slice >= v->all && h < least(i + 2, count); h++)
                    finite &= store(v, p, h, sums + (h - i) * 512, g * c->out + first_out + j, least(2 * RUN, m - j));
            }
    }
    return finite;
}

static void correlate(tt_correlation *c, bool parts, int64_t begin, int64_t end) {
    division v = divide(c, parts, c->block);
    room r;
    if (!make_room(&r, &v)) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return;
    }
    tt_tiles_begin_rows(v.run);
    for (int64_t item = begin; item < end && !__atomic_load_n(&c->spoiled, __ATOMIC_RELAXED); item++) {
        int64_t outs = item / c->blocks, g = outs / c->out_blocks, first_out = outs % c->out_blocks * c->out_block;
        part p = find(&v, item % c->blocks);
        if (!multiply(&r, &v, &p, g, first_out, least(c->out_block, c->out - first_out)))
            __atomic_store_n(&c->spoiled, true, __ATOMIC_RELAXED);
    }
    tt_tiles_end();
    tt_scratch_free(r.memory);
}

static void correlate_halves(void *context, int64_t begin, int64_t end) { correlate(context, false, begin, end); }

static void correlate_floats(void *context, int64_t begin, int64_t end) { correlate(context, true, begin, end); }

static void share(tt_correlation *c, bool parts) {
    division v = divide_most(c, parts);
    int64_t line = c->axis[2].places, planes = c->batch * c->axis[0].places;
    c->block = v.lines;
    c->out_block = least(CHANNELS, pieces(c->out, 16) * 16);
    for (;;) {
        bool halve = c->out_block > 64 && (c->block == 1 || c->block * line < c->out_block);
        c->blocks = planes * pieces(c->axis[1].places, c->block) * v.across;
        c->out_blocks = pieces(c->out, c->out_block);
        if (c->groups * c->blocks * c->out_blocks >= TASKS || (!halve && c->block == 1)) break;
        if (halve) c->out_block = pieces(c->out_block, 64) * 32;
        else c->block = pieces(c->block, 2);
    }
    int64_t work = c->block * least(line, RUNS * RUN) * least(c->out_block, c->out) * c->rows + 1;
    tt_parallel(c->groups * c->out_blocks * c->blocks, most(1, GRAIN / work),
                parts ? correlate_floats : correlate_halves, c);
}

void tt_correlate_runs(tt_correlation *c) { share(c, false); }

/* Blocks of 32 channels of the target, by 32 of the source: groups x blocks x tiles of a tap. */
static void pack_weight(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    int64_t blocks = pieces(c->out, 32), tiles = pieces(c->in, WIDTH), size = c->taps * 1024;
    float *squares = tt_scratch(size * 4);
    int64_t *taps = tt_scratch(c->taps * 8);
    if (!squares || !taps) __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
    for (int64_t t = 0; taps && t < c->taps; t++) taps[t] = tt_conv_weight_tap(c, t);
    for (int64_t item = begin; item < end && squares && taps; item++) {
        int64_t l = item % tiles * WIDTH, panel = item / tiles, first = panel % blocks * 32;
        const float *from =
            (const float *)c->weight + panel / blocks * c->weight_group + first * c->weight_out + l * c->weight_in;
        memset(squares, 0, (size_t)size * 4);
        for (int64_t i = 0; i < least(32, c->out - first); i++)
            for (int64_t k = 0; k < least(WIDTH, c->in - l); k++)
                for (int64_t t = 0; t < c->taps; t++)
                    squares[t * 1024 + k * 32 + i] = from[i * c->weight_out + k * c->weight_in + taps[t]];
        for (int64_t t = 0; t < c->taps; t++)
            tt_parts_pack(squares + t * 1024,
                          (uint16_t *)c->packed + (panel * c->taps * tiles + t * tiles + item % tiles) * STEP);
    }
    tt_scratch_free(squares);
    tt_scratch_free(taps);
}

bool tt_correlate_parts(tt_correlation *c) {
    int64_t tiles = c->groups * pieces(c->out, 32) * pieces(c->in, WIDTH), packed;
    if (__builtin_mul_overflow(tiles * STEP * 2, c->taps, &packed))
        return tt_fail(TT_OUT_OF_MEMORY, "out of memory for the weight of a convolution"), false;
    char *memory = tt_scratch(packed + 64);
    if (!memory) return false;
    c->packed = memory + (64 - (uintptr_t)memory % 64) % 64;
    tt_parallel(tiles, most(1, GRAIN / (c->taps * 1024 * 32)), pack_weight, c);
    if (!c->failed) share(c, true);
    tt_scratch_free(memory);
    if (c->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for a panel of a convolution");
    return !c->failed;
}
