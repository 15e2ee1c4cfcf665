/* CUDA's table: Note [Backends] in backend/backend.h. */
#include "cuda/host/cuda.h"
#include "cuda/device/rows_args.h"

#define ENTRY(entry) .entry = tt_cuda_##entry,

__attribute__((constructor)) static void serve(void) {
    /* clang-format off */
    static tt_backend cuda = {
        TT_CUDA_ENTRIES(ENTRY)
        .name = "cuda",
        .longest_row = TT_ROW_LIMIT,
        .updates_halves = true,
        .copy = tt_cuda_copy_array,
        .read = tt_device_read,
    };
    /* clang-format on */
    tt_register_backend(TT_CUDA_KIND, &cuda);
}
