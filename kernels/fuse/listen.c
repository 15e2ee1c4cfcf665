/* Notifies Python's listeners of program runs: tinytorch/fuse/listeners.py. Called only while one is subscribed. */
#include "backend/backend.h"
#include "fuse/fuse.h"
#include <stdlib.h>
#include <string.h>

static __thread tt_run_record *first; /* runs of which listeners have not been notified yet */

/* The bytes of the storages that the trace found there. False: no room for them. */
static bool copy_data(tt_run_record *w, const tt_trace *t) {
    size_t n = (size_t)t->num_storages + 1;
    __attribute__((cleanup(tt_leave_device), unused)) int before = tt_device;
    tt_device = t->device;
    w->before = calloc(n, sizeof *w->before);
    w->origins = calloc(2 * n, sizeof *w->origins);
    if (!w->before || !w->origins) return false;
    w->sizes = w->origins + n;
    for (int s = 0; s < t->num_storages; s++) {
        const tt_lazy *p = &t->storages[s];
        w->origins[s] = p->origin;
        w->sizes[s] = p->nbytes;
        if (!p->held || !p->nbytes) continue;
        if (!(w->before[s] = malloc((size_t)p->nbytes))) return false;
        if (!tt_here()->read(w->before[s], p->storage->data, p->nbytes)) return false;
    }
    return true;
}

tt_run_record *tt_run_record_new(tt_program *p, const tt_trace *t, int reason, int known) {
    int64_t observe = tt_fuse_setting(TT_FUSE_OBSERVE), runs = __atomic_load_n(&p->runs, __ATOMIC_RELAXED);
    int64_t left = tt_fuse_setting(TT_FUSE_HOT_RUNS) - runs;
    if (!(observe & TT_OBSERVE_RUNS) && !(observe & TT_OBSERVE_HOT && (left == 1 || left == 2))) return NULL;
    tt_run_record *w = malloc(sizeof *w);
    if (!w) return NULL;
    *w = (tt_run_record){.program = p, .reason = reason, .known = known, .trace = t->trace};
    size_t bytes = sizeof *w->numbers * (size_t)t->num_numbers;
    if (!(w->numbers = malloc(bytes + 1)) || (observe & TT_OBSERVE_DATA && !copy_data(w, t))) {
        tt_run_record_free(w);
        return NULL;
    }
    memcpy(w->numbers, t->numbers, bytes);
    return w;
}

void tt_notify_replay(tt_program *p, tt_number *numbers) {
    tt_run_record w = {.program = p, .reason = TT_FLUSH_REPLAY, .known = 1, .numbers = numbers};
    if (tt_fuse_setting(TT_FUSE_OBSERVE) & TT_OBSERVE_RUNS) tt_fuse_notify(&w);
}

void tt_run_record_free(tt_run_record *w) {
    for (int s = 0; w->before && s < w->program->num_storages; s++) free(w->before[s]);
    free(w->before);
    free(w->origins);
    free(w->numbers);
    free(w);
}

void tt_notify_later(tt_run_record *w) {
    tt_run_record **at = &first;
    while (*at) at = &(*at)->next;
    *at = w;
}

static void done(tt_run_record *w) {
    tt_program *p = w->program;
    tt_run_record_free(w);
    tt_program_want(p); /* only now, so that the compiler finds the lines that listeners noted */
    tt_program_done(p);
}

void tt_notify(void) {
    while (first) {
        tt_run_record *w = first;
        first = w->next;
        tt_fuse_notify(w);
        done(w);
    }
}

void tt_notify_discard(void) {
    while (first) {
        tt_run_record *w = first;
        first = w->next;
        done(w);
    }
}
