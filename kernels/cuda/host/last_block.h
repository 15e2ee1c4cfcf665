/* Counters for the kernels whose last thread block does the rest: Note [The last thread block] in last_block.c. */
#pragma once
#include "core/tt.h"

#define TT_CUDA_COUNTERS 2048

/* TT_CUDA_COUNTERS of this thread's stream of tt_device, all 0 when a kernel begins; NULL: there are none. False: an
 * error. */
bool tt_cuda_counters(uint32_t **out);
