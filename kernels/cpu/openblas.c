/* The BLAS library: opened at the first product or decomposition, and told to use one thread.
 *
 * Note [The memory of OpenBLAS]
 * Each thread inside of OpenBLAS uses a buffer. It keeps those that it has, as many as there were threads inside at
 * once; where it needs another one and gets no memory, it ends the process. So we look before whether there is as much
 * memory: when the library is opened, and, where a process may have no more than a given amount, whenever more than one
 * thread is about to be inside. Where there is not, a product is left to one thread. The memory that was found is given
 * up at once, and another thread of the user's may be quicker to take it: that is left to luck. */
#include "cpu/openblas.h"
#include "core/fork.h"
#include "api/blas.h"
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>

#define BUFFER ((int64_t)32 << 20) /* of one thread, in scipy-openblas32 */
#define ARENA ((int64_t)64 << 20)  /* that malloc may reserve at a thread's first call */
#define SLACK ((int64_t)1 << 20)   /* small allocations on the way */

tt_blas_functions tt_blas;
static char library[4096];
static bool opened;
static bool limited;   /* is memory given to this process by measure? */
static int inside;     /* threads inside, since it is */
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static void at_fork(int phase) {
    tt_fork_lock(&opening, phase);
    if (phase == TT_FORK_CHILD) inside = 0;
}
TT_AT_FORK(TT_FORK_LIBRARIES, at_fork)

int tt_blas_library(const char *path) {
    if (strlen(path) >= sizeof library) {
        tt_fail(TT_VALUE_ERROR, "the path of the BLAS library is too long");
        return -1;
    }
    strcpy(library, path);
    return 0;
}

int tt_blas_is_open(void) { return __atomic_load_n(&opened, __ATOMIC_ACQUIRE); }

/* Is there as much memory? */
static bool has_room(int64_t bytes, const char *what) {
    void *p = mmap(NULL, (size_t)bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (p != MAP_FAILED) {
        munmap(p, (size_t)bytes);
        return true;
    }
    tt_fail(TT_OUT_OF_MEMORY, "out of memory: there are no %lld MB for %s", (long long)(bytes >> 20), what);
    return false;
}

/* Address space may be limited (ulimit -v), or the system may not give more than it has (vm.overcommit_memory = 2). */
static bool is_limited(void) {
    static int strict = -1;
    struct rlimit limit;
    if (strict < 0) {
        FILE *file = fopen("/proc/sys/vm/overcommit_memory", "re");
        strict = file && fgetc(file) == '2';
        if (file) fclose(file);
    }
    return strict || (getrlimit(RLIMIT_AS, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY) ||
           (getrlimit(RLIMIT_DATA, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY);
}

/* Its constructor would start threads that are never used, and end the process where it may not. */
static void *open_for_one_thread(void) {
    static const char name[] = "OPENBLAS_NUM_THREADS";
    const char *set = getenv(name);
    char *before = set ? strdup(set) : NULL;
    setenv(name, "1", 1);
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
    if (before) setenv(name, before, 1);
    else unsetenv(name);
    free(before);
    return handle;
}

static bool open_library(void) {
    if (!library[0]) {
        tt_fail(TT_RUNTIME_ERROR, "no BLAS library was found for products and decompositions of matrices: install it "
                                  "with 'pip install scipy-openblas32'");
        return false;
    }
    struct stat file;
    int64_t size = stat(library, &file) == 0 ? file.st_size : 0;
    if (!has_room(size + 2 * BUFFER + 4 * SLACK, "the BLAS library")) return false; /* one buffer is its own */
    void *handle = open_for_one_thread();
    if (!handle) {
        tt_fail(TT_RUNTIME_ERROR, "the BLAS library of scipy-openblas32 cannot be opened: %s", dlerror());
        return false;
    }
#define SYMBOL(name, symbol, ...) {&tt_blas.name, "scipy_" #symbol},
    const struct {
        void *where;
        const char *name;
    } symbols[] = {TT_BLAS_SYMBOLS(SYMBOL)};
#undef SYMBOL
    for (size_t k = 0; k < sizeof symbols / sizeof *symbols; k++) {
        void *symbol = dlsym(handle, symbols[k].name);
        if (!symbol) {
            tt_fail(TT_RUNTIME_ERROR, "the BLAS library of scipy-openblas32 has no function %s", symbols[k].name);
            dlclose(handle);
            return false;
        }
        memcpy(symbols[k].where, &symbol, sizeof symbol);
    }
    tt_blas.set_num_threads(1);
    return true;
}

/* So that the first thread's buffer is there; a small product might do without. */
static void call_once(void) {
    double one = 1;
    tt_blas.dpotrf(COL_MAJOR, 'L', 1, &one, 1);
}

static bool open_once(void) {
    pthread_mutex_lock(&opening);
    bool ok = opened || open_library();
    if (ok && !opened) {
        call_once();
        __atomic_store_n(&limited, is_limited(), __ATOMIC_RELAXED);
        __atomic_store_n(&opened, true, __ATOMIC_RELEASE);
    }
    pthread_mutex_unlock(&opening);
    return ok;
}

static bool has_buffers(int threads) {
    return threads <= 1 || has_room((threads - 1) * (BUFFER + ARENA + SLACK), "what BLAS needs for several threads");
}

int tt_blas_enter(int threads, int *claimed) {
    *claimed = 0;
    if (!tt_blas_is_open() && !open_once()) return 0;
    bool counts = threads > 1 ? is_limited() : __atomic_load_n(&limited, __ATOMIC_RELAXED);
    if (threads > 1) __atomic_store_n(&limited, counts, __ATOMIC_RELAXED);
    if (!counts) return threads;
    int all = __atomic_add_fetch(&inside, threads, __ATOMIC_RELAXED);
    if (!has_buffers(all)) {
        all = __atomic_sub_fetch(&inside, threads - 1, __ATOMIC_RELAXED);
        threads = 1;
        if (!has_buffers(all)) threads = 0;
    }
    if (threads) *claimed = threads;
    else tt_blas_leave(1);
    return threads;
}

void tt_blas_leave(int claimed) {
    if (claimed) __atomic_sub_fetch(&inside, claimed, __ATOMIC_RELAXED);
}
