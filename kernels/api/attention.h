/* Scaled dot product attention of query (N, H, L, E), key (N, K, S, E) and value (N, K, S, V), all of one floating
 * dtype: softmax(query key^T scale + mask) value, of shape (N, H, L, V). H is a multiple of K: each head of keys serves
 * H / K of the queries, one after another. `mask` is NULL or of 4 dimensions that broadcast to (N, H, L, S), bool (true
 * takes part) or of the dtype computed in. With `causal`, query i sees keys 0 to i. A weight is kept with probability
 * `keep`, by the numbers of the draw `draw` of a stream (`place`: as of tt_generator): those of tt_random's mask of
 * shape (N, H, L, S) in the dtype computed in. A row that sees no key is 0. */
#pragma once
#include "api/core.h"

/* `kernel`: who computes it, where a device has a library for it: that if it can, never that, that or nobody */
enum { TT_ATTENTION_ANY = 0, TT_ATTENTION_OWN, TT_ATTENTION_LIBRARY };

/* tt_second() then gives the logarithm of the sum of exponentials of each row (N, H, L), which the derivative takes;
 * infinity of a row that sees no key */
tt_array *tt_attention(tt_array *query, tt_array *key, tt_array *value, tt_array *mask, double scale, int causal,
                       double keep, uint64_t seed, uint64_t draw, const uint64_t *place, int kernel);
/* grads: of query, key and value, for g, the result's; 0, or -1 and none of them */
int tt_attention_backward(tt_array *g, tt_array *query, tt_array *key, tt_array *value, tt_array *out, tt_array *lse,
                          tt_array *mask, double scale, int causal, double keep, uint64_t seed, uint64_t draw,
                          const uint64_t *place, int kernel, tt_array **grads);
