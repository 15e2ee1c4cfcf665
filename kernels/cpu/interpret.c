/* Fused mode's interpreter: runs kernels over memory, block by block. */
#include "backend/now.h"
#include "cpu/interpret.h"
#include <string.h>

#define WIDE 2048    /* columns that are worked on side by side, at most */
#define RUN 8 /* rows of them that are worked on one after the other, as memory has them; a divisor of TT_LANES */
#define MOST_SLOTS (10 * TT_FUSE_KERNEL_NODES)

typedef tt_kernel_job job;
typedef tt_kernel_worker worker;

static void flat_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const tt_kernel *k = j->k;
    char *slots[MOST_SLOTS];
    worker w;
    int64_t row = k->shape[k->ndim - 1], most = j->direct && j->compiled ? end - begin : k->block;
    tt_worker_start(&w, j, slots);
    for (int64_t at = begin; at < end;) {
        int64_t n = end - at < most ? end - at : most, in_row = at % row;
        if (row >= TT_ROW && n > row - in_row) n = row - in_row;
        tt_worker_block(&w, 0, at, n, 0);
        at += n;
    }
    tt_worker_stop(&w);
}

/* Rows of few elements: their first elements side by side, then their second ones, and so on, so
 * that all rows go through the tree together. */
static void reduce_short(const worker *w, const tt_reducer *r, int64_t rows, const char *x, int size, char *out,
                         int acc, const char *param) {
    int64_t row = w->k->row, live = row, pitch = rows * acc;
    char *lanes = w->arena + w->k->arena, *column = lanes + row * pitch;
    for (int64_t l = 0; l < row; l++) {
        tt_move(column, size, x + l * size, row * size, rows, size);
        r->first(lanes + l * pitch, column, rows, param);
    }
    for (int64_t h = TT_LANES / 2; h > 0; h /= 2)
        if (live > h) {
            r->join(lanes, lanes + h * pitch, (live - h) * rows);
            live = h;
        }
    memcpy(out, lanes, (size_t)pitch);
}

/* Reduces the n elements of a block: rows from number q of the group on, or part of one. */
static void reduce_block(const worker *w, const tt_kernel_reduction *f, int64_t q, int64_t done, int64_t n) {
    const tt_reducer *r = tt_get_reducer(f->reducer, f->dtype);
    int size = tt_itemsizes[f->dtype], acc = tt_itemsizes[f->acc];
    const char *param = f->param >= 0 ? w->p[f->param] + q * acc : NULL, *x = w->p[f->slot];
    char *out = w->p[f->out] + q * acc;
    int64_t row = w->k->row;
    if (row > TT_BLOCK) r->reduce_block(w->arena + (int64_t)f->partials * 64 + done / TT_BLOCK * acc, x, n, param);
    else if (row <= TT_SHORT && n >= 8 * row) reduce_short(w, r, n / row, x, size, out, acc, param);
    else
        for (; n > 0; n -= row) {
            r->reduce_block(out, x, row, param);
            out += acc;
            x += row * size;
            if (param) param += acc;
        }
}

static bool is_total(const tt_kernel *k, const tt_kernel_reduction *f) {
    return k->pattern == TT_PATTERN_ROW_REDUCTION && f->out < 0;
}

/* n more elements of all rows, the first of them number `at`: whatever makes a block of TT_BLOCK is reduced. */
static void add_to_total(const worker *w, int i, int64_t at, int64_t n) {
    const tt_kernel_reduction *f = &w->k->reductions[i];
    const tt_reducer *r = tt_get_reducer(f->reducer, f->dtype);
    int64_t size = tt_itemsizes[f->dtype], left = w->k->numel - at / TT_BLOCK * TT_BLOCK;
    char *x = w->p[f->slot], *waiting = w->arena + (int64_t)f->partials * 64;
    for (int64_t m; n > 0; n -= m, at += m, x += m * size, left -= TT_BLOCK) {
        int64_t in_block = at % TT_BLOCK, whole = left < TT_BLOCK ? left : TT_BLOCK;
        m = whole - in_block < n ? whole - in_block : n;
        if (m < whole) memcpy(waiting + in_block * size, x, (size_t)(m * size));
        if (in_block + m == whole)
            r->reduce_block(w->j->parts[i] + at / TT_BLOCK * tt_itemsizes[f->acc], m < whole ? waiting : x, whole,
                            NULL);
    }
}

/* Asks for the memory that the next group of rows will read and write, while this one is worked on: the processor's own
 * prefetchers lose the thread where stages go over rows in cache. */
static void ask_for(const worker *w, int64_t at, int64_t n) {
    const tt_kernel *k = w->k;
    if (at + n > k->numel) n = k->numel - at;
    for (int a = 0; a < k->num_accesses; a++) {
        const tt_access *x = &k->accesses[a];
        if (!x->level || !x->flat) continue;
        int size = tt_itemsizes[x->dtype];
        const char *p = w->j->data[a] + at * size;
        for (int64_t b = 0; b < n * size; b += 64) __builtin_prefetch(p + b, 1, 2);
    }
}

static void outer_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const tt_kernel *k = j->k;
    char *slots[MOST_SLOTS];
    worker w;
    int64_t together = k->together, blocks = (k->row + TT_BLOCK - 1) / TT_BLOCK;
    int64_t last = end * k->unit_rows < k->rows ? end * k->unit_rows : k->rows;
    tt_worker_start(&w, j, slots);
    for (int64_t first = begin * k->unit_rows; first < last; first += together) {
        int64_t rows = last - first < together ? last - first : together;
        int64_t at = first * k->row, whole = rows * k->row;
        const tt_part *loads = &k->parts[2 * k->num_stages];
        for (int i = loads->first_use; i < loads->end_use; i++)
            slots[k->uses[i]] = tt_worker_load(&w, k->uses[i], first, rows);
        for (int stage = 0; stage < k->num_stages; stage++) {
            for (int64_t done = 0; done < whole; done += k->block) {
                int64_t n = whole - done < k->block ? whole - done : k->block, q = done / k->row;
                if (stage == k->num_stages - 2) ask_for(&w, at + whole + done, n);
                tt_worker_block(&w, stage, at + done, n, done);
                for (int i = 0; i < k->num_reductions; i++) {
                    if (k->reductions[i].stage != stage) continue;
                    if (k->reductions[i].out < 0) add_to_total(&w, i, at + done, n);
                    else reduce_block(&w, &k->reductions[i], q, done, n);
                }
            }
            for (int i = 0; i < k->num_reductions && blocks > 1; i++) {
                const tt_kernel_reduction *f = &k->reductions[i];
                if (f->stage != stage || f->out < 0) continue;
                int acc = tt_itemsizes[f->acc];
                char *parts = w.arena + (int64_t)f->partials * 64;
                tt_join_blocks(tt_get_reducer(f->reducer, f->dtype), parts, blocks, acc, 1);
                memcpy(w.p[f->out], parts, (size_t)acc);
            }
            tt_worker_rows(&w, stage, first, rows);
        }
    }
    tt_worker_stop(&w);
}

static void split_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const tt_kernel *k = j->k;
    char *slots[MOST_SLOTS];
    worker w;
    int64_t blocks = (k->row + TT_BLOCK - 1) / TT_BLOCK;
    tt_worker_start(&w, j, slots);
    for (int64_t u = begin; u < end; u++) {
        int64_t which = u / blocks, at = u % blocks * TT_BLOCK, n = k->row - at < TT_BLOCK ? k->row - at : TT_BLOCK;
        tt_worker_block(&w, 0, which * k->row + at, n, 0);
        for (int i = 0; i < k->num_reductions; i++) {
            const tt_kernel_reduction *f = &k->reductions[i];
            int acc = tt_itemsizes[f->acc];
            const char *param = f->param >= 0 ? j->data[f->param] + which * acc : NULL;
            tt_get_reducer(f->reducer, f->dtype)->reduce_block(j->parts[i] + u * acc, w.p[f->slot], n, param);
        }
    }
    tt_worker_stop(&w);
}

/* Of a block's lanes, how many its units leave. */
static int64_t lanes_left(const job *j) { return j->shares > 1 ? RUN : 1; }

/* How many columns are worked on side by side: whole rows if possible, for they follow one another in memory. Should
 * that be too little for the threads, they share a block's lanes, or its columns where rows are few or short. */
static void share_columns(job *j, int64_t blocks) {
    const tt_kernel *k = j->k;
    int64_t tiles = (k->inner + WIDE - 1) / WIDE, threads = tt_get_num_threads(), all = k->rows * blocks;
    j->shares = 1;
    if (2 * k->inner > k->block && k->row >= 8 * TT_LANES)
        while (all * tiles * j->shares < 2 * threads && threads > 1 && j->shares < RUN) j->shares *= 2;
    while (all * tiles * j->shares < threads && k->inner / tiles > 256) tiles *= 2;
    j->tile = tiles == 1 ? k->inner : ((k->inner + tiles - 1) / tiles + 63) / 64 * 64;
}

/* Adds a row of `wide` elements, the n-th of its block, to its lane in each reduction's accumulators; the first of them
 * is number `from` of its tile. */
static void add_row(const worker *w, int64_t n, int64_t column, int64_t from, int64_t wide, int64_t in_slot,
                    char *acc) {
    for (int i = 0; i < w->k->num_reductions; i++) {
        const tt_kernel_reduction *f = &w->k->reductions[i];
        const tt_reducer *red = tt_get_reducer(f->reducer, f->dtype);
        int size = tt_itemsizes[f->dtype], asize = tt_itemsizes[f->acc];
        const char *param = f->param >= 0 ? w->j->data[f->param] + (column + from) * asize : NULL;
        char *to = acc + (n % TT_LANES * w->j->tile + from) * asize;
        (n < TT_LANES ? red->first : red->next)(to, w->p[f->slot] + in_slot * size, wide, param);
        acc += TT_LANES * w->j->tile * 8;
    }
}

/* One block of up to TT_BLOCK rows, one tile of columns, one share of the lanes: TT_LANES rows of accumulators, as in
 * reduce_run.c. Wide tiles go in runs of rows: they follow one another, and their accumulators stay in cache. A share
 * is a part of every run: what l + TT_LANES/2 ... l + RUN are joined with is in the same share as l, and RUN lanes are
 * left for `tt_job_write_out`. */
static void columns_unit(worker *w, int64_t u, int64_t tiles, int64_t blocks, char *tile) {
    const job *j = w->j;
    const tt_kernel *k = w->k;
    int64_t share = u % j->shares, left = u / j->shares % tiles * j->tile, which = u / j->shares / tiles;
    int64_t block = which % blocks, outer = which / blocks;
    int64_t wide = k->inner - left < j->tile ? k->inner - left : j->tile, column = outer * k->inner + left;
    int64_t row0 = block * TT_BLOCK, n = k->row - row0 < TT_BLOCK ? k->row - row0 : TT_BLOCK;
    int64_t at = (outer * k->row + row0) * k->inner + left, together = tiles == 1 ? k->block / wide : 1;
    int64_t run = RUN / j->shares, first = share * run;
    if (together > 1)
        for (int64_t r = 0; r < n; r += together) {
            int64_t rows = n - r < together ? n - r : together;
            tt_worker_block(w, 0, at + r * k->inner, rows * wide, 0);
            for (int64_t q = 0; q < rows; q++) add_row(w, r + q, column, 0, wide, q * wide, tile);
        }
    else
        for (int64_t lane = first; lane < TT_LANES; lane += RUN)
            for (int64_t r0 = lane; r0 < n; r0 += TT_LANES)
                for (int64_t r = r0; r < n && r < r0 + run; r++)
                    for (int64_t c = 0, m; c < wide; c += m) {
                        m = wide - c < k->block ? wide - c : k->block;
                        tt_worker_block(w, 0, at + r * k->inner + c, m, 0);
                        add_row(w, r, column, c, m, 0, tile);
                    }
    char *acc = tile;
    for (int i = 0; i < k->num_reductions; i++) {
        const tt_kernel_reduction *f = &k->reductions[i];
        const tt_reducer *r = tt_get_reducer(f->reducer, f->dtype);
        int64_t asize = tt_itemsizes[f->acc], pitch = j->tile * asize, lanes = lanes_left(j);
        for (int64_t h = TT_LANES / 2; h >= lanes; h /= 2)
            for (int64_t l = 0; l < h && l + h < n; l++)
                if (l % RUN >= first && l % RUN < first + run) r->join(acc + l * pitch, acc + (l + h) * pitch, wide);
        for (int64_t l = first; l < first + run && l < lanes && l < n; l++)
            memcpy(j->parts[i] + (((outer * blocks + block) * lanes + l) * k->inner + left) * asize, acc + l * pitch,
                   (size_t)(wide * asize));
        acc += TT_LANES * j->tile * 8;
    }
}

static void columns_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const tt_kernel *k = j->k;
    char *slots[MOST_SLOTS];
    worker w;
    int64_t blocks = (k->row + TT_BLOCK - 1) / TT_BLOCK, tiles = (k->inner + j->tile - 1) / j->tile;
    tt_worker_start(&w, j, slots);
    for (int64_t u = begin; u < end; u++) columns_unit(&w, u, tiles, blocks, w.arena + k->arena);
    tt_worker_stop(&w);
}

/* How many accumulators a reduction leaves: its blocks' results, or lanes of them. */
static int64_t num_parts(const job *j, const tt_kernel_reduction *f) {
    const tt_kernel *k = j->k;
    if (is_total(k, f)) return (k->numel + TT_BLOCK - 1) / TT_BLOCK;
    return k->pattern == TT_PATTERN_ROW_REDUCTION
               ? 0
               : k->rows * ((k->row + TT_BLOCK - 1) / TT_BLOCK) * lanes_left(j) * k->inner;
}

int64_t tt_job_parts(const job *j, int reduction) {
    const tt_kernel_reduction *f = &j->k->reductions[reduction];
    return num_parts(j, f) * tt_itemsizes[f->acc];
}

int64_t tt_job_arena(const job *j) {
    const tt_kernel *k = j->k;
    int64_t extra = k->pattern == TT_PATTERN_OUTER_REDUCTION ? k->num_reductions * TT_LANES * j->tile * 8 : 0;
    if (k->pattern == TT_PATTERN_ROW_REDUCTION && k->row <= TT_SHORT) extra = 2 * k->block * 8; /* see reduce_short */
    return k->arena + extra;
}

void tt_job_divide(job *j, int64_t work) {
    const tt_kernel *k = j->k;
    int64_t blocks = (k->row + TT_BLOCK - 1) / TT_BLOCK;
    j->units = k->numel;
    j->grain = work / k->weight;
    j->range = flat_range;
    if (k->pattern == TT_PATTERN_POINTWISE) {
        j->grain = (j->grain + k->block - 1) / k->block * k->block; /* so that blocks begin where `repeated` has it */
    } else if (k->pattern == TT_PATTERN_ROW_REDUCTION) {
        j->units = (k->rows + k->unit_rows - 1) / k->unit_rows;
        j->grain /= k->unit_rows * k->row;
        j->range = outer_range;
    } else if (k->pattern == TT_PATTERN_SPLIT_REDUCTION) {
        j->units = k->rows * blocks;
        j->grain /= k->row < TT_BLOCK ? k->row : TT_BLOCK;
        j->range = split_range;
    } else {
        share_columns(j, blocks);
        j->units = k->rows * blocks * ((k->inner + j->tile - 1) / j->tile) * j->shares;
        j->grain /= (k->row < TT_BLOCK ? k->row : TT_BLOCK) * ((j->tile + j->shares - 1) / j->shares);
        j->range = columns_range;
    }
    if (j->grain < 1) j->grain = 1;
}

/* From the blocks' results to the results. */
void tt_job_write_out(const job *j) {
    const tt_kernel *k = j->k;
    for (int i = 0; i < k->num_reductions; i++) {
        const tt_kernel_reduction *f = &k->reductions[i];
        const tt_reducer *r = tt_get_reducer(f->reducer, f->dtype);
        bool total = is_total(k, f);
        int64_t parts = num_parts(j, f), rows = total ? 1 : k->rows, n = total ? 1 : k->inner,
                lanes = total ? 1 : lanes_left(j);
        int64_t blocks = parts / (rows * n * lanes), bytes = n * tt_itemsizes[f->acc];
        for (int64_t u = 0; u < rows && parts; u++) {
            char *p = j->parts[i] + u * blocks * lanes * bytes;
            for (int64_t b = 0; b < blocks && lanes > 1; b++)
                for (int64_t h = lanes / 2, live = k->row - b * TT_BLOCK; h > 0; h /= 2) {
                    if (live > 2 * h) live = 2 * h;
                    if (live > h) r->join(p + b * lanes * bytes, p + (b * lanes + h) * bytes, (live - h) * n);
                }
            tt_join_blocks(r, p, blocks, lanes * bytes, n);
            memcpy(j->data[f->access] + u * bytes, p, (size_t)bytes);
        }
    }
}

bool tt_job_extern(const job *j) {
    const tt_kernel *k = j->k;
    const tt_kernel_reduction *f = &k->reductions[0];
    const tt_access *from = &k->accesses[f->slot];
    int size = tt_itemsizes[from->dtype], acc = tt_itemsizes[f->acc];
    int64_t shape[TT_FUSE_DIMS], strides[2][TT_FUSE_DIMS];
    tt_array a = {.data = j->data[f->slot],
                  .dtype = from->dtype,
                  .ndim = k->ndim,
                  .numel = k->numel,
                  .shape = shape,
                  .strides = strides[0]};
    for (int d = 0; d < k->ndim; d++) {
        shape[d] = k->shape[d];
        strides[0][d] = from->strides[d] / size;
    }
    tt_update_flags(&a);
    tt_reduction g;
    tt_reduction_plan(&g, &a, k->row, f->dtype, acc, false);
    char *results = g.in_order ? j->data[f->access] : tt_scratch(g.kept * acc);
    if (!results) return false;
    const char *params = f->param >= 0 ? j->data[f->param] : NULL;
    bool ok = tt_reduction_run(&g, tt_get_reducer(f->reducer, f->dtype), params, results, NULL);
    if (results == j->data[f->access]) return ok;
    tt_array made = {.data = results, .dtype = f->acc, .numel = g.kept, .shape = shape, .strides = strides[0]}, out;
    for (int d = 0; d < k->ndim; d++) {
        if (k->row >> d & 1) continue;
        shape[made.ndim] = k->shape[d];
        strides[0][made.ndim++] = g.result_strides[d];
    }
    out = made;
    out.data = j->data[f->access];
    out.strides = strides[1];
    tt_set_contiguous(&out);
    ok = ok && tt_copy_now(&out, &made) == 0;
    tt_scratch_free(results);
    return ok;
}
