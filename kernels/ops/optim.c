/* Optimisers: checks, layouts, step counts. Parameters may be on several devices: those of each are updated by its
 * backend. The step counts of devices' parameters are the CPU's, so that nobody waits for a device, or the device's
 * own. */
#include "api/optim.h"
#include "backend/backend.h"
#include "backend/now.h"
#include "core/jobs.h"
#include "fuse/fuse.h"
#include <string.h>

#define OPERANDS TT_UPDATE_OPERANDS
/* Elements that are worth a job, and, times threads, few enough to be left to one; and parameters, which
 * may all be views of one storage, whose jobs are counted in 15 bits: Note [Asynchronous jobs] */
#define JOB_LEAST 4096
#define JOB_MOST (1 << 19)
#define JOB_PARAMETERS 200

/* A step as asked for. */
typedef struct request {
    const char *name;
    int n, writer;
    tt_array **operands[OPERANDS]; /* parameters, gradients, states; NULL where the rule has none */
    tt_array **steps; /* NULL: not counted */
    int rule;
    tt_update common;
    tt_schedule schedule;
    const char *fresh;
    bool asynchronous; /* may be a job; then gradients may be under way */
} request;

/* Can the devices leave this step out, if `skip` says so? */
static bool check_skip(const request *r) {
    const tt_array *skip = r->schedule.skip;
    if (!skip) return true;
    if (tt_lazy_of(skip->storage) && !tt_flush(skip, false)) {
        tt_decline();
        return false;
    }
    bool good = skip->storage->device && skip->numel == 1 && skip->dtype == TT_F32;
    for (int k = 0; k < r->n; k++)
        good = good && r->operands[0][k]->storage->device == skip->storage->device &&
               (!r->steps || r->steps[k]->storage->device == skip->storage->device);
    if (!good)
        tt_fail(TT_RUNTIME_ERROR,
                "%s: found_inf must be a float32 number on the device of all parameters and step counts", r->name);
    return good;
}

static bool check(const request *r, int k) {
    static const char *const roles[OPERANDS] = {"parameter", "gradient", "state", "state", "state"};
    char want[TT_SHAPE_TEXT], have[TT_SHAPE_TEXT];
    const tt_array *param = r->operands[0][k];
    for (int j = 0; j < OPERANDS; j++) {
        if (!r->operands[j]) continue;
        const tt_array *a = r->operands[j][k];
        if (a->storage->device != param->storage->device) {
            char own[24], other[24];
            tt_fail(TT_RUNTIME_ERROR, "%s: %s %d is on %s, but its parameter is on %s", r->name, roles[j], k,
                    tt_device_text(own, sizeof own, a->storage->device),
                    tt_device_text(other, sizeof other, param->storage->device));
            return false;
        }
        bool under_way = j == 1 && r->asynchronous && tt_lazy_of(a->storage) == &tt_under_way;
        if (!under_way && !tt_ready_to_write(a)) {
            tt_decline();
            return false;
        }
        if (!tt_is_floating(a->dtype)) {
            tt_fail(TT_RUNTIME_ERROR, "%s: %s %d must be floating point, got %s", r->name, roles[j], k,
                    tt_dtype_names[a->dtype]);
            return false;
        }
        if (a->dtype != param->dtype) {
            tt_fail(TT_RUNTIME_ERROR, "%s: %s %d has dtype %s, but its parameter has %s", r->name, roles[j], k,
                    tt_dtype_names[a->dtype], tt_dtype_names[param->dtype]);
            return false;
        }
        if (a->ndim != param->ndim || memcmp(a->shape, param->shape, sizeof(int64_t) * (size_t)a->ndim) != 0) {
            tt_fail(TT_RUNTIME_ERROR, "%s: %s %d has shape %s, but its parameter has %s", r->name, roles[j], k,
                    tt_shape_text(have, a->ndim, a->shape), tt_shape_text(want, param->ndim, param->shape));
            return false;
        }
        if (j != 1 && !tt_writable(r->name, a)) return false;
    }
    if (!r->steps) return true;
    const tt_array *step = r->steps[k];
    if (step->storage->device && step->storage->device != param->storage->device) {
        tt_fail(TT_RUNTIME_ERROR, "%s: the step count of parameter %d is on another device than the parameter", r->name,
                k);
        return false;
    }
    if (!tt_ready_to_write(step)) {
        tt_decline();
        return false;
    }
    if (step->numel != 1 || !tt_is_floating(step->dtype)) {
        tt_fail(TT_RUNTIME_ERROR, "%s: the step count of parameter %d must be one floating element, got %s of shape %s",
                r->name, k, tt_dtype_names[step->dtype], tt_shape_text(have, step->ndim, step->shape));
        return false;
    }
    return tt_writable(r->name, step);
}

/* Do the elements lie without gaps, in whatever order of dimensions? */
static bool dense(const tt_array *a) {
    if (a->flags & TT_FLAG_CONTIGUOUS) return true;
    bool used[TT_MAX_NDIM];
    int64_t expected = 1;
    for (int d = 0; d < a->ndim; d++) used[d] = false;
    for (int count = 0; count < a->ndim; count++) {
        int at = -1;
        for (int d = 0; d < a->ndim && at < 0; d++)
            if (!used[d] && (a->shape[d] == 1 || a->strides[d] == expected)) at = d;
        if (at < 0) return false;
        used[at] = true;
        expected *= a->shape[at];
    }
    return true;
}

static bool same_strides(const tt_array *a, const tt_array *b) {
    for (int d = 0; d < a->ndim; d++)
        if (a->shape[d] != 1 && a->strides[d] != b->strides[d]) return false;
    return true;
}

/* Finds every operand's elements in one common order, copying those that lie otherwise. */
static bool lay_out(tt_update_item *it, const request *r, int k) {
    tt_array *param = r->operands[0][k];
    bool as_param = dense(param);
    tt_device = it->device = param->storage->device;
    it->numel = param->numel;
    for (int j = 0; j < OPERANDS; j++) {
        if (!r->operands[j]) continue;
        tt_array *a = r->operands[j][k];
        bool fits = a->flags & param->flags & TT_FLAG_CONTIGUOUS || (as_param && same_strides(a, param)) ||
                    (!as_param && a->flags & TT_FLAG_CONTIGUOUS);
        if (!fits) {
            tt_array *copy = as_param ? tt_empty_strided(a->dtype, a->ndim, a->shape, param->strides)
                                      : tt_empty(a->dtype, a->ndim, a->shape);
            if (!copy) return false;
            it->copies[j] = copy;
            tt_await(a->storage, false);
            if (tt_copy_now(copy, a) < 0) return false;
            a = copy;
        }
        it->data[j] = a->data;
        it->operands |= 1 << j;
    }
    return true;
}

/* An update as an asynchronous job: Note [Asynchronous jobs]. */
typedef struct {
    tt_job job;
    tt_update_item *items;
    int rule, n;
} later;

static void run_later(tt_job *j) {
    later *l = (later *)j;
    tt_backend_of(0)->update(l->rule, NULL, l->n, l->items);
    tt_scratch_free(l->items);
}

/* NULL: it is to be made at once. */
static later *later_of(const request *r, tt_update_item *items, int64_t total) {
    bool worth = total >= JOB_LEAST && total * tt_get_num_threads() <= JOB_MOST && r->n <= JOB_PARAMETERS;
    if (!r->asynchronous || !worth) return NULL;
    for (int k = 0; k < r->n; k++)
        for (int j = 0; j < OPERANDS; j++)
            if (items[k].copies[j] || items[k].device) return NULL;
    later *l = tt_scratch((int64_t)(sizeof *l + OPERANDS * (size_t)r->n * sizeof(tt_storage *)));
    if (!l) return NULL;
    *l = (later){{.run = run_later, .storages = (tt_storage **)(l + 1)}, items, r->rule, r->n};
    for (int j = 0; j < OPERANDS; j++)
        for (int k = 0; k < r->n; k++)
            if (j != 1 && r->operands[j]) l->job.storages[l->job.num++] = r->operands[j][k]->storage;
    l->job.num_out = l->job.num;
    for (int k = 0; k < r->n; k++) l->job.storages[l->job.num++] = r->operands[1][k]->storage;
    return l;
}

/* By the backends of the kinds of device that there are among the items, as bits. */
static bool update(const request *r, const tt_update_item *items, int kinds) {
    for (int k = 0; k < r->n; k++) tt_await(r->operands[1][k]->storage, false);
    for (int kind = 0; kind < TT_DEVICE_KINDS; kind++) {
        if (!(kinds >> kind & 1)) continue;
        if (!tt_backends[kind]->update) return tt_no_kernel(r->name);
        if (!tt_backends[kind]->update(r->rule, &r->schedule, r->n, items)) return false;
    }
    return true;
}

static int run(request *r) {
    if (r->n <= 0) return 0;
    __attribute__((cleanup(tt_leave_device), unused)) int before = tt_device;
    r->asynchronous = tt_may_submit_jobs();
    if (!check_skip(r)) return -1;
    for (int k = 0; k < r->n; k++)
        if (!check(r, k)) return -1;
    tt_update_item *items = tt_scratch((int64_t)sizeof(tt_update_item) * r->n);
    if (!items) return -1;
    int64_t total = 0;
    int status = -1, ready = 0, kinds = 0;
    for (; ready < r->n; ready++) {
        tt_update_item *it = &items[ready];
        *it = (tt_update_item){.update = r->common, .dtype = r->operands[0][ready]->dtype};
        if (!lay_out(it, r, ready)) {
            ready++; /* its copies are to be freed */
            goto done;
        }
        if (r->fresh && r->fresh[ready]) it->update.flags |= TT_FRESH;
        if (r->steps && r->steps[ready]->storage->device) it->count = r->steps[ready];
        else if (r->steps) {
            const tt_array *step = r->steps[ready];
            tt_convert(&it->step, TT_F64, step->data, step->dtype);
            it->step += 1;
            const tt_schedule *s = &r->schedule;
            it->update.rate = tt_rate_of(r->rule, s->lr, s->beta1, s->lr_decay, it->step);
            it->update.root = tt_root_of(r->rule, s->root, s->beta2, it->step);
        }
        it->end = total += it->device ? 0 : it->numel;
        kinds |= 1 << tt_device_kind(it->device);
    }
    tt_device = 0;
    later *l = later_of(r, items, total);
    if (!l && !update(r, items, kinds)) goto done;
    for (int k = 0; k < r->n; k++) {
        for (int j = 0; j < OPERANDS; j++) {
            if (!r->operands[j] || j == 1) continue;
            if (items[k].copies[j]) tt_copy_now(r->operands[j][k], items[k].copies[j]);
            tt_bump_version(r->operands[j][k], r->writer);
        }
        if (r->steps) {
            if (!items[k].count) tt_convert(r->steps[k]->data, r->steps[k]->dtype, &items[k].step, TT_F64);
            tt_bump_version(r->steps[k], r->writer);
        }
    }
    if (l && tt_job_submit(&l->job)) return 0; /* the items are the job's */
    if (l) {
        update(r, items, kinds);
        tt_scratch_free(l);
    }
    status = 0;
done:
    for (int k = 0; k < ready; k++)
        for (int j = 0; j < OPERANDS; j++)
            if (items[k].copies[j]) tt_free(items[k].copies[j]);
    tt_scratch_free(items);
    return status;
}

int tt_optimize(int rule, int n, tt_array **params, tt_array **grads, tt_array **s0, tt_array **s1, tt_array **s2,
                tt_array **steps, const char *fresh, int maximize, int writer, double lr, int flags, double lr_decay,
                double beta1, double decay, double a, double b, double c, double root, double ahead, double eps,
                tt_array *skip) {
#define TITLE(name, title, states) title,
    static const char *const titles[] = {TT_UPDATE_RULES(TITLE)};
    request r = {.name = titles[rule],
                 .n = n,
                 .writer = writer,
                 .operands = {params, grads, s0, s1, s2},
                 .steps = steps,
                 .fresh = fresh,
                 .rule = rule,
                 .schedule = {.lr = lr, .lr_decay = lr_decay, .beta1 = beta1, .beta2 = b, .root = root, .skip = skip}};
    r.common = (tt_update){.flags = flags,
                           .sign = maximize ? -1 : 1,
                           .decay = decay,
                           .rate = -lr,
                           .ahead = ahead,
                           .a = a,
                           .b = b,
                           .c = c,
                           .root = root,
                           .eps = eps};
    return run(&r);
}
