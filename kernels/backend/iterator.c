/* Dimensions in the order of memory, merged where all operands allow it: iterator.h. */
#include "backend/iterator.h"
#include "backend/operators.h"
#include <string.h>

/* Should dimension i lie outside of dimension j? The first operand with an opinion decides. */
static bool outer(const tt_iter *it, int i, int j) {
    for (int k = 0; k < it->nops; k++) {
        int64_t a = it->strides[k][i], b = it->strides[k][j];
        if (a == 0 || b == 0 || a == b) continue;
        return a > b;
    }
    return i < j;
}

void tt_iter_coalesce(tt_iter *it) {
    int order[TT_MAX_NDIM], n = 0;
    int64_t shape[TT_MAX_NDIM], strides[5][TT_MAX_NDIM];
    for (int d = 0; d < it->ndim; d++) {
        if (it->shape[d] == 1) continue;
        int at = n++;
        while (at > 0 && !outer(it, order[at - 1], d)) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = d;
        shape[d] = it->shape[d];
        for (int k = 0; k < it->nops; k++) strides[k][d] = it->strides[k][d];
    }
    it->ndim = 0;
    for (int m = 0; m < n; m++) {
        int d = order[m], last = it->ndim - 1;
        bool joins = last >= 0;
        for (int k = 0; joins && k < it->nops; k++) joins = it->strides[k][last] == strides[k][d] * shape[d];
        if (!joins) last = it->ndim++;
        it->shape[last] = joins ? it->shape[last] * shape[d] : shape[d];
        for (int k = 0; k < it->nops; k++) it->strides[k][last] = strides[k][d];
    }
    if (it->ndim == 0) {
        it->ndim = 1;
        it->shape[0] = 1;
        for (int k = 0; k < it->nops; k++) it->strides[k][0] = 0;
    }
}

void tt_iter_operand(tt_iter *it, int k, const tt_array *out, const tt_array *a, int compute) {
    int lead = out->ndim - a->ndim, size = tt_itemsizes[a->dtype];
    for (int d = 0; d < out->ndim; d++)
        it->strides[k][d] = d < lead || a->shape[d - lead] == 1 ? 0 : a->strides[d - lead] * size;
    it->data[k] = a->data;
    it->dtype[k] = a->dtype;
    it->compute[k] = (int16_t)compute;
}

void tt_iter_elementwise(tt_iter *it, int op, int dtype, const tt_array *out, int n, tt_array *const *in) {
    it->nops = n + 1;
    it->ndim = out->ndim;
    it->numel = out->numel;
    memcpy(it->shape, out->shape, sizeof(int64_t) * (size_t)out->ndim);
    for (int k = 0; k <= n; k++) tt_iter_operand(it, k, out, k ? in[k - 1] : out, tt_compute_of(op, k, dtype));
}

void tt_iter_copy(tt_iter *it, const tt_array *out, const tt_array *a) {
    it->nops = 2;
    it->ndim = out->ndim;
    it->numel = out->numel;
    memcpy(it->shape, out->shape, sizeof(int64_t) * (size_t)out->ndim);
    tt_iter_operand(it, 0, out, out, out->dtype);
    tt_iter_operand(it, 1, out, a, out->dtype);
}
