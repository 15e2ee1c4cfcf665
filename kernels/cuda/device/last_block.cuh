/* Work of which the last part falls to whichever thread block is done last: Note [The last thread block] in
 * last_block.c. */
#pragma once
#include "cuda/device/prelude.cuh"

/* Of `sharing` thread blocks that share the counter: has this one come last? It then sees what was stored in all of
 * them by thread 0, and by the others before a barrier in front of this, but must look for it past its processor's
 * cache. */
static TT_DEVICE bool comes_last(uint32_t *counter, uint32_t sharing) {
    bool last = false;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(counter, sharing - 1) == sharing - 1;
        if (last) __threadfence();
    }
    return __syncthreads_or(last);
}
