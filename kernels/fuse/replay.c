/* Pure functions: the program of one call, run again for others without recording.
 *
 * What a function that is promised to be pure read apart from its arguments (weights, say) is held, and read each
 * time. Of one that was seen to be pure everything it reads is an argument, and its call must have done nothing but
 * record: Note [Seen to be pure] in tinytorch/fuse/purity/__init__.py. */
#include "fuse/fuse.h"
#include <stdlib.h>
#include <string.h>

#define MOST 16 /* arguments, and results */

typedef struct {
    int storage;
    tt_array like;
    int64_t dims[2][TT_MAX_NDIM]; /* of `like` */
    int64_t offset, version;
} place;

struct tt_replay {
    tt_program *program;
    int num_in, num_out, num_storages;
    bool promised;
    bool any;    /* of the arguments' storages: else only those that it was recorded with, see tt_replay_agrees */
    place in[MOST], out[MOST];
    tt_storage **held; /* of each storage; NULL where it is an argument's, a result's or a temporary */
    int64_t *origins;
    tt_number *numbers;
};

void tt_replay_free(tt_replay *r) {
    for (int s = 0; r->held && s < r->num_storages; s++)
        if (r->held[s]) tt_storage_unref(r->held[s]);
    if (r->program) tt_program_done(r->program);
    free(r->held);
    free(r->origins);
    free(r->numbers);
    free(r);
}

/* Where an array's storage is in the trace; -1: it is not there. */
static int locate(place *p, const tt_trace *t, const tt_array *a) {
    const tt_lazy *lazy = tt_lazy_of(a->storage);
    *p = (place){.storage = lazy && lazy->trace == t ? lazy->id : -1, .offset = a->data - a->storage->data};
    if (p->storage >= 0) p->offset -= lazy->origin;
    p->like = *a;
    p->like.shape = memcpy(p->dims[0], a->shape, sizeof(int64_t) * (size_t)a->ndim);
    p->like.strides = memcpy(p->dims[1], a->strides, sizeof(int64_t) * (size_t)a->ndim);
    p->version = tt_version(a);
    return p->storage;
}

static bool random_numbers(const tt_program *p) {
    for (int k = 0; k < p->num_kernels; k++)
        for (int s = 0; s < p->kernels[k].num_slots; s++)
            if (p->kernels[k].slots[s].kind == TT_SLOT_RANDOM) return true;
    return false;
}

/* Fills in `r`; the lock is held. */
static bool capture(tt_replay *r, tt_trace *t, tt_array **in, tt_array **out) {
    int hit;
    char *role = calloc((size_t)t->num_storages + 1, 1); /* 1: an argument's; 2: a result's */
    bool ok = role && (r->program = tt_program_of(t, &hit));
    for (int k = 0; ok && k < r->num_in; k++) {
        int s = locate(&r->in[k], t, in[k]);
        ok = (s < 0 ? !tt_is_shared(in[k]->storage) || t->in_place
                    : !role[s]) && /* one that is not used needs no place */
             !(in[k]->flags & TT_FLAG_WEAK); /* recorded as a number */
        if (s >= 0) role[s] = 1;
    }
    for (int k = 0; ok && k < r->num_out; k++) {
        int s = locate(&r->out[k], t, out[k]);
        ok = s >= 0 && !role[s] && !t->storages[s].held && !tt_is_shared(out[k]->storage) &&
             out[k]->data == out[k]->storage->data &&
             out[k]->numel * tt_itemsizes[out[k]->dtype] == out[k]->storage->nbytes;
        if (ok) role[s] = 2;
    }
    r->num_storages = t->num_storages;
    ok = ok && (r->held = calloc((size_t)t->num_storages + 1, sizeof *r->held));
    ok = ok && (r->origins = calloc((size_t)t->num_storages + 1, sizeof *r->origins));
    for (int s = 0; ok && s < t->num_storages; s++) {
        const tt_lazy *p = &t->storages[s];
        if (!p->storage || role[s] == 2) continue;
        ok = !p->written && p->held; /* else the function changes what others see */
        if (!ok || role[s]) continue;
        ok = r->promised;
        r->held[s] = p->storage;
        r->origins[s] = p->origin;
        tt_storage_ref(p->storage);
    }
    ok = ok && !random_numbers(r->program) && (r->numbers = malloc(sizeof *r->numbers * ((size_t)t->num_numbers + 1)));
    if (ok) memcpy(r->numbers, t->numbers, sizeof *r->numbers * (size_t)t->num_numbers);
    free(role);
    return ok;
}

tt_replay *tt_replay_new(int promised, int num_in, tt_array **in, int num_out, tt_array **out) {
    tt_trace *t = tt_recorder;
    if (!t || tt_fuse_running(t) || num_in > MOST || num_out > MOST || num_out < 1) return NULL;
    if (!promised && (t->depth > 1 || tt_looks != t->looked)) return NULL;
    tt_replay *r = calloc(1, sizeof *r);
    if (!r) return NULL;
    r->num_in = num_in;
    r->num_out = num_out;
    r->promised = promised;
    r->any = !promised; /* what is read outside is among the arguments */
    tt_trace_lock(t);
    bool ok = t->num_nodes && t->since_enter == t->num_nodes && capture(r, t, in, out);
    tt_trace_unlock(t);
    if (ok) return r;
    tt_replay_free(r);
    return NULL;
}

static bool same_places(int n, const place *a, const place *b) {
    for (int k = 0; k < n; k++)
        if (a[k].storage != b[k].storage || a[k].offset != b[k].offset) return false;
    return true;
}

/* Did the two have other arguments? Then none of them is a tensor that the function reads from outside, too. */
static bool other_storages(const tt_replay *a, const tt_replay *b) {
    for (int k = 0; k < a->num_in; k++)
        if (a->in[k].storage >= 0 && a->in[k].like.storage == b->in[k].like.storage) return false;
    return true;
}

int tt_replay_agrees(tt_replay *a, tt_replay *b) {
    bool same = a->program == b->program && a->num_in == b->num_in && a->num_out == b->num_out &&
                same_places(a->num_in, a->in, b->in) && same_places(a->num_out, a->out, b->out) &&
                memcmp(a->held, b->held, sizeof *a->held * (size_t)a->num_storages) == 0 &&
                memcmp(a->origins, b->origins, sizeof *a->origins * (size_t)a->num_storages) == 0 &&
                memcmp(a->numbers, b->numbers, sizeof *a->numbers * (size_t)a->program->num_constants) == 0;
    if (same && (a->any || other_storages(a, b))) b->any = true;
    return same;
}

static bool fits(const tt_array *a, const tt_array *like) {
    return !((a->flags ^ like->flags) & (TT_FLAG_WEAK | TT_FLAG_CONTIGUOUS | TT_FLAG_INFERENCE)) &&
           a->dtype == like->dtype && a->ndim == like->ndim &&
           memcmp(a->shape, like->shape, sizeof(int64_t) * (size_t)a->ndim) == 0 &&
           memcmp(a->strides, like->strides, sizeof(int64_t) * (size_t)a->ndim) == 0;
}

/* Not inside of the mode, where it is recorded with the rest, nor with a listener, which wants its lines. */
int tt_replay_may(int promised) {
    return promised || !(TT_RECORDING || tt_fuse_setting(TT_FUSE_OBSERVE) & TT_OBSERVE_RUNS);
}

int tt_replay_run(tt_replay *r, int num_in, tt_array **in, tt_array **out) {
    char *base[TT_FUSE_STORAGES];
    __attribute__((cleanup(tt_leave_device), unused)) int before = tt_device;
    if (num_in != r->num_in) return 0;
    if (!tt_replay_may(r->promised)) return 0;
    tt_device = r->program->device;
    for (int k = 0; k < num_in; k++) {
        if (in[k]->storage->device != tt_device || !fits(in[k], &r->in[k].like) || !tt_current(in[k])) return 0;
        if (!r->any && r->in[k].storage >= 0 && in[k]->storage != r->in[k].like.storage) return 0;
        for (int j = 0; j < k; j++) /* one storage may not stand for two */
            if (in[j]->storage == in[k]->storage) return 0;
        if (tt_lazy_of(in[k]->storage) && !tt_flush(in[k], false)) {
            tt_flush_failed = false;
            return -1;
        }
        if (r->in[k].storage >= 0) base[r->in[k].storage] = in[k]->data - r->in[k].offset;
    }
    for (int s = 0; s < r->num_storages; s++)
        if (r->held[s]) {
            tt_array a = {.storage = r->held[s]};
            if (tt_lazy_of(a.storage) && !tt_flush(&a, false)) {
                tt_flush_failed = false;
                return -1;
            }
            base[s] = a.storage->data + r->origins[s];
        }
    int made = 0;
    for (; made < r->num_out; made++) {
        tt_array *like = &r->out[made].like;
        if (!(out[made] = tt_empty_strided(like->dtype, like->ndim, like->shape, like->strides))) break;
        out[made]->storage->version = r->out[made].version; /* as after the writes in place that made it */
        base[r->out[made].storage] = out[made]->data;
    }
    if (made == r->num_out && tt_program_run_on(r->program, base, r->numbers)) {
        tt_fuse_count(TT_FUSE_REPLAYED, 1);
        tt_notify_replay(r->program, r->numbers);
        tt_program_want(r->program);
        return 1;
    }
    while (made) tt_free(out[--made]);
    return -1;
}
