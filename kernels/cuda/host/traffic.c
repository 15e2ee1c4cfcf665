/* Records of the traffic of devices' memory, kept in chunks until somebody takes them. Note [Traffic] in traffic.h. */
#include "cuda/host/traffic.h"
#include "core/fork.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#define CHUNK 4096
#define MOST (1 << 23) /* records kept */

typedef struct chunk {
    struct chunk *next;
    int begin, end; /* what of it is still to be taken */
    tt_traffic records[CHUNK];
} chunk;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static chunk *first, *last;
static int64_t kept, dropped;
static bool on;
static __thread int64_t me; /* 0: not asked yet */

static void at_fork(int phase) {
    if (phase == TT_FORK_CHILD) me = 0;
    tt_fork_lock(&lock, phase);
}
TT_AT_FORK(TT_FORK_TRAFFIC, at_fork)

/* With the lock held: where the next record goes; NULL: there is no room. */
static tt_traffic *place(void) {
    if (kept >= MOST) return NULL;
    if (!last || last->end == CHUNK) {
        chunk *c = malloc(sizeof *c);
        if (!c) return NULL;
        c->next = NULL;
        c->begin = c->end = 0;
        if (last) last->next = c;
        else first = c;
        last = c;
    }
    kept++;
    return &last->records[last->end++];
}

void tt_traffic_add(const void *address, int64_t size, int64_t total, int device) {
    struct timespec now;
    if (!me) me = syscall(SYS_gettid);
    pthread_mutex_lock(&lock);
    if (!on) {
        pthread_mutex_unlock(&lock);
        return;
    }
    clock_gettime(CLOCK_MONOTONIC, &now); /* with the lock held, so that records are in order */
    tt_traffic *r = place();
    if (r)
        *r = (tt_traffic){
            (int64_t)now.tv_sec * 1000000000 + now.tv_nsec, (int64_t)(intptr_t)address, size, total, me, device};
    else dropped++;
    pthread_mutex_unlock(&lock);
}

int64_t tt_traffic_take(tt_traffic *out, int64_t n) {
    int64_t taken = 0;
    pthread_mutex_lock(&lock);
    while (first && taken < n) {
        int64_t count = first->end - first->begin;
        if (count > n - taken) count = n - taken;
        memcpy(out + taken, first->records + first->begin, sizeof *out * (size_t)count);
        first->begin += (int)count;
        taken += count;
        if (first->begin < first->end) break;
        chunk *empty = first;
        first = first->next;
        if (!first) last = NULL;
        free(empty);
    }
    kept -= taken;
    pthread_mutex_unlock(&lock);
    return taken;
}

int64_t tt_traffic_dropped(void) {
    pthread_mutex_lock(&lock);
    int64_t n = dropped;
    pthread_mutex_unlock(&lock);
    return n;
}

int tt_traffic_start(void) {
    pthread_mutex_lock(&lock);
    bool was_on = on;
    if (!was_on) {
        while (first) { /* what came between the last take and the last stop */
            chunk *old = first;
            first = first->next;
            free(old);
        }
        last = NULL;
        kept = dropped = 0;
        on = true;
    }
    pthread_mutex_unlock(&lock);
    if (!was_on) {
        tt_traffic_record(true);
        return 0;
    }
    tt_fail(TT_RUNTIME_ERROR, "the traffic of memory is being recorded already");
    return -1;
}

void tt_traffic_stop(void) {
    tt_traffic_record(false);
    pthread_mutex_lock(&lock);
    on = false;
    pthread_mutex_unlock(&lock);
}
