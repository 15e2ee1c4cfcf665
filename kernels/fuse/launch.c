/* Runs a program of fused mode: kernel after kernel, those that have nothing to do with each other together. */
#include "backend/backend.h"
#include "core/records.h"
#include "fuse/plan.h"

/* Several threads may run a program at once. */
static void count_run(tt_kernel *k) {
    __atomic_fetch_add(&k->elements, k->numel, __ATOMIC_RELAXED);
    __atomic_fetch_add(&k->runs, 1, __ATOMIC_RELAXED);
    bool compiled = __atomic_load_n(&k->state, __ATOMIC_ACQUIRE) == 2 && tt_fuse_setting(TT_FUSE_HOT_RUNS) >= 0;
    __atomic_store_n(&k->was_compiled, compiled, __ATOMIC_RELAXED);
    tt_fuse_count(compiled ? TT_FUSE_COMPILED : TT_FUSE_INTERPRETED, 1);
}

bool tt_program_run(tt_program *p, tt_trace *t) {
    char *base[TT_FUSE_STORAGES];
    for (int s = 0; s < p->num_storages; s++) {
        const tt_lazy *x = &t->storages[s];
        base[s] = x->storage ? x->storage->data + x->origin : NULL;
    }
    return tt_program_run_on(p, base, t->numbers);
}

bool tt_program_run_on(tt_program *p, char **base, const tt_number *numbers) {
    tt_plan *plan = (tt_plan *)p;
    __attribute__((cleanup(tt_leave_device), unused)) int before = tt_device;
    tt_device = p->device;
    tt_storage *temporaries = plan->temporary_bytes ? tt_storage_new(plan->temporary_bytes) : NULL;
    if (plan->temporary_bytes && !temporaries) return false;
    for (int i = 0; i < plan->num_temporaries; i++)
        base[plan->temporaries[i].storage] = temporaries->data + plan->temporaries[i].offset;
    bool ok = true, compiled = tt_fuse_setting(TT_FUSE_HOT_RUNS) >= 0,
         timed = tt_fuse_setting(TT_FUSE_OBSERVE) & TT_OBSERVE_RUNS;
    for (int k = 0, n; ok && k < p->num_kernels; k += n) {
        for (n = 1; !timed && k + n < p->num_kernels && p->kernels[k + n].beside;) n++;
        int64_t start = timed ? tt_now() : 0;
        ok = TT_WORK("fuse", run_kernels, &p->kernels[k], n, base, numbers, compiled);
        if (timed) {
            __atomic_store_n(&p->kernels[k].started, start, __ATOMIC_RELAXED);
            __atomic_store_n(&p->kernels[k].nanoseconds, tt_now() - start, __ATOMIC_RELAXED);
        }
        for (int i = 0; ok && i < n; i++) count_run(&p->kernels[k + i]);
    }
    if (temporaries) tt_storage_unref(temporaries);
    __atomic_fetch_add(&p->runs, 1, __ATOMIC_RELAXED);
    return ok;
}
