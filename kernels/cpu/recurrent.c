/* Recurrent layers: a step is one call for all threads. Each task takes some rows and some of the hidden numbers, makes
 * their product with the weights, and their gates from it while it is in the cache. The weights are packed once for all
 * steps, and multiplied by the tiles of convolutions: of the few rows of a batch, OpenBLAS would pack them at each
 * step. There are as many tasks as threads where the layer is wide enough; no bit depends on how it is cut.
 *
 * Rows of half types are converted as they are read and written. Where the CPU has tiles for bfloat16 (bf16_tiles.h),
 * they multiply the rows as they lie. */
#include "backend/recurrent.h"
#include "core/sizes.h"
#include "core/threads.h"
#include "cpu/bf16_tiles.h"
#include "cpu/cpu.h"
#include "cpu/float_product.h"
#include "cpu/recurrent.h"
#include "cpu/simd.h"
#include <string.h>

TT_ISA_TABLES(tt_recurrent_table, tt_recurrent_rows)

#define ROWS 128 /* of a task */
#define WIDTH 128 /* hidden numbers of a task, at most, */
#define NARROW 32 /* and whose multiple they are */
#define PARALLEL_WORK ((int64_t)1 << 18) /* multiplications that are worth a second thread */
#define STEP_WORK ((int64_t)1 << 20) /* multiplications of a step for each thread that it is cut for */
#define PACKED 65536 /* bytes of packed weights that are worth a second thread */

static const double zeros[WIDTH]; /* of float32, too */

/* Another step: its first row, and how many sequences are in both. */
typedef struct {
    int64_t row, shared;
} neighbour;

typedef struct {
    const tt_recurrent_work *w;
    const tt_recurrent_loops *loops;
    const tt_float_product_loops *products;
    bool half, tiled; /* rows are of a half type; and are multiplied in tiles */
    int64_t size, width, across; /* of an element; hidden numbers of a task; tasks to a row */
    int64_t k, gates, wide; /* a task's weights: rows, columns for a hidden number, and columns as they are packed */
    char *weights; /* packed, for each task */
    int64_t row, rows; /* of this step: the first one, and how many there are */
    neighbour before, after;
    bool failed;
} job;

/* What a task works in: its product; and of a half type rows of gates and of numbers, and what is multiplied. */
typedef struct {
    char *product, *gates[2], *numbers[3], *left;
    float *sums;
} room;

static int64_t bytes_of_weights(const job *j) { /* of a task */
    return j->tiled ? j->wide * pieces(j->k, 32) * 32 * 2 : j->wide * j->k * j->size;
}

static bool enter(job *j, room *r) {
    int64_t product = ROWS * j->wide, gates = pieces(j->w->gates * j->w->hidden, 16) * 16;
    int64_t left = ROWS * pieces(j->k, 32) * 32, half = 2 * gates + 3 * WIDTH + left + product;
    char *at = tt_scratch((product + (j->half ? half : 0)) * j->size);
    *r = (room){.product = at};
    if (!at) __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
    if (!at || !j->half) return at;
    at += product * j->size;
    for (int i = 0; i < 2; i++, at += gates * j->size) r->gates[i] = at;
    for (int i = 0; i < 3; i++, at += WIDTH * j->size) r->numbers[i] = at;
    r->left = at;
    r->sums = (float *)(at + left * j->size);
    return true;
}

/* n numbers of a half type in float32, or the other way round. */
static void widen(const job *j, const void *from, int64_t n, void *to) {
    tt_isa->casts[j->w->stored][TT_F32](to, from, n);
}
static void narrow(const job *j, const void *from, int64_t n, void *to) {
    tt_isa->casts[TT_F32][j->w->stored](to, from, n);
}

static void multiply_tiles(const job *j, const room *r, int64_t m, const void **rows, int64_t at, int64_t width) {
    uint16_t *left = (uint16_t *)r->left;
    const uint16_t *right = (const uint16_t *)(j->weights + at * bytes_of_weights(j));
    int64_t tiles = pieces(j->k, 32), step = tiles * TT_TILES_SIZE, most_tiles = TT_TILES_DEPTH / 32;
    int64_t columns = j->gates * width;
    tt_tiles_begin();
    tt_tiles_pack_left((const uint16_t *const *)rows, 0, true, m, j->k, left, step);
    for (int64_t t = 0; t < tiles; t += most_tiles)
        tt_tiles_multiply(left + t * TT_TILES_SIZE, step, right + t * TT_TILES_SIZE, step, m, columns,
                          least(most_tiles, tiles - t), r->sums, t > 0);
    tt_tiles_end();
    for (int64_t i = 0; i < m; i++) tt_tiles_row(r->sums, i, m, columns, (float *)r->product + i * j->wide);
}

/* The first `m` of `rows` times the weights of task `at` of a row, for `width` hidden numbers */
static void multiply(const job *j, const room *r, int64_t m, const void **rows, int64_t at, int64_t width) {
    if (!m) return;
    if (j->tiled) {
        multiply_tiles(j, r, m, rows, at, width);
        return;
    }
    for (int64_t i = 0; j->half && i < m; i++) {
        char *to = r->left + i * j->k * j->size;
        widen(j, rows[i], j->k, to);
        rows[i] = to;
    }
    tt_rows_product p = {m, j->gates * width, j->k, rows, j->weights + at * bytes_of_weights(j), r->product, j->wide};
    j->products->rows_product(&p);
}

static char *element(const tt_array *a, int64_t row, int64_t col, int64_t cols) {
    return a ? a->data + (row * cols + col) * tt_itemsizes[a->dtype] : NULL;
}

/* A row of the states before this step. */
static const char *state(const job *j, const tt_array *states, const tt_array *first, int64_t r, int64_t col) {
    return r < j->before.shared ? element(states, j->before.row + r, col, j->w->hidden)
                                : element(first, r, col, j->w->hidden);
}

/* How many of a task's rows are those of a neighbour, too. */
static int64_t shared(const neighbour *other, int64_t row, int64_t rows) {
    return other->shared < row ? 0 : least(other->shared - row, rows);
}

/* The rows and the hidden numbers of a task. */
static void cut(const job *j, int64_t task, int64_t *row, int64_t *rows, int64_t *col, int64_t *width) {
    *row = task / j->across * ROWS;
    *rows = least(ROWS, j->rows - *row);
    *col = task % j->across * j->width;
    *width = least(j->width, j->w->hidden - *col);
}

/* Numbers of a row, in float32 if they are of a half type; and where they are to be put. */
static const void *read_numbers(const job *j, const room *r, int slot, const char *from, int64_t width) {
    if (!j->half || !from) return from;
    widen(j, from, width, r->numbers[slot]);
    return r->numbers[slot];
}

static void *place(const job *j, char *made, char *there) { return j->half && there ? made : there; }

/* The same of a row's gates, `hidden` apart. */
static const void *read_gates(const job *j, const room *r, const char *from, int64_t col, int64_t width) {
    int64_t hidden = j->w->hidden;
    if (!j->half) return from + col * j->size;
    for (int64_t k = 0; k < j->w->gates; k++)
        widen(j, from + (k * hidden + col) * 2, width, r->gates[0] + (k * hidden + col) * j->size);
    return r->gates[0] + col * j->size;
}

static void write_gates(const job *j, const char *made, int64_t width, char *to) {
    int64_t hidden = j->w->hidden;
    for (int64_t k = 0; j->half && to && k < j->w->gates; k++)
        narrow(j, made + k * hidden * j->size, width, to + k * hidden * 2);
}

static void forward_range(void *context, int64_t begin, int64_t end) {
    job *j = context;
    const tt_recurrent_work *w = j->w;
    int64_t hidden = w->hidden, row, rows, col, width;
    const void *before[ROWS];
    room room;
    if (!enter(j, &room)) return;
    for (int64_t task = begin; task < end; task++) {
        cut(j, task, &row, &rows, &col, &width);
        for (int64_t r = 0; r < rows; r++) before[r] = state(j, w->y, w->h0, row + r, 0);
        multiply(j, &room, rows, before, task % j->across, width);
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = j->row + row + r;
            char *y = element(w->y, at, col, hidden);
            tt_recurrent_row one = {.n = width,
                                    .hidden = hidden,
                                    .width = width,
                                    .x = read_gates(j, &room, element(w->x, at, 0, w->gates * hidden), col, width),
                                    .product = room.product + r * j->wide * j->size,
                                    .b = element(w->b, 0, col, 0),
                                    .before =
                                        w->c ? state(j, w->c, w->c0, row + r, col)
                                             : read_numbers(j, &room, 0, state(j, w->y, w->h0, row + r, col), width),
                                    .gates = element(w->saved, at, col, w->kept * hidden),
                                    .c = element(w->c, at, col, hidden),
                                    .y = place(j, room.numbers[1], y)};
            j->loops->forward[w->kind](&one);
            if (j->half) narrow(j, one.y, width, y);
        }
    }
    tt_scratch_free(room.product);
}

static void backward_range(void *context, int64_t begin, int64_t end) {
    job *j = context;
    const tt_recurrent_work *w = j->w;
    int64_t hidden = w->hidden, row, rows, col, width, all = w->gates * hidden;
    const tt_array *of_h = w->of_h ? w->of_h : w->of_x;
    const void *after[ROWS];
    room room;
    if (!enter(j, &room)) return;
    for (int64_t task = begin; task < end; task++) {
        cut(j, task, &row, &rows, &col, &width);
        int64_t known = shared(&j->after, row, rows);
        for (int64_t r = 0; r < known; r++) after[r] = element(of_h, j->after.row + row + r, 0, all);
        multiply(j, &room, known, after, task % j->across, width);
        memset(room.product + known * j->wide * j->size, 0, (size_t)((rows - known) * j->wide * j->size));
        for (int64_t r = 0; r < rows; r++) {
            int64_t at = j->row + row + r;
            char *to_x = element(w->of_x, at, col, all), *to_h = element(w->of_h, at, col, all);
            const char *before = w->c ? NULL : state(j, w->y, w->h0, row + r, col);
            tt_recurrent_row_back one = {
                .n = width,
                .hidden = hidden,
                .g = w->g ? read_numbers(j, &room, 0, element(w->g, at, col, hidden), width) : (const char *)zeros,
                .g_c = w->g_c ? element(w->g_c, at, col, hidden) : (const char *)zeros,
                .product = room.product + r * j->wide * j->size,
                .gates = element(w->saved, at, col, w->kept * hidden),
                .c = element(w->c, at, col, hidden),
                .y = w->kept ? NULL : read_numbers(j, &room, 1, element(w->y, at, col, hidden), width),
                .before = w->c ? state(j, w->c, w->c0, row + r, col) : read_numbers(j, &room, 2, before, width),
                .first = element(w->of_first, row + r, col, hidden),
                .of_x = place(j, room.gates[0], to_x),
                .of_h = place(j, room.gates[1], to_h)};
            j->loops->backward[w->kind](&one);
            write_gates(j, one.of_x, width, to_x);
            write_gates(j, one.of_h, width, to_h);
        }
    }
    tt_scratch_free(room.product);
}

static neighbour look_at(const tt_recurrent_work *w, const int64_t *offsets, int64_t t, int64_t other) {
    if (other < 0 || other >= w->steps) return (neighbour){0, 0};
    return (neighbour){offsets[other], least(w->sizes[t], w->sizes[other])};
}

/* One step after another, in the order of time or against it. */
static bool run(job *j, tt_range_fn fn, bool back) {
    const tt_recurrent_work *w = j->w;
    int64_t *offsets = tt_scratch((w->steps + 1) * (int64_t)sizeof *offsets), total = 0;
    int64_t work = least(ROWS, w->batch) * w->gates * j->width * w->hidden;
    int64_t grain = work >= PARALLEL_WORK ? 1 : PARALLEL_WORK / (work + 1) + 1;
    bool several = (w->batch + ROWS - 1) / ROWS * j->across > grain;
    for (int64_t t = 0; offsets && t < w->steps; t++) {
        offsets[t] = total;
        total += w->sizes[t];
    }
    bool ok = offsets != NULL;
    for (int64_t s = 0; ok && s < w->steps; s++) {
        int64_t t = w->reverse != back ? w->steps - 1 - s : s, by = w->reverse ? -1 : 1;
        j->row = offsets[t], j->rows = w->sizes[t];
        j->before = look_at(w, offsets, t, t - by);
        j->after = look_at(w, offsets, t, t + by);
        int64_t tasks = (j->rows + ROWS - 1) / ROWS * j->across;
        if (several) tt_parallel(tasks, grain, fn, j);
        else fn(j, 0, tasks);
        if (j->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for a recurrent layer");
        ok = !j->failed;
    }
    tt_scratch_free(offsets);
    return ok;
}

/* Packs the weights of some tasks: forward a column is a row of `from`, back it is a column. Columns beyond the last
 * are 0. */
typedef struct {
    job *j;
    const void *from;
    bool back;
} packing;

#define PACK(name, T)                                                                                                  \
    static void pack_##name(void *context, int64_t begin, int64_t end) {                                               \
        const packing *p = context;                                                                                    \
        const job *j = p->j;                                                                                           \
        const T *from = p->from;                                                                                       \
        int64_t by = j->products->tile_columns, hidden = j->w->hidden, step = p->back ? hidden : 1;                    \
        T *to = (T *)j->weights + begin * j->wide * j->k;                                                              \
        for (int64_t task = begin; task < end; task++) {                                                               \
            int64_t col = task * j->width, width = least(j->width, hidden - col), all = j->gates * width;              \
            for (int64_t s = 0; s < j->wide; s += by, to += j->k * by)                                                 \
                for (int64_t i = 0; i < by; i++) {                                                                     \
                    int64_t q = s + i, at = q < all ? q % width + col : 0;                                             \
                    const T *column = from + (p->back || q >= all ? at : (q / width * hidden + at) * hidden);          \
                    for (int64_t k = 0; k < j->k; k++) to[k * by + i] = q < all ? column[k * step] : 0;                \
                }                                                                                                      \
        }                                                                                                              \
    }
PACK(f32, float)
PACK(f64, double)

static void pack_tiles(void *context, int64_t begin, int64_t end) {
    const packing *p = context;
    job *j = p->j;
    const uint16_t *from = p->from;
    int64_t hidden = j->w->hidden, step = pieces(j->k, 32) * TT_TILES_SIZE;
    const uint16_t **lines = tt_scratch(most(j->k, j->gates * j->width) * (int64_t)sizeof *lines);
    if (!lines) __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
    for (int64_t task = begin; lines && task < end; task++) {
        int64_t col = task * j->width, width = least(j->width, hidden - col), count = j->gates * width;
        uint16_t *to = (uint16_t *)(j->weights + task * bytes_of_weights(j));
        for (int64_t q = 0; !p->back && q < count; q++)
            lines[q] = from + (q / width * hidden + col + q % width) * hidden;
        for (int64_t k = 0; p->back && k < j->k; k++) lines[k] = from + k * hidden;
        tt_tiles_pack_right(lines, p->back ? col : 0, !p->back, count, j->k, to, step);
    }
    tt_scratch_free(lines);
}

static bool pack(job *j, bool back) {
    const tt_array *w = j->w->w;
    float *wide = NULL;
    if (j->half && !j->tiled) {
        if (!(wide = tt_scratch(w->numel * j->size + 1))) return false;
        widen(j, w->data, w->numel, wide);
    }
    packing p = {j, wide ? (void *)wide : w->data, back};
    int64_t grain = PACKED / (bytes_of_weights(j) + 1) + 1;
    tt_parallel(j->across, grain, j->tiled ? pack_tiles : j->w->dtype == TT_F64 ? pack_f64 : pack_f32, &p);
    tt_scratch_free(wide);
    if (j->failed) tt_fail(TT_OUT_OF_MEMORY, "out of memory for a recurrent layer");
    return !j->failed;
}

static bool work(const tt_recurrent_work *w, bool back) {
    const tt_recurrent_table *table = tt_recurrent_rows[tt_isa_index];
    job j = {.w = w,
             .loops = w->dtype == TT_F64 ? &table->f64 : &table->f32,
             .products = tt_float_product_loops_of(w->dtype),
             .half = w->stored != w->dtype,
             .tiled = w->stored == TT_BF16 && tt_tiles() != TT_NO_TILES,
             .size = tt_itemsizes[w->dtype],
             .k = back ? w->gates * w->hidden : w->hidden,
             .gates = back ? 1 : w->gates};
    int64_t by = j.tiled ? 32 : j.products->tile_columns, blocks = pieces(w->batch, ROWS);
    int64_t threads = least(tt_get_num_threads(), 1 + w->batch * w->gates * w->hidden * w->hidden / STEP_WORK);
    j.width = least(WIDTH, most(1, pieces(pieces(w->hidden * blocks, threads), NARROW)) * NARROW);
    j.across = pieces(w->hidden, j.width);
    j.wide = pieces(j.gates * least(j.width, w->hidden), by) * by;
    j.weights = tt_scratch(j.across * bytes_of_weights(&j) + 1);
    bool ok = j.weights && pack(&j, back);
    if (back && w->of_first) memset(w->of_first->data, 0, (size_t)(w->of_first->numel * j.size));
    ok = ok && run(&j, back ? backward_range : forward_range, back);
    tt_scratch_free(j.weights);
    return ok;
}

bool tt_cpu_recurrent(const tt_recurrent_work *w) { return work(w, false); }

bool tt_cpu_recurrent_backward(const tt_recurrent_work *w) { return work(w, true); }
