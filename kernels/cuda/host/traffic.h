/* Devices' part of the profiler's view of memory.
 *
 * Note [Traffic]
 * A profiler may want to know of every block of device memory that is taken and given back. While none does, that costs
 * nothing: who makes a storage calls the function through a variable, which is as many instructions as calling it by
 * name, and the variable names another function while traffic is recorded. That one tells of the block, and has the
 * storage call another function in the end. Blocks taken before the start are given back unseen; the totals tell of
 * them. */
#pragma once
#include "core/tt.h"
#include "api/traffic.h"

void tt_traffic_add(const void *address, int64_t size, int64_t total, int device);
void tt_traffic_record(bool on); /* memory.c */
