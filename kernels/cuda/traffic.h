/* Devices' part of the profiler's view of memory.
 *
 * Note [Traffic]
 * A profiler may want to know of every block of device memory that is taken and given back. While none does, that costs
 * nothing: the usual way has not one instruction for it. Taking memory compares the bytes asked for with the most that can
 * be had; while traffic is recorded, that limit is below zero, so that every request goes the way of those that are too
 * large, where there is time to look. And the function that a storage calls in the end is another one. Blocks taken before
 * the start are given back unseen; the totals tell of them. */
#pragma once
#include "../cpu/tt.h"
#include "../cpu/api/traffic.h"

void tt_traffic_add(const void *address, int64_t size, int64_t total, int device);
void tt_traffic_watch(bool on); /* memory.c */
