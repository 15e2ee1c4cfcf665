/* Functions of NVIDIA's libraries that C calls itself, by the addresses that Python tells: a step calls them a thousand
 * times. */
#include "cuda/host/direct.h"
#include "api/cuda.h"

/* cuLaunchKernel's, and what its `extra` says: the arguments are one structure. */
typedef int (*launcher)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);
enum { EXTRA_END, EXTRA_POINTER, EXTRA_SIZE };
static launcher launch_kernel;

void tt_cuda_launcher(void *function) { launch_kernel = (launcher)function; }

bool tt_launch_directly(void *function, void *stream, int64_t x, int64_t y, int threads, int64_t shared,
                        const void *args, int nbytes) {
    size_t size = (size_t)nbytes;
    void *extra[] = {(void *)EXTRA_POINTER, (void *)args, (void *)EXTRA_SIZE, &size, (void *)EXTRA_END};
    return launch_kernel(function, (unsigned)x, (unsigned)y, 1, (unsigned)threads, 1, 1, (unsigned)shared, stream, NULL,
                         extra) == 0;
}

/* cuDNN's names and numbers. */
enum { VARIANT_PACK = 16, INT64 = 3, VOID_PTR = 6, UIDS = 1000, POINTERS = 1001, WORKSPACE = 1003 };
static struct {
    int (*create)(int, void **);
    int (*set)(void *, int, int, int64_t, const void *);
    int (*finalize)(void *);
    int (*execute)(void *, void *, void *);
    int (*destroy)(void *);
} dnn;

void tt_cudnn_functions(void *create, void *set, void *finalize, void *execute, void *destroy) {
    dnn.create = (int (*)(int, void **))create;
    dnn.set = (int (*)(void *, int, int, int64_t, const void *))set;
    dnn.finalize = (int (*)(void *))finalize;
    dnn.execute = (int (*)(void *, void *, void *))execute;
    dnn.destroy = (int (*)(void *))destroy;
}

int tt_cudnn_execute(void *handle, void *plan, int n, const int64_t *uids, const int64_t *addresses,
                     int64_t workspace) {
    void *pack = NULL;
    int status = dnn.create(VARIANT_PACK, &pack);
    if (!status) status = dnn.set(pack, UIDS, INT64, n, uids);
    if (!status) status = dnn.set(pack, POINTERS, VOID_PTR, n, addresses);
    if (!status) status = dnn.set(pack, WORKSPACE, VOID_PTR, 1, &workspace);
    if (!status) status = dnn.finalize(pack);
    if (!status) status = dnn.execute(handle, plan, pack);
    if (pack) dnn.destroy(pack);
    return status;
}
