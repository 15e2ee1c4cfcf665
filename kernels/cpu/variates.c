/* Random variates by rejection, of kernels/scalar/variates.h: each element has a stream of its own. */
#include "cpu/cpu.h"
#include "scalar/variates.h"

typedef struct {
    const tt_draw *draw;
    const char *a, *b;
    char *out;
    int dtype;
    void (*fill)(const tt_draw *draw, int64_t first, int64_t n, const double *a, const double *b, double *out);
} job;

#define FILL(kind)                                                                                                     \
    static void fill_##kind(const tt_draw *draw, int64_t first, int64_t n, const double *a, const double *b,           \
                            double *out) {                                                                             \
        for (int64_t i = 0; i < n; i++) {                                                                              \
            tt_source source = {.seed = draw->seed, .draw = draw->draw, .block = (tt_u64)(first + i)};                 \
            double x = tt_variate_##kind(a[i], b ? b[i] : 0, &source);                                                 \
            out[i] = x < draw->a ? draw->a : x;                                                                        \
        }                                                                                                              \
    }
TT_VARIATE_KINDS(FILL)

#define BLOCK 256

static void range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const int64_t size = tt_itemsizes[j->dtype];
    double a[BLOCK], b[BLOCK], out[BLOCK];
    for (int64_t at = begin; at < end; at += BLOCK) {
        int64_t n = end - at < BLOCK ? end - at : BLOCK;
        tt_isa->casts[j->dtype][TT_F64]((char *)a, j->a + at * size, n);
        if (j->b) tt_isa->casts[j->dtype][TT_F64]((char *)b, j->b + at * size, n);
        j->fill(j->draw, at, n, a, j->b ? b : NULL, out);
        tt_isa->casts[TT_F64][j->dtype](j->out + at * size, (char *)out, n);
    }
}

bool tt_cpu_variates(const tt_draw *draw, const tt_array *a, const tt_array *b, tt_array *out) {
#define ENTRY(kind) fill_##kind,
    static void (*const fills[])(const tt_draw *, int64_t, int64_t, const double *, const double *,
                                 double *) = {TT_VARIATE_KINDS(ENTRY)};
    job j = {draw, a->data, b ? b->data : NULL, out->data, out->dtype, fills[draw->kind]};
    if (out->numel) tt_parallel(out->numel, BLOCK, range, &j);
    return true;
}
