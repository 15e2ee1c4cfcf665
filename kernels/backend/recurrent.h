/* Recurrent layers, as every backend does them: api/recurrent.h. All operands are contiguous. */
#pragma once
#include "core/tt.h"

/* X(name, gates, gates that are kept) */
#define TT_RECURRENT_KINDS(X) X(rnn_tanh, 1, 0) X(rnn_relu, 1, 0) X(lstm, 4, 4) X(gru, 3, 4)
#define TT_RECURRENT_ENUM(name, gates, kept) TT_RECURRENT_##name,
enum { TT_RECURRENT_KINDS(TT_RECURRENT_ENUM) TT_NUM_RECURRENT_KINDS };

typedef struct {
    int kind, dtype; /* float32 or float64: of b, c and what is saved */
    int stored; /* of x, w, h and their gradients: the same, or a half type on the CPU */
    int64_t gates, kept; /* of the kind */
    int64_t batch, hidden, steps; /* N, H */
    const int64_t *sizes;
    bool reverse;
    tt_array *x, *w, *b, *h0, *c0;
    tt_array *y, *c, *saved; /* results of the forward pass; saved: the gates */
    tt_array *g, *g_c; /* of the derivative */
    tt_array *of_x, *of_h, *of_first;
} tt_recurrent_work;
