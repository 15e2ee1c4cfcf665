/* Products of float32 matrices by AMX.
 *
 * Note [Products in parts]
 * A number of float32, which has 24 bits, is the sum of three parts of bfloat16, which have 8. Six of the nine products
 * of two numbers' parts are added, the smallest first; each is exact. The other three are together less than 2^-24 of
 * the product, and of either sign: rounding it once may take away as much. 32 products of parts are added to a sum
 * at a time, so it is rounded less often than one of float32's own products, and is nearer to the exact result: of
 * 1024 x 1024 x 1024 normal numbers 0.45 times as far off. A core of a Xeon takes 7.9 ms for it, 11.6 in
 * strips.
 *
 * AMX takes denormal numbers for 0. So both operands are multiplied by SCALE before they are split: every part of any
 * number of float32 is then normal, and what is lost of a product is less than its last bit, denormal or not. What is
 * not finite, or too large for SCALE, leaves an infinity or a NaN in the result, and such elements are made in strips.
 *
 * A pair of a tile's line is element k of a row and the 16th after it, so that nothing has to be moved within a line.
 * An element's sum is one of slices, as in strips, and it is decided for each element by itself which way it is made:
 * bits depend neither on tiles nor on threads. */
#include "cpu/float_product.h"
#include "cpu/float_tiles.h"
#include "cpu/simd.h"

#define COLUMNS 256 /* of a block: packed, 600 KB, so that two threads may share a second-level cache */

#ifdef TT_AMX

#define PANEL (2 * LINES) /* rows or columns that are multiplied together */
#define TILES 4 /* of two panels' lines, which fill the first-level cache: 2.5 TFLOP/s of parts, 2.2 of 8 */
#define GROUP (4 * PANEL) /* rows that are packed together */

/* A tile of each part, of `count` rows (or columns) and `depth` elements of each. `along`: a line in memory has one of
 * them; else it has an element of each. */
INLINE void pack_tile(const float *from, int64_t ld, int64_t count, int64_t depth, uint16_t *to, const bool along,
                      const bool left) {
    __m512i x[LINES], y[LINES];
    for (int i = 0; i < LINES; i++) {
        bool low = along ? i < count : i < depth, high = along ? i < count : i + LINES < depth;
        const float *at = from + i * ld, *next = along ? at + LINES : at + LINES * ld;
        __mmask16 of_low = low ? (__mmask16)lowest(along ? depth : count) : 0;
        __mmask16 of_high = high ? (__mmask16)lowest(along ? depth - LINES : count) : 0;
        x[i] = _mm512_maskz_loadu_epi32(of_low, of_low ? at : from);
        y[i] = _mm512_maskz_loadu_epi32(of_high, of_high ? next : from);
        if (along == left) split(_mm512_castsi512_ps(x[i]), _mm512_castsi512_ps(y[i]), to + i * WIDTH, PART);
    }
    if (along == left) return;
    transpose(x);
    transpose(y);
    for (int i = 0; i < LINES; i++) split(_mm512_castsi512_ps(x[i]), _mm512_castsi512_ps(y[i]), to + i * WIDTH, PART);
}

/* WIDTH elements of a panel. */
INLINE void pack_step(const float *from, int64_t ld, int64_t count, int64_t depth, uint16_t *to, const bool along,
                      const bool left) {
    for (int64_t i = 0; i < count; i += LINES, from += along ? LINES * ld : LINES, to += TILE) {
        if (count - i >= LINES && depth >= WIDTH) pack_tile(from, ld, LINES, WIDTH, to, along, left);
        else pack_tile(from, ld, count - i, depth, to, along, left);
    }
}

/* An operand's rows (or columns), panel after panel. */
INLINE void pack_panels(const float *from, int64_t ld, int64_t count, int64_t depth, uint16_t *to, const bool along,
                        const bool left) {
    int64_t panel = pieces(depth, WIDTH) * STEP;
    if (along)
        for (int64_t i = 0; i < count; i += PANEL, from += PANEL * ld, to += panel)
            for (int64_t l = 0; l < depth; l += WIDTH)
                pack_step(from + l, ld, least(PANEL, count - i), depth - l, to + l / WIDTH * STEP, true, left);
    else
        for (int64_t l = 0; l < depth; l += WIDTH, from += WIDTH * ld, to += STEP)
            for (int64_t i = 0; i < count; i += PANEL)
                pack_step(from + i, ld, least(PANEL, count - i), depth - l, to + i / PANEL * panel, false, left);
}

static const float *element(const tt_operand *of, int64_t row, int64_t column) {
    return (const float *)of->data + (of->trans ? row + column * of->ld : row * of->ld + column);
}

TARGET static void pack(const tt_product_block *b) {
    const tt_operand *of = &b->p->b;
    const float *from = element(of, b->at, b->column);
    if (of->trans) pack_panels(from, of->ld, b->columns, b->depth, b->strips, true, false);
    else pack_panels(from, of->ld, b->columns, b->depth, b->strips, false, false);
}

TARGET __attribute__((noinline)) static void pack_left(const tt_operand *of, int64_t row, int64_t at, int64_t rows,
                                                       int64_t depth, uint16_t *to) {
    const float *from = element(of, row, at);
    if (of->trans) pack_panels(from, of->ld, rows, depth, to, false, true);
    else pack_panels(from, of->ld, rows, depth, to, true, true);
}

/* The sums of a group of panels and one of the right operand. */
TARGET __attribute__((noinline)) static void multiply_panels(const uint16_t *left, int64_t rows, const uint16_t *right,
                                                             int64_t cols, int64_t tiles, float *sums) {
    int64_t some = pieces(tiles, pieces(tiles, TILES)), panel = tiles * STEP;
    __asm__ volatile("" ::: "memory"); /* compilers do not see what tiles are loaded from */
    for (int64_t t = 0; t < tiles; t += some)
        for (int64_t i = 0; i < rows; i += PANEL) {
            const uint16_t *a = left + i / PANEL * panel + t * STEP, *const both[2] = {a, a + TILE};
            multiply_parts_of(rows - i > LINES, cols > LINES, both, 64, PART, NULL, right + t * STEP,
                              least(some, tiles - t), sums + i * PANEL, t > 0);
        }
}

/* Such sums, times alpha, into the result, of whose columns there are at most PANEL: those that are finite, or, given
 * the right ones, the others. Is any of these there? */
TARGET static bool finish(const tt_product_block *b, int64_t row, int64_t rows, int64_t column, const float *sums,
                          const float *right) {
    const tt_float_product *p = b->p;
    float *to = (float *)p->c + row * p->ldc + column;
    const float *add = b->at || (p->beta != 0 && !p->row) ? to : p->row ? (const float *)p->row + column : NULL;
    int64_t step = add == to ? p->ldc : 0, cols = least(PANEL, b->column + b->columns - column);
    __m512 unscale = _mm512_set1_ps(UNSCALE), alpha = _mm512_set1_ps((float)p->alpha);
    __m512 beta = _mm512_set1_ps(b->at || p->row ? 1 : (float)p->beta);
    __mmask16 any = 0;
    for (int64_t r = 0; r < rows; r++, to += p->ldc, add = add ? add + step : NULL) {
        const float *from = sums + r / PANEL * 4 * SUMS + r / LINES % 2 * 2 * SUMS + r % LINES * LINES;
        for (int64_t j = 0; j < cols; j += LINES, from += SUMS) {
            __m512 sum = _mm512_mul_ps(_mm512_load_ps(from), unscale);
            __mmask16 there = (__mmask16)lowest(cols - j), other = _mm512_mask_fpclass_ps_mask(there, sum, NOT_FINITE);
            __mmask16 now = right ? other : there & (__mmask16)~other;
            if (right) sum = _mm512_loadu_ps(right + r * PANEL + j);
            sum = _mm512_mul_ps(sum, alpha);
            if (add) sum = _mm512_fmadd_ps(_mm512_maskz_loadu_ps(now, add + j), beta, sum);
            _mm512_mask_storeu_ps(to + j, now, sum);
            any |= other;
        }
    }
    return any;
}

/* The sums of a group and a panel that are not finite, in strips. */
static void finish_again(const tt_product_block *b, int64_t row, int64_t rows, int64_t column, const float *sums,
                         float *right, void *memory) {
    tt_float_product p = *b->p;
    p.m = rows, p.n = least(PANEL, b->column + b->columns - column), p.k = b->depth;
    p.a.data = element(&b->p->a, row, b->at), p.b.data = element(&b->p->b, b->at, column);
    p.alpha = 1, p.beta = 0, p.row = NULL, p.c = right, p.ldc = PANEL;
    tt_multiply_strips(tt_float_product_loops_of(TT_F32), &p, memory);
    finish(b, row, rows, column, sums, right);
}

/* The product of some rows and a block, a group of panels at a time. */
static void multiply(const tt_product_block *b, int64_t begin, int64_t end, void *room) {
    float *sums = room, *right = sums + GROUP * PANEL;
    uint16_t *panels = (uint16_t *)(right + GROUP * PANEL);
    int64_t tiles = pieces(b->depth, WIDTH);
    void *of_strips = panels + GROUP / PANEL * tiles * STEP;
    tt_tiles_begin();
    for (int64_t i = begin, rows; i < end; i += rows) {
        rows = least(GROUP, end - i);
        pack_left(&b->p->a, i, b->at, rows, b->depth, panels);
        for (int64_t j = 0; j < b->columns; j += PANEL) {
            multiply_panels(panels, rows, (const uint16_t *)b->strips + j / PANEL * tiles * STEP, b->columns - j, tiles,
                            sums);
            if (finish(b, i, rows, b->column + j, sums, NULL))
                finish_again(b, i, rows, b->column + j, sums, right, of_strips);
        }
    }
    tt_tiles_end();
}

static const tt_float_product_loops loops = {.lanes = LINES,
                                             .tile_rows = LINES,
                                             .group = GROUP,
                                             .tile_columns = PANEL,
                                             .depth = TT_PRODUCT_DEPTH,
                                             .grain = WIDTH,
                                             .columns = COLUMNS,
                                             .packed = PARTS * sizeof(uint16_t),
                                             .edge = 2 * GROUP * PANEL * sizeof(float),
                                             .packing = 48,
                                             .packs_rows = true,
                                             .pack = pack,
                                             .multiply = multiply};
#endif

const tt_float_product_loops *tt_float_parts(void) {
#ifdef TT_AMX
    if (tt_tiles() == TT_TILES_BY_AMX) return &loops;
#endif
    return NULL;
}
