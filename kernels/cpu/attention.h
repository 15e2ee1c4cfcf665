/* What the loops of simd/attention.c look like to attention.c: tiles of scores, queries by keys, row-major. */
#pragma once
#include "core/tt.h"

typedef struct {
    void *scores; /* query key^T scale; becomes weights */
    int64_t rows, cols;
    int64_t seen; /* keys of this tile that its first row sees, and each further row one more; cols: all of them */
    const char *mask; /* of the first row and column; NULL: none */
    int64_t mask_row, mask_col; /* steps in elements */
    bool mask_is_bool; /* else it is added */
    bool first; /* of its queries: there is no top, sum and out yet */
} tt_attention_tile;

typedef struct {
    /* Scores become exp(score - top), where top is the largest of each row so far, and are added to sum; out (rows,
     * width), `ld` apart, and sum are rescaled to the new top before. */
    void (*exponentials)(const tt_attention_tile *t, void *top, void *sum, void *out, int64_t width, int64_t ld);
    /* out / sum; lse = top + log(sum) */
    void (*finish)(void *out, int64_t rows, int64_t width, int64_t ld, const void *top, const void *sum, void *lse);
    /* scores become exp(score - lse) */
    void (*weights)(const tt_attention_tile *t, const void *lse);
    /* out = a b */
    void (*multiply)(void *out, const void *a, const void *b, int64_t n);
    /* to[i] = the product of row i of a and of b */
    void (*dots)(void *to, const void *a, int64_t lda, const void *b, int64_t ldb, int64_t rows, int64_t width);
    /* of weights p, of those that were kept k: g = k g - p delta */
    void (*slopes)(void *g, const void *p, const void *k, const void *delta, int64_t rows, int64_t cols);
    /* to += from */
    void (*add)(void *to, const void *from, int64_t n);
} tt_attention_loops;
typedef struct {
    tt_attention_loops f32, f64;
} tt_attention_table;
