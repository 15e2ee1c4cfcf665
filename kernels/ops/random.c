/* Random numbers: drivers over kernels/cpu/simd/random.c, permutations, draws from a given distribution. */
#include "core/tt.h"
#include "api/random.h"
#include "fuse/fuse.h"
#include "cpu/random.h"
#include "cpu/simd.h"
#include "cuda/host/cuda.h"
#include <math.h>
#include <string.h>

TT_ISA_TABLES(tt_random_loops, tt_random_table)

#define GROUP 64

int tt_random_kind(const char *name) {
#define MATCH(kind)                                  \
    if (!strcmp(name, #kind)) return TT_RANDOM_##kind;
    TT_RANDOM_KINDS(MATCH)
    return -1;
}

uint64_t tt_take_draws(tt_generator *g, uint64_t n) {
    tt_looks++;
    return __atomic_fetch_add(&g->draw, n, __ATOMIC_RELAXED);
}

static tt_draw next_draw(tt_generator *g) {
    return (tt_draw){.seed = g->seed, .draw = tt_take_draws(g, 1), .place = g->place, .kind = TT_RANDOM_uniform, .b = 1};
}

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

/* Fills `out`, whatever its strides: the numbers go by the row-major index. */
static int run(tt_array *out, job *j, tt_generator *g) {
    if (!tt_may_write("random numbers", out)) return -1;
    tt_draw next = next_draw(g);
    j->draw.seed = next.seed;
    j->draw.draw = next.draw;
    j->draw.place = next.place;
    if (TT_RECORDING && !j->p && !next.place && out->numel && tt_record_random(out, &j->draw, j->compute)) return 0;
    tt_array *to = out;
    if (!tt_settled(out)) {
        tt_decline();
        return -1;
    }
    if (!(out->flags & TT_FLAG_CONTIGUOUS) && !(to = tt_empty(out->dtype, out->ndim, out->shape))) return -1;
    j->data = to->data;
    j->dtype = out->dtype;
    int status = 0;
    if (tt_device) status = tt_cuda_random(&j->draw, to, j->compute, j->p) - 1;
    else if (out->numel) tt_parallel(out->numel, 1 << 13, draw_range, j);
    if (to != out) {
        if (status == 0) status = tt_copy_now(out, to);
        tt_free(to);
    }
    return status;
}

int tt_random(tt_array *out, int kind, tt_generator *g, double a, double b) {
    TT_ON_DEVICE(-1, "random numbers", 1, &out);
    job j = {.draw = {.kind = kind, .a = a, .b = b,
                      .digits = out->dtype == TT_F16 ? 11 : out->dtype == TT_BF16 ? 8 : 24}};
    bool whole = tt_is_integral(out->dtype);
    if (whole && kind != TT_RANDOM_mask && kind != TT_RANDOM_geometric) {
        tt_fail(TT_RUNTIME_ERROR, "random numbers of this kind are not implemented for %s: a floating dtype is needed",
                tt_dtype_names[out->dtype]);
        return -1;
    }
    j.compute = kind == TT_RANDOM_geometric && whole ? TT_F64 : whole ? TT_F32 : tt_compute_dtype(out->dtype);
    return run(out, &j, g);
}

/* On a device nobody waits to see whether the probabilities are some: above 1 is always, below 0 or NaN never. */
int tt_bernoulli(tt_array *out, tt_array *p, tt_generator *g) {
    TT_ON_DEVICE(-1, "bernoulli", 2, ((tt_array *[]){out, p}));
    if (!tt_ready(p) || p->dtype != TT_F64 || !(p->flags & TT_FLAG_CONTIGUOUS) || !tt_same_shape(out, p)) {
        tt_decline();
        return -1;
    }
    job j = {.draw = {.kind = TT_RANDOM_uniform, .b = 1}, .compute = TT_F64, .p = (const double *)p->data};
    for (int64_t k = 0; k < (tt_device ? 0 : p->numel); k++)
        if (!(j.p[k] >= 0 && j.p[k] <= 1)) {
            tt_fail(TT_RUNTIME_ERROR, "bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got a probability of %g",
                    j.p[k]);
            return -1;
        }
    return run(out, &j, g);
}

int tt_random_integers(tt_array *out, tt_generator *g, int64_t low, uint64_t range) {
    TT_ON_DEVICE(-1, "random integers", 1, &out);
    job j = {.draw = {.low = low, .range = range}, .compute = TT_I64};
    return run(out, &j, g);
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

double tt_rounded(int dtype, double x) {
    char stored[8];
    tt_isa->casts[TT_F64][dtype](stored, &x, 1);
    tt_isa->casts[dtype][TT_F64](&x, stored, 1);
    return x;
}

/* In the order of the elements, and by the numbers, of a mask that is drawn by itself. */
static bool drop(const tt_array *a, double keep, double scale, tt_generator *g, tt_array *out, tt_array *kept) {
    dropping d = {.draw = next_draw(g), .from = a->data, .to = out->data, .kept = kept->data, .dtype = a->dtype,
                  .compute = tt_compute_dtype(a->dtype)};
    d.draw.kind = TT_RANDOM_mask;
    d.draw.a = keep;
    d.draw.b = scale;
    if (tt_device) return tt_cuda_dropout(&d.draw, a, out, kept);
    tt_parallel(a->numel, 1 << 13, drop_range, &d);
    return true;
}

tt_array *tt_dropout(tt_array *a, double keep, double scale, tt_generator *g) {
    TT_ON_DEVICE(NULL, "dropout", 1, &a);
    tt_array *out = NULL, *mask;
    bool at_once = a->numel && tt_is_floating(a->dtype) && a->flags & TT_FLAG_CONTIGUOUS && !TT_RECORDING;
    if (at_once ? !tt_ready(a) : !tt_current(a)) return tt_decline();
    if (!(mask = at_once ? tt_empty(TT_BOOL, a->ndim, a->shape) : tt_empty_like(a, a->dtype))) return NULL;
    if (!at_once) {
        if (tt_random(mask, TT_RANDOM_mask, g, keep, scale) == 0) out = tt_binary(TT_OP_mul, a, mask);
    } else if ((out = tt_empty(a->dtype, a->ndim, a->shape)) && !drop(a, keep, scale, g, out, mask)) {
        tt_free(out);
        out = NULL;
    }
    if (!out) tt_free(mask);
    tt_second_array = out ? mask : NULL;
    return out;
}

tt_array *tt_randperm(int dtype, int64_t n, tt_generator *g) {
    if (n < 0) return tt_fail(TT_RUNTIME_ERROR, "randperm: n must be non-negative, got %lld", (long long)n);
    tt_array *out = tt_empty(TT_I64, 1, &n), *made = NULL;
    if (!out) return NULL;
    tt_draw d = next_draw(g);
    bool done = true;
    if (tt_device) done = tt_cuda_permutation(&d, out);
    else exchange(&d, (int64_t *)out->data, n);
    if (dtype == TT_I64 && done) return out;
    if (done) made = tt_cast_now(out, dtype);
    tt_free(out);
    return made;
}

typedef struct {
    tt_draw draw;
    const double *p;
    double *scratch;     /* as large as p */
    int64_t *out, categories, samples;
    int replacement;
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

/* probabilities: float64, contiguous, (rows, categories) or (categories). Each row is drawn from by itself; the sums
 * need not be 1. */
tt_array *tt_multinomial(tt_array *probabilities, int64_t samples, int replacement, tt_generator *g) {
    TT_ON_DEVICE(NULL, "multinomial", 1, &probabilities);
    int ndim = probabilities->ndim;
    if (!tt_ready(probabilities) || probabilities->dtype != TT_F64 || !(probabilities->flags & TT_FLAG_CONTIGUOUS))
        return tt_decline();
    if (ndim != 1 && ndim != 2)
        return tt_fail(TT_RUNTIME_ERROR, "multinomial: prob_dist must be 1 or 2 dim, got %d dimensions", ndim);
    int64_t categories = probabilities->shape[ndim - 1], rows = ndim == 2 ? probabilities->shape[0] : 1;
    if (samples <= 0)
        return tt_fail(TT_RUNTIME_ERROR, "multinomial: cannot sample n_sample <= 0 samples, got %lld", (long long)samples);
    if (!replacement && samples > categories)
        return tt_fail(TT_RUNTIME_ERROR, "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without "
                       "replacement: %lld of %lld", (long long)samples, (long long)categories);
    const double *p = (const double *)probabilities->data;
    for (int64_t r = 0; r < (tt_device ? 0 : rows); r++) {
        double sum = 0;
        for (int64_t c = 0; c < categories; c++) {
            double x = p[r * categories + c];
            if (!(x >= 0) || isinf(x))
                return tt_fail(TT_RUNTIME_ERROR, "multinomial: probability tensor contains either `inf`, `nan` or element "
                               "< 0: %g at category %lld", x, (long long)c);
            sum += x;
        }
        if (!(sum > 0))
            return tt_fail(TT_RUNTIME_ERROR, "multinomial: invalid multinomial distribution (sum of probabilities <= 0) "
                           "in row %lld", (long long)r);
    }
    int64_t shape[2] = {rows, samples};
    tt_array *out = ndim == 2 ? tt_empty(TT_I64, 2, shape) : tt_empty(TT_I64, 1, shape + 1);
    if (!out || !rows) return out;
    if (tt_device) {
        tt_draw d = next_draw(g);
        if (tt_cuda_multinomial(&d, probabilities, out, rows, replacement)) return out;
        tt_free(out);
        return NULL;
    }
    double *scratch = tt_scratch(rows * categories * 8);
    int64_t *heap = tt_scratch(categories * 8);
    if (!scratch || !heap) {
        tt_scratch_free(scratch);
        tt_scratch_free(heap);
        tt_free(out);
        return NULL;
    }
    distribution m = {.draw = next_draw(g), .p = p, .scratch = scratch, .out = (int64_t *)out->data, .categories = categories,
                      .samples = samples, .replacement = replacement};
    double buffer[GROUP];
    int64_t held = -1;
    for (int64_t r = 0; r < rows; r++)
        if (replacement) with_replacement(&m, r, buffer, &held);
        else without_replacement(&m, r, heap, buffer, &held);
    tt_scratch_free(scratch);
    tt_scratch_free(heap);
    return out;
}
