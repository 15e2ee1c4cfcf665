/* Products of bfloat16 and float16 matrices, block by block: sums are float32 numbers, rounded once, at the end.
 *
 * Where the CPU has AMX or a fast AVX-512 BF16, bfloat16 is multiplied as it is (bf16_tiles.h), and with vectors where
 * it has any (bf16_vector.h); with AMX, numbers of float16 are two parts of bfloat16. Otherwise a block of each operand
 * is converted to float32, in memory that stays in the cache, and multiplied by BLAS; such blocks depend on the shape
 * alone, so that the bits on one machine do. */
#include "cpu/half_product.h"
#include "cpu/bf16_tiles.h"
#include "cpu/bf16_vector.h"
#include "cpu/float_product.h"
#include "cpu/simd.h"
#include <string.h>

#define BLOCK 240     /* rows and columns */
#define TILED_BLOCK 512 /* a tile of product.c: the larger, the less is packed */
#define DEPTH 512
#define FEW 8   /* lines across k that are turned, */
#define FEWER 6 /* and few enough to go through the other operand once for each */
#define FEW_DEPTH 1024

typedef struct {
    _Alignas(64) float sums[TILED_BLOCK * TILED_BLOCK];
    union {
        float wide[2][BLOCK * DEPTH];
        uint16_t few[FEW * (FEW_DEPTH + 32)];
        struct {
            uint16_t tiles[2][2][TILED_BLOCK * TT_TILES_DEPTH]; /* of a and b */
            uint16_t parts[2][TILED_BLOCK * TT_TILES_DEPTH]; /* of float16's numbers: tt_tiles_split */
        };
    };
    float row[TILED_BLOCK];
    const uint16_t *lines[TILED_BLOCK];
} memory;

/* Blocks of (rows, depth) elements of an operand, in float32; `lines` of `length` elements, as they are stored. */
static void widen(int dtype, const char *from, int64_t ld, int64_t lines, int64_t length, float *to) {
    for (int64_t l = 0; l < lines; l++) tt_isa->casts[dtype][TT_F32](to + l * length, from + l * ld * 2, length);
}

static void add_by_blas(const tt_product *p, const char *a, const char *b, int64_t rows, int64_t cols, memory *m) {
    for (int64_t l = 0; l < p->k; l += DEPTH) {
        int64_t depth = p->k - l < DEPTH ? p->k - l : DEPTH;
        tt_operand left = {m->wide[0], p->a.trans ? rows : depth, p->a.trans};
        tt_operand right = {m->wide[1], p->b.trans ? depth : cols, p->b.trans};
        tt_float_product part = {TT_F32, rows, cols, depth, left, right, 1, l > 0, m->sums, cols, NULL};
        widen(p->dtype, a + l * (p->a.trans ? p->a.ld : 1) * 2, p->a.ld, p->a.trans ? depth : rows, left.ld,
              m->wide[0]);
        widen(p->dtype, b + l * (p->b.trans ? 1 : p->b.ld) * 2, p->b.ld, p->b.trans ? cols : depth, right.ld,
              m->wide[1]);
        tt_multiply_by_blas(&part);
    }
}

/* alpha sums + beta c, rounded. */
static void finish(const tt_product *p, memory *m, char *c, int64_t rows, int64_t cols, bool tiled) {
    float alpha = (float)p->alpha, beta = (float)p->beta, line[TILED_BLOCK];
    if (beta == 0 && cols == p->n && !tiled) cols *= rows, rows = 1; /* all in one row */
    for (int64_t i = 0; i < rows; i++) {
        float *sums = tiled ? line : m->sums + i * cols;
        if (tiled) tt_tiles_row(m->sums, i, rows, cols, line);
        char *to = c + i * p->n * 2;
        if (beta != 0) {
            tt_isa->casts[p->dtype][TT_F32](m->row, to, cols);
            for (int64_t j = 0; j < cols; j++) sums[j] = alpha * sums[j] + beta * m->row[j];
        } else if (alpha != 1)
            for (int64_t j = 0; j < cols; j++) sums[j] *= alpha;
        tt_isa->casts[TT_F32][p->dtype](to, sums, cols);
    }
}

int tt_half_speed(const tt_product *p) {
    int tiles = p->m > 1 && p->n > 1 && tt_is_half(p->dtype) ? tt_tiles() : TT_NO_TILES;
    return tiles == TT_TILES_BY_AMX ? 8 : tiles == TT_TILES_BY_VECTORS && p->dtype == TT_BF16 ? 2 : 1;
}

/* Is it a product with vectors, or with so few that it does not pay to pack the other operand? That of all, not of a
 * tile: how it is cut does not show in the bits. */
static bool is_few(const tt_product *p) {
    if (p->dtype != TT_BF16 || !p->k || !tt_has_bf16()) return false;
    bool fast = tt_tiles() == TT_TILES_BY_VECTORS;
    int64_t along = fast ? 16 : 1, turned = fast ? FEW : 1, across = fast ? FEWER : 1; /* as the lines of both lie */
    int64_t few_rows = !p->b.trans ? across : p->a.trans ? turned : along;
    int64_t few_cols = p->a.trans ? across : p->b.trans ? along : turned;
    return p->m <= few_rows || p->n <= few_cols;
}

/* `count` lines along k, of lines across it. */
static const uint16_t *turn(const uint16_t *from, int64_t ld, int64_t count, int64_t depth, uint16_t *to) {
    for (int64_t l = 0; l < depth; l++)
        for (int64_t i = 0; i < count; i++) to[i * (FEW_DEPTH + 32) + l] = from[l * ld + i];
    return to;
}

static void multiply_few(const tt_product *p, const char *pa, const char *pb, int64_t rows, int64_t cols, memory *m) {
    const uint16_t *a = (const uint16_t *)pa, *b = (const uint16_t *)pb;
    int64_t lda = p->a.ld, ldb = p->b.ld, step_a = p->a.trans ? lda : 1, step_b = p->b.trans ? 1 : ldb;
    float *sums = m->sums;
    if (rows == 1 && cols == 1 && step_a == 1 && step_b == 1) *sums = tt_bf16_dot(a, b, p->k);
    else if (rows <= FEWER && !p->b.trans)
        for (int64_t i = 0; i < rows; i++)
            tt_bf16_rows(a + i * (p->a.trans ? 1 : lda), step_a, b, ldb, p->k, cols, sums + i * cols);
    else if (cols <= FEWER && p->a.trans)
        for (int64_t j = 0; j < cols; j++) {
            tt_bf16_rows(b + j * (p->b.trans ? ldb : 1), step_b, a, lda, p->k, rows, m->row);
            for (int64_t i = 0; i < rows; i++) sums[i * cols + j] = m->row[i];
        }
    else
        for (int64_t l = 0; l < p->k; l += FEW_DEPTH, a += FEW_DEPTH * step_a, b += FEW_DEPTH * step_b) {
            int64_t depth = p->k - l < FEW_DEPTH ? p->k - l : FEW_DEPTH;
            const uint16_t *left = p->a.trans ? turn(a, lda, rows, depth, m->few) : a;
            const uint16_t *right = p->b.trans ? b : turn(b, ldb, cols, depth, m->few);
            tt_bf16_lines(left, p->a.trans ? FEW_DEPTH + 32 : lda, right, p->b.trans ? ldb : FEW_DEPTH + 32, depth,
                          sums, rows, cols, l > 0);
        }
}

/* Packs an operand's rows (or columns), `depth` elements from element l of each on, and those of float16 in two parts;
 * `along`: they are the lines as they are stored. False: parts of what is not finite. */
static bool pack(memory *m, int dtype, bool left, const char *from, int64_t ld, bool along, int64_t l, int64_t count,
                 int64_t depth, int64_t step) {
    int64_t lines = along ? count : depth, length = along ? depth : count;
    const uint16_t *at = (const uint16_t *)from + l * (along ? 1 : ld);
    bool fine = true;
    for (int part = 0; part < 1 + (dtype == TT_F16); part++) {
        for (int64_t i = 0; i < lines; i++) {
            uint16_t *high = m->parts[0] + i * length, *low = m->parts[1] + i * length;
            if (dtype == TT_F16 && part == 0) fine &= tt_tiles_split(at + i * ld, length, high, low);
            m->lines[i] = dtype == TT_BF16 ? at + i * ld : part == 0 ? high : low;
        }
        uint16_t *to = m->tiles[!left][part];
        if (left) tt_tiles_pack_left(m->lines, 0, along, count, depth, to, step);
        else tt_tiles_pack_right(m->lines, 0, along, count, depth, to, step);
    }
    return fine;
}

/* In tiles. Products of parts are exact; the smaller ones are added first. False: an infinite part would have been
 * multiplied by one that is 0. */
static bool multiply_tiles(const tt_product *p, const char *a, const char *b, int64_t rows, int64_t cols, memory *m) {
    int last = p->dtype == TT_F16;
    bool fine = true;
    tt_tiles_begin();
    for (int64_t l = 0; l < p->k && fine; l += TT_TILES_DEPTH) {
        int64_t depth = p->k - l < TT_TILES_DEPTH ? p->k - l : TT_TILES_DEPTH, tiles = (depth + 31) / 32;
        int64_t step = tiles * TT_TILES_SIZE;
        fine = pack(m, p->dtype, true, a, p->a.ld, !p->a.trans, l, rows, depth, step);
        fine &= pack(m, p->dtype, false, b, p->b.ld, p->b.trans, l, cols, depth, step);
        for (int i = last; i >= 0; i--)
            for (int j = last; j >= 0; j--)
                tt_tiles_multiply(m->tiles[0][i], step, m->tiles[1][j], step, rows, cols, tiles, m->sums,
                                  l > 0 || i < last || j < last);
    }
    tt_tiles_end();
    return fine;
}

int64_t tt_half_memory(void) { return sizeof(memory); }

void tt_half_product(const tt_product *p, const char *a, const char *b, char *c, int64_t rows, int64_t cols,
                     void *within) {
    memory *m = within;
    tt_product as_lines = *p;
    if (p->m == 1 && p->a.trans && p->a.ld == 1) as_lines.a.trans = false; /* a vector is one line */
    if (p->n == 1 && !p->b.trans && p->b.ld == 1) as_lines.b.trans = true;
    p = &as_lines;
    bool few = is_few(p), fits = p->k && rows <= TILED_BLOCK && cols <= TILED_BLOCK;
    if (!few && fits && tt_half_speed(p) > 1 && multiply_tiles(p, a, b, rows, cols, m)) {
        finish(p, m, c, rows, cols, true);
        return;
    }
    for (int64_t i = 0; i < rows; i += BLOCK)
        for (int64_t j = 0; j < cols; j += BLOCK) {
            int64_t height = rows - i < BLOCK ? rows - i : BLOCK, width = cols - j < BLOCK ? cols - j : BLOCK;
            const char *left = a + i * (p->a.trans ? 1 : p->a.ld) * 2, *right = b + j * (p->b.trans ? p->b.ld : 1) * 2;
            if (p->k == 0) memset(m->sums, 0, (size_t)(height * width) * sizeof *m->sums);
            else if (few) multiply_few(p, left, right, height, width, m);
            else add_by_blas(p, left, right, height, width, m);
            finish(p, m, c + (i * p->n + j) * 2, height, width, false);
        }
}
