/* CUDA's table: Note [Backends] in backend/backend.h. */
#include "cuda/host/cuda.h"
#include "cuda/device/rows_args.h"

__attribute__((constructor)) static void serve(void) {
    static tt_backend cuda = {
        .name = "cuda", .longest_row = TT_ROW_LIMIT, .updates_halves = true,
        .storage = tt_cuda_storage, .copy = tt_cuda_copy_array, .read = tt_device_read,
        .elementwise = tt_cuda_elementwise, .mul_backward = tt_cuda_mul_backward,
        .reduce = tt_cuda_reduce, .reduce_index = tt_cuda_reduce_index, .reduce_var = tt_cuda_reduce_var,
        .reduce_logsumexp = tt_cuda_reduce_logsumexp,
        .rows_fit = tt_cuda_rows_fit, .softmax = tt_cuda_softmax, .norm = tt_cuda_norm, .norm_weight = tt_cuda_norm_weight,
        .class_loss = tt_cuda_class_loss, .class_loss_backward = tt_cuda_class_loss_backward,
        .class_targets = tt_cuda_class_targets,
        .scan = tt_cuda_scan, .sort = tt_cuda_sort, .move_indexed = tt_cuda_move_indexed,
        .nonzero = tt_cuda_nonzero, .repeat_positions = tt_cuda_repeat_positions, .groups = tt_cuda_groups,
        .search = tt_cuda_search, .isin = tt_cuda_isin, .extremes = tt_cuda_extremes, .histogram = tt_cuda_histogram,
        .one_hot = tt_cuda_one_hot, .add_at = tt_cuda_add_at,
        .join = tt_cuda_join, .rearrange = tt_cuda_rearrange, .zero_triangle = tt_cuda_zero_triangle,
        .random = tt_cuda_random, .dropout = tt_cuda_dropout, .multinomial = tt_cuda_multinomial,
        .permutation = tt_cuda_permutation, .range = tt_cuda_range,
        .norms = tt_cuda_norms, .scale = tt_cuda_scale, .update = tt_cuda_update, .product = tt_cuda_product,
        .run_kernels = tt_cuda_run_kernels,
    };
    tt_register_backend(TT_CUDA_KIND, &cuda);
}
