/* Backward of mul, and `tt_second`, the second result of a C call. */
#include "fuse/fuse.h"
#include "backend/backend.h"
#include "ops/second.h"
#include <string.h>

/* May one kernel make both products? */
static bool joint(const tt_array *g, const tt_array *a) {
    return tt_current(a) && a->flags & TT_FLAG_CONTIGUOUS && a->dtype == g->dtype && !a->storage->lazy &&
           a->ndim == g->ndim && memcmp(a->shape, g->shape, sizeof(int64_t) * (size_t)g->ndim) == 0;
}

__thread tt_array *tt_second_array;

tt_array *tt_mul_backward(tt_array *g, tt_array *a, tt_array *b) {
    tt_array *of_a = NULL, *of_b = NULL;
    bool one_kernel = tt_backend_of(g->storage->device)->mul_backward;
    if (one_kernel && tt_is_floating(g->dtype) && g->numel && !TT_RECORDING) {
        TT_ON_DEVICE(NULL, "mul", 3, ((tt_array *[]){g, a, b}));
        if (joint(g, g) && joint(g, a) && joint(g, b)) {
            of_a = tt_empty(g->dtype, g->ndim, g->shape);
            of_b = of_a ? tt_empty(g->dtype, g->ndim, g->shape) : NULL;
            if (of_b && !tt_here()->mul_backward(g, a, b, of_a, of_b)) {
                tt_free(of_b);
                of_b = NULL;
            }
            if (!of_b && of_a) tt_free(of_a);
            tt_second_array = of_b;
            return of_b ? of_a : NULL;
        }
    }
    of_a = tt_binary(TT_OP_mul, g, b);
    of_b = of_a ? tt_binary(TT_OP_mul, g, a) : NULL;
    if (!of_b && of_a) tt_free(of_a);
    tt_second_array = of_b;
    return of_b ? of_a : NULL;
}

tt_array *tt_second(void) { return tt_second_array; }
