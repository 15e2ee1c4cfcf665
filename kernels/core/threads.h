/* The pool of threads. */
#pragma once
#include <stdbool.h>
#include <stdint.h>

/* fn runs over [0, n) in chunks of whole multiples of `grain`, on this thread alone when n <= grain. */
typedef void (*tt_range_fn)(void *context, int64_t begin, int64_t end);
void tt_parallel(int64_t n, int64_t grain, tt_range_fn fn, void *context);

/* Work that the first worker does when it has nothing else to do: Note [Work behind] in fuse/jobs.h, which sets this. */
typedef struct {
    int waits;                     /* there is some, and none has begun; atomic */
    void (*run)(void);
    bool (*on_callers_core)(void); /* where the worker had better sleep when it has nothing to do */
} tt_background_work;
extern tt_background_work tt_background;
void tt_wake_worker(void); /* there is work for the first worker */
