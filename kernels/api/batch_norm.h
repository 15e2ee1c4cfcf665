/* Normalisation of each channel of (batch, channels, *), on devices that have kernels for it. */
#pragma once
#include "api/core.h"

/* Can an array be taken by the functions below? */
int tt_batch_norm_fits(tt_array *x);
/* (2, channels), of the dtype computed in: mean, 1 / sqrt(variance + eps). running_mean and running_var, contiguous and
 * of one dtype, or NULL: (1 - momentum) of what they are, and momentum of the mean and of the variance (over n - 1).
 * views: of the two rows. */
tt_array *tt_batch_statistics(tt_array *x, tt_array *running_mean, tt_array *running_var, double momentum, double eps,
                              int writer, tt_array **views);
/* weight and bias may be NULL */
tt_array *tt_batch_norm(tt_array *x, tt_array *weight, tt_array *bias, tt_array *mean, tt_array *rstd);
/* (2, channels): the sums of g, and of g (x - mean) */
tt_array *tt_batch_norm_sums(tt_array *g, tt_array *x, tt_array *mean);
/* The gradient of x. own: mean and rstd are those of x; then `of` gets the gradients of weight and bias, of the dtype
 * computed in. */
tt_array *tt_batch_norm_backward(tt_array *g, tt_array *x, tt_array *weight, tt_array *mean, tt_array *rstd, int own,
                                 tt_array **of);

/* group_norm: channels are normalised in groups, each sample by itself. fits: has the device a kernel? stats: of each
 * group 1 / standard deviation and the mean, (batch, groups). of: the gradients of weight and bias, for each sample:
 * (batch, channels). All of the dtype computed in. */
int tt_group_norm_fits(tt_array *x);
tt_array *tt_group_norm(tt_array *x, tt_array *weight, tt_array *bias, int64_t groups, double eps, tt_array **stats);
tt_array *tt_group_norm_backward(tt_array *g, tt_array *x, tt_array *weight, tt_array *rstd, tt_array *mean,
                                 tt_array **of);
