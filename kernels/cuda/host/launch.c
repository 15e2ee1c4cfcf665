/* Launches: Note [Launching] in launch.h. */
#include "cuda/host/launch.h"
#include "api/fuse.h"
#include "api/reduce.h"
#include "backend/operators.h"
#include "core/fork.h"
#include "cuda/host/direct.h"
#include "core/thread_exit.h"
#include <stdlib.h>
#include <string.h>

/* Python's part, defined in tinytorch/backends/cuda. -1: an exception, which Python keeps. */
extern int tt_cuda_launch(int, int, int, int64_t, int64_t, int64_t, int, int64_t, void *, int);
extern int tt_cuda_launch_again(int);
extern int tt_cuda_copy(int, int, int, void *, void *, int64_t, int);

void tt_key_parts(int64_t key, int32_t *out) {
    out[0] = (int32_t)(key & 255);
    out[1] = (int32_t)(key >> 8 & 255);
    for (int k = 0; k < 5; k++) out[2 + k] = (int32_t)(key >> (16 + 4 * k) & 15);
    out[7] = (int32_t)(key >> 36);
}

static const struct {
    const char *name;
    int kind;
} families[TT_NUM_FAMILIES] = {
#define INFO(name, kind) {#name, kind},
    TT_FAMILIES(INFO)};
const char *tt_family_name(int family) {
    return family >= 0 && family < TT_NUM_FAMILIES ? families[family].name : NULL;
}
const char *tt_operator_name(int family, int op) {
    switch (families[family].kind) {
    case 1: return tt_op_facts(op)->name;
    case 2: return tt_reducer_facts(op)->name;
    case 3: return tt_rule_name(op);
    case 4: return tt_random_name(op);
    default: return "";
    }
}

/* Note [Launching again]
 * A step launches what the step before launched, with other arguments. To tell Python of a launch takes longer than the
 * launch: so each thread keeps its launches, each with memory for its arguments, and Python keeps what it made of them
 * (function, grid, that memory as a buffer, stream) under the launch's number. The next time it is told the number; or,
 * where it has told the driver's handles, C launches the kernel itself.
 * A thread's launches are in a table with one place for each hash; tables go from threads that end to others. While
 * Python is told of one, it may run other code that launches (a finalizer): that leaves the table alone, since memory
 * for arguments is in use. */
enum { LOG_PLACES = 12, PLACES = 1 << LOG_PLACES }; /* a step of ResNet-50 has five hundred different launches */
#define KEPT_BYTES 1024 /* of arguments; longer ones are rare */

typedef struct {
    int64_t key, x, y, shared;
    int32_t threads, nbytes, device, stream;
    int generation;
    void *function, *handle; /* the driver's, of the kernel and the stream; NULL: Python launches it */
    int64_t args[KEPT_BYTES / 8];
} kept_launch;

typedef struct table {
    kept_launch *places[PLACES];
    int first;          /* number of the first place */
    bool in_use;        /* Python is being told of a launch */
    struct table *next; /* of those that are free */
} table;

static __thread table *launches;
static int present; /* generation; odd: launches are kept */
static table *spare;
static int num_tables;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

int tt_cuda_kept_generation(void) { return __atomic_load_n(&present, __ATOMIC_RELAXED); }

void tt_cuda_keep_launches(int on) {
    int now = tt_cuda_kept_generation();
    __atomic_store_n(&present, now + (now % 2 == on ? 2 : 1), __ATOMIC_RELAXED);
}

static void at_fork(int phase) {
    tt_fork_lock(&lock, phase);
    if (phase == TT_FORK_CHILD) tt_cuda_keep_launches(0); /* Python is to say that there is no device here */
}
TT_AT_FORK(TT_FORK_LAUNCHES, at_fork)

static void give_table(void *p) {
    table *t = p;
    pthread_mutex_lock(&lock);
    t->next = spare;
    spare = t;
    pthread_mutex_unlock(&lock);
    launches = NULL;
}

TT_AT_THREAD_EXIT(give_at_exit, give_table)

static table *take_table(void) {
    pthread_mutex_lock(&lock);
    table *t = spare;
    if (t) spare = t->next;
    else if ((t = calloc(1, sizeof *t))) t->first = PLACES * num_tables++;
    pthread_mutex_unlock(&lock);
    if (t) give_at_exit(t);
    return launches = t;
}

void tt_cuda_keep_handles(int number, void *function, void *stream) {
    kept_launch *k = launches->places[number - launches->first];
    k->function = function;
    k->handle = stream;
}

bool tt_launch(int64_t key, int64_t x, int64_t y, int threads, int64_t shared, const void *args, int nbytes) {
    int device = tt_device - 1, stream = tt_cuda_stream(device), number = -1;
    int now = tt_cuda_kept_generation();
    TT_LEAVE_TO_PYTHON;
    if (now % 2 && nbytes <= KEPT_BYTES && (launches || take_table()) && !launches->in_use) {
        uint64_t hash =
            (uint64_t)key ^ (uint64_t)x << 20 ^ (uint64_t)y << 44 ^ (uint64_t)stream << 56 ^ (uint64_t)threads;
        int at = (int)(hash * 0x9e3779b97f4a7c15u >> (64 - LOG_PLACES));
        kept_launch *k = launches->places[at];
        if (k && k->generation == now && k->key == key && k->x == x && k->y == y && k->threads == threads &&
            k->shared == shared && k->nbytes == nbytes && k->device == device && k->stream == stream) {
            if (k->function && tt_is_current(device) &&
                tt_launch_directly(k->function, k->handle, x, y, threads, shared, args, nbytes))
                return true;
            memcpy(k->args, args, (size_t)nbytes);
            launches->in_use = true;
            bool done = tt_cuda_launch_again(launches->first + at) == 0;
            launches->in_use = false;
            if (done) return true;
            goto failed;
        }
        if (k || (k = launches->places[at] = malloc(sizeof *k))) {
            k->generation = 0; /* nothing, until Python has made something of it */
            k->function = NULL;
            memcpy(k->args, args, (size_t)nbytes);
            number = launches->first + at;
            launches->in_use = true;
            bool done = tt_cuda_launch(number, device, stream, key, x, y, threads, shared, k->args, nbytes) == 0;
            launches->in_use = false;
            if (!done) goto failed;
            k->key = key, k->x = x, k->y = y, k->shared = shared;
            k->threads = threads, k->nbytes = nbytes, k->device = device, k->stream = stream;
            k->generation = now;
            return true;
        }
    }
    if (tt_cuda_launch(-1, device, stream, key, x, y, threads, shared, (void *)args, nbytes) == 0) return true;
failed:
    tt_fail(TT_PYTHON_ERROR, "the kernel could not be launched");
    return false;
}

static __thread bool non_blocking;
int tt_cuda_non_blocking(int on) {
    int before = non_blocking;
    non_blocking = on;
    return before;
}

static bool copy(int kind, void *to, const void *from, int64_t nbytes, int wait) {
    int device = tt_device - 1;
    TT_LEAVE_TO_PYTHON;
    if (!nbytes || tt_cuda_copy(kind, device, tt_cuda_stream(device), to, (void *)from, nbytes, wait) == 0) return true;
    tt_fail(TT_PYTHON_ERROR, "memory could not be copied");
    return false;
}
bool tt_device_read(void *to, const void *from, int64_t nbytes) {
    return copy(TT_COPY_TO_HOST, to, from, nbytes, TT_WAIT) && tt_device_check(tt_device - 1) == 0;
}
bool tt_device_write(void *to, const void *from, int64_t nbytes) {
    return copy(TT_COPY_TO_DEVICE, to, from, nbytes, TT_TAKEN);
}

/* Of memory that others made we do not know what it is. A graph would read the CPU's memory whenever it runs: only what
 * is page-locked may be left to it. */
bool tt_upload(void *to, const tt_array *from) {
    bool foreign = from->storage->size_class == -1, pinned = tt_is_pinned((tt_array *)from);
    int wait = pinned && non_blocking ? TT_LEFT : foreign || tt_is_capturing() ? TT_WAIT : TT_TAKEN;
    return copy(TT_COPY_TO_DEVICE, to, from->data, from->numel * tt_itemsizes[from->dtype], wait) &&
           (wait != TT_LEFT || tt_pinned_used(from, tt_device - 1));
}
bool tt_download(const tt_array *to, const void *from) {
    int wait = non_blocking && tt_is_pinned((tt_array *)to) ? TT_LEFT : TT_WAIT;
    if (!copy(TT_COPY_TO_HOST, to->data, from, to->numel * tt_itemsizes[to->dtype], wait)) return false;
    return wait == TT_WAIT ? tt_device_check(tt_device - 1) == 0 : tt_pinned_used(to, tt_device - 1);
}
bool tt_is_non_blocking(void) { return non_blocking; }

tt_divider tt_divider_of(int64_t size) {
    uint32_t shift = 0;
    while (shift < 31 && ((uint32_t)1 << shift) < (uint32_t)size) shift++;
    uint64_t magic = (((uint64_t)1 << 32) * (((uint64_t)1 << shift) - (uint64_t)size)) / (uint64_t)size + 1;
    return (tt_divider){(uint32_t)size, (uint32_t)magic, shift};
}
