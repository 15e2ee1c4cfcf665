/* Updates of parameters on the CPU: one pass of the threads over all elements of all parameters together. */
#include "cpu/cpu.h"
#include "cpu/optim.h"

TT_ISA_TABLES(tt_optim_loops, tt_optim)

#define OPERANDS TT_UPDATE_OPERANDS
#define GRAIN 16384

typedef struct {
    const tt_update_item *items;
    int n;
    const tt_update_loop *loops;
} job;

/* Half types: through float32, a block at a time. */
static void run_half(const tt_update_item *it, tt_update_loop loop, int64_t from, int64_t n) {
    float buffers[OPERANDS][TT_BLOCK] __attribute__((aligned(64)));
    char *p[OPERANDS];
    for (int j = 0; j < OPERANDS; j++) p[j] = it->data[j] ? (char *)buffers[j] : NULL;
    for (int64_t at = from; at < from + n; at += TT_BLOCK) {
        int64_t m = from + n - at < TT_BLOCK ? from + n - at : TT_BLOCK;
        for (int j = 0; j < OPERANDS; j++)
            if (p[j]) tt_isa->casts[it->dtype][TT_F32](p[j], it->data[j] + at * 2, m);
        loop(p, m, &it->update);
        for (int j = 0; j < OPERANDS; j++)
            if (p[j] && j != 1) tt_isa->casts[TT_F32][it->dtype](it->data[j] + at * 2, p[j], m);
    }
}

/* Elements [begin, end) of all parameters laid end to end. */
static void run_range(void *context, int64_t begin, int64_t end) {
    const job *jb = context;
    int low = 0, high = jb->n - 1;
    while (low < high) { /* the first parameter that ends after `begin` */
        int middle = (low + high) / 2;
        if (jb->items[middle].end > begin) high = middle;
        else low = middle + 1;
    }
    for (int k = low; begin < end; k++) {
        const tt_update_item *it = &jb->items[k];
        int64_t start = k ? jb->items[k - 1].end : 0, stop = it->end < end ? it->end : end;
        if (stop <= begin) continue;
        int64_t from = begin - start, n = stop - begin, size = tt_itemsizes[it->dtype];
        tt_update_loop loop = jb->loops[it->dtype == TT_F64];
        begin = stop;
        if (tt_is_half(it->dtype)) {
            run_half(it, loop, from, n);
            continue;
        }
        char *p[OPERANDS];
        for (int j = 0; j < OPERANDS; j++) p[j] = it->data[j] ? it->data[j] + from * size : NULL;
        loop(p, n, &it->update);
    }
}

bool tt_cpu_update(int rule, const tt_schedule *schedule, int n, const tt_update_item *items) {
    (void)schedule; /* rates are in the items */
    job jb = {items, n, tt_optim[tt_isa_index]->rules[rule]};
    int64_t total = n ? items[n - 1].end : 0;
    if (total) tt_parallel(total, GRAIN, run_range, &jb);
    return true;
}
