/* The update loops of the optimisers. */
#pragma once
#include "backend/optim.h"

typedef void (*tt_update_loop)(char **p, int64_t n, const tt_update *u);

typedef struct {
    tt_update_loop rules[TT_NUM_RULES][2]; /* float32, float64 */
} tt_optim_loops;
