/* Counters of thread blocks that are done.
 *
 * Note [The last thread block]
 * Where thread blocks leave parts of one result, the one that is done last may join them, without another launch. Which
 * one that is varies, what it computes does not. Each of them adds one to a counter of that result, and atomicInc makes
 * a 0 of the number of all: so counters are 0 between kernels, also where one could not be launched, and are set to 0
 * only when they are made.
 *
 * Kernels that may run at the same time must not share counters. Each stream of a device has its own, which it has set
 * to 0 itself, and what it is told to do is done in order. But a graph runs on any stream, and parts of it beside each
 * other: for kernels of a graph there are no counters. */
#include "cuda/host/cuda.h"
#include "cuda/host/last_block.h"

/* Python's part, defined in tinytorch/backends/cuda: see memory.c. */
extern int64_t tt_cuda_segment(int, int64_t);
extern int tt_cuda_segment_free(int, int64_t);

static uint32_t *counters[TT_CUDA_DEVICES][TT_CUDA_STREAMS];
static const uint32_t zeros[TT_CUDA_COUNTERS];

bool tt_cuda_counters(uint32_t **out) {
    int device = tt_device - 1;
    uint32_t **own = &counters[device][tt_cuda_stream(device)], *before = NULL;
    *out = NULL;
    if (tt_is_capturing() || (*out = __atomic_load_n(own, __ATOMIC_ACQUIRE))) return true;
    int64_t address;
    {
        TT_LEAVE_TO_PYTHON;
        address = tt_cuda_segment(device, sizeof zeros);
    }
    if (address < 0) {
        tt_fail(TT_PYTHON_ERROR, "memory could not be allocated");
        return false;
    }
    if (!address) return true;
    bool made = tt_device_write((void *)(intptr_t)address, zeros, sizeof zeros);
    if (made) *out = (uint32_t *)(intptr_t)address;
    if (made && __atomic_compare_exchange_n(own, &before, *out, false, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE)) return true;
    *out = before; /* another thread was faster */
    TT_LEAVE_TO_PYTHON;
    return tt_cuda_segment_free(device, address) == 0 && made;
}
