/* Random numbers: blocks of them from cpu/simd/random.c, permutations, draws from a given distribution. */
#include "cpu/cpu.h"
#include "cpu/random.h"
#include <string.h>

TT_ISA_TABLES(tt_random_loops, tt_random_table)

#define GROUP 64

typedef struct {
    tt_draw draw;
    char *data;
    int dtype, compute;
    const double *p; /* not NULL: each number becomes whether it is below the probability that stands here */
} job;

/* `begin` is a multiple of TT_BLOCK, and so of the group. */
static void draw_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const tt_random_loops *loops = tt_random_table[tt_isa_index];
    int size = tt_itemsizes[j->dtype];
    union {
        float f32[TT_BLOCK];
        double f64[TT_BLOCK];
        int64_t i64[TT_BLOCK];
    } block __attribute__((aligned(64)));
    for (int64_t at = begin; at < end; at += TT_BLOCK) {
        int64_t n = end - at < TT_BLOCK ? end - at : TT_BLOCK;
        char *to = j->data + at * size;
        bool direct = j->dtype == j->compute && n % GROUP == 0 && !j->p;
        void *where = direct ? (void *)to : (void *)&block;
        int64_t groups = (n + GROUP - 1) / GROUP;
        if (j->compute == TT_F32) loops->f32(&j->draw, where, at / GROUP, groups);
        else if (j->compute == TT_F64) loops->f64(&j->draw, where, at / GROUP, groups);
        else loops->i64(&j->draw, where, at / GROUP, groups);
        if (j->p)
            for (int64_t k = 0; k < n; k++) block.f64[k] = block.f64[k] < j->p[at + k];
        if (!direct) tt_isa->casts[j->compute][j->dtype](to, &block, n);
    }
}

void *tt_random_block(const tt_draw *draw, int dtype, void *buffer, int64_t at, int64_t n) {
    const tt_random_loops *loops = tt_random_table[tt_isa_index];
    int64_t first = at / GROUP, groups = (at + n + GROUP - 1) / GROUP - first;
    if (dtype == TT_F32) loops->f32(draw, buffer, first, groups);
    else if (dtype == TT_F64) loops->f64(draw, buffer, first, groups);
    else loops->i64(draw, buffer, first, groups);
    return (char *)buffer + at % GROUP * tt_itemsizes[dtype];
}

bool tt_cpu_random(const tt_draw *draw, tt_array *out, int compute, const double *chance) {
    job j = {.draw = *draw, .data = out->data, .dtype = out->dtype, .compute = compute, .p = chance};
    if (out->numel) tt_parallel(out->numel, 1 << 13, draw_range, &j);
    return true;
}

/* Fisher and Yates: place i takes one of those from i on. */
static void exchange(const tt_draw *d, int64_t *p, int64_t n) {
    int64_t words[TT_BLOCK];
    for (int64_t i = 0; i < n; i++) p[i] = i;
    for (int64_t at = 0; at < n; at += TT_BLOCK) {
        int64_t m = n - at < TT_BLOCK ? n - at : TT_BLOCK;
        tt_random_table[tt_isa_index]->i64(d, words, at / GROUP, (m + GROUP - 1) / GROUP);
        for (int64_t k = 0; k < m; k++) {
            int64_t i = at + k, j = i + (int64_t)((unsigned __int128)(uint64_t)words[k] * (uint64_t)(n - i) >> 64);
            int64_t other = p[j];
            p[j] = p[i];
            p[i] = other;
        }
    }
}

bool tt_cpu_permutation(const tt_draw *draw, tt_array *out) {
    exchange(draw, (int64_t *)out->data, out->numel);
    return true;
}

typedef struct {
    tt_draw draw;
    const char *from;
    char *to, *kept;
    int dtype, compute;
} dropping;

static void drop_range(void *context, int64_t begin, int64_t end) {
    const dropping *d = context;
    const int size = tt_itemsizes[d->dtype];
    const bool direct = d->dtype == d->compute;
    double mask[TT_BLOCK] __attribute__((aligned(64))), wide[TT_BLOCK] __attribute__((aligned(64))); /* or floats */
    for (int64_t at = begin; at < end; at += TT_BLOCK) {
        int64_t n = end - at < TT_BLOCK ? end - at : TT_BLOCK;
        char *from = (char *)d->from + at * size, *to = d->to + at * size, *x = direct ? from : (char *)wide;
        tt_random_block(&d->draw, d->compute, mask, at, n);
        tt_isa->casts[d->compute][TT_BOOL](d->kept + at, mask, n);
        if (!direct) tt_isa->casts[d->dtype][d->compute](x, from, n);
        tt_isa->ops[TT_OP_mul][d->compute]((char *[]){direct ? to : x, x, (char *)mask}, n);
        if (!direct) tt_isa->casts[d->compute][d->dtype](to, x, n);
    }
}

bool tt_cpu_dropout(const tt_draw *draw, const tt_array *a, tt_array *out, tt_array *kept) {
    dropping d = {.draw = *draw,
                  .from = a->data,
                  .to = out->data,
                  .kept = kept->data,
                  .dtype = a->dtype,
                  .compute = tt_compute_dtype(a->dtype)};
    tt_parallel(a->numel, 1 << 13, drop_range, &d);
    return true;
}

typedef struct {
    tt_draw draw;
    const double *p;
    double *scratch;     /* as large as p */
    int64_t *out, categories, samples;
} distribution;

/* 64 doubles at a time from element `at` on. */
static double number(const distribution *m, int64_t at, double *buffer, int64_t *held) {
    if (*held != at / GROUP) {
        *held = at / GROUP;
        tt_random_table[tt_isa_index]->f64(&m->draw, buffer, *held, 1);
    }
    return buffer[at % GROUP];
}

/* Inverse of the cumulative distribution, by bisection. */
static void with_replacement(const distribution *m, int64_t row, double *buffer, int64_t *held) {
    const double *p = m->p + row * m->categories;
    double *sums = m->scratch + row * m->categories, sum = 0;
    int64_t last = 0;
    for (int64_t c = 0; c < m->categories; c++) {
        sum += p[c];
        sums[c] = sum;
        if (p[c] > 0) last = c;
    }
    for (int64_t s = 0; s < m->samples; s++) {
        double x = number(m, row * m->samples + s, buffer, held) * sum;
        int64_t low = 0, high = last;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (sums[middle] > x) high = middle;
            else low = middle + 1;
        }
        m->out[row * m->samples + s] = low;
    }
}

/* The category of the largest key goes first, the smaller number among equals. */
static bool ahead(const double *key, int64_t a, int64_t b) { return key[a] != key[b] ? key[a] > key[b] : a < b; }

static void sift(int64_t *heap, int64_t n, int64_t at, const double *key) {
    for (;;) {
        int64_t best = at, child = 2 * at + 1;
        for (int64_t c = child; c < n && c <= child + 1; c++)
            if (ahead(key, heap[c], heap[best])) best = c;
        if (best == at) return;
        int64_t other = heap[at];
        heap[at] = heap[best];
        heap[best] = other;
        at = best;
    }
}

/* A race: category c arrives after an exponential time of rate p[c]; the first arrivals are the samples, in order.
 * (Efraimidis and Spirakis, "Weighted random sampling with a reservoir", 2006.) */
static void without_replacement(const distribution *m, int64_t row, int64_t *heap, double *buffer, int64_t *held) {
    const double *p = m->p + row * m->categories;
    double *key = m->scratch + row * m->categories;
    int64_t n = m->categories;
    for (int64_t c = 0; c < n; c++) {
        double u = 1.0 - number(m, row * n + c, buffer, held); /* (0, 1] */
        double time = -tt_log_f64(u);
        key[c] = p[c] / (time > 0x1p-60 ? time : 0x1p-60);
        heap[c] = c;
    }
    for (int64_t at = n / 2 - 1; at >= 0; at--) sift(heap, n, at, key);
    for (int64_t s = 0; s < m->samples; s++) {
        m->out[row * m->samples + s] = heap[0];
        heap[0] = heap[--n];
        sift(heap, n, 0, key);
    }
}

bool tt_cpu_multinomial(const tt_draw *draw, const tt_array *weights, tt_array *out, int64_t rows, int replacement) {
    int64_t categories = weights->shape[weights->ndim - 1], held = -1;
    double *scratch = tt_scratch(rows * categories * 8), buffer[GROUP];
    int64_t *heap = tt_scratch(categories * 8);
    distribution m = {.draw = *draw,
                      .p = (const double *)weights->data,
                      .scratch = scratch,
                      .out = (int64_t *)out->data,
                      .categories = categories,
                      .samples = out->shape[out->ndim - 1]};
    bool room = scratch && heap;
    for (int64_t r = 0; room && r < rows; r++)
        if (replacement) with_replacement(&m, r, buffer, &held);
        else without_replacement(&m, r, heap, buffer, &held);
    tt_scratch_free(scratch);
    tt_scratch_free(heap);
    return room;
}
