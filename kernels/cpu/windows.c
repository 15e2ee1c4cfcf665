/* Pooling: planes are shared out among threads, or parts of their channels where these lie closest together. Operands
 * that are not contiguous, or of a half type or a narrow integer, are copied first. */
#include "cpu/windows.h"
#include "backend/plain.h"
#include "cpu/cpu.h"

TT_ISA_TABLES(tt_pool_table, tt_pool)

#define ELEMENTS 16384 /* of a window's elements that are worth a thread */

typedef struct {
    tt_pool_job job;
    tt_pool_fn *run;
    int64_t chunks;
} pool_job;

static void pool_range(void *context, int64_t begin, int64_t end) {
    const pool_job *p = context;
    for (int64_t k = begin; k < end; k++) {
        int64_t column = k % p->chunks * TT_POOL_CHUNK, rest = p->job.w->inner - column;
        p->run(&p->job, k / p->chunks, column, rest < TT_POOL_CHUNK ? rest : TT_POOL_CHUNK);
    }
}

/* The windows of all axes, of every plane where they are its own. NULL and an error: there is no memory. */
static tt_window *windows_of(const tt_pool_work *w, const int64_t *starts, int64_t *of_plane) {
    /* an axis that is none has one window */
    int64_t n = w->axes[0].out + w->axes[1].out + w->axes[2].out, planes = starts ? w->outer : 1;
    tt_window *all = tt_scratch(planes * n * (int64_t)sizeof(tt_window)), *to = all;
    *of_plane = starts ? n : 0;
    for (int64_t plane = 0; all && plane < planes; plane++)
        for (int k = 0; k < 3; k++)
            for (int64_t i = 0; i < w->axes[k].out; i++)
                *to++ =
                    starts && k >= 3 - w->dims ? tt_window_from(&w->axes[k], *starts++) : tt_window_at(&w->axes[k], i);
    return all;
}

bool tt_cpu_pool(const tt_pool_work *w) {
    int dtype = tt_is_integral(w->from->dtype) ? TT_I64 : tt_compute_dtype(w->from->dtype);
    const tt_pool_table *t = tt_pool[tt_isa_index];
    pool_job p = {{.w = w},
                  (dtype == TT_F32   ? t->f32
                   : dtype == TT_F64 ? t->f64
                                     : t->i64)[w->what],
                  (w->inner + TT_POOL_CHUNK - 1) / TT_POOL_CHUNK};
    bool marks = w->what == TT_POOL_MAX && w->index, looks = w->what != TT_POOL_MAX_BACKWARD; /* that knows places */
    tt_plain in[3] = {{0}};
    tt_wide to = {0};
    tt_window *windows = NULL;
    bool ok = tt_plain_take(&in[0], w->from, dtype) && tt_plain_take(&in[1], marks ? NULL : w->index, TT_I64) &&
              tt_plain_take(&in[2], looks ? w->starts : NULL, TT_I64) && tt_wide_start(&to, w->to, dtype);
    ok = ok && (!looks || (windows = windows_of(w, (const int64_t *)tt_plain_data(&in[2]), &p.job.rows_of_plane)));
    if (ok) {
        p.job.from = tt_plain_data(&in[0]);
        p.job.to = to.array->data;
        p.job.index = marks ? (int64_t *)w->index->data : (int64_t *)tt_plain_data(&in[1]);
        p.job.rows = windows;
        double cost = (double)w->out * (double)(w->inner < TT_POOL_CHUNK ? w->inner : TT_POOL_CHUNK);
        for (int k = 0; looks && k < 3; k++)
            cost *= (double)(w->axes[k].stride ? w->axes[k].taps : w->axes[k].in / w->axes[k].out + 1);
        tt_parallel(w->outer * p.chunks, (int64_t)(ELEMENTS / (cost + 1)) + 1, pool_range, &p);
    }
    if (windows) tt_scratch_free(windows);
    tt_plain_done(in, 3);
    return tt_wide_end(&to, ok);
}
