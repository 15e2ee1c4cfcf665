/* Functions of NVIDIA's libraries that C calls itself, by the addresses that Python tells: a step calls them a thousand
 * times. */
#include "cuda/host/direct.h"
#include "api/cuda.h"
#include <pthread.h>

/* cuLaunchKernel's, and what its `extra` says: the arguments are one structure. */
typedef int (*launcher)(void *, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void *, void **,
                        void **);
enum { EXTRA_END, EXTRA_POINTER, EXTRA_SIZE };
static launcher launch_kernel;
static int (*get_current)(void **);
static void *contexts[TT_CUDA_DEVICES];

void tt_cuda_launcher(void *launch, void *current) {
    launch_kernel = (launcher)launch;
    get_current = (int (*)(void **))current;
}

void tt_cuda_context(int device, void *context) { contexts[device] = context; }

bool tt_is_current(int device) {
    void *now = NULL;
    return !contexts[device] || (get_current(&now) == 0 && now == contexts[device]);
}

bool tt_launch_directly(void *function, void *stream, int64_t x, int64_t y, int threads, int64_t shared,
                        const void *args, int nbytes) {
    size_t size = (size_t)nbytes;
    void *extra[] = {(void *)EXTRA_POINTER, (void *)args, (void *)EXTRA_SIZE, &size, (void *)EXTRA_END};
    return launch_kernel(function, (unsigned)x, (unsigned)y, 1, (unsigned)threads, 1, 1, (unsigned)shared, stream, NULL,
                         extra) == 0;
}

/* cuBLASLt's functions, and its number of an attribute. */
typedef int (*multiplier)(void *, void *, const void *, const void *, void *, const void *, void *, const void *,
                          const void *, void *, void *, void *, const void *, void *, size_t, void *);
typedef int (*setter)(void *, int, const void *, size_t);
enum { BIAS_POINTER = 8 };

/* Exchanged: the library's first operand is our b. */
static int run_plan(const tt_product_plan *p, const void *alpha, const void *a, const void *b, const void *beta,
                    const void *c, void *out, void *space, void *stream) {
    multiplier multiply = (multiplier)p->multiply;
    return multiply(p->handle, p->desc, alpha, b, p->a, a, p->b, beta, c, p->c, out, p->c, p->algo, space,
                    (size_t)p->workspace, stream);
}

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a description has room for one bias's address */

int tt_cublas_multiply(const tt_product_plan *plan, const void *alpha, const void *a, const void *b, const void *beta,
                       const void *c, void *out, const void *bias, void *space, void *stream) {
    if (!bias) return run_plan(plan, alpha, a, b, beta, c, out, space, stream);
    pthread_mutex_lock(&lock);
    int status = ((setter)plan->set)(plan->desc, BIAS_POINTER, &bias, sizeof bias);
    if (!status) status = run_plan(plan, alpha, a, b, beta, c, out, space, stream);
    pthread_mutex_unlock(&lock);
    return status;
}

/* cuDNN's numbers. */
enum { VARIANT_PACK = 16, INT64 = 3, VOID_PTR = 6, UIDS = 1000, POINTERS = 1001, WORKSPACE = 1003 };

static int execute(const tt_graph_plan *p, int n, const int64_t *uids, const int64_t *addresses, void *space) {
    int (*create)(int, void **) = (int (*)(int, void **))p->library->create;
    int (*set)(void *, int, int, int64_t, const void *) =
        (int (*)(void *, int, int, int64_t, const void *))p->library->set;
    int (*finalize)(void *) = (int (*)(void *))p->library->finalize;
    int (*run)(void *, void *, void *) = (int (*)(void *, void *, void *))p->library->execute;
    int (*destroy)(void *) = (int (*)(void *))p->library->destroy;
    void *pack = NULL;
    int status = create(VARIANT_PACK, &pack);
    if (!status) status = set(pack, UIDS, INT64, n, uids);
    if (!status) status = set(pack, POINTERS, VOID_PTR, n, addresses);
    if (!status) status = set(pack, WORKSPACE, VOID_PTR, 1, &space);
    if (!status) status = finalize(pack);
    if (!status) status = run(p->library->handle, p->plan, pack);
    if (pack) destroy(pack);
    return status;
}

int tt_cudnn_execute(const tt_graph_plan *plan, int n, const int64_t *uids, const int64_t *addresses, void *space,
                     void *stream) {
    static pthread_mutex_t one_at_a_time = PTHREAD_MUTEX_INITIALIZER; /* a handle has one stream */
    tt_cudnn *library = plan->library;
    int (*set_stream)(void *, void *) = (int (*)(void *, void *))library->set_stream;
    int status = 0;
    pthread_mutex_lock(&one_at_a_time);
    if (library->stream != stream) status = set_stream(library->handle, stream);
    if (!status) {
        library->stream = stream;
        status = execute(plan, n, uids, addresses, space);
    }
    pthread_mutex_unlock(&one_at_a_time);
    return status;
}
