/* Records that C itself makes for the profiler.
 *
 * Note [Records]
 * While a profiler is open (tt_profiling), every thread appends records to pieces of memory of its own. No code that
 * runs while none is open looks at tt_profiling, but where work is slow anyway: a job that is handed to several
 * threads, an allocation that does not come from the thread's own blocks. Operators call tt_profile_span from
 * Python's wrappers, which exist only while a profiler is open.
 *
 * A record is a number of 64-bit words. The first: kind, and kind's own in the upper half.
 *   SPAN    (name << 32 | operands << 8), start, end, sequence, stack; and of each operand dtype | ndim << 8 |
 *           device << 16 | OUT << 32 | PENDING << 33 | GIVEN_BACK << 34 (the result is an operand), and its sizes
 *   JOB     (threads << 32), start, end, serial: in the thread that had work for the pool
 *   SHARE   start, end, serial: in a thread of the pool
 *   MEMORY  time, address, bytes (< 0: given back), bytes in use after
 * Times are nanoseconds of CLOCK_MONOTONIC, as Python's time.perf_counter_ns. */
#pragma once
#include "core/tt.h"
#include "api/records.h"
#include <time.h>

enum { TT_PROFILE_OUT = 1, TT_PROFILE_LAZY = 2, TT_PROFILE_GIVEN_BACK = 4 };

extern int tt_profiling; /* 1: records are kept; 2: those of memory too */

static inline int64_t tt_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return t.tv_sec * 1000000000 + t.tv_nsec;
}

void tt_profile_job(int kind, int64_t start, int64_t serial, int threads);
void tt_record_memory(bool on); /* storage.c */
void tt_profile_memory(const void *address, int64_t bytes, int64_t in_use);
