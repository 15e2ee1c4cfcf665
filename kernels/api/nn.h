/* Kernels behind neural networks' functions. Floating dtypes only. Results that are not finished on their own (means,
 * sums of exponentials) come as a second array for the derivative. */
#pragma once
#include "api/core.h"

/* softmax, or its logarithm, along `dim`; the derivative from the result y */
tt_array *tt_softmax(tt_array *a, int dim, int log);
tt_array *tt_softmax_backward(tt_array *g, tt_array *y, int dim, int log);

/* layer_norm (rms: rms_norm) over the last `dims` dimensions; weight and bias may be NULL. stats: of each row
 * 1 / standard deviation, and the mean (NULL for rms_norm), of the input's shape with sizes of 1 there. */
tt_array *tt_norm(tt_array *x, tt_array *weight, tt_array *bias, int dims, double eps, int rms, tt_array **stats);
tt_array *tt_norm_backward(tt_array *g, tt_array *x, tt_array *weight, tt_array *rstd, tt_array *mean, int dims);
tt_array *tt_norm_weight(tt_array *g, tt_array *x, tt_array *rstd, tt_array *mean, int dims);
/* sums over all but the last `dims` dimensions */
tt_array *tt_column_sums(tt_array *g, int dims);

/* cross_entropy of logits (N, C) or, with logits 0, nll_loss of log-probabilities, for classes `target` (N) of int64.
 * wide: the loss has the dtype that it is computed in, float32 for x of half types, and so has weight. reduction: 0
 * none,
 * 1 mean, 2 sum. *stats: (2 N + 1): per row the maximum and the logarithm of the sum of
 * exponentials above it; the divisor. */
tt_array *tt_class_loss(tt_array *x, tt_array *target, tt_array *weight, int logits, int wide, int reduction,
                        int64_t ignore, double smoothing, tt_array **stats);
tt_array *tt_class_loss_backward(tt_array *g, tt_array *x, tt_array *target, tt_array *weight, tt_array *stats,
                                 int logits, int reduction, int64_t ignore, double smoothing);
/* The weights with which a row's negative log-probabilities make its loss: (N, classes). */
tt_array *tt_class_targets(tt_array *target, tt_array *weight, int64_t classes, int dtype, int64_t ignore,
                           double smoothing);
