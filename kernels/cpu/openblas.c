/* The BLAS library: opened at the first product or decomposition, and told to use one thread. */
#include "cpu/openblas.h"
#include "core/fork.h"
#include "api/blas.h"
#include <dlfcn.h>
#include <string.h>

tt_blas_functions tt_blas;
static char library[4096];
static bool opened;
static pthread_mutex_t opening = PTHREAD_MUTEX_INITIALIZER;

static void at_fork(int phase) { tt_fork_lock(&opening, phase); }
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

static bool open_library(void) {
    if (!library[0]) {
        tt_fail(TT_RUNTIME_ERROR, "no BLAS library was found for products and decompositions of matrices: install it "
                                  "with 'pip install scipy-openblas32'");
        return false;
    }
    void *handle = dlopen(library, RTLD_NOW | RTLD_LOCAL);
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

bool tt_blas_need(void) {
    if (tt_blas_is_open()) return true;
    pthread_mutex_lock(&opening);
    bool ok = opened || open_library();
    if (ok) __atomic_store_n(&opened, true, __ATOMIC_RELEASE);
    pthread_mutex_unlock(&opening);
    return ok;
}
