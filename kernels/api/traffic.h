/* Every block of device memory that is taken and given back, for who wants to know: Note [Traffic] in
 * kernels/cuda/host/traffic.h. */
#pragma once
#include "api/core.h"

typedef struct tt_traffic {
    int64_t time;    /* ns, CLOCK_MONOTONIC */
    int64_t address; /* of the block; it names the block until it is given back */
    int64_t size;    /* bytes of the block, negative when it is given back */
    int64_t total;   /* of the device, in use afterwards */
    int64_t thread;  /* as the system numbers it: threading.get_native_id() */
    int64_t device;  /* counts from 0; -1: page-locked memory of the CPU's */
} tt_traffic;

int tt_traffic_start(void); /* -1: it is on already */
void tt_traffic_stop(void);
int64_t tt_traffic_take(tt_traffic *out, int64_t n); /* the oldest, at most n, which are forgotten; how many */
int64_t tt_traffic_dropped(void);                    /* since start: those there was no room for */
