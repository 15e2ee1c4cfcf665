/* Which of many tensors a block works on. */
#pragma once
#include "cuda/device/prelude.cuh"

/* The last of n tensors whose first block is `block` or one before it. */
static TT_DEVICE int tt_tensor_of(const uint32_t *first, int n, uint32_t block) {
    int tensor = 0, after = n;
    while (after - tensor > 1) {
        const int middle = (tensor + after) / 2;
        if (first[middle] <= block) tensor = middle;
        else after = middle;
    }
    return tensor;
}
