/* The pool of threads. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* fn runs over [0, n) in chunks of whole multiples of `grain`, on this thread alone when n <= grain. */
typedef void (*tt_range_fn)(void *context, int64_t begin, int64_t end);
void tt_parallel(int64_t n, int64_t grain, tt_range_fn fn, void *context);

/* From true to false, workers that have been woken look for work instead of going to sleep: where short parts by all
 * threads and by one take turns, waking them up (12 us of the caller's, 20 to 30 until they come) takes longer. */
void tt_stay_awake(bool yes);
