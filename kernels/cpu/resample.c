/* Resampling: the matrix of each dimension is made. Planes are shared out among threads, or parts of their channels
 * where these lie closest together. One dimension is done after the other, by way of memory that stays in the cache. */
#include "cpu/resample.h"
#include "backend/plain.h"
#include "cpu/cpu.h"
#include <string.h>

TT_ISA_TABLES(tt_resample_table, tt_resample_loops)

#define ELEMENTS 16384 /* that are worth a thread */

/* Row i of the matrix: its taps, and weights into w. */
static tt_taps row(const tt_resampling *r, int64_t i, double *w) {
    if (!r->antialias) {
        double few[TT_FEW_TAPS];
        tt_taps taps = tt_few_taps(r, i, few);
        memcpy(w, few, (size_t)taps.count * sizeof(double));
        return taps;
    }
    tt_taps taps = tt_smooth_taps(r, i);
    double total = 0;
    for (int64_t k = 0; k < taps.count; k++) total += w[k] = tt_smooth_weight(r, i, taps, k);
    for (int64_t k = 0; k < taps.count && total != 0; k++) w[k] /= total;
    return taps;
}

/* The matrix of r, or its transpose; all of it lies behind *memory, which tt_scratch_free frees. */
static bool matrix(const tt_resampling *r, bool transposed, tt_resample_matrix *m, void **memory) {
    int64_t room = tt_resample_room(r), rows = transposed ? r->in : r->out, all = r->out * room;
    int64_t bytes = 8 * (3 * r->out + 3 * rows + 2 * all);
    int64_t *start = *memory = tt_scratch(bytes), *count = start + r->out, *first = count + r->out;
    if (!start) return false;
    double *weights = (double *)(first + r->out);
    for (int64_t j = 0; j < r->out; j++) {
        first[j] = j * room;
        tt_taps taps = row(r, j, weights + first[j]);
        start[j] = taps.start;
        count[j] = taps.count;
    }
    *m = (tt_resample_matrix){r->in, r->out, start, count, first, weights};
    if (!transposed) return true;
    double *turned = weights + all;
    int64_t *begin = (int64_t *)(turned + all), *times = begin + rows, *at = times + rows, filled = 0;
    for (int64_t i = 0, low = 0, high = 0; i < r->in; i++) { /* starts and ends only grow */
        while (low < r->out && start[low] + count[low] <= i) low++;
        high = high > low ? high : low;
        while (high < r->out && start[high] <= i) high++;
        begin[i] = low;
        times[i] = high - low;
        at[i] = filled;
        for (int64_t j = low; j < high; j++)
            turned[filled++] = start[j] + count[j] > i ? weights[first[j] + i - start[j]] : 0;
    }
    *m = (tt_resample_matrix){r->out, r->in, begin, times, at, turned};
    return true;
}

typedef struct {
    const tt_resample_work *w;
    tt_resample_matrix axes[3];
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
    for (int k = 0; k < 3; k++) n *= shape[k] = j->axes[k].in;
    for (int s = 0; s + 1 < j->steps; s++) {
        const tt_resample_matrix *m = &j->axes[j->order[s]];
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
        for (int k = 0; k < 3; k++) shape[k] = j->axes[k].in;
        for (int s = 0; s < j->steps; s++) {
            int axis = j->order[s];
            bool last = s + 1 == j->steps;
            char *to =
                last ? j->to + (outer * j->out * inner + column) * j->size : room + s % 2 * most * width * j->size;
            int64_t pre = 1, post = 1, to_stride = last ? inner : w;
            for (int k = 0; k < 3; k++) *(k < axis ? &pre : &post) *= k == axis ? 1 : shape[k];
            j->run(to, to_stride, from, stride, w, pre, post, &j->axes[axis], j->weights[axis]);
            shape[axis] = j->axes[axis].out;
            from = to;
            stride = to_stride;
        }
    }
    if (room) tt_scratch_free(room);
}

/* A dimension's weights as float32. */
static void *narrow(const tt_resample_matrix *m) {
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
    void *memory[3] = {0};
    bool ok = tt_plain_take(&from, w->from, dtype) && tt_wide_start(&to, w->to, dtype);
    for (int k = 0; k < 3 && ok; k++) {
        if (!(ok = matrix(&w->axes[k], w->backward, &j.axes[k], &memory[k]))) break;
        j.in *= j.axes[k].in;
        j.out *= j.axes[k].out;
        j.weights[k] = j.axes[k].weights;
        if (dtype == TT_F32) ok = (j.weights[k] = narrow(&j.axes[k])) && ok;
    }
    if (ok) {
        for (int k = 0; k < 3; k++) { /* what grows is done last */
            int axis = j.out > j.in ? 2 - k : k;
            if (j.axes[axis].in != 1 || j.axes[axis].out != 1) j.order[j.steps++] = axis;
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
    for (int k = 0; k < 3; k++)
        if (memory[k]) tt_scratch_free(memory[k]);
    tt_plain_done(&from, 1);
    return tt_wide_end(&to, ok);
}
