/* Updates of many parameters on a device by few launches: parameters of one dtype with the same numbers go together, as
 * many as the arguments have room for. */
#include "cuda/host/cuda.h"
#include "cuda/device/optim_args.h"
#include <string.h>

/* The variant: bits 0-3 the flags but TT_FRESH, bit 4: the elements are taken in whole vectors. */
#define VECTORS 16

const char *tt_rule_name(int rule) {
#define RULE_NAME(name, title, states) #name,
    static const char *const names[] = {TT_UPDATE_RULES(RULE_NAME)};
    return names[rule];
}

static bool together(const tt_update_item *a, const tt_update_item *b) {
    return a->device == b->device && a->dtype == b->dtype && a->update.flags == b->update.flags &&
           a->update.rate == b->update.rate && a->update.root == b->update.root && !a->count == !b->count &&
           (!a->count || a->count->dtype == b->count->dtype);
}

static bool is_aligned(const tt_update_item *it) {
    intptr_t all = 0;
    for (int j = 0; j < TT_UPDATE_OPERANDS; j++) all |= (intptr_t)it->data[j];
    return !(all & 15);
}

bool tt_cuda_update(int rule, const tt_schedule *schedule, int n, const tt_update_item *items) {
    __attribute__((cleanup(tt_leave_device), unused)) int before = tt_device;
    char *done = tt_scratch(n);
    bool good = done != NULL;
    if (done) memset(done, 0, (size_t)n);
    for (int at = 0; good && at < n; at++) {
        const tt_update_item *lead = &items[at];
        if (done[at] || !lead->device || !(lead->numel || lead->count)) continue;
        const tt_update *u = &lead->update;
        const float *skip = schedule->skip ? (const float *)schedule->skip->data : NULL;
        tt_optim_args p = {.sign = u->sign,
                           .decay = u->decay,
                           .rate = u->rate,
                           .ahead = u->ahead,
                           .a = u->a,
                           .b = u->b,
                           .c = u->c,
                           .root = u->root,
                           .eps = u->eps,
                           .fresh = u->flags & TT_FRESH,
                           .skip = skip};
        tt_optim_count_args counted = {.lr = schedule->lr,
                                       .lr_decay = schedule->lr_decay,
                                       .beta1 = schedule->beta1,
                                       .beta2 = schedule->beta2,
                                       .root = schedule->root,
                                       .skip = skip};
        int variant = VECTORS, pointers = 0, operands = 0;
        int64_t blocks = 0;
        for (int j = 0; j < TT_UPDATE_OPERANDS; j++) operands += lead->operands >> j & 1;
        for (int k = at; k < n && p.n < TT_OPTIM_TENSORS && pointers + operands <= TT_OPTIM_POINTERS; k++) {
            const tt_update_item *it = &items[k];
            if (done[k] || !(it->numel || it->count) || !together(it, lead)) continue;
            int64_t more = (it->numel + TT_OPTIM_CHUNK - 1) / TT_OPTIM_CHUNK;
            if (p.n && blocks + more > INT32_MAX) break;
            if (!is_aligned(it)) variant = 0;
            if (it->count) counted.count[p.n] = it->count->data;
            p.first[p.n] = (uint32_t)blocks;
            p.numel[p.n++] = it->numel;
            for (int j = 0; j < TT_UPDATE_OPERANDS; j++)
                if (it->operands >> j & 1) p.data[pointers++] = it->data[j];
            blocks += more;
            done[k] = 1;
        }
        tt_device = lead->device;
        tt_array *rates = NULL;
        if (lead->count) {
            good = (rates = tt_cuda_temporary(TT_F64, 2 * p.n)) != NULL;
            if (!good) break;
            p.rates = counted.rates = (double *)rates->data;
            counted.n = p.n;
            good = TT_LAUNCH(tt_key(TT_FAMILY_optim_count, rule, 0, lead->count->dtype, 0, 0, 0, 0), 1, 1,
                             TT_OPTIM_TENSORS, 0, counted);
        }
        good = good && (!blocks || TT_LAUNCH(tt_key(TT_FAMILY_optim, rule, variant | (u->flags & ~TT_FRESH),
                                                    lead->dtype, tt_compute_dtype(lead->dtype), 0, 0, 0),
                                             blocks, 1, TT_CUDA_THREADS, 0, p));
        if (rates) tt_free(rates);
    }
    tt_scratch_free(done);
    return good;
}
