/* Products of matrices, as every backend does them. */
#pragma once
#include "core/tt.h"

/* A stack of matrices as a product takes it. */
typedef struct {
    const char *data;
    int64_t rows, cols, row_step, col_step; /* in elements */
    int64_t steps[TT_MAX_NDIM];             /* along the result's batch dimensions; 0 where it is broadcast */
    int64_t ld;                             /* of the stored matrix, which is the transpose if `trans` */
    bool trans;
    tt_array *copy;
} tt_matrices;

/* alpha a b + beta bias */
typedef struct {
    tt_matrices a, b;
    int nbatch;
    int64_t batch[TT_MAX_NDIM], stack;      /* the batch dimensions and their product */
    int64_t m, n, k;
    int dtype;                              /* computed in */
    double alpha, beta;
    bool may_fold;                          /* rows of a stack may be taken as those of one matrix */
    bool layer;        /* of a recurrent layer: tt_layer_matmul */
    bool asynchronous; /* may be handed over as a job: Note [Asynchronous jobs] in core/jobs.h */
} tt_product;

/* Makes the operand one that BLAS takes, of the dtype computed in, by a copy where it must; `whole`: by a copy of every
 * matrix of the stack, the repeated ones too. False: out of memory. */
bool tt_product_prepare(tt_product *p, tt_matrices *x, const tt_array *from, bool always_plain, bool whole);
void tt_product_fold_batch(tt_product *p); /* a stack times one matrix as one product, where its rows allow it */
void tt_product_done(tt_product *p); /* frees the copies */
