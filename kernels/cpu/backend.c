/* The CPU's table: Note [Backends] in backend/backend.h. */
#include "cpu/cpu.h"

__attribute__((constructor)) static void serve(void) {
    static tt_backend cpu = {
        .name = "cpu", .on_host = true, .longest_row = INT64_MAX,
        .copy = tt_cpu_copy, .fill = tt_cpu_fill, .read = tt_cpu_read, .convert = tt_cpu_convert,
        .elementwise = tt_cpu_elementwise,
        .reduce = tt_cpu_reduce, .reduce_index = tt_cpu_reduce_index, .reduce_var = tt_cpu_reduce_var,
        .reduce_logsumexp = tt_cpu_reduce_logsumexp,
        .softmax = tt_cpu_softmax, .norm = tt_cpu_norm, .norm_weight = tt_cpu_norm_weight,
        .class_loss = tt_cpu_class_loss, .class_loss_backward = tt_cpu_class_loss_backward,
        .class_targets = tt_cpu_class_targets,
        .scan = tt_cpu_scan, .sort = tt_cpu_sort, .move_indexed = tt_cpu_move_indexed,
        .nonzero = tt_cpu_nonzero, .repeat_positions = tt_cpu_repeat_positions, .groups = tt_cpu_groups,
        .search = tt_cpu_search, .isin = tt_cpu_isin, .extremes = tt_cpu_extremes, .histogram = tt_cpu_histogram,
        .one_hot = tt_cpu_one_hot, .add_at = tt_cpu_add_at,
        .rearrange = tt_cpu_rearrange, .zero_triangle = tt_cpu_zero_triangle,
        .random = tt_cpu_random, .dropout = tt_cpu_dropout, .multinomial = tt_cpu_multinomial,
        .permutation = tt_cpu_permutation, .range = tt_cpu_range,
        .update = tt_cpu_update, .product = tt_cpu_product, .conv1d = tt_cpu_conv1d, .decompose = tt_cpu_decompose,
        .run_kernels = tt_cpu_run_kernels,
    };
    tt_register_backend(0, &cpu);
}
