/* CUDA's backend, and what its files want of one another. */
#pragma once
#include "cuda/host/launch.h"

/* The entries of its table: `entry` is tt_cuda_<entry>. Their types, and what each has to do, stand in
 * backend/backend.h. */
/* clang-format off */
#define TT_CUDA_ENTRIES(X) \
    X(storage) X(elementwise) X(mul_backward) X(reduce) X(reduce_index) X(reduce_var) X(reduce_logsumexp) X(rows_fit) \
    X(softmax) X(norm) X(norm_weight) X(class_loss) X(class_loss_backward) X(class_targets) X(scan) X(sort) \
    X(move_indexed) X(nonzero) X(repeat_positions) X(groups) X(distinct) X(search) X(isin) X(extremes) X(histogram) \
    X(one_hot) X(add_at) X(join) X(rearrange) X(zero_triangle) X(random) X(dropout) X(multinomial) X(variates) \
    X(permutation) X(range) X(norms) X(scale) X(update) X(product) X(pool) X(resample) X(grid_sample) X(fft) X(conv) \
    X(recurrent) X(recurrent_backward) X(attention) X(attention_backward) X(batch_statistics) X(batch_norm) \
    X(batch_norm_sums) X(unfold) X(sparse_product) X(sparse_dots) X(decompose) X(decompose_as_given) \
    X(run_kernels)
/* clang-format on */
#define TT_DECLARE(entry) TT_ENTRY_TYPE(entry) tt_cuda_##entry;
TT_CUDA_ENTRIES(TT_DECLARE)
#undef TT_DECLARE
TT_ENTRY_TYPE(copy) tt_cuda_copy_array;

/* elementwise.c: vectors of 16 bytes of each operand that a thread takes; weight: an element's, tt_op_weight */
int tt_cuda_vectors(int weight, int operands, int largest);
/* reduce.c: the plan's results, in its order, as `dtype` to `out` (contiguous, or NULL); `index`: of extremes, where
 * the first such is, or NULL. then: TT_RED_ALONE ...; acc: the accumulators' dtype, `param` likewise. */
/* The error of an operator whose kernel has no room for so many dimensions; false. */
bool tt_cuda_too_deep(const char *op);
bool tt_cuda_reduction(tt_reduction *g, int reducer, int acc, int then, double by, const tt_array *param, int dtype,
                       char *out, int64_t *index);
/* ... and the tree over `count` accumulators of blocks, for each of `inner` neighbours */
bool tt_cuda_join_parts(int reducer, int acc, tt_array *parts, int64_t count, int64_t outer, int64_t inner, int dtype,
                        char *out);
/* gemm.c: out = a b, of floating matrices; the rest of `g` is filled in */
bool tt_cuda_multiply(tt_gemm *g, const char *a, const char *b, char *out);
/* padded.c: of one matrix of a half type, out = a b by copies with padded rows; a and b: matrices in the memory of
 * `left` and `right`, or beside it. 1: done, 0: it does not pay, -1: an error */
int tt_cuda_multiply_padded(const tt_gemm *g, const tt_array *left, const char *a, const tt_array *right, const char *b,
                            tt_array *out);
/* rows.c: of contiguous rows of n elements; what: TT_STATISTIC_... */
bool tt_cuda_statistics(int what, tt_array *out, const tt_array *x, int64_t n, double by);
/* small.c: of matrices that fit into shared memory. 1: done, 0: not of these, -1: an error */
int tt_cuda_decompose_small(int decomposition, const tt_stack *s);
