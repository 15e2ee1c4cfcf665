/* The CPU's backend. */
#pragma once
#include "backend/backend.h"
#include "backend/now.h"
#include "cpu/simd.h"

/* The entries of its table: `entry` is tt_cpu_<entry>. Their types, and what each has to do, stand in
 * backend/backend.h. */
/* clang-format off */
#define TT_CPU_ENTRIES(X) \
    X(copy) X(fill) X(read) X(convert) X(elementwise) X(reduce) X(reduce_index) X(reduce_var) X(reduce_logsumexp) \
    X(softmax) X(norm) X(norm_weight) X(batch_statistics) X(batch_norm) X(batch_norm_sums) X(group_norm) X(class_loss) \
    X(class_loss_backward) X(class_targets) X(scan) X(sort) X(move_indexed) X(nonzero) X(repeat_positions) X(groups) \
    X(distinct) X(search) X(isin) X(extremes) X(histogram) X(one_hot) X(add_at) X(rearrange) X(zero_triangle) \
    X(random) X(dropout) X(multinomial) X(variates) X(permutation) X(range) X(update) X(product) X(attention) \
    X(attention_backward) X(decompose) X(fft) X(pool) X(resample) X(conv) X(unfold) X(recurrent) \
    X(recurrent_backward) X(sparse_product) X(sparse_dots) X(run_kernels)
/* clang-format on */
#define TT_DECLARE(entry) TT_ENTRY_TYPE(entry) tt_cpu_##entry;
TT_CPU_ENTRIES(TT_DECLARE)
#undef TT_DECLARE
