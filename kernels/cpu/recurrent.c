/* Recurrent layers: a step is one call for all threads. Each task takes some rows and some of the hidden numbers, makes
 * their product with the weights by OpenBLAS, and their gates from it while it is in the cache. Tasks follow from the
 * shapes alone, so that the bits do not depend on the number of threads. */
#include "backend/recurrent.h"
#include "cpu/cpu.h"
#include "cpu/openblas.h"
#include "cpu/recurrent.h"
#include <string.h>

TT_ISA_TABLES(tt_recurrent_table, tt_recurrent_rows)

#define ROWS 128 /* of a task */
#define WIDTH 128 /* hidden numbers of a task */
#define PARALLEL_WORK ((int64_t)1 << 18) /* multiplications that are worth a second thread */

/* Another step: its first row, and how many sequences are in both. */
typedef struct {
    int64_t row, shared;
} neighbour;

typedef struct {
    const tt_recurrent_work *w;
    const tt_recurrent_loops *loops;
    int64_t size, across; /* of an element; tasks to a row */
    char *weights; /* forward: those of a task side by side, (tasks to a row, G WIDTH, H) */
    char *zeros; /* WIDTH of them */
    int64_t row, rows; /* of this step: the first one, and how many there are */
    neighbour before, after;
    bool failed;
} job;

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* c = a b, or a b^T; `m` rows of `c` are side by side, n numbers each */
static void product(const job *j, bool trans, int64_t m, int64_t n, int64_t k, const char *a, int64_t lda,
                    const char *b, int64_t ldb, char *c, int64_t ldc) {
    int how = trans ? TRANS : NO_TRANS;
    if (!m) return;
    if (j->w->dtype == TT_F64) {
        if (m == 1)
            tt_blas.dgemv(ROW_MAJOR, trans ? NO_TRANS : TRANS, (int)(trans ? n : k), (int)(trans ? k : n), 1,
                          (const double *)b, (int)ldb, (const double *)a, 1, 0, (double *)c, 1);
        else
            tt_blas.dgemm(ROW_MAJOR, NO_TRANS, how, (int)m, (int)n, (int)k, 1, (const double *)a, (int)lda,
                          (const double *)b, (int)ldb, 0, (double *)c, (int)ldc);
    } else if (m == 1)
        tt_blas.sgemv(ROW_MAJOR, trans ? NO_TRANS : TRANS, (int)(trans ? n : k), (int)(trans ? k : n), 1,
                      (const float *)b, (int)ldb, (const float *)a, 1, 0, (float *)c, 1);
    else
        tt_blas.sgemm(ROW_MAJOR, NO_TRANS, how, (int)m, (int)n, (int)k, 1, (const float *)a, (int)lda, (const float *)b,
                      (int)ldb, 0, (float *)c, (int)ldc);
}

static char *element(const job *j, const tt_array *a, int64_t row, int64_t col, int64_t cols) {
    return a ? a->data + (row * cols + col) * j->size : NULL;
}

/* A row of the states before this step. */
static const char *state(const job *j, const tt_array *states, const tt_array *first, int64_t r, int64_t col) {
    return r < j->before.shared ? element(j, states, j->before.row + r, col, j->w->hidden)
                                : element(j, first, r, col, j->w->hidden);
}

/* How many of a task's rows are those of a neighbour, too. */
static int64_t shared(const neighbour *other, int64_t row, int64_t rows) {
    return other->shared < row ? 0 : least(other->shared - row, rows);
}

/* The rows and the hidden numbers of a task. */
static void cut(const job *j, int64_t task, int64_t *row, int64_t *rows, int64_t *col, int64_t *width) {
    *row = task / j->across * ROWS;
    *rows = least(ROWS, j->rows - *row);
    *col = task % j->across * WIDTH;
    *width = least(WIDTH, j->w->hidden - *col);
}

static char *room(job *j, int64_t elements) {
    char *memory = tt_scratch(elements * j->size);
    if (!memory) __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
    return memory;
}

static void forward_range(void *context, int64_t begin, int64_t end) {
    job *j = context;
    const tt_recurrent_work *w = j->w;
    int64_t hidden = w->hidden, row, rows, col, width, wide = w->gates * WIDTH;
    char *tile = room(j, ROWS * wide);
    if (!tile) return;
    for (int64_t task = begin; task < end; task++) {
        cut(j, task, &row, &rows, &col, &width);
        int64_t known = shared(&j->before, row, rows), all = w->gates * width;
        const char *weights = j->weights + task % j->across * wide * hidden * j->size;
        product(j, true, known, all, hidden, state(j, w->y, w->h0, row, 0), hidden, weights, hidden, tile, all);
        product(j, true, rows - known, all, hidden, element(j, w->h0, row + known, 0, hidden), hidden, weights, hidden,
                tile + known * all * j->size, all);
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = j->row + row + r;
            tt_recurrent_row one = {.n = width,
                                    .hidden = hidden,
                                    .width = width,
                                    .x = element(j, w->x, at, col, w->gates * hidden),
                                    .product = tile + r * all * j->size,
                                    .b = element(j, w->b, 0, col, 0),
                                    .before = w->c ? state(j, w->c, w->c0, row + r, col)
                                                   : state(j, w->y, w->h0, row + r, col),
                                    .gates = element(j, w->saved, at, col, w->kept * hidden),
                                    .c = element(j, w->c, at, col, hidden),
                                    .y = element(j, w->y, at, col, hidden)};
            j->loops->forward[w->kind](&one);
        }
    }
    tt_scratch_free(tile);
}

static void backward_range(void *context, int64_t begin, int64_t end) {
    job *j = context;
    const tt_recurrent_work *w = j->w;
    int64_t hidden = w->hidden, row, rows, col, width, all = w->gates * hidden;
    const tt_array *of_h = w->of_h ? w->of_h : w->of_x;
    char *tile = room(j, ROWS * WIDTH);
    if (!tile) return;
    for (int64_t task = begin; task < end; task++) {
        cut(j, task, &row, &rows, &col, &width);
        int64_t known = shared(&j->after, row, rows);
        product(j, false, known, width, all, element(j, of_h, j->after.row + row, 0, all), all,
                element(j, w->w, 0, col, hidden), hidden, tile, width);
        memset(tile + known * width * j->size, 0, (size_t)((rows - known) * width * j->size));
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = j->row + row + r;
            tt_recurrent_row_back one = {.n = width,
                                         .hidden = hidden,
                                         .g = w->g ? element(j, w->g, at, col, hidden) : j->zeros,
                                         .g_c = w->g_c ? element(j, w->g_c, at, col, hidden) : j->zeros,
                                         .product = tile + r * width * j->size,
                                         .gates = element(j, w->saved, at, col, w->kept * hidden),
                                         .c = element(j, w->c, at, col, hidden),
                                         .y = element(j, w->y, at, col, hidden),
                                         .before = w->c ? state(j, w->c, w->c0, row + r, col)
                                                        : state(j, w->y, w->h0, row + r, col),
                                         .first = element(j, w->of_first, row + r, col, hidden),
                                         .of_x = element(j, w->of_x, at, col, all),
                                         .of_h = element(j, w->of_h, at, col, all)};
            j->loops->backward[w->kind](&one);
        }
    }
    tt_scratch_free(tile);
}

static neighbour look_at(const tt_recurrent_work *w, const int64_t *offsets, int64_t t, int64_t other) {
    if (other < 0 || other >= w->steps) return (neighbour){0, 0};
    return (neighbour){offsets[other], least(w->sizes[t], w->sizes[other])};
}

/* One step after another, in the order of time or against it. */
static bool run(job *j, tt_range_fn fn, bool back) {
    const tt_recurrent_work *w = j->w;
    int64_t *offsets = tt_scratch((w->steps + 1) * (int64_t)sizeof *offsets), total = 0;
    int64_t work = least(ROWS, w->batch) * w->gates * WIDTH * w->hidden;
    int64_t grain = work >= PARALLEL_WORK ? 1 : PARALLEL_WORK / (work + 1) + 1;
    int claimed,
        threads = tt_blas_enter((w->batch + ROWS - 1) / ROWS * j->across > grain ? tt_get_num_threads() : 1, &claimed);
    for (int64_t t = 0; offsets && t < w->steps; t++) {
        offsets[t] = total;
        total += w->sizes[t];
    }
    bool ok = offsets && threads;
    for (int64_t s = 0; ok && s < w->steps; s++) {
        int64_t t = w->reverse != back ? w->steps - 1 - s : s, by = w->reverse ? -1 : 1;
        j->row = offsets[t], j->rows = w->sizes[t];
        j->before = look_at(w, offsets, t, t - by);
        j->after = look_at(w, offsets, t, t + by);
        int64_t tasks = (j->rows + ROWS - 1) / ROWS * j->across;
        if (threads > 1) tt_parallel(tasks, grain, fn, j);
        else fn(j, 0, tasks);
        if (j->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for a recurrent layer");
        ok = !j->failed;
    }
    if (threads) tt_blas_leave(claimed);
    tt_scratch_free(offsets);
    return ok;
}

static job start(const tt_recurrent_work *w) {
    const tt_recurrent_table *table = tt_recurrent_rows[tt_isa_index];
    return (job){.w = w,
                 .loops = w->dtype == TT_F64 ? &table->f64 : &table->f32,
                 .size = tt_itemsizes[w->dtype],
                 .across = (w->hidden + WIDTH - 1) / WIDTH};
}

bool tt_cpu_recurrent(const tt_recurrent_work *w) {
    job j = start(w);
    int64_t all = w->gates * w->hidden * w->hidden;
    if (!(j.weights = tt_scratch(all * j.size))) return false;
    for (int64_t k = 0, at = 0; k < j.across; k++) {
        int64_t width = least(WIDTH, w->hidden - k * WIDTH), bytes = width * w->hidden * j.size;
        for (int64_t g = 0; g < w->gates; g++, at += bytes)
            memcpy(j.weights + at, element(&j, w->w, g * w->hidden + k * WIDTH, 0, w->hidden), (size_t)bytes);
    }
    bool ok = run(&j, forward_range, false);
    tt_scratch_free(j.weights);
    return ok;
}

bool tt_cpu_recurrent_backward(const tt_recurrent_work *w) {
    job j = start(w);
    if (!(j.zeros = tt_scratch(WIDTH * j.size))) return false;
    memset(j.zeros, 0, (size_t)(WIDTH * j.size));
    if (w->of_first) memset(w->of_first->data, 0, (size_t)(w->of_first->numel * j.size));
    bool ok = run(&j, backward_range, true);
    tt_scratch_free(j.zeros);
    return ok;
}
