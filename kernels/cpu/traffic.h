/* The C side of api/traffic.h.
 *
 * Note [Traffic]
 * A profiler may want to know of every block that is taken and given back. While none does, that costs nothing: the usual
 * way has not one instruction for it. Taking memory compares the bytes asked for with the most that can be had; while
 * traffic is recorded, that limit is below zero, so that every request goes the way of those that are too large, where
 * there is time to look. A storage made there has the size class TT_TRACED(c) instead of c, which is negative as that of
 * foreign memory is, and so its end goes another way too. Devices' memory does the same with the function that a storage
 * calls in the end. Blocks taken before the start are given back unseen; the totals tell of them. */
#pragma once
#include "tt.h"
#include "api/traffic.h"

#define TT_TRACED(c) (-2 - (c)) /* and back */
#define TT_MOST_BYTES ((int64_t)1 << 46)

extern int64_t tt_most_bytes; /* TT_MOST_BYTES, or -1 */
static inline bool tt_unusual(int64_t nbytes) { return nbytes > __atomic_load_n(&tt_most_bytes, __ATOMIC_RELAXED); }

void tt_traffic_add(const void *address, int64_t size, int64_t total, int device, int kind);
void tt_cuda_traffic(bool on); /* memory.c of kernels/cuda */
