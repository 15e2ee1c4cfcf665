/* Sorting and selection along a dimension on a device: which kernels a row's length asks for. */
#include "cuda/host/radix.h"
#include "backend/now.h"
#include "cuda/device/sort_args.h"

#define SHORT 4096       /* elements of a row that a block sorts in shared memory */
#define EXCHANGED 128    /* that are sorted by exchanges, not by digits */
#define ROWSORT_ITEMS 16 /* of a thread: TT_ITEMS in rowsort.cuh */
#define FEWEST 128       /* that are rather selected from than sorted, if no more than a quarter is wanted */
#define SELECTED 2048    /* elements that are selected rather than sorted from a long row */
#define SELECT_ITEMS 16  /* of a thread, in registers: TT_ITEMS in select.cuh */
#define PARTS 1056       /* of all rows that are selected from: eight for each of an H200's processors */
#define LEAST_PART 8192  /* elements of one */
#define TOGETHER (1 << 28) /* elements sorted at a time */
#define DESCENDING 1
#define MAKES_KEYS 2
enum { WHOLE, COUNT, GATHER, FINISH }; /* steps of a selection */
#define BY_DIGITS 2 /* variants of rowsort */
#define FEW_THREADS 4
#define NARROW 8 /* with blocks of 64 threads */

static int key_bits(int dtype) { return 8 * tt_itemsizes[dtype]; }

static int power_of_two(int64_t n) {
    int size = 1;
    while (size < n) size *= 2;
    return size;
}

/* A block for each row: the shorter ones sort by exchanges, with room for the padded ones' keys and numbers. */
static bool by_rows(tt_sort_args *p, int what, int variant, int dtype) {
    int threads = 32;
    int64_t shared = 0;
    p->padded = power_of_two(p->n);
    if (p->n > EXCHANGED) {
        bool narrow = p->n <= 64 * ROWSORT_ITEMS;
        variant |= BY_DIGITS | (narrow ? FEW_THREADS : 0);
        threads = narrow ? 64 : 256;
    } else {
        while (threads < 1024 && 2 * threads < p->padded) threads *= 2;
        shared = p->padded * (key_bits(dtype) == 64 ? 12 : 8);
    }
    return TT_LAUNCH(tt_key(TT_FAMILY_rowsort, what, variant, dtype, 0, 0, 0, 0), p->rows, 1, threads, shared, *p);
}

/* Sorted keys of all rows together, of which a kernel takes the results; a sort of rows without gaps writes them
 * itself. */
static bool by_radix(tt_sort_args *p, int what, int variant, int dtype) {
    tt_radix_sort s;
    int item = tt_itemsizes[dtype];
    int64_t n = p->rows * p->n, results = what == TT_MODE ? p->rows * TT_CUDA_THREADS : p->rows * p->out_n;
    bool one = !p->dims || (p->dims == 1 && p->row_step[0] == p->n * item), dense = p->step == item && one;
    bool delivers = dense && what == TT_SORT && p->out_step == 1 && (!p->dims || p->out_row_step[0] == p->n);
    bool done = tt_radix_sort_begin(&s, n, item == 8);
    if (done && dense) {
        int64_t before = p->first * p->n;
        done = tt_radix_sort_elements(&s, p->in + before * item, dtype, variant & DESCENDING, p->n,
                                      delivers ? p->values + before * item : NULL, p->indices + before);
    } else if ((done = done && tt_radix_sort_room(&s))) {
        p->keys = s.keys->data;
        done = TT_LAUNCH(tt_key(TT_FAMILY_sorted, what, variant | MAKES_KEYS, dtype, 0, 0, 0, 0),
                         (n + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, *p) &&
               tt_radix_sort_keys(&s, 8 * item, p->n);
    }
    if (done && !delivers) {
        p->keys = s.keys->data;
        p->order = (uint32_t *)s.numbers->data;
        done = TT_LAUNCH(tt_key(TT_FAMILY_sorted, what, variant, dtype, 0, 0, 0, 0),
                         (results + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, *p);
    }
    tt_radix_sort_end(&s);
    return done;
}

static bool select_step(const tt_select_args *p, int step, int what, int variant, int dtype, int64_t blocks,
                        int threads, int64_t shared) {
    return TT_LAUNCH(tt_key(TT_FAMILY_select, what, variant | step << 1, dtype, 0, 0, 0, 0), blocks, 1, threads, shared,
                     *p);
}

/* The least k, or one, of each row: in one kernel, or from parts of the rows digit by digit. */
static bool by_selection(tt_sort_args *s, int what, int variant, int dtype) {
    tt_select_args p = {.sort = *s};
    int64_t rows = s->rows, k = what == TT_TOPK ? s->k : 1, most = (PARTS + rows - 1) / rows,
            parts = (s->n + LEAST_PART - 1) / LEAST_PART;
    p.sort.padded = power_of_two(k);
    int64_t shared = p.sort.padded * (key_bits(dtype) == 64 ? 12 : 8);
    if (s->n <= SHORT) {
        bool narrow = s->n <= 64 * SELECT_ITEMS;
        return select_step(&p, WHOLE, what, variant | (narrow ? NARROW : 0), dtype, rows, narrow ? 64 : 256, shared);
    }
    if (parts > most) parts = most;
    p.part = (uint32_t)((s->n + parts - 1) / parts);
    p.parts = (uint32_t)((s->n + p.part - 1) / p.part);
    int64_t words = rows * (256 + (int64_t)sizeof(tt_select_state) / 4), found = rows * k;
    tt_array *room = tt_full_now(TT_I32, 1, &words, TT_KIND_INT, 0, 0);
    tt_array *places = room && what == TT_TOPK ? tt_cuda_temporary(TT_I32, found) : NULL;
    bool done = room && (places || what != TT_TOPK);
    if (done) {
        p.states = (tt_select_state *)room->data;
        p.counts = (uint32_t *)(p.states + rows);
        p.found = places ? (uint32_t *)places->data : NULL;
        for (; done && p.pass < tt_itemsizes[dtype] + 4; p.pass++)
            done = select_step(&p, COUNT, what, variant, dtype, rows * p.parts, 256, 0);
        done = done && select_step(&p, GATHER, what, variant, dtype, rows * p.parts, 256, 0) &&
               (what != TT_TOPK || select_step(&p, FINISH, what, variant, dtype, rows, 256, shared));
    }
    if (room) tt_free(room);
    if (places) tt_free(places);
    return done;
}

static bool sort_along(int what, int dtype, bool descending, tt_sort_args *p) {
    int variant = descending ? DESCENDING : 0;
    int64_t rows = p->rows;
    bool one = what < TT_MODE, topk = what == TT_TOPK;
    if (topk && !p->out_n) return true;
    if (p->n > FEWEST && p->n <= INT32_MAX && (one || (topk && (p->n > SHORT ? p->k <= SELECTED : p->k <= p->n / 4))))
        return by_selection(p, what, variant, dtype);
    if (p->n <= SHORT) return by_rows(p, what, variant, dtype);
    int64_t some = p->n >= TOGETHER ? 1 : TOGETHER / p->n;
    for (p->first = 0; p->first < rows; p->first += some) {
        p->rows = rows - p->first < some ? rows - p->first : some;
        if (!by_radix(p, what, variant, dtype)) return false;
    }
    return true;
}

bool tt_cuda_sort(const char *op, tt_sorting *j) {
    tt_sort_args p = {.in = j->a->data,
                      .values = j->values->data,
                      .indices = j->indices,
                      .rows = j->num_rows,
                      .n = j->n,
                      .k = j->k,
                      .out_n = j->out_n,
                      .step = j->step,
                      .out_step = j->out_step};
    for (int d = j->rows.n - 1; d >= 0; d--) {
        int64_t size = j->rows.size[d], in = j->rows.step[d], out = j->out_rows.step[d], last = p.dims - 1;
        if (size == 1) continue;
        if (last >= 0 && in == p.row_step[last] * p.size[last] && out == p.out_row_step[last] * p.size[last]) {
            p.size[last] *= size;
            continue;
        }
        if (p.dims == TT_CUDA_DIMS) return tt_cuda_too_deep(op);
        p.size[p.dims] = size;
        p.row_step[p.dims] = in;
        p.out_row_step[p.dims++] = out;
    }
    return sort_along(j->what, j->a->dtype, j->descending, &p);
}
