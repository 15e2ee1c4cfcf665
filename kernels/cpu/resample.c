/* Resampling: planes are shared out among threads, or parts of their channels where these lie closest together. One
 * dimension is done after the other, by way of memory that stays in the cache. */
#include "cpu/resample.h"
#include "backend/plain.h"
#include "cpu/cpu.h"

TT_ISA_TABLES(tt_resample_table, tt_resample_loops)

#define ELEMENTS 16384 /* that are worth a thread */

typedef struct {
    const tt_resample_work *w;
    tt_resample_fn *run;
    const char *from;
    char *to;
    const void *weights[3];
    int64_t in, out, chunks; /* the elements of a plane; the parts of its channels */
    int size, order[3], steps; /* which dimensions change, in the order in which they are done */
    bool failed;
} resample_job;

static void resample_range(void *context, int64_t begin, int64_t end) {
    resample_job *j = context;
    int64_t shape[3], most = 0, n = 1, inner = j->w->inner,
                      width = inner < TT_RESAMPLE_CHUNK ? inner : TT_RESAMPLE_CHUNK;
    for (int k = 0; k < 3; k++) n *= shape[k] = j->w->axes[k].in;
    for (int s = 0; s + 1 < j->steps; s++) {
        const tt_resampling *m = &j->w->axes[j->order[s]];
        n = n / m->in * m->out;
        most = n > most ? n : most;
    }
    char *room = most ? tt_scratch(2 * most * width * j->size) : NULL;
    if (most && !room) {
        __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t u = begin; u < end; u++) {
        int64_t outer = u / j->chunks, column = u % j->chunks * TT_RESAMPLE_CHUNK, w = inner - column;
        w = w < TT_RESAMPLE_CHUNK ? w : TT_RESAMPLE_CHUNK;
        const char *from = j->from + (outer * j->in * inner + column) * j->size;
        int64_t stride = inner;
        for (int k = 0; k < 3; k++) shape[k] = j->w->axes[k].in;
        for (int s = 0; s < j->steps; s++) {
            int axis = j->order[s];
            bool last = s + 1 == j->steps;
            char *to =
                last ? j->to + (outer * j->out * inner + column) * j->size : room + s % 2 * most * width * j->size;
            int64_t pre = 1, post = 1, to_stride = last ? inner : w;
            for (int k = 0; k < 3; k++) *(k < axis ? &pre : &post) *= k == axis ? 1 : shape[k];
            j->run(to, to_stride, from, stride, w, pre, post, &j->w->axes[axis], j->weights[axis]);
            shape[axis] = j->w->axes[axis].out;
            from = to;
            stride = to_stride;
        }
    }
    if (room) tt_scratch_free(room);
}

/* A dimension's weights as float32. */
static void *narrow(const tt_resampling *m) {
    int64_t n = 0;
    for (int64_t j = 0; j < m->out; j++) n = m->first[j] + m->count[j] > n ? m->first[j] + m->count[j] : n;
    float *to = tt_scratch((n + 1) * 4);
    for (int64_t j = 0; to && j < m->out; j++)
        for (int64_t k = m->first[j]; k < m->first[j] + m->count[j]; k++) to[k] = (float)m->weights[k];
    return to;
}

bool tt_cpu_resample(const tt_resample_work *w) {
    int dtype = tt_compute_dtype(w->from->dtype) == TT_F64 ? TT_F64 : TT_F32;
    const tt_resample_table *t = tt_resample_loops[tt_isa_index];
    resample_job j = {.w = w, .run = dtype == TT_F64 ? t->f64 : t->f32, .in = 1, .out = 1, .size = tt_itemsizes[dtype]};
    tt_plain from = {0};
    tt_wide to = {0};
    bool ok = tt_plain_take(&from, w->from, dtype) && tt_wide_start(&to, w->to, dtype);
    for (int k = 0; k < 3; k++) {
        j.in *= w->axes[k].in;
        j.out *= w->axes[k].out;
        j.weights[k] = w->axes[k].weights;
        if (dtype == TT_F32) ok = (j.weights[k] = narrow(&w->axes[k])) && ok;
    }
    if (ok) {
        for (int k = 0; k < 3; k++) { /* what grows is done last */
            int axis = j.out > j.in ? 2 - k : k;
            if (w->axes[axis].in != 1 || w->axes[axis].out != 1) j.order[j.steps++] = axis;
        }
        if (!j.steps) j.order[j.steps++] = 2;
        j.from = tt_plain_data(&from);
        j.to = to.array->data;
        j.chunks = (w->inner + TT_RESAMPLE_CHUNK - 1) / TT_RESAMPLE_CHUNK;
        int64_t cost = (j.in + 2 * j.out) * (w->inner < TT_RESAMPLE_CHUNK ? w->inner : TT_RESAMPLE_CHUNK);
        tt_parallel(w->outer * j.chunks, ELEMENTS / (cost + 1) + 1, resample_range, &j);
        if (j.failed) tt_fail(TT_OUT_OF_MEMORY, "interpolate: out of memory");
        ok = !j.failed;
    }
    for (int k = 0; k < 3 && dtype == TT_F32; k++)
        if (j.weights[k]) tt_scratch_free((void *)j.weights[k]);
    tt_plain_done(&from, 1);
    return tt_wide_end(&to, ok);
}
