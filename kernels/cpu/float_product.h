/* Products of float32 and float64 matrices by one thread: in strips, or by BLAS; large ones of float32 by AMX, where it
 * is: Note [Products in parts] in float_parts.c.
 *
 * Note [Products in strips]
 * The right operand is packed in strips of as many columns as the registers hold sums of, TT_PRODUCT_DEPTH rows at a
 * time; the tiles of convolutions (simd/tile.h) multiply them by a few rows of the left one. Rows of the left operand,
 * and of the right one if the left one has few, are read where they lie. On one core of an EPYC (Zen 4), whose clock
 * allows 112 GFLOP/s, 1024 x 1024 x 1024 floats take 19.9 ms, 23 by OpenBLAS, 22 to 26 by MKL; 4 x 1024 by the
 * transpose of 1024 x 1024, a layer of few rows, 0.22 ms, 0.70 by OpenBLAS.
 *
 * An element's sum has one order: slices of TT_PRODUCT_DEPTH products, one after the other, each summed from 0. So the
 * bits depend neither on the tiles that a product is cut into nor on the number of threads. BLAS has what a tile does
 * not suit: vectors, and small products whose right operand lies in rows.
 *
 * Each of several threads packs and multiplies a tile of its own, a few rows at a time; who is through with it takes
 * rows of the others' tiles, by the strips that they have packed. On two cores that others use, too, the products of
 * GPT's and ViT's layers take 0.87 to 0.91 of the time in which each thread has its tile alone. */
#pragma once
#include "core/sizes.h"
#include "core/tt.h"

#define TT_PRODUCT_DEPTH 384
#define TT_PRODUCT_COLUMNS 528 /* of such a depth that are packed at a time, as strips that stay in the cache */

typedef struct {
    const void *data; /* a matrix in rows, `ld` elements apart; the operand is its transpose if `trans` */
    int64_t ld;
    bool trans;
} tt_operand;

/* c = alpha a b + beta c: (m, k) times (k, n); or, in strips, c = alpha a b + `row`, n numbers for each row of c. */
typedef struct {
    int dtype;
    int64_t m, n, k;
    tt_operand a, b;
    double alpha, beta;
    void *c;
    int64_t ldc;
    const void *row; /* or NULL */
} tt_float_product;

bool tt_prefers_strips(void); /* in this instruction set, for all but small products */
bool tt_suits_strips(const tt_float_product *p);
void tt_multiply_by_blas(const tt_float_product *p);

/* Rows times a matrix in strips of tile_columns columns, [strip][k][column], of which the last one may have more than
 * count; `out` has room for whole vectors. */
typedef struct {
    int64_t m, columns, k;
    const void *const *rows;
    const void *b;
    void *out;
    int64_t out_step;
} tt_rows_product;

/* Columns of the right operand from `column` on, over the slice from row `at` on; packed in strips, or used where it
 * lies. */
typedef struct {
    const tt_float_product *p;
    int64_t column, columns, at, depth;
    void *strips;
    bool lies;
} tt_product_block;

/* What an instruction set provides, for one type of elements. Slices are at most `depth` deep, and so many columns of
 * one are packed at a time. */
typedef struct {
    int64_t lanes, tile_rows, tile_columns;
    int64_t group; /* rows that are fetched, and as columns of a transpose packed, together */
    int64_t depth, grain, columns; /* multiples of the grain */
    int64_t packed, edge; /* bytes of a packed element, and of sums that do not go to the result at once */
    int64_t packing; /* multiplications that take as long as packing an element, */
    bool packs_rows; /* of rows of the left operand, too; and nothing is used where it lies */
    void (*pack)(const tt_product_block *b);
    void (*multiply)(const tt_product_block *b, int64_t begin, int64_t end, void *room); /* rows of the left operand */
    void (*rows_product)(const tt_rows_product *p);
    /* `lines` lines of `depth` elements, `ld` apart, as rows of `width`: to[l width + line] */
    void (*turn)(const void *from, int64_t ld, int64_t lines, int64_t depth, void *to, int64_t width);
} tt_float_product_loops;

const tt_float_product_loops *tt_float_product_loops_of(int dtype); /* in strips */
const tt_float_product_loops *tt_float_parts(void); /* by AMX, or NULL; has neither rows_product nor turn */
const tt_float_product_loops *tt_float_product_suits(const tt_float_product *p); /* one of these, or NULL: BLAS */

/* Bytes to work in, for at most such n and k. */
int64_t tt_strips_memory(const tt_float_product_loops *loops, int64_t n, int64_t k);
void tt_multiply_strips(const tt_float_product_loops *loops, const tt_float_product *p, void *memory);
/* Tiles in strips, one for each thread. False: out of memory. */
bool tt_multiply_together(const tt_float_product_loops *loops, tt_float_product (*tile)(const void *context, int64_t i),
                          const void *context, int64_t num);
