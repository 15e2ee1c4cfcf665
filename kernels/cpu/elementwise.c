/* Elementwise operators, copies and casts over operands of any layout. */
#include "cpu/cpu.h"
#include <string.h>

/* Elements a thread should have before another is worth waking; and where the operator is costly. */
#define GRAIN 32768
#define GRAIN_COSTLY 8192

bool tt_cpu_elementwise(int op, int dtype, tt_array *out, int n, tt_array *const *in) {
    tt_iter it;
    tt_iter_elementwise(&it, op, dtype, out, n, in);
    tt_iter_coalesce(&it);
    int64_t grain = tt_op_facts(op)->cost >= TT_COSTLY ? GRAIN_COSTLY : GRAIN;
    tt_iter_run(&it, tt_isa->ops[op][tt_compute_dtype(dtype)], grain);
    return true;
}

bool tt_cpu_read(void *to, const void *from, int64_t nbytes) {
    memcpy(to, from, (size_t)nbytes);
    return true;
}

void tt_cpu_convert(void *to, int to_dtype, const void *from, int from_dtype) {
    tt_isa->casts[from_dtype][to_dtype](to, from, 1);
}

/* The elements after the first: copies of it, of twice as many at a time. */
static void repeat_range(void *context, int64_t begin, int64_t end) {
    tt_array *a = context;
    int size = tt_itemsizes[a->dtype];
    char *p = a->data + begin * size;
    int64_t done = size, bytes = (end - begin) * size;
    if (p != a->data) memcpy(p, a->data, (size_t)size);
    while (done < bytes) {
        int64_t step = done < bytes - done ? done : bytes - done;
        if (step > 16384) step = 16384;
        memcpy(p + done, p, (size_t)step);
        done += step;
    }
}

void tt_cpu_fill(tt_array *out, const void *element) {
    memcpy(out->data, element, (size_t)tt_itemsizes[out->dtype]);
    if (out->numel > 1) tt_parallel(out->numel, 1 << 16, repeat_range, out);
}

bool tt_cpu_copy(tt_array *out, const tt_array *a) {
    if (!out->numel) return true;
    if (a->numel == 1 && out->flags & TT_FLAG_CONTIGUOUS) {
        char element[TT_MAX_ITEMSIZE];
        tt_isa->casts[a->dtype][out->dtype](element, a->data, 1);
        tt_cpu_fill(out, element);
        return true;
    }
    tt_iter it;
    tt_iter_copy(&it, out, a);
    tt_iter_coalesce(&it);
    tt_iter_run(&it, NULL, 1 << 15);
    return true;
}
