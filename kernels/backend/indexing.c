/* Dimensions of a table: indexing.h. */
#include "backend/indexing.h"

void tt_moves_begin(tt_moves *j, char *table, int64_t m) {
    j->table = table;
    j->rows = NULL;
    j->offsets = NULL;
    j->m = m;
    j->npre = j->npost = 1;
    j->row_step = 0;
    j->pre = j->post = 0;
}

void tt_index_along(tt_indexed *v, int source, int64_t size, int64_t stride) {
    v->ndim = v->n = v->span[0] = 1;
    v->shape[0] = size;
    v->strides[0] = stride;
    v->start = 0;
    v->dim[0] = 0;
    v->source[0] = source;
}

void tt_merge_dim(int *n, int64_t *shapes, int64_t *strides, int64_t shape, int64_t stride) {
    if (shape == 1) return;
    if (*n && strides[*n - 1] == stride * shape) {
        shapes[*n - 1] *= shape;
        strides[*n - 1] = stride;
        return;
    }
    shapes[*n] = shape;
    strides[(*n)++] = stride;
}
