/* Decompositions of stacks of matrices and systems of equations: operands are checked, broadcast and copied, results
 * allocated; what is done to each matrix is the backend's affair (cpu/lapack.c).
 *
 * LAPACK works in place on column-major matrices. So an operand is copied, from any strides, into the result where it
 * lies there in the end, else into memory of its own. Inputs are never written. */
#include "api/decompose.h"
#include "backend/backend.h"
#include "backend/now.h"
#include "ops/dims.h"
#include <limits.h>
#include <stdio.h>
#include <string.h>

typedef struct {
    const char *name;
    bool square;
    int a_at, b_at;
    const char *results[TT_MOST_RESULTS + 1];
    const char *failure;
} decomposition;

static const decomposition table[] = {
#define LIST(...) {__VA_ARGS__}
#define ROW(name, square, a_at, b_at, results, failure) {#name, square, a_at, b_at, LIST results, failure},
    TT_DECOMPOSITIONS(ROW)};

int tt_decomposition(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name)) return (int)i;
    tt_fail(TT_VALUE_ERROR, "there is no decomposition named '%s'", name);
    return -1;
}

typedef struct {
    const decomposition *d;
    tt_stack s;
    int num_results;
    tt_array *copy, *results[TT_MOST_RESULTS], *info; /* a copy of A, where that is no result */
} call;

static bool on_one_device(const tt_array *a, const tt_array *other) {
    char text[2][16];
    if (!other || other->storage->device == a->storage->device) return true;
    tt_fail(TT_RUNTIME_ERROR,
            "Expected all tensors to be on the same device, but found at least two devices, %s and %s!",
            tt_device_text(text[0], sizeof text[0], a->storage->device),
            tt_device_text(text[1], sizeof text[1], other->storage->device));
    return false;
}

static bool check_operand(const char *name, const tt_array *x, bool square) {
    char device[16];
    const int64_t *sizes = x->shape + x->ndim - 2;
    if (!tt_backend_of(x->storage->device)->decompose)
        tt_fail(TT_NOT_IMPLEMENTED, "not implemented for tensors on %s",
                tt_device_text(device, sizeof device, x->storage->device));
    else if (x->ndim < 2) tt_fail(TT_RUNTIME_ERROR, "The input tensor %s must have at least 2 dimensions.", name);
    else if (square && sizes[0] != sizes[1])
        tt_fail(TT_RUNTIME_ERROR, "%s must be batches of square matrices, but they are %lld by %lld matrices", name,
                (long long)sizes[0], (long long)sizes[1]);
    else if (!tt_is_floating(x->dtype) &&
             !tt_is_complex(x->dtype)) /* in PyTorch the one or the other, by the decomposition */
        tt_fail(TT_NOT_IMPLEMENTED, "Expected a floating point or complex tensor as input. Got %s",
                tt_dtype_names[x->dtype]);
    else if (tt_is_half(x->dtype)) tt_fail(TT_NOT_IMPLEMENTED, "not implemented for '%s'", tt_dtype_names[x->dtype]);
    else if (sizes[0] > INT_MAX || sizes[1] > INT_MAX)
        tt_fail(TT_RUNTIME_ERROR, "matrices of more than %d rows or columns are not supported", INT_MAX);
    else return true;
    return false;
}

static bool check_pair(const call *j, const tt_array *a, const tt_array *b) {
    const tt_matrix *c = &j->s.first;
    bool left = j->d->a_at != TT_EITHER_ORDER || !(c->option & 2);
    if (b->dtype != a->dtype)
        tt_fail(TT_RUNTIME_ERROR,
                "Expected A and B to have the same dtype, but found A of type %s and B of type %s "
                "instead",
                tt_dtype_names[a->dtype], tt_dtype_names[b->dtype]);
    else if ((left ? c->b_rows : c->b_cols) != (c->m > c->n ? c->m : c->n))
        tt_fail(TT_RUNTIME_ERROR, "Incompatible shapes of A and B for the equation %s (%dx%d and %dx%d)",
                left ? "AX = B" : "XA = B", c->m, c->n, c->b_rows, c->b_cols);
    else return true;
    return false;
}

static bool check_pivots(const call *j, const tt_array *a, const tt_array *pivots) {
    bool fit =
        pivots->dtype == TT_I32 && pivots->ndim == a->ndim - 1 && pivots->shape[pivots->ndim - 1] == j->s.first.k;
    for (int d = 0; fit && d < pivots->ndim - 1; d++) fit = pivots->shape[d] == a->shape[d];
    if (!fit) tt_fail(TT_RUNTIME_ERROR, "pivots must be int32, and as many of each matrix as the smaller of its sizes");
    return fit;
}

/* LAPACK believes pivots, which are places in memory. Of LDL^T two negative ones stand for a block of 2 x 2. A device's
 * are looked at there. */
static bool check_places(const call *j, const tt_array *pivots) {
    const int *p = (const int *)pivots->data;
    int64_t k = j->s.first.k, most = j->s.first.m, count = k ? pivots->numel : 0;
    bool blocks = !strcmp(j->d->name, "ldl_solve");
    if (!tt_here()->on_host) return true;
    for (int64_t i = 0; i < count; i++) {
        bool block = blocks && p[i] < 0 && i % k + 1 < k && p[i + 1] < 0 && -(int64_t)p[i + 1] <= most;
        if (block ? -(int64_t)p[i] > most : p[i] < 1 || p[i] > most) {
            tt_fail(TT_RUNTIME_ERROR, TT_WRONG_PIVOT, (long long)most, p[i]);
            return false;
        }
        i += block;
    }
    return true;
}

/* A stack of column-major matrices, of vectors (cols < 0), or of numbers (rows < 0); *step: from one to the next, in
 * bytes. */
static tt_array *new_stack(int dtype, int nbatch, const int64_t *batch, int rows, int cols, int64_t *step) {
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM], size = 1;
    int ndim = nbatch;
    memcpy(shape, batch, sizeof(int64_t) * (size_t)nbatch);
    if (rows >= 0) {
        shape[ndim] = size = rows;
        strides[ndim++] = 1;
    }
    if (cols >= 0) {
        shape[ndim] = cols;
        strides[ndim++] = rows > 1 ? rows : 1;
        size *= cols;
    }
    *step = size * tt_itemsizes[dtype];
    size = (rows > 1 ? rows : 1) * (int64_t)(cols > 1 ? cols : 1);
    for (int d = nbatch - 1; d >= 0; d--) {
        strides[d] = size;
        size *= shape[d] > 1 ? shape[d] : 1;
    }
    return tt_empty_strided(dtype, ndim, shape, strides);
}

static int length_of(const tt_matrix *c, char letter) {
    switch (letter) {
    case 'm': return c->m;
    case 'n': return c->n;
    case 'M': return c->option & 1 ? c->m : c->k;
    case 'N': return c->option & 1 ? c->n : c->k;
    case 'r': return c->b_rows;
    case 'c': return c->b_cols;
    default: return c->k;
    }
}

/* The dtype that a result's letters name. */
static int dtype_of(const char *letters, int dtype) {
    const char *name = strchr(letters, ':');
    if (!name) return dtype;
    return name[1] == 'i' ? TT_I32 : name[1] == 'r' ? tt_real_dtype(dtype) : tt_complex_dtype(dtype);
}

static bool make_results(call *j) {
    tt_stack *s = &j->s;
    tt_matrix *c = &s->first;
    for (int i = 0; i < TT_MOST_RESULTS && j->d->results[i]; i++) {
        const char *letters = j->d->results[i];
        size_t ndim = strcspn(letters, ":");
        int rows = ndim > 0 ? length_of(c, letters[0]) : -1, cols = ndim > 1 ? length_of(c, letters[1]) : -1;
        if (!(j->results[i] = new_stack(dtype_of(letters, s->dtype), s->nbatch, s->batch, rows, cols, &s->steps[i])))
            return false;
        c->out[i] = j->results[i]->data;
        j->num_results++;
    }
    if (!(j->info = tt_empty(TT_I32, s->nbatch, s->batch))) return false;
    s->info = (int *)j->info->data;
    return true;
}

/* Is it a stack as new_stack makes it, of matrices or, row_major, of transposed ones? */
static bool lies_well(const tt_array *a, bool row_major) {
    int inner = a->ndim - 2 + row_major, outer = a->ndim - 1 - row_major;
    int64_t run = a->shape[inner], step = run * a->shape[outer];
    bool well = (run <= 1 || a->strides[inner] == 1) && (a->shape[outer] <= 1 || a->strides[outer] == run);
    for (int d = a->ndim - 3; well && d >= 0; step *= a->shape[d--]) well = a->shape[d] == 1 || a->strides[d] == step;
    return well;
}

/* Puts A where it is worked on. What is only read has a batch of its own. */
static bool place_a(call *j, tt_array *a) {
    tt_stack *s = &j->s;
    tt_array *to = a;
    int at = j->d->a_at;
    bool only_read = at == TT_READ_ONLY || at == TT_EITHER_ORDER;
    int own = only_read ? a->ndim - 2 : s->nbatch;
    const int64_t *batch = only_read ? a->shape : s->batch;
    int64_t below = 1;
    s->step_a = (int64_t)s->first.m * s->first.n * tt_itemsizes[s->dtype];
    for (int d = s->nbatch - 1; d >= s->nbatch - own; d--) {
        int64_t size = batch[d - (s->nbatch - own)];
        s->a_strides[d] = size == 1 ? 0 : below;
        below *= size;
    }
    s->first.row_major = at == TT_EITHER_ORDER && lies_well(a, true);
    if (at >= 0) to = j->results[at];
    else if (!only_read || !(s->first.row_major || lies_well(a, false)))
        to = j->copy = new_stack(s->dtype, own, batch, s->first.m, s->first.n, &s->step_a);
    if (!to || (to != a && tt_copy_now(to, a) < 0)) return false;
    s->first.a = to->data;
    return true;
}

static bool place_b(call *j, tt_array *b) {
    int at = j->d->b_at;
    j->s.first.b = j->results[at]->data;
    j->s.step_b = j->s.steps[at];
    return tt_copy_now(j->results[at], b) == 0;
}

/* The error for the first matrix that has no such decomposition. */
static bool succeeded(const call *j, const int *infos) {
    int64_t i = 0;
    while (i < j->s.count && !infos[i]) i++;
    if (i == j->s.count) return true;
    char text[300] = "The algorithm failed to converge because the input matrix contained non-finite values.";
    char where[48] = "";
    if (infos[i] > 0) snprintf(text, sizeof text, j->d->failure, infos[i]);
    if (j->s.nbatch) snprintf(where, sizeof where, "(Batch element %lld): ", (long long)i);
    tt_fail(TT_LINALG_ERROR, "%s%s", where, text);
    return false;
}

static bool all_succeeded(const call *j) {
    if (tt_here()->on_host || !j->s.count) return succeeded(j, j->s.info);
    int64_t nbytes = j->s.count * (int64_t)sizeof(int);
    int *infos = tt_scratch(nbytes);
    if (!infos) return tt_fail(TT_OUT_OF_MEMORY, "out of memory for the state of each matrix"), false;
    bool ok = tt_here()->read(infos, j->s.info, nbytes) && succeeded(j, infos);
    tt_scratch_free(infos);
    return ok;
}

static bool run(call *j, int which, tt_array *a, tt_array *b, bool check) {
    const tt_backend *here = tt_here();
    if (!make_results(j)) return false;
    int done = here->decompose_as_given ? here->decompose_as_given(which, &j->s, a, b) : 0;
    if (!done) done = place_a(j, a) && (!b || place_b(j, b)) && here->decompose(which, &j->s) ? 1 : -1;
    return done > 0 && (!check || !*j->d->failure || all_succeeded(j));
}

int tt_decompose(int which, tt_array *a, tt_array *b, tt_array *pivots, int option, double rcond, int check,
                 tt_array **results) {
    tt_array *operands[] = {a, b, pivots};
    if (!on_one_device(a, b) || !on_one_device(a, pivots)) return -1;
    TT_ON_DEVICE(-1, table[which].name, 3, operands);
    call j = {.d = &table[which], .s = {.dtype = a->dtype, .first = {.option = option, .rcond = rcond}}};
    tt_matrix *c = &j.s.first;
    if (!check_operand("A", a, j.d->square) || (b && !check_operand("B", b, false))) return -1;
    c->m = (int)a->shape[a->ndim - 2];
    c->n = (int)a->shape[a->ndim - 1];
    c->k = c->m < c->n ? c->m : c->n;
    if (b) {
        c->b_rows = (int)b->shape[b->ndim - 2];
        c->b_cols = (int)b->shape[b->ndim - 1];
        if (!check_pair(&j, a, b)) return -1;
    }
    if (pivots && !check_pivots(&j, a, pivots)) return -1;
    if ((j.s.count = tt_broadcast_batch(a, b, j.s.batch, &j.s.nbatch)) < 0) return -1;
    if (!tt_ready(a) || (b && !tt_ready(b)) || (pivots && !tt_ready(pivots))) {
        tt_decline();
        return -1;
    }
    tt_array *plain = pivots ? tt_contiguous_now(pivots) : NULL;
    if (plain) c->pivots = (const int *)plain->data;
    bool done = (!pivots || (plain && check_places(&j, plain))) && run(&j, which, a, b, check);
    if (plain) tt_free(plain);
    if (j.copy) tt_free(j.copy);
    for (int i = 0; i < j.num_results; i++)
        if (done) results[i] = j.results[i];
        else tt_free(j.results[i]);
    if (done) results[j.num_results] = j.info;
    else if (j.info) tt_free(j.info);
    return done ? j.num_results + 1 : -1;
}
