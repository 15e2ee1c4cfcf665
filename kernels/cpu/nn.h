/* What the loops of simd/nn.c look like to rows.c and class_loss.c, rows of one floating dtype, contiguous; and what
 * these two share. */
#pragma once
#include "backend/plain.h"
#include "cpu/iterate.h"

#define TT_NN_COLUMNS 256 /* columns that are walked down together */
#define TT_NN_TILE 512    /* columns of a thread's piece of work */
#define TT_NN_CHUNK 64    /* rows of them summed one after another: a sum has parts that do not wait for each other */

/* Targets of a classification: what a loss takes from each row. */
typedef struct {
    const int64_t *target;
    const void *weight;  /* of the classes; NULL: all 1 */
    double weight_sum;   /* of all classes */
    double smoothing;
    int64_t ignore, classes;
    bool logits;         /* else log-probabilities */
} tt_classes;

/* Columns of a half type: their casts, and room for all numbers of m columns, which the logarithm does not need. */
typedef struct {
    tt_cast_loop widen, narrow;
    void *room;
} tt_nn_halves;

typedef struct {
    /* log: the logarithm of it. The columns' form works on n rows that are `inner` elements apart, m columns of them
     * at a time; half: NULL where they are of the dtype computed in. */
    void (*softmax)(void *out, const void *x, int64_t n, bool log);
    void (*softmax_columns)(void *out, const void *x, int64_t n, int64_t inner, int64_t m, bool log,
                            const tt_nn_halves *half);
    void (*softmax_backward)(void *out, const void *g, const void *y, int64_t n, bool log);
    void (*softmax_backward_columns)(void *out, const void *g, const void *y, int64_t n, int64_t inner, int64_t m,
                                     bool log, const tt_nn_halves *half);
    /* layer_norm or, without mean, rms_norm of one row; weight and bias may be NULL */
    void (*norm)(void *out, const void *x, const void *weight, const void *bias, int64_t n, double eps, void *mean,
                 void *rstd);
    void (*norm_backward)(void *out, const void *g, const void *x, const void *weight, int64_t n, const void *mean,
                          const void *rstd);
    /* sums over up to TT_BLOCK rows, `step` bytes apart, of g (x - mean) rstd, of up to TT_NN_TILE columns: the first
     * row of `tile`, which has TT_LANES of them. `widen`: where g and x are of a half type, what makes float32 of it;
     * else NULL. */
    void (*norm_weight)(void *tile, const char *g, const char *x, const void *mean, const void *rstd, int64_t rows,
                        int64_t step, int64_t w, tt_cast_loop widen);
    /* the loss of row i, and for logits the row's maximum and the logarithm of its sum of exponentials */
    double (*class_loss)(const void *x, int64_t i, const tt_classes *c, void *top, void *log_sum);
    void (*class_loss_backward)(void *out, const void *x, int64_t i, const tt_classes *c, double g, const void *top,
                                const void *log_sum);
} tt_nn_loops;
typedef struct {
    tt_nn_loops f32, f64;
} tt_nn_table;

const tt_nn_loops *tt_nn_loops_of(int dtype);
int64_t tt_nn_grain(int64_t n); /* of rows of n elements */
