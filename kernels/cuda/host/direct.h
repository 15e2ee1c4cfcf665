/* direct.c */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* Is the device's context this thread's? Launches and libraries' calls go to the one that is. */
bool tt_is_current(int device);
/* Launches a kernel by the driver's handles of it and of a stream. False: the driver refused. */
bool tt_launch_directly(void *function, void *stream, int64_t x, int64_t y, int threads, int64_t shared,
                        const void *args, int nbytes);
