/* Products with sparse matrices on the CPU. */
#include "cpu/cpu.h"

#define LANES 8       /* partial sums of a dot product */
#define COLUMNS 16    /* of a matrix that are worth a thread */
#define SMALL 32768   /* multiplications that one thread does alone */

#define T float
#define OF(name) name##_f32
#include "cpu/sparse_loops.h"
#define T double
#define OF(name) name##_f64
#include "cpu/sparse_loops.h"

bool tt_cpu_sparse_product(const tt_sparse_work *w) {
    int64_t k = w->b->shape[1];
    bool small = w->count * k < SMALL;
    tt_parallel(k, small ? k + 1 : COLUMNS, w->b->dtype == TT_F32 ? product_f32 : product_f64, (void *)w);
    return true;
}

bool tt_cpu_sparse_dots(const tt_sparse_work *w) {
    tt_parallel(w->count, SMALL / (w->b->shape[1] + 1) + 1, w->b->dtype == TT_F32 ? dots_f32 : dots_f64, (void *)w);
    return true;
}
