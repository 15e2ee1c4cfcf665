/* Attention, as every backend does it: api/attention.h. */
#pragma once
#include "api/attention.h"
#include "backend/random.h"

typedef struct {
    tt_array *query, *key, *value, *mask; /* mask may be NULL */
    tt_array *out, *lse;                  /* lse: of the dtype computed in */
    tt_array *g, *grads[3];               /* of the derivative; else NULL */
    int64_t batch, heads, of_keys;        /* of_keys: heads of keys and values */
    int64_t rows, keys, width, out_width; /* L, S, E, V */
    double scale;
    bool causal, drops;
    int kernel; /* TT_ATTENTION_ANY ... */
    tt_draw draw; /* of the mask of weights that are kept */
} tt_attention_work;
