/* Memory of devices. */
#include "cuda.h"
#include <stdlib.h>

extern int64_t tt_cuda_segment(int, int64_t);     /* the address, or 0 */
extern int tt_cuda_segment_free(int, int64_t);

static void release(void *p) { tt_cuda_segment_free(0, (int64_t)(intptr_t)p); }

tt_storage *tt_cuda_storage(int64_t nbytes) {
    tt_storage *s = calloc(1, sizeof *s);
    if (!s) return tt_fail(TT_OUT_OF_MEMORY, "out of memory: no room for a storage's header");
    int64_t address = nbytes ? tt_cuda_segment(tt_device - 1, nbytes) : 0;
    if (nbytes && !address) {
        free(s);
        return tt_fail(TT_OUT_OF_MEMORY, "CUDA out of memory: tried to allocate %lld bytes on cuda:%d", (long long)nbytes,
                       tt_device - 1);
    }
    *s = (tt_storage){.data = (char *)(intptr_t)address, .nbytes = nbytes, .refs = 1, .writer = -1, .size_class = -1,
                      .device = (int16_t)tt_device, .owner = (void *)(intptr_t)address, .release = address ? release : NULL};
    return s;
}

tt_array *tt_cuda_temporary(int dtype, int64_t n) { return tt_empty(dtype, 1, &n); }
