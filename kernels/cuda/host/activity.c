/* Buffers for the records of CUPTI, the library that tells what a device did and when. CUPTI asks for buffers and gives
 * them back filled from threads of its own and from within launches, with locks of its own held. Python's interpreter
 * must not be waited for there: a thread that holds it may be waiting for one of those locks. So these callbacks are C,
 * and Python (tinytorch/profiler/cupti.py) takes the filled buffers later. */
#include "cuda/host/cuda.h"
#include "core/fork.h"
#include <stdlib.h>

#define BUFFER ((size_t)4 << 20)
#define MOST 512 /* buffers that wait: 2 GiB; CUPTI counts what it drops when it gets none */
#define ALIGNMENT 64

typedef struct filled {
    struct filled *next;
    void *buffer;
    int64_t bytes;
} filled;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static filled *first, **end = &first;
static int waiting, open;

static void at_fork(int phase) { tt_fork_lock(&lock, phase); }
TT_AT_FORK(TT_FORK_ACTIVITY, at_fork)

void tt_activity_requested(uint8_t **buffer, size_t *size, size_t *max_records) {
    pthread_mutex_lock(&lock);
    bool room = waiting + open < MOST;
    void *p = room ? aligned_alloc(ALIGNMENT, BUFFER) : NULL;
    open += p != NULL;
    pthread_mutex_unlock(&lock);
    *buffer = p;
    *size = p ? BUFFER : 0;
    *max_records = 0; /* as many as fit */
}

void tt_activity_completed(void *context, uint32_t stream, uint8_t *buffer, size_t size, size_t valid) {
    (void)context, (void)stream, (void)size;
    filled *f = valid ? malloc(sizeof *f) : NULL;
    pthread_mutex_lock(&lock);
    open--;
    if (f) {
        *f = (filled){.buffer = buffer, .bytes = (int64_t)valid};
        *end = f;
        end = &f->next;
        waiting++;
    }
    pthread_mutex_unlock(&lock);
    if (!f) free(buffer);
}

void *tt_activity_next(int64_t *bytes) {
    pthread_mutex_lock(&lock);
    filled *f = first;
    if (f) {
        first = f->next;
        if (!first) end = &first;
        waiting--;
    }
    pthread_mutex_unlock(&lock);
    if (!f) return NULL;
    void *buffer = f->buffer;
    *bytes = f->bytes;
    free(f);
    return buffer;
}

void tt_activity_free(void *buffer) { free(buffer); }
