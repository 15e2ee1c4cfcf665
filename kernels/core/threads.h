/* The pool of threads. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* fn runs over [0, n) in chunks of whole multiples of `grain`, on this thread alone when n <= grain. */
typedef void (*tt_range_fn)(void *context, int64_t begin, int64_t end);
void tt_parallel(int64_t n, int64_t grain, tt_range_fn fn, void *context);

/* From true to false, workers look for work ten times longer before they go to sleep: where parts by all threads and
 * parts by one take turns, each of some ten us, waking them up (12 us of the caller's, 20 to 30 until they come) takes
 * as long. `lu_factor` of 512 x 512 floats on two cores of a Xeon: 1.17 -> 1.02 ms. */
void tt_stay_awake(bool yes);
