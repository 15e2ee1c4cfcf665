/* Work of which the last part falls to whichever thread block is done last: Note [The last thread block] in last.c. */
#pragma once
#include "cuda/prelude.cuh"

/* Of as many thread blocks as share the counter: has this one come last? It then sees what was stored before the barrier
 * in front of this (or by thread 0) in all of them; it must not look for that in its processor's cache. */
static TT_DEVICE bool comes_last(uint32_t *counter, uint32_t sharing) {
    bool last = false;
    if (threadIdx.x == 0) {
        __threadfence();
        last = atomicInc(counter, sharing - 1) == sharing - 1;
        __threadfence();
    }
    return __syncthreads_or(last);
}
