/* The pool of threads. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* fn runs over [0, n) in chunks of whole multiples of `grain`, on this thread alone when n <= grain. */
typedef void (*tt_range_fn)(void *context, int64_t begin, int64_t end);
void tt_parallel(int64_t n, int64_t grain, tt_range_fn fn, void *context);
/* The same for what goes through memory once: every second time from the end of each thread's share. */
void tt_parallel_to_and_fro(int64_t n, int64_t grain, tt_range_fn fn, void *context);

/* For loops that wait. */
static inline void tt_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}
