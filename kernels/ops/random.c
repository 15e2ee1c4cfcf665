/* Random numbers: distributions, permutations, dropout, samples. */
#include "api/random.h"
#include "backend/backend.h"
#include "backend/now.h"
#include "fuse/fuse.h"
#include "fuse/nn_record.h"
#include "ops/second.h"
#include "scalar/variates.h"
#include <math.h>
#include <string.h>

int tt_random_kind(const char *name) {
#define MATCH(kind)                                                                                                    \
    if (!strcmp(name, #kind)) return TT_RANDOM_##kind;
    TT_RANDOM_KINDS(MATCH)
    return -1;
}

uint64_t tt_take_draws(tt_generator *g, uint64_t n) {
    tt_looks++;
    return __atomic_fetch_add(&g->draw, n, __ATOMIC_RELAXED);
}

static tt_draw next_draw(tt_generator *g) {
    return (tt_draw){
        .seed = g->seed, .draw = tt_take_draws(g, 1), .place = g->place, .kind = TT_RANDOM_uniform, .b = 1};
}

/* Fills `out`, whatever its strides: the numbers go by the row-major index. */
static int run(tt_array *out, tt_draw *draw, int compute, const double *chance, tt_generator *g) {
    if (!tt_may_write("random numbers", out)) return -1;
    tt_draw next = next_draw(g);
    draw->seed = next.seed;
    draw->draw = next.draw;
    draw->place = next.place;
    if (TT_RECORDING && !chance && !next.place && out->numel && tt_record_random(out, draw, compute)) return 0;
    tt_array *to = out;
    if (!tt_ready_to_write(out)) {
        tt_decline();
        return -1;
    }
    if (!(out->flags & TT_FLAG_CONTIGUOUS) && !(to = tt_empty(out->dtype, out->ndim, out->shape))) return -1;
    int status = TT_WORK("random numbers", random, draw, to, compute, chance) - 1;
    if (to != out) {
        if (status == 0) status = tt_copy_now(out, to);
        tt_free(to);
    }
    return status;
}

int tt_random(tt_array *out, int kind, tt_generator *g, double a, double b, int writer) {
    TT_ON_DEVICE(-1, "random numbers", 1, &out);
    if (tt_is_complex(out->dtype) && (kind == TT_RANDOM_uniform || kind == TT_RANDOM_normal)) {
        /* both parts; a variance is shared by them */
        tt_array *parts = tt_view_as_real(out);
        if (!parts) return -1;
        int status = tt_random(parts, kind, g, a, kind == TT_RANDOM_normal ? b * M_SQRT1_2 : b, writer);
        tt_free(parts);
        return status;
    }
    if (!tt_has_order("random numbers", out->dtype)) return -1;
    tt_draw draw = {.kind = kind, .a = a, .b = b, .digits = out->dtype == TT_F16 ? 11 : out->dtype == TT_BF16 ? 8 : 24};
    bool whole = tt_is_integral(out->dtype);
    if (whole && kind != TT_RANDOM_mask && kind != TT_RANDOM_geometric) {
        tt_fail(TT_RUNTIME_ERROR, "random numbers of this kind are not implemented for %s: a floating dtype is needed",
                tt_dtype_names[out->dtype]);
        return -1;
    }
    int compute = kind == TT_RANDOM_geometric && whole ? TT_F64 : whole ? TT_F32 : tt_compute_dtype(out->dtype);
    return tt_written(out, writer, run(out, &draw, compute, NULL, g) == 0);
}

/* On a device nobody waits to see whether the probabilities are some: above 1 is always, below 0 or NaN never. */
int tt_bernoulli(tt_array *out, tt_array *p, tt_generator *g, int writer) {
    TT_ON_DEVICE(-1, "bernoulli", 2, ((tt_array *[]){out, p}));
    if (!tt_ready(p) || p->dtype != TT_F64 || !(p->flags & TT_FLAG_CONTIGUOUS) || !tt_same_shape(out, p)) {
        tt_decline();
        return -1;
    }
    if (!tt_has_order("bernoulli", out->dtype)) return -1;
    tt_draw draw = {.kind = TT_RANDOM_uniform, .b = 1};
    const double *chance = (const double *)p->data;
    for (int64_t k = 0; k < (tt_here()->on_host ? p->numel : 0); k++)
        if (!(chance[k] >= 0 && chance[k] <= 1)) {
            tt_fail(TT_RUNTIME_ERROR,
                    "bernoulli: Expected p_in >= 0 && p_in <= 1 to be true, but got a probability of %g", chance[k]);
            return -1;
        }
    return tt_written(out, writer, run(out, &draw, TT_F64, chance, g) == 0);
}

int tt_random_integers(tt_array *out, tt_generator *g, int64_t low, uint64_t range, int writer) {
    TT_ON_DEVICE(-1, "random integers", 1, &out);
    if (!tt_is_real("random integers", out->dtype)) return -1;
    tt_draw draw = {.low = low, .range = range};
    return tt_written(out, writer, run(out, &draw, TT_I64, NULL, g) == 0);
}

int tt_variate_kind(const char *name) {
#define VARIATE(kind)                                                                                                  \
    if (!strcmp(name, #kind)) return TT_VARIATE_##kind;
    TT_VARIATE_KINDS(VARIATE)
    return -1;
}

static bool are_parameters(tt_array *a, tt_array *like) {
    return tt_ready(a) && tt_is_floating(a->dtype) && a->dtype == like->dtype && a->flags & TT_FLAG_CONTIGUOUS &&
           tt_same_shape(a, like);
}

tt_array *tt_variates(int kind, tt_array *a, tt_array *b, double least, tt_generator *g) {
    TT_ON_DEVICE(NULL, "random variates", b ? 2 : 1, ((tt_array *[]){a, b}));
    if (!are_parameters(a, a) || (b && !are_parameters(b, a)) || kind < 0 || kind >= TT_NUM_VARIATE_KINDS)
        return tt_decline();
    tt_array *out = tt_empty(a->dtype, a->ndim, a->shape);
    if (!out) return NULL;
    tt_draw draw = next_draw(g);
    draw.kind = kind;
    draw.a = least;
    if (TT_WORK("random variates", variates, &draw, a, b, out)) return out;
    tt_free(out);
    return NULL;
}

double tt_rounded(int dtype, double x) {
    char stored[TT_MAX_ITEMSIZE];
    tt_convert(stored, dtype, &x, TT_F64);
    tt_convert(&x, TT_F64, stored, dtype);
    return x;
}

/* In the order of the elements, and by the numbers, of a mask that is drawn by itself. */
static bool drop(const tt_array *a, double keep, double scale, tt_generator *g, tt_array *out, tt_array *kept) {
    tt_draw draw = next_draw(g);
    draw.kind = TT_RANDOM_mask;
    draw.a = keep;
    draw.b = scale;
    return TT_WORK("dropout", dropout, &draw, a, out, kept);
}

tt_array *tt_dropout(tt_array *a, double keep, double scale, tt_generator *g) {
    TT_ON_DEVICE(NULL, "dropout", 1, &a);
    tt_array *out = NULL, *mask;
    bool fuses = TT_RECORDING && (!a->storage->device || tt_worth_recording(a));
    bool at_once = a->numel && tt_is_floating(a->dtype) && a->flags & TT_FLAG_CONTIGUOUS && !fuses;
    if (at_once ? !tt_ready(a) : !tt_current(a)) return tt_decline();
    if (!(mask = at_once ? tt_empty(TT_BOOL, a->ndim, a->shape) : tt_empty_like(a, tt_real_dtype(a->dtype))))
        return NULL;
    if (!at_once) {
        if (tt_random(mask, TT_RANDOM_mask, g, keep, scale, -1) == 0) out = tt_binary(TT_OP_mul, a, mask);
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
    bool done = TT_WORK("randperm", permutation, &d, out);
    if (dtype == TT_I64 && done) return out;
    if (done) made = tt_cast_now(out, dtype);
    tt_free(out);
    return made;
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
        return tt_fail(TT_RUNTIME_ERROR, "multinomial: cannot sample n_sample <= 0 samples, got %lld",
                       (long long)samples);
    if (!replacement && samples > categories)
        return tt_fail(TT_RUNTIME_ERROR,
                       "multinomial: cannot sample n_sample > prob_dist.size(-1) samples without "
                       "replacement: %lld of %lld",
                       (long long)samples, (long long)categories);
    const double *p = (const double *)probabilities->data;
    for (int64_t r = 0; r < (tt_here()->on_host ? rows : 0); r++) {
        double sum = 0;
        for (int64_t c = 0; c < categories; c++) {
            double x = p[r * categories + c];
            if (!(x >= 0) || isinf(x))
                return tt_fail(TT_RUNTIME_ERROR,
                               "multinomial: probability tensor contains either `inf`, `nan` or element "
                               "< 0: %g at category %lld",
                               x, (long long)c);
            sum += x;
        }
        if (!(sum > 0))
            return tt_fail(TT_RUNTIME_ERROR,
                           "multinomial: invalid multinomial distribution (sum of probabilities <= 0) "
                           "in row %lld",
                           (long long)r);
    }
    int64_t shape[2] = {rows, samples};
    tt_array *out = ndim == 2 ? tt_empty(TT_I64, 2, shape) : tt_empty(TT_I64, 1, shape + 1);
    if (!out || !rows) return out;
    tt_draw d = next_draw(g);
    if (TT_WORK("multinomial", multinomial, &d, probabilities, out, rows, replacement)) return out;
    tt_free(out);
    return NULL;
}
