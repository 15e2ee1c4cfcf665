/* The profiler's records: Note [Records] in records.h. */
#define _GNU_SOURCE
#include "core/records.h"
#include "core/fork.h"
#include "core/threads.h"
#include "core/thread_exit.h"
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#define PIECE 8192 /* words; the first piece of a thread is as large: pages that are not touched cost nothing */
#define MOST_WORDS (5 + 4 * (1 + TT_MAX_NDIM))

typedef struct piece {
    struct piece *next;
    int64_t used, words[PIECE];
} piece;

/* A thread's. `busy`, held for the time of one record, is the lock between its owner and the thread that takes the
 * pieces. */
typedef struct recorder {
    struct recorder *next;
    piece *first, *last;
    int64_t thread;
    char busy;
    bool ended; /* the thread has */
} recorder;

int tt_profiling;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of the list of recorders */
static recorder *recorders;
static int64_t room, dropped; /* bytes; records */
static piece *taken;
static __thread recorder *mine;

static void hold(recorder *r) {
    while (__atomic_test_and_set(&r->busy, __ATOMIC_ACQUIRE)) tt_pause();
}

static void release(recorder *r) { __atomic_clear(&r->busy, __ATOMIC_RELEASE); }

static void thread_ends(void *p) {
    mine = NULL; /* records of later destructors start a new one, or are lost */
    __atomic_store_n(&((recorder *)p)->ended, true, __ATOMIC_RELEASE);
}

TT_AT_THREAD_EXIT(end_at_exit, thread_ends)

static recorder *need_recorder(void) {
    if (mine) return mine;
    recorder *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->thread = syscall(SYS_gettid);
    pthread_mutex_lock(&lock);
    r->next = recorders;
    recorders = r;
    pthread_mutex_unlock(&lock);
    end_at_exit(r);
    return mine = r;
}

/* Appends a record. */
static void keep(const int64_t *words, int n) {
    recorder *r = need_recorder();
    if (!r) return;
    hold(r);
    if (__atomic_load_n(&tt_profiling, __ATOMIC_RELAXED)) {
        piece *p = r->last;
        if (!p || p->used + n > PIECE) {
            p = NULL;
            if (__atomic_sub_fetch(&room, (int64_t)sizeof *p, __ATOMIC_RELAXED) >= 0) p = malloc(sizeof *p);
            if (p) {
                p->next = NULL;
                p->used = 0;
                *(r->last ? &r->last->next : &r->first) = p;
                r->last = p;
            }
        }
        if (p) {
            memcpy(p->words + p->used, words, (size_t)n * sizeof *words);
            p->used += n;
        } else __atomic_fetch_add(&dropped, 1, __ATOMIC_RELAXED);
    }
    release(r);
}

static int operand(int64_t *words, const tt_array *a, int64_t out) {
    int64_t lazy = a->storage->lazy ? TT_PROFILE_LAZY : 0;
    words[0] = a->dtype | (int64_t)a->ndim << 8 | (int64_t)a->storage->device << 16 | (out | lazy) << 32;
    for (int d = 0; d < a->ndim; d++) words[1 + d] = a->shape[d];
    return 1 + a->ndim;
}

void tt_profile_span(int name, int64_t start, int64_t sequence, int64_t stack, tt_array *a, tt_array *b, tt_array *c,
                     tt_array *out) {
    int64_t words[MOST_WORDS];
    tt_array *const in[] = {a, b, c, out};
    const int64_t mark = TT_PROFILE_OUT | (out && (out == a || out == b || out == c) ? TT_PROFILE_GIVEN_BACK : 0);
    int n = 5, operands = 0;
    words[2] = tt_now();
    for (int k = 0; k < 4; k++) {
        if (!in[k]) continue;
        n += operand(words + n, in[k], k == 3 ? mark : 0);
        operands++;
    }
    words[0] = TT_PROFILE_SPAN | operands << 8 | (int64_t)name << 32;
    words[1] = start;
    words[3] = sequence;
    words[4] = stack;
    keep(words, n);
}

void tt_profile_job(int kind, int64_t start, int64_t serial, int threads) {
    keep((int64_t[]){kind | (int64_t)threads << 32, start, tt_now(), serial}, 4);
}

void tt_profile_memory(const void *address, int64_t bytes, int64_t in_use) {
    keep((int64_t[]){TT_PROFILE_MEMORY, tt_now(), (int64_t)(intptr_t)address, bytes, in_use}, 5);
}

void tt_profile_start(int memory, int64_t most_bytes) {
    int64_t n, thread;
    tt_profile_stop();
    while (tt_profile_take(&n, &thread)) {}
    __atomic_store_n(&room, most_bytes, __ATOMIC_RELAXED);
    __atomic_store_n(&dropped, 0, __ATOMIC_RELAXED);
    __atomic_store_n(&tt_profiling, memory ? 2 : 1, __ATOMIC_SEQ_CST);
    if (memory) tt_record_memory(true);
}

void tt_profile_stop(void) {
    tt_record_memory(false);
    __atomic_store_n(&tt_profiling, 0, __ATOMIC_SEQ_CST);
}

int64_t *tt_profile_take(int64_t *n, int64_t *thread) {
    free(taken);
    taken = NULL;
    pthread_mutex_lock(&lock);
    for (recorder **at = &recorders; *at && !taken;) {
        recorder *r = *at;
        bool ended = __atomic_load_n(&r->ended, __ATOMIC_ACQUIRE);
        hold(r);
        if ((taken = r->first)) {
            *thread = r->thread;
            r->first = taken->next;
            if (!r->first) r->last = NULL;
        }
        release(r);
        if (!taken && ended) {
            *at = r->next;
            free(r);
        } else at = &r->next;
    }
    pthread_mutex_unlock(&lock);
    if (!taken) return NULL;
    *n = taken->used;
    return taken->words;
}

int64_t tt_profile_dropped(void) { return __atomic_load_n(&dropped, __ATOMIC_RELAXED); }

/* The child records nothing; what other threads were about to write stays where it is. */
static void at_fork(int phase) {
    tt_fork_lock(&lock, phase);
    if (phase != TT_FORK_CHILD) return;
    tt_profile_stop();
    recorders = NULL;
    mine = NULL;
}
TT_AT_FORK(TT_FORK_RECORDS, at_fork)
