/* Fused mode's compiled tier, C side: kernels that wait for the compiler, and functions that come back from it. */
#include "core/fork.h"
#include "fuse/fuse.h"
#include <dlfcn.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <time.h>

#define QUEUE 1024
static tt_kernel *queue[QUEUE];
static int first, count;
static bool woken; /* see tt_kernel_wake */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t more = PTHREAD_COND_INITIALIZER;
static pthread_mutex_t loading =
    PTHREAD_MUTEX_INITIALIZER; /* a fork halfway through dlopen would leave the loader in disorder */

static void want(tt_kernel *k) {
    int64_t none = 0;
    bool work = false; /* a kernel that only copies or reduces memory has nothing to compile */
    for (int i = 0; i < k->num_instrs; i++) work |= k->instrs[i].level == 1;
    if (!__atomic_compare_exchange_n(&k->state, &none, work ? 1 : -1, false, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED) ||
        !work)
        return;
    pthread_mutex_lock(&lock);
    if (count < QUEUE) {
        queue[(first + count++) % QUEUE] = k;
        pthread_cond_signal(&more);
    } else __atomic_store_n(&k->state, 0, __ATOMIC_RELEASE); /* another time */
    pthread_mutex_unlock(&lock);
}

void tt_program_want(tt_program *p) {
    int64_t hot = tt_fuse_setting(TT_FUSE_HOT_RUNS);
    if (hot < 0 || __atomic_load_n(&p->runs, __ATOMIC_RELAXED) < hot) return;
    for (int k = 0; k < p->num_kernels; k++)
        if (__atomic_load_n(&p->kernels[k].state, __ATOMIC_RELAXED) == 0) want(&p->kernels[k]);
}

tt_kernel *tt_kernel_wanted(int milliseconds) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_sec += milliseconds / 1000;
    until.tv_nsec += milliseconds % 1000 * 1000000L;
    if (until.tv_nsec >= 1000000000L) {
        until.tv_sec++;
        until.tv_nsec -= 1000000000L;
    }
    tt_kernel *k = NULL;
    pthread_mutex_lock(&lock);
    while (count == 0 && !woken && milliseconds > 0 && pthread_cond_timedwait(&more, &lock, &until) != ETIMEDOUT) {}
    if (count) {
        k = queue[first];
        first = (first + 1) % QUEUE;
        count--;
    } else woken = false;
    pthread_mutex_unlock(&lock);
    return k;
}

void tt_kernel_wake(void) {
    pthread_mutex_lock(&lock);
    woken = true;
    pthread_cond_signal(&more);
    pthread_mutex_unlock(&lock);
}

static void at_fork(int phase) {
    if (phase == TT_FORK_CHILD)
        pthread_cond_init(&more, NULL); /* who waited here did not come along, but it would wait for him */
    tt_fork_lock(&lock, phase);
    tt_fork_lock(&loading, phase);
}
TT_AT_FORK(TT_FORK_COMPILED, at_fork)

int tt_kernel_install(tt_kernel *k, const char *path, const char *prefix) {
    void *functions[64];
    char name[256];
    pthread_mutex_lock(&loading);
    void *handle = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    pthread_mutex_unlock(&loading);
    if (!handle) {
        tt_fail(TT_RUNTIME_ERROR, "fuse: cannot load a compiled kernel: %s", dlerror());
        return -1;
    }
    if (k->num_stages > 64) {
        tt_fail(TT_RUNTIME_ERROR, "fuse: a kernel of %d stages", k->num_stages);
        return -1;
    }
    for (int s = 0; s < k->num_stages; s++) {
        snprintf(name, sizeof name, "%s%d", prefix, s);
        if (!(functions[s] = dlsym(handle, name))) {
            dlclose(handle);
            tt_fail(TT_RUNTIME_ERROR, "fuse: a compiled kernel lacks the function %s", name);
            return -1;
        }
    }
    for (int s = 0; s < k->num_stages; s++) __atomic_store_n(&k->compiled[s], functions[s], __ATOMIC_RELEASE);
    __atomic_store_n(&k->state, 2, __ATOMIC_RELEASE);
    return 0;
}

void tt_kernel_install_device(tt_kernel *k, int64_t number, int64_t detail) {
    k->launch = number;
    k->detail = detail;
    __atomic_store_n(&k->state, 2, __ATOMIC_RELEASE);
}

void tt_kernel_refuse(tt_kernel *k) { __atomic_store_n(&k->state, -1, __ATOMIC_RELEASE); }
