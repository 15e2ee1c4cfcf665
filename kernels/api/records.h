/* The profiler's records (tinytorch/profiler/collect.py). Note [Records] in kernels/core/records.h. */
#pragma once
#include "api/core.h"

enum { TT_PROFILE_SPAN, TT_PROFILE_JOB, TT_PROFILE_SHARE, TT_PROFILE_MEMORY };

/* From now on records are kept, of all threads, up to so many bytes; what was kept before is dropped. */
void tt_profile_start(int memory, int64_t most_bytes);
void tt_profile_stop(void);
/* A piece of what was recorded: n words, by a thread (the system's number). NULL: that was all. The pieces of a thread
 * come in order. The words are gone at the next call. */
int64_t *tt_profile_take(int64_t *n, int64_t *thread);
int64_t tt_profile_dropped(void); /* records for which there was no room */
/* What began at `start` ends now. Operands may be NULL. */
void tt_profile_span(int name, int64_t start, int64_t sequence, int64_t stack, tt_array *a, tt_array *b, tt_array *c,
                     tt_array *out);
