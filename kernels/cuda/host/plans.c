/* Problems that C has NVIDIA's libraries solve itself. The way through Python takes longer than the library's call; so
 * each thread keeps, as it keeps launches (Note [Launching again] in launch.c), what Python made of the problems that
 * it was told of: a plan, and a stream. */
#include "core/thread_exit.h"
#include "cuda/host/direct.h"
#include "cuda/host/launch.h"
#include <stdlib.h>
#include <string.h>

enum { LOG_PLACES = 10, PLACES = 1 << LOG_PLACES };

/* `age`: of the choices that made the plan; `generation`: of launches. */
typedef struct {
    int64_t problem[sizeof(tt_convolution) / sizeof(int64_t)]; /* the largest; that of a product differs in size */
    int size, device, stream, age, generation;
    const void *plan;
    void *handle; /* of the stream */
} kept_plan;

static int present_age; /* how often plans were forgotten */
static __thread kept_plan **plans;

static void forget(void *p) {
    kept_plan **all = p;
    for (int k = 0; k < PLACES; k++) free(all[k]);
    free(all);
    plans = NULL;
}

TT_AT_THREAD_EXIT(forget_at_exit, forget)

int tt_cuda_plans_age(void) { return __atomic_load_n(&present_age, __ATOMIC_RELAXED); }
void tt_cuda_forget_plans(void) { __atomic_fetch_add(&present_age, 1, __ATOMIC_RELAXED); }

static kept_plan **place_of(const int64_t *problem, int size, int stream) {
    uint64_t hash = (uint64_t)stream;
    for (int k = 0; k < size / (int)sizeof *problem; k++)
        hash = (hash ^ (uint64_t)problem[k] ^ hash >> 29) * 0x9e3779b97f4a7c15u;
    return plans + (hash >> (64 - LOG_PLACES));
}

void tt_cuda_keep_plan(int age, int device, const void *problem, int size, const void *plan, void *stream) {
    if (!plans) {
        if (!(plans = calloc(PLACES, sizeof *plans))) return;
        forget_at_exit(plans);
    }
    kept_plan **place = place_of(problem, size, tt_cuda_stream(device));
    if (!*place && !(*place = malloc(sizeof **place))) return;
    **place = (kept_plan){.size = size,
                          .device = device,
                          .stream = tt_cuda_stream(device),
                          .age = age,
                          .generation = tt_cuda_kept_generation(),
                          .plan = plan,
                          .handle = stream};
    memcpy((*place)->problem, problem, (size_t)size);
}

static const kept_plan *find(const void *problem, int size) {
    int device = tt_device - 1, stream = tt_cuda_stream(device), generation = tt_cuda_kept_generation();
    if (!plans || generation % 2 == 0) return NULL;
    const kept_plan *p = *place_of(problem, size, stream);
    return p && p->size == size && p->device == device && p->stream == stream && p->age == tt_cuda_plans_age() &&
                   p->generation == generation && memcmp(p->problem, problem, (size_t)size) == 0 &&
                   tt_is_current(device)
               ? p
               : NULL;
}

/* Memory that a plan works in, to the end of the block. Where there is none, Python finds a plan with less, or says
 * so. To get some may run Python, and so what raises an exception, Ctrl-C for one, or a destructor, whose problems may
 * take the place of what was found. */
static void give_back(tt_array **space) {
    if (*space) tt_free(*space); /* the stream's next work may have it */
}
static int no_room(void) {
    if (tt_error_kind() == TT_PYTHON_ERROR) return -1;
    tt_error_clear(); /* nothing is refused yet */
    return 1;
}
#define WORK_IN(space, nbytes)                                                                                         \
    __attribute__((cleanup(give_back))) tt_array *space = NULL;                                                        \
    if ((nbytes) && !(space = tt_cuda_temporary(TT_U8, nbytes))) return no_room()

int tt_multiply_again(const tt_gemm *g, const void *alpha, const char *a, const char *b, const void *beta,
                      const char *c, char *out, const char *bias) {
    const kept_plan *k = find(g, sizeof *g);
    if (!k) return 1;
    const tt_product_plan *p = k->plan;
    void *stream = k->handle;
    WORK_IN(space, p->workspace);
    return tt_cublas_multiply(p, alpha, a, b, beta, c, out, bias, space ? space->data : NULL, stream) != 0;
}

int tt_convolve_again(const tt_convolution *c, const int64_t addresses[3]) {
    const kept_plan *k = find(c, sizeof *c);
    if (!k) return 1;
    const tt_graph_plan *p = k->plan;
    void *stream = k->handle;
    WORK_IN(space, p->workspace);
    return tt_cudnn_execute(p, 3, (int64_t[]){1, 2, 3}, addresses, space ? space->data : NULL, stream) != 0;
}
