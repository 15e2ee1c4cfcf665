/* Random variates by rejection, of kernels/scalar/variates.h: each element has a stream of its own. */
#include "cpu/cpu.h"
#include "scalar/variates.h"

typedef struct {
    const tt_draw *draw;
    const double *a, *b;
    double *out;
} job;

#define RANGE(kind)                                                                                                    \
    static void range_of_##kind(void *context, int64_t begin, int64_t end) {                                           \
        const job *j = context;                                                                                        \
        for (int64_t i = begin; i < end; i++) {                                                                        \
            tt_source source = {.seed = j->draw->seed, .draw = j->draw->draw, .block = (tt_u64)i};                     \
            j->out[i] = tt_variate_##kind(j->a[i], j->b ? j->b[i] : 0, &source);                                       \
        }                                                                                                              \
    }
TT_VARIATE_KINDS(RANGE)

bool tt_cpu_variates(const tt_draw *draw, const tt_array *a, const tt_array *b, tt_array *out) {
#define ENTRY(kind) range_of_##kind,
    static void (*const ranges[])(void *, int64_t, int64_t) = {TT_VARIATE_KINDS(ENTRY)};
    job j = {draw, (const double *)a->data, b ? (const double *)b->data : NULL, (double *)out->data};
    if (out->numel) tt_parallel(out->numel, 256, ranges[draw->kind], &j);
    return true;
}
