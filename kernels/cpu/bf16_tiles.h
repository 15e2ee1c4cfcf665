/* Products of matrices of bfloat16, packed in tiles: by AMX, Intel's matrix unit from Sapphire Rapids on, or by AVX-512
 * BF16. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

#define TT_TILES_SIZE 512 /* elements of a packed tile: 16 rows (or columns) of 32 */
#define TT_PARTS 3 /* tiles, one for each part, that have numbers of float32: float_parts.c */
#define TT_TILES_DEPTH 256 /* elements of a row to multiply at a time: 2 x 32 rows of them fit the first-level cache */

/* What multiplies tiles, where AVX-512's kernels are in use. */
enum { TT_NO_TILES, TT_TILES_BY_VECTORS, TT_TILES_BY_AMX };
int tt_tiles(void);

/* Packs `count` rows of a left operand (or columns of a right one), `depth` elements of each, filled up with zeros. A
 * line is a row if they lie `along` lines, else one element of every row; it is read from element `first` on. 16 rows
 * later, the next ones are put `step` elements on. `to` is aligned to 64 bytes. */
void tt_tiles_pack_left(const uint16_t *const *lines, int64_t first, bool along, int64_t count, int64_t depth,
                        uint16_t *to, int64_t step);
void tt_tiles_pack_right(const uint16_t *const *lines, int64_t first, bool along, int64_t count, int64_t depth,
                         uint16_t *to, int64_t step);

/* n numbers of float16 as sums of two of bfloat16, which have 8 bits each of its 11. False: not all are finite. */
bool tt_tiles_split(const uint16_t *from, int64_t n, uint16_t *high, uint16_t *low);

/* sums (rows, cols) = left right, or += with `add`, for `tiles` tiles of each row and column. Sums lie in tiles, whose
 * rows and columns are multiples of 32. To be called between begin and end, by the same thread. */
void tt_tiles_multiply(const uint16_t *left, int64_t left_step, const uint16_t *right, int64_t right_step, int64_t rows,
                       int64_t cols, int64_t tiles, float *sums, bool add);
/* The same by vectors, of a left operand as it lies: `lines` has pointers to the rows' whole lines of each tile, which
 * begin `stride` pointers after those of the one before; as many as a multiple of 8. */
void tt_tiles_multiply_lines(const uint16_t *const *lines, int64_t stride, const uint16_t *right, int64_t right_step,
                             int64_t rows, int64_t cols, int64_t tiles, float *sums, bool add);
/* By AMX, of a left operand as it lies: 1 to 16 rows, as many as begin_rows was told, from rows[0] on, and as many from
 * rows[1] on, or NULL. They are `step` bytes apart, and tile t is offsets[t] elements on. Of the right operand 16
 * columns, or `two` times as many. The sums are 2 x 2 tiles. */
void tt_tiles_multiply_rows(const uint16_t *const rows[2], int64_t step, const int64_t *offsets, const uint16_t *right,
                            int64_t right_step, bool two, int64_t tiles, float *sums, bool add);
/* Such sums of the first rows, or from 512 on of the others, plus bias (or NULL), rounded to bfloat16, a row every
 * `step` elements; up to 32 columns. */
void tt_tiles_round(const float *sums, int64_t rows, int64_t cols, const float *bias, uint16_t *to, int64_t step);
void tt_tiles_begin(void);
void tt_tiles_begin_rows(int64_t rows);
void tt_tiles_end(void);
/* Row i of such sums; there is room for a multiple of 32. */
void tt_tiles_row(const float *sums, int64_t i, int64_t rows, int64_t cols, float *to);
