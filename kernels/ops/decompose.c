/* Decompositions of stacks of matrices and systems of equations: operands are checked, broadcast and copied, results
 * allocated; what is done to each matrix is the backend's affair (cpu/lapack.c).
 *
 * LAPACK works in place on column-major matrices. So an operand is copied, from any strides, into the result where it
 * lies there in the end, else into memory of its own. Inputs are never written. */
#include "ops/decompose.h"
#include "api/decompose.h"
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
#define ROW(name, square, a_at, b_at, results, failure) \
    {#name, square, a_at, b_at, LIST results, failure},
    TT_DECOMPOSITIONS(ROW)
};

int tt_decomposition(const char *name) {
    for (size_t i = 0; i < sizeof table / sizeof *table; i++)
        if (!strcmp(table[i].name, name)) return (int)i;
    tt_fail(TT_VALUE_ERROR, "there is no decomposition named '%s'", name);
    return -1;
}

/* A call. `copy_a`, `copy_b`: of operands that are copied to memory of their own. */
typedef struct {
    const decomposition *d;
    tt_stack s;
    int nbatch, num_results;
    int64_t batch[TT_MAX_NDIM];
    tt_array *copy_a, *copy_b, *results[TT_MOST_RESULTS], *info;
} call;

static bool check_operand(const char *name, const tt_array *x, bool square) {
    char device[16];
    const int64_t *sizes = x->shape + x->ndim - 2;
    if (x->flags & TT_FLAG_DEVICE)
        tt_fail(TT_NOT_IMPLEMENTED, "not implemented for tensors on %s", tt_device_text(device, sizeof device,
                x->storage->device));
    else if (x->ndim < 2)
        tt_fail(TT_RUNTIME_ERROR, "The input tensor %s must have at least 2 dimensions.", name);
    else if (square && sizes[0] != sizes[1])
        tt_fail(TT_RUNTIME_ERROR, "%s must be batches of square matrices, but they are %lld by %lld matrices", name,
                (long long)sizes[0], (long long)sizes[1]);
    else if (tt_kind_of(x->dtype) != TT_KIND_FLOAT)
        tt_fail(TT_RUNTIME_ERROR, "Expected a floating point or complex tensor as input. Got %s",
                tt_dtype_names[x->dtype]);
    else if (tt_is_half(x->dtype)) tt_fail(TT_NOT_IMPLEMENTED, "not implemented for '%s'", tt_dtype_names[x->dtype]);
    else if (sizes[0] > INT_MAX || sizes[1] > INT_MAX)
        tt_fail(TT_RUNTIME_ERROR, "matrices of more than %d rows or columns are not supported", INT_MAX);
    else return true;
    return false;
}

static bool check_pair(const tt_matrix *c, const tt_array *a, const tt_array *b) {
    bool left = !(c->option & 2);
    if (b->dtype != a->dtype)
        tt_fail(TT_RUNTIME_ERROR, "Expected A and B to have the same dtype, but found A of type %s and B of type %s "
                "instead", tt_dtype_names[a->dtype], tt_dtype_names[b->dtype]);
    else if ((left ? c->b_rows : c->b_cols) != c->n)
        tt_fail(TT_RUNTIME_ERROR, "Incompatible shapes of A and B for the equation %s (%dx%d and %dx%d)",
                left ? "AX = B" : "XA = B", c->m, c->n, c->b_rows, c->b_cols);
    else return true;
    return false;
}

/* The shape that the operands' leading dimensions broadcast to. */
static bool broadcast_batch(call *j, const tt_array *a, const tt_array *b) {
    int na = a->ndim - 2, nb = b ? b->ndim - 2 : 0;
    j->nbatch = na > nb ? na : nb;
    j->s.count = 1;
    for (int d = 0; d < j->nbatch; d++) {
        int ia = d - (j->nbatch - na), ib = d - (j->nbatch - nb);
        int64_t x = ia < 0 ? 1 : a->shape[ia], y = ib < 0 ? 1 : b->shape[ib];
        if (x != y && x != 1 && y != 1) {
            tt_fail(TT_RUNTIME_ERROR, "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                    "non-singleton dimension %d", (long long)x, (long long)y, d);
            return false;
        }
        j->batch[d] = x == 1 ? y : x;
        j->s.count *= j->batch[d];
    }
    return true;
}

/* A stack of column-major matrices, or of vectors (cols < 0); *step: from one to the next, in bytes. */
static tt_array *new_stack(const call *j, int rows, int cols, int64_t *step) {
    int64_t shape[TT_MAX_NDIM], strides[TT_MAX_NDIM], size = rows;
    int ndim = j->nbatch;
    memcpy(shape, j->batch, sizeof(int64_t) * (size_t)ndim);
    shape[ndim] = rows;
    strides[ndim++] = 1;
    if (cols >= 0) {
        shape[ndim] = cols;
        strides[ndim++] = rows > 1 ? rows : 1;
        size *= cols;
    }
    *step = size * tt_itemsizes[j->s.dtype];
    if (size < 1) size = 1;
    for (int d = j->nbatch - 1; d >= 0; d--) {
        strides[d] = size;
        size *= shape[d] > 1 ? shape[d] : 1;
    }
    return tt_empty_strided(j->s.dtype, ndim, shape, strides);
}

static int length_of(const tt_matrix *c, char letter) {
    switch (letter) {
    case 'm': return c->m;
    case 'n': return c->n;
    case 'M': return c->option ? c->m : c->k;
    case 'N': return c->option ? c->n : c->k;
    case 'r': return c->b_rows;
    case 'c': return c->b_cols;
    default: return c->k;
    }
}

static bool make_results(call *j) {
    tt_matrix *c = &j->s.first;
    for (int i = 0; i < TT_MOST_RESULTS && j->d->results[i]; i++) {
        const char *letters = j->d->results[i];
        int rows = length_of(c, letters[0]), cols = letters[1] ? length_of(c, letters[1]) : -1;
        if (!(j->results[i] = new_stack(j, rows, cols, &j->s.steps[i]))) return false;
        c->out[i] = j->results[i]->data;
        j->num_results++;
    }
    if (!(j->info = tt_empty(TT_I32, j->nbatch, j->batch))) return false;
    j->s.info = (int *)j->info->data;
    return true;
}

/* Copies an operand to where it is worked on. */
static bool copy_operand(call *j, tt_array *x, int at, tt_array **copy, void **data, int64_t *step) {
    tt_array *to;
    if (at == TT_OWN_MEMORY)
        to = *copy = new_stack(j, (int)x->shape[x->ndim - 2], (int)x->shape[x->ndim - 1], step);
    else {
        to = j->results[at];
        *step = j->s.steps[at];
    }
    if (!to || tt_copy_now(to, x) < 0) return false;
    *data = to->data;
    return true;
}

/* The error for the first matrix that has no such decomposition. */
static bool all_succeeded(const call *j) {
    for (int64_t i = 0; i < j->s.count; i++) {
        int info = j->s.info[i];
        char text[300] = "The algorithm failed to converge because the input matrix contained non-finite values.";
        char where[48] = "";
        if (!info) continue;
        if (info > 0) snprintf(text, sizeof text, j->d->failure, info);
        if (j->nbatch) snprintf(where, sizeof where, "(Batch element %lld): ", (long long)i);
        tt_fail(TT_LINALG_ERROR, "%s%s", where, text);
        return false;
    }
    return true;
}

static bool run(call *j, int which, tt_array *a, tt_array *b, bool check) {
    tt_stack *s = &j->s;
    return make_results(j) && copy_operand(j, a, j->d->a_at, &j->copy_a, &s->first.a, &s->step_a) &&
           (!b || copy_operand(j, b, j->d->b_at, &j->copy_b, &s->first.b, &s->step_b)) && tt_lapack(which, s) &&
           (!check || all_succeeded(j));
}

int tt_decompose(int which, tt_array *a, tt_array *b, int option, int check, tt_array **results) {
    call j = {.d = &table[which], .s = {.dtype = a->dtype, .first = {.option = option}}};
    tt_matrix *c = &j.s.first;
    if (!check_operand("A", a, j.d->square) || (b && !check_operand("B", b, false))) return -1;
    c->m = (int)a->shape[a->ndim - 2];
    c->n = (int)a->shape[a->ndim - 1];
    c->k = c->m < c->n ? c->m : c->n;
    if (b) {
        c->b_rows = (int)b->shape[b->ndim - 2];
        c->b_cols = (int)b->shape[b->ndim - 1];
        if (!check_pair(c, a, b)) return -1;
    }
    if (!broadcast_batch(&j, a, b)) return -1;
    if (!tt_ready(a) || (b && !tt_ready(b))) {
        tt_decline();
        return -1;
    }
    bool done = run(&j, which, a, b, check);
    if (j.copy_a) tt_free(j.copy_a);
    if (j.copy_b) tt_free(j.copy_b);
    for (int i = 0; i < j.num_results; i++)
        if (done) results[i] = j.results[i];
        else tt_free(j.results[i]);
    if (done) results[j.num_results] = j.info;
    else if (j.info) tt_free(j.info);
    return done ? j.num_results + 1 : -1;
}
