/* One layer of a recurrent network, in one direction. The rows of all sequences lie step by step, `sizes[t]` of them at
 * step t, never more than at the step before: sequences are sorted by length. `x` (rows, G H) holds what the inputs
 * contribute to the G gates of H numbers each, which are added to h w^T + b, of h before the step; w is (G H, H), b (G
 * H). `h0` (N, H) is h before a sequence's first step, which is its last one with `reverse`. Gates, as PyTorch orders
 * them: rnn_tanh, rnn_relu (G = 1): h = tanh or relu of it
 * lstm (G = 4): i, f, g, o; c = f c + i g, h = o tanh(c), where i, f, o are sigmoid and g is tanh of it
 * gru (G = 3): r, z, n; h = (1 - z) n + z h, where n = tanh(x + r (h w^T + b))
 *
 * On the CPU x, w, h0, y and their gradients may be of a half type; b, c and the gates are float32 then. */
#pragma once
#include "api/core.h"

int tt_recurrent_kind(const char *name); /* -1: there is none */
/* y (rows, H), h after each step. more: c after each step, NULL but for lstm; the gates (rows, 4 H), NULL but for lstm
 * and gru, whose fourth is h w^T + b of n. c0 is NULL but for lstm. */
tt_array *tt_recurrent(int kind, tt_array *x, tt_array *w, tt_array *b, tt_array *h0, tt_array *c0, int64_t steps,
                       int64_t *sizes, int reverse, tt_array **more);
/* The gradient of x for g and g_c, those of y and c, of which one may be NULL. more: that of h w^T + b, NULL but for
 * gru, where the two differ; and of what of the first state goes past w (N, H), NULL for rnn: of c0, or of h0 times
 * z. */
tt_array *tt_recurrent_backward(int kind, tt_array *g, tt_array *g_c, tt_array *w, tt_array *y, tt_array *c,
                                tt_array *gates, tt_array *h0, tt_array *c0, int64_t steps, int64_t *sizes, int reverse,
                                tt_array **more);
