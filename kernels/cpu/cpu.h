/* The CPU's backend: what backend.c puts into its table. What each has to do stands in backend/backend.h. */
#pragma once
#include "backend/backend.h"
#include "backend/now.h"
#include "cpu/simd.h"

bool tt_cpu_copy(tt_array *out, const tt_array *a);
void tt_cpu_fill(tt_array *out, const void *element);
bool tt_cpu_read(void *to, const void *from, int64_t nbytes);
void tt_cpu_convert(void *to, int to_dtype, const void *from, int from_dtype);
bool tt_cpu_elementwise(int op, int dtype, tt_array *out, int n, tt_array *const *in);

bool tt_cpu_reduce(tt_array *out, const tt_array *a, int64_t mask, int reducer, int read, int acc, int then);
bool tt_cpu_reduce_index(tt_array *out, tt_array *best, const tt_array *a, int64_t mask, bool largest);
bool tt_cpu_reduce_var(tt_array *out, const tt_array *a, int64_t mask, double correction, bool root);
bool tt_cpu_reduce_logsumexp(tt_array *out, const tt_array *a, int64_t mask);

bool tt_cpu_softmax(tt_array *out, tt_array *x, tt_array *y, int64_t n, int64_t inner, bool log);
bool tt_cpu_norm(tt_array *out, tt_array *x, tt_array *g, tt_array *weight, tt_array *bias, tt_array *mean,
                 tt_array *rstd, int64_t n, double eps);
bool tt_cpu_norm_weight(tt_array *out, tt_array *g, tt_array *x, tt_array *mean, tt_array *rstd, int64_t n);
bool tt_cpu_class_loss(tt_array *out, const tt_class_work *w);
bool tt_cpu_class_loss_backward(tt_array *out, const tt_class_work *w, tt_array *g, tt_array *weight_sum);
bool tt_cpu_class_targets(tt_array *out, const tt_class_work *w);

bool tt_cpu_scan(const tt_scan_work *w);
bool tt_cpu_sort(const char *op, tt_sorting *s);
bool tt_cpu_move_indexed(tt_moves *j, const tt_index_where *w, int dtype, int rows_dtype, int how);

tt_array *tt_cpu_nonzero(const uint8_t *set, const tt_array *a, bool flat);
tt_array *tt_cpu_repeat_positions(const int64_t *times, int64_t n);
tt_array *tt_cpu_groups(const tt_array *x, int64_t n, int64_t width, bool consecutive, tt_array **inverse,
                        tt_array **counts);
bool tt_cpu_search(const void *sorted, const void *values, const int64_t *order, int64_t n, int64_t per_row, bool right,
                   int dtype, tt_array *out);
bool tt_cpu_isin(tt_array *among, const void *values, bool invert, tt_array *out);
bool tt_cpu_extremes(const void *x, int dtype, int64_t n, void *least, void *largest);
bool tt_cpu_histogram(const void *x, int dtype, int64_t n, double lo, double hi, tt_array *out);
bool tt_cpu_one_hot(const int64_t *classes, int64_t n, tt_array *out);
bool tt_cpu_add_at(tt_array *out, tt_array *x, tt_array *weights);

bool tt_cpu_rearrange(tt_array *out, const tt_array *a, const bool *flipped, const int64_t *shift);
bool tt_cpu_zero_triangle(tt_array *a, int64_t diagonal, bool below);

bool tt_cpu_random(const tt_draw *draw, tt_array *out, int compute, const double *chance);
bool tt_cpu_dropout(const tt_draw *draw, const tt_array *a, tt_array *out, tt_array *kept);
bool tt_cpu_multinomial(const tt_draw *draw, const tt_array *weights, tt_array *out, int64_t rows, int replacement);
bool tt_cpu_permutation(const tt_draw *draw, tt_array *out);
bool tt_cpu_range(tt_array *out, const tt_range *r);

bool tt_cpu_update(int rule, const tt_schedule *schedule, int n, const tt_update_item *items);
bool tt_cpu_product(tt_product *p, tt_array *out, const tt_array *a, const tt_array *b, tt_array *bias);
bool tt_cpu_conv1d(const tt_conv_work *w);
bool tt_cpu_decompose(int decomposition, tt_stack *s);
bool tt_cpu_run_kernels(const tt_kernel *k, int n, char *const *base, const tt_number *numbers, bool compiled);
