/* The same elements in other places: flip, roll; and matrices with a triangle zeroed. */
#include "api/index.h"
#include "backend/backend.h"
#include "backend/now.h"
#include "backend/operators.h"
#include "fuse/fuse.h"

/* `out`, or where it could not be filled, NULL. */
static tt_array *arranged(tt_array *out, bool done) {
    if (done) return out;
    tt_free(out);
    return NULL;
}

/* `dims` are distinct and in range. */
tt_array *tt_flip(tt_array *a, int n, int64_t *dims) {
    TT_ON_DEVICE(NULL, "flip", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    tt_array *out = tt_empty_like(a, a->dtype);
    if (!out || !a->numel) return out;
    bool flipped[TT_MAX_NDIM];
    for (int d = 0; d < a->ndim; d++) flipped[d] = false;
    for (int k = 0; k < n; k++) flipped[dims[k]] = true;
    return arranged(out, TT_WORK("flip", rearrange, out, a, flipped, NULL));
}

tt_array *tt_roll(tt_array *a, int n, int64_t *shifts, int64_t *dims) {
    int64_t shift[TT_MAX_NDIM];
    TT_ON_DEVICE(NULL, "roll", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    tt_array *out = tt_empty(a->dtype, a->ndim, a->shape);
    if (!out || !a->numel) return out;
    for (int d = 0; d < a->ndim; d++) shift[d] = 0;
    for (int k = 0; k < n; k++) {
        int64_t size = a->shape[dims[k]], s = (shifts[k] % size + size) % size;
        shift[dims[k]] = (shift[dims[k]] + s) % size;
    }
    return arranged(out, TT_WORK("roll", rearrange, out, a, NULL, shift));
}

static bool zero_triangle(tt_array *a, int64_t diagonal, int below) {
    return !a->numel || TT_WORK(below ? "triu" : "tril", zero_triangle, a, diagonal, below);
}

/* Fused mode: where(mask, a, 0), the mask one matrix of bools. */
static bool record_triangle(tt_array *a, int64_t diagonal, int below) {
    tt_array number;
    char room[TT_MAX_ITEMSIZE];
    tt_array *zero = tt_element(&number, room, TT_F64, TT_KIND_FLOAT, 0, 0);
    tt_array *mask = a->numel ? tt_full_now(TT_BOOL, 2, a->shape + a->ndim - 2, TT_KIND_BOOL, 0, 1) : NULL;
    if (!mask) return false;
    zero_triangle(mask, diagonal, below);
    bool ok = tt_record_op(TT_OP_where, a->dtype, a, 3, (tt_array *[]){mask, a, zero});
    tt_free(mask);
    return ok;
}

/* Zeroes what lies below the diagonal (below: triu), or above it (tril), in every matrix of a. */
int tt_zero_triangle(tt_array *a, int64_t diagonal, int below, int writer) {
    const char *name = below ? "triu" : "tril";
    TT_ON_DEVICE(-1, name, 1, &a);
    if (a->ndim < 2) {
        tt_fail(TT_RUNTIME_ERROR, "%s: input tensor must have at least 2 dimensions, got %d", name, a->ndim);
        return -1;
    }
    if (!tt_may_write(name, a)) return -1;
    int64_t columns = a->shape[a->ndim - 1], most = columns > a->shape[a->ndim - 2] ? columns : a->shape[a->ndim - 2];
    if (diagonal > most) diagonal = most;
    if (diagonal < -most - 1) diagonal = -most - 1;
    if (!TT_RECORDING || !record_triangle(a, diagonal, below)) {
        if (!tt_writable(name, a) || !zero_triangle(a, diagonal, below)) return -1;
    }
    return tt_written(a, writer, true);
}
