/* Convolutions of bfloat16 in tiles: Note [Convolutions as products] in conv.h, where channels lie next to each other.
 *
 * Of a correlation, places are rows and the target's channels columns; taps follow each other along k, each with its
 * channels in whole tiles. Of the gradient of weight the source's channels are rows, tap by tap, and places go along k.
 * 3 x 3 taps, 64 channels, 56 x 56, batch 8, on one core of a Sapphire Rapids, by AMX: 3.2 ms, and 3.2 and 3.5 for the
 * gradients; in float32 11 to 15. By vectors, on an EPYC (Zen 4): 9 and 20 for both gradients; in float32 17 and 36. */
#include "cpu/bf16_tiles.h"
#include "cpu/conv_runs.h"
#include "cpu/cpu.h"
#include "cpu/simd.h"
#include <string.h>

#define LEAST 16     /* channels; of fewer, tiles would be mostly zeros */
#define PLACES 256   /* of a task, and of the gradient of weight those that are multiplied at a time */
#define CHANNELS 512 /* of the target, of a task */
#define WEIGHED 128  /* channels of a task of the gradient of weight, of source and target */
#define SUMS (1 << 18) /* and the sums that it may have */
#define TASKS 16     /* wanted */
#define GRAIN (1 << 20) /* multiplications that are worth a thread */
#define WIDTH (TT_TILES_SIZE / 16)
#define SQUARE 16    /* channels whose sums are added at a time */

/* Vectors are about twice as fast as in float32, where Winograd's way does with 4 of 9 multiplications, and lose it to
 * zeros that fill up lines. */
bool tt_bf16_conv_fits(const tt_conv_work *w, bool winograd) {
    int tiles = w->computed->dtype == TT_BF16 ? tt_tiles() : TT_NO_TILES;
    int64_t least_channels = tiles == TT_TILES_BY_VECTORS ? 2 * LEAST : LEAST;
    return tiles && least(w->in, w->out) >= least_channels && (tiles == TT_TILES_BY_AMX || !winograd);
}

/* A task's memory. */
typedef struct {
    uint16_t *left, *right, *zeros;
    float *sums;
    tt_conv_place *places;
    tt_conv_taps taps;
    char *memory;
    const uint16_t *lines[PLACES], *rows[TT_TILES_DEPTH / WIDTH][PLACES];
} room;

static bool make_room(room *r, const tt_correlation *c, int64_t left, int64_t right, int64_t sums) {
    int64_t sizes[6] = {sums * 4,
                        left * 2,
                        right * 2,
                        c->in * 2,
                        PLACES * (int64_t)sizeof(tt_conv_place),
                        c->taps * (int64_t)sizeof(tt_conv_tap_at)};
    char *at[6];
    if (!(r->memory = tt_conv_memory(6, sizes, at))) return false;
    r->sums = (float *)at[0];
    r->left = (uint16_t *)at[1];
    r->right = (uint16_t *)at[2];
    r->zeros = memset(at[3], 0, (size_t)sizes[3]);
    r->places = (tt_conv_place *)at[4];
    r->taps.tap = (tt_conv_tap_at *)at[5];
    tt_conv_find_taps(c, &r->taps);
    return true;
}

/* What tap t sees of n places. */
static void point(room *r, const tt_correlation *c, const uint16_t *from, int64_t t, int64_t n) {
    for (int64_t k = 0; k < n; k++) {
        const tt_conv_place *p = r->places + k;
        bool inside = tt_conv_has_all(&r->taps, p) || tt_conv_has(c, r->taps.tap + t, p);
        r->lines[k] = inside ? from + p->source + r->taps.tap[t].offset : r->zeros;
    }
}

/* What `count` tiles of rows from tile `first` on, tap by tap, see of n places, times those of the weight. Whole lines
 * are multiplied by vectors as they lie; others are packed, a tap's together. */
static void multiply(room *r, const tt_correlation *c, const uint16_t *from, const uint16_t *weight, int64_t first,
                     int64_t count, int64_t n, int64_t m) {
    int64_t tiles = pieces(c->in, WIDTH), step = count * TT_TILES_SIZE, weight_step = c->taps * tiles * TT_TILES_SIZE;
    bool as_they_lie = tt_tiles() == TT_TILES_BY_VECTORS && c->in % WIDTH == 0;
    for (int64_t k = 0, some; k < count; k += some) {
        int64_t tile = (first + k) % tiles, channel = tile * WIDTH;
        some = least(tiles - tile, count - k);
        point(r, c, from, (first + k) / tiles, n);
        for (int64_t t = 0; as_they_lie && t < some; t++) {
            for (int64_t i = 0; i < n; i++) r->rows[k + t][i] = r->lines[i] + channel + t * WIDTH;
            for (int64_t i = n; i < PLACES && i % 8; i++) r->rows[k + t][i] = r->zeros;
        }
        if (!as_they_lie)
            tt_tiles_pack_left(r->lines, channel, true, n, least(c->in - channel, some * WIDTH),
                               r->left + k * TT_TILES_SIZE, step);
    }
    weight += first * TT_TILES_SIZE;
    if (as_they_lie) tt_tiles_multiply_lines(r->rows[0], PLACES, weight, weight_step, n, m, count, r->sums, first > 0);
    else tt_tiles_multiply(r->left, step, weight, weight_step, n, m, count, r->sums, first > 0);
}

/* Blocks of 16 channels of the target: groups x blocks. */
static void pack_weight(void *context, int64_t begin, int64_t end) {
    const tt_correlation *c = context;
    int64_t blocks = pieces(c->out, 16), tiles = pieces(c->in, WIDTH);
    bool along = c->weight_in == 1;
    const uint16_t *lines[WIDTH];
    for (int64_t item = begin; item < end; item++) {
        int64_t first = item % blocks * 16, outs = least(16, c->out - first);
        uint16_t *to = (uint16_t *)c->packed + item * c->taps * tiles * TT_TILES_SIZE;
        const uint16_t *from = (const uint16_t *)c->weight + item / blocks * c->weight_group + first * c->weight_out;
        for (int64_t t = 0; t < c->taps; t++)
            for (int64_t l = 0; l < c->in; l += WIDTH, to += TT_TILES_SIZE) {
                const uint16_t *tile = from + tt_conv_weight_tap(c, t) + l * c->weight_in;
                int64_t depth = least(WIDTH, c->in - l);
                for (int64_t k = 0; k < (along ? outs : depth); k++)
                    lines[k] = tile + k * (along ? c->weight_out : c->weight_in);
                tt_tiles_pack_right(lines, 0, along, outs, depth, to, 0);
            }
    }
}

/* A task's sums, rounded, to the target. */
static void store(const room *r, const tt_correlation *c, int64_t n, int64_t channel, int64_t m) {
    float line[CHANNELS];
    const float *bias = c->bias ? (const float *)c->bias + channel : NULL;
    for (int64_t k = 0; k < n; k++) {
        if (c->taps) tt_tiles_row(r->sums, k, n, m, line);
        else memset(line, 0, sizeof line);
        for (int64_t i = 0; bias && i < m; i++) line[i] += bias[i];
        tt_isa->casts[TT_F32][TT_BF16]((uint16_t *)c->target + r->places[k].target + channel, line, m);
    }
}

static void correlate(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    room r;
    int64_t all = c->batch * c->places, tiles = pieces(c->in, WIDTH), rows = c->taps * tiles;
    const int64_t most_tiles = TT_TILES_DEPTH / WIDTH;
    if (!make_room(&r, c, pieces(c->block, 16) * 16 * TT_TILES_DEPTH, 0,
                   pieces(c->block, 32) * pieces(c->out_block, 32) * 1024)) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return;
    }
    tt_tiles_begin();
    for (int64_t item = begin; item < end; item++) {
        int64_t part = item / c->blocks, g = part / c->out_blocks, first_out = part % c->out_blocks * c->out_block;
        int64_t first = item % c->blocks * c->block, n = least(c->block, all - first);
        int64_t m = least(c->out_block, c->out - first_out);
        const uint16_t *from = (const uint16_t *)c->source + g * c->in;
        const uint16_t *weight =
            (const uint16_t *)c->packed + (g * pieces(c->out, 16) + first_out / 16) * rows * TT_TILES_SIZE;
        tt_conv_locate(c, first, n, r.places);
        for (int64_t row = 0; row < rows; row += most_tiles)
            multiply(&r, c, from, weight, row, least(most_tiles, rows - row), n, m);
        store(&r, c, n, g * c->out + first_out, m);
    }
    tt_tiles_end();
    tt_scratch_free(r.memory);
}

static void correlate_packed(tt_correlation *c) {
    int64_t all = c->batch * c->places;
    c->block = PLACES;
    c->out_block = least(CHANNELS, pieces(c->out, 16) * 16);
    while (c->groups * pieces(all, c->block) * pieces(c->out, c->out_block) < TASKS &&
           (c->block > 64 || c->out_block > 64)) {
        if (c->block < c->out_block) c->out_block = pieces(c->out_block, 64) * 32;
        else c->block /= 2;
    }
    c->blocks = pieces(all, c->block);
    c->out_blocks = pieces(c->out, c->out_block);
    int64_t work = least(c->block, all) * least(c->out_block, c->out) * c->rows + 1;
    tt_parallel(c->groups * c->out_blocks * c->blocks, most(1, GRAIN / work), correlate, c);
}

bool tt_bf16_correlate(tt_correlation *c) {
    int64_t blocks = pieces(c->out, 16), packed;
    if (__builtin_mul_overflow(c->groups * blocks * pieces(c->in, WIDTH) * TT_TILES_SIZE * 2, c->taps, &packed))
        return tt_fail(TT_OUT_OF_MEMORY, "out of memory for the weight of a convolution"), false;
    char *memory = tt_scratch(packed + 64);
    if (!memory) return false;
    c->packed = memory + (64 - (uintptr_t)memory % 64) % 64;
    tt_parallel(c->groups * blocks, most(1, GRAIN / (c->rows * 64 + 1)), pack_weight, c);
    if (tt_runs_fit(c, TT_BF16)) tt_correlate_runs(c);
    else correlate_packed(c);
    tt_scratch_free(memory);
    if (c->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for a panel of a convolution");
    return !c->failed;
}

/* A part of the gradient of weight, (groups, taps, in, out): of some places, for some channels. */
static void weigh(void *context, int64_t begin, int64_t end) {
    tt_correlation *c = context;
    room r;
    int64_t all = c->batch * c->places, depth = PLACES / WIDTH * TT_TILES_SIZE,
            of_tap = pieces(c->in_block, 32) * pieces(c->out_block, 32) * 1024;
    if (!make_room(&r, c, pieces(c->in_block, 16) * depth, pieces(c->out_block, 16) * depth, c->taps * of_tap)) {
        __atomic_store_n(&c->failed, true, __ATOMIC_RELAXED);
        return;
    }
    tt_tiles_begin();
    for (int64_t item = begin; item < end; item++) {
        int64_t outs = item % c->out_blocks, ins = item / c->out_blocks % c->in_blocks;
        int64_t group = item / c->out_blocks / c->in_blocks, g = group % c->groups,
                first = group / c->groups * c->block;
        int64_t first_out = outs * c->out_block, m = least(c->out_block, c->out - first_out);
        int64_t first_in = ins * c->in_block, channels = least(c->in_block, c->in - first_in);
        const uint16_t *from = (const uint16_t *)c->source + g * c->in;
        const uint16_t *target = (const uint16_t *)c->target + g * c->out;
        for (int64_t at = first, stop = least(all, first + c->block); at < stop; at += PLACES) {
            int64_t n = least(PLACES, stop - at), tiles = pieces(n, WIDTH), step = tiles * TT_TILES_SIZE;
            tt_conv_locate(c, at, n, r.places);
            for (int64_t k = 0; k < n; k++) r.lines[k] = target + r.places[k].target;
            tt_tiles_pack_right(r.lines, first_out, false, m, n, r.right, step);
            for (int64_t t = 0; t < c->taps; t++) {
                point(&r, c, from, t, n);
                tt_tiles_pack_left(r.lines, first_in, false, channels, n, r.left, step);
                tt_tiles_multiply(r.left, step, r.right, step, channels, m, tiles, r.sums + t * of_tap, at > first);
            }
        }
        float *to = (float *)c->packed + (group * c->taps * c->in + first_in) * c->out + first_out, line[WEIGHED];
        for (int64_t t = 0; t < c->taps; t++)
            for (int64_t k = 0; k < channels; k++) {
                tt_tiles_row(r.sums + t * of_tap, k, channels, m, line);
                memcpy(to + (t * c->in + k) * c->out, line, (size_t)m * 4);
            }
    }
    tt_tiles_end();
    tt_scratch_free(r.memory);
}

/* The parts' sums, in their order, of squares of the source's channels and the target's: in one they lie next to each
 * other, in the weight perhaps in the other. Items: groups x taps x squares of a column. */
static void add_parts(void *context, int64_t begin, int64_t end) {
    const tt_correlation *c = context;
    int64_t part = c->groups * c->rows * c->out, across = pieces(c->in, SQUARE);
    float sums[SQUARE][SQUARE];
    for (int64_t item = begin; item < end; item++) {
        int64_t first_in = item % across * SQUARE, tap = item / across, ins = least(SQUARE, c->in - first_in);
        const float *from = (const float *)c->packed + (tap * c->in + first_in) * c->out;
        float *to = (float *)c->weight + tap / c->taps * c->weight_group + tt_conv_weight_tap(c, tap % c->taps) +
                    first_in * c->weight_in;
        for (int64_t first = 0; first < c->out; first += SQUARE) {
            int64_t outs = least(SQUARE, c->out - first);
            memset(sums, 0, sizeof sums);
            for (int64_t k = 0; k < ins; k++)
                for (int64_t p = 0; p < c->parts; p++)
                    for (int64_t i = 0; i < outs; i++) sums[k][i] += from[p * part + k * c->out + first + i];
            for (int64_t i = 0; i < outs; i++)
                for (int64_t k = 0; k < ins; k++) to[(first + i) * c->weight_out + k * c->weight_in] = sums[k][i];
        }
    }
}

bool tt_bf16_weigh(tt_correlation *c) {
    int64_t all = c->batch * c->places;
    c->out_block = least(WEIGHED, c->out);
    c->in_block = least(least(WEIGHED, c->in), most(32, SUMS / (c->taps * c->out_block) / 32 * 32));
    c->in_blocks = pieces(c->in, c->in_block);
    c->out_blocks = pieces(c->out, c->out_block);
    int64_t tasks = c->groups * c->in_blocks * c->out_blocks, units = pieces(all, PLACES), bytes;
    c->block = pieces(units, most(1, least(pieces(TASKS, tasks), units / 4))) * PLACES;
    c->parts = pieces(all, c->block);
    if (__builtin_mul_overflow(c->parts * c->groups * c->out * 4, c->rows, &bytes))
        return tt_fail(TT_OUT_OF_MEMORY, "out of memory for the gradient of a convolution's weight"), false;
    if (!(c->packed = tt_scratch(bytes))) return false;
    int64_t work = least(c->block, all) * c->in_block * c->out_block * c->taps + 1;
    tt_parallel(c->parts * tasks, most(1, GRAIN / work), weigh, c);
    int64_t squares = c->groups * c->taps * pieces(c->in, SQUARE);
    if (!c->failed) tt_parallel(squares, most(1, GRAIN / (c->parts * c->out * SQUARE + 1)), add_parts, c);
    tt_scratch_free(c->packed);
    if (c->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for a panel of a convolution");
    return !c->failed;
}
