/* CUDA's backend: what backend.c puts into its table, and what its files want of one another. What each function of
 * the table has to do stands in backend/backend.h. */
#pragma once
#include "cuda/host/launch.h"

tt_storage *tt_cuda_storage(int64_t nbytes);
bool tt_cuda_copy_array(tt_array *out, const tt_array *a);
bool tt_cuda_elementwise(int op, int dtype, tt_array *out, int n, tt_array *const *in);
bool tt_cuda_mul_backward(const tt_array *g, const tt_array *a, const tt_array *b, tt_array *of_a, tt_array *of_b);

bool tt_cuda_reduce(tt_array *out, const tt_array *a, int64_t mask, int reducer, int read, int acc, int then);
bool tt_cuda_reduce_index(tt_array *out, tt_array *best, const tt_array *a, int64_t mask, bool largest);
bool tt_cuda_reduce_var(tt_array *out, const tt_array *a, int64_t mask, double correction, bool root);
bool tt_cuda_reduce_logsumexp(tt_array *out, const tt_array *a, int64_t mask);

bool tt_cuda_rows_fit(int64_t rows, int64_t n);
bool tt_cuda_softmax(tt_array *out, tt_array *x, tt_array *y, int64_t n, int64_t inner, bool log);
bool tt_cuda_norm(tt_array *out, tt_array *x, tt_array *g, tt_array *weight, tt_array *bias, tt_array *mean,
                  tt_array *rstd, int64_t n, double eps);
bool tt_cuda_norm_weight(tt_array *out, tt_array *g, tt_array *x, tt_array *mean, tt_array *rstd, int64_t n);
bool tt_cuda_class_loss(tt_array *out, const tt_class_work *w);
bool tt_cuda_class_loss_backward(tt_array *out, const tt_class_work *w, tt_array *g, tt_array *weight_sum);
bool tt_cuda_class_targets(tt_array *out, const tt_class_work *w);

bool tt_cuda_scan(const tt_scan_work *w);
bool tt_cuda_sort(const char *op, tt_sorting *s);
bool tt_cuda_move_indexed(tt_moves *j, const tt_index_where *w, int dtype, int rows_dtype, int how);

tt_array *tt_cuda_nonzero(const uint8_t *set, const tt_array *a, bool flat);
tt_array *tt_cuda_repeat_positions(const int64_t *times, int64_t n);
tt_array *tt_cuda_groups(const tt_array *x, int64_t n, int64_t width, bool consecutive, tt_array **inverse,
                         tt_array **counts);
bool tt_cuda_search(const void *sorted, const void *values, const int64_t *order, int64_t n, int64_t per_row,
                    bool right, int dtype, tt_array *out);
bool tt_cuda_isin(tt_array *among, const void *values, bool invert, tt_array *out);
bool tt_cuda_extremes(const void *x, int dtype, int64_t n, void *least, void *largest);
bool tt_cuda_histogram(const void *x, int dtype, int64_t n, double lo, double hi, tt_array *out);
bool tt_cuda_one_hot(const int64_t *classes, int64_t n, tt_array *out);
bool tt_cuda_add_at(tt_array *out, tt_array *x, tt_array *weights);

int tt_cuda_join(tt_array *out, int n, tt_array *const *in, int dim, bool stack);
bool tt_cuda_rearrange(tt_array *out, const tt_array *a, const bool *flipped, const int64_t *shift);
bool tt_cuda_zero_triangle(tt_array *a, int64_t diagonal, bool below);

bool tt_cuda_random(const tt_draw *draw, tt_array *out, int compute, const double *chance);
bool tt_cuda_dropout(const tt_draw *d, const tt_array *a, tt_array *out, tt_array *kept);
bool tt_cuda_multinomial(const tt_draw *draw, const tt_array *weights, tt_array *out, int64_t rows, int replacement);
bool tt_cuda_permutation(const tt_draw *draw, tt_array *out);
bool tt_cuda_range(tt_array *out, const tt_range *r);

bool tt_cuda_norms(int reducer, int then, int n, tt_array *const *in, tt_array *out);
bool tt_cuda_scale(int n, tt_array *const *arrays, const tt_array *by);
bool tt_cuda_update(int rule, const tt_schedule *schedule, int n, const tt_update_item *items);
bool tt_cuda_product(tt_product *p, tt_array *out, const tt_array *a, const tt_array *b, tt_array *bias);
bool tt_cuda_run_kernels(const tt_kernel *k, int n, char *const *base, const tt_number *numbers, bool compiled);

/* elementwise.c: vectors of 16 bytes of each operand that a thread takes; weight: an element's, tt_op_weight */
int tt_cuda_vectors(int weight, int operands, int largest);
/* reduce.c: the plan's results, in its order, as `dtype` to `out` (contiguous, or NULL); `index`: of extremes, where
 * the first such is, or NULL. then: TT_RED_ALONE ...; acc: the accumulators' dtype, `param` likewise. */
bool tt_cuda_reduction(tt_reduction *g, int reducer, int acc, int then, double by, const tt_array *param, int dtype,
                       char *out, int64_t *index);
/* ... and the tree over `count` accumulators of blocks, for each of `inner` neighbours */
bool tt_cuda_join_parts(int reducer, int acc, tt_array *parts, int64_t count, int64_t outer, int64_t inner, int dtype,
                        char *out);
/* rows.c: of contiguous rows of n elements; what: TT_STATISTIC_... */
bool tt_cuda_statistics(int what, tt_array *out, const tt_array *x, int64_t n, double by);
