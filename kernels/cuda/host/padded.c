/* Products of matrices of half types whose rows do not all begin at multiples of 16 bytes, as the library's fast
 * kernels want: of copies whose rows do, with zeros at their ends. On an H200 8192 x 768 by 768 x 50257 takes 2.3 ms
 * so, and 5.0 by the library alone. */
#include "backend/now.h"
#include "cuda/host/cuda.h"
#include <string.h>

#define UNIT 8 /* elements in 16 bytes */

/* A matrix as stored; with the rows and columns it has, and those it is to have. */
typedef struct {
    const tt_array *memory; /* what it lies in, or beside */
    const char *data;
    int64_t ld, shape[2], wanted[2];
    tt_array *copy;
} matrix;

static int64_t up(int64_t n) { return (n + UNIT - 1) / UNIT * UNIT; }

static bool is_ready(const matrix *x) {
    return !((intptr_t)x->data % 16 || x->ld % UNIT || memcmp(x->shape, x->wanted, sizeof x->shape));
}

/* Do the copies take less time than they save? */
static bool is_worth(const tt_gemm *g) {
    double m = (double)g->m, n = (double)g->n, k = (double)g->k;
    return m * n * k > 256 * (m * k + k * n + m * n) + (1 << 28);
}

/* The descriptor of `rows` by `cols` elements from `data` on; `sizes` has room for its shape and strides. */
static tt_array block(const tt_array *memory, const char *data, int64_t rows, int64_t cols, int64_t ld,
                      int64_t sizes[4]) {
    tt_array made = *memory;
    memcpy(sizes, (int64_t[]){rows, cols, ld, 1}, 4 * sizeof *sizes);
    made.data = (char *)data;
    made.ndim = 2;
    made.shape = sizes;
    made.strides = sizes + 2;
    made.numel = rows * cols;
    tt_update_flags(&made);
    return made;
}

/* Zeros in the copy's rows and columns from these on. */
static bool clear(const tt_array *copy, int64_t row, int64_t col) {
    int64_t rows = copy->shape[0], cols = copy->shape[1], sizes[4], size = tt_itemsizes[copy->dtype];
    tt_array right = block(copy, copy->data + col * size, rows, cols - col, cols, sizes);
    if (right.numel && tt_fill_now(&right, TT_KIND_INT, 0, 0) < 0) return false;
    tt_array below = block(copy, copy->data + row * cols * size, rows - row, col, cols, sizes);
    return !below.numel || tt_fill_now(&below, TT_KIND_INT, 0, 0) == 0;
}

/* From the matrix to its copy, or back. */
static bool move(const matrix *x, bool back) {
    int64_t rows = x->shape[0], cols = x->shape[1], here[4], there[4];
    tt_array own = block(x->memory, x->data, rows, cols, x->ld, here);
    tt_array copy = block(x->copy, x->copy->data, rows, cols, x->wanted[1], there);
    return tt_copy_unchecked(back ? &own : &copy, back ? &copy : &own) == 0;
}

static bool make_copy(matrix *x) { return (x->copy = tt_empty(x->memory->dtype, 2, x->wanted)) != NULL; }

static bool prepare(matrix *x) {
    return is_ready(x) || (make_copy(x) && clear(x->copy, x->shape[0], x->shape[1]) && move(x, false));
}

int tt_cuda_multiply_padded(const tt_gemm *g, const tt_array *left, const char *a, const tt_array *right, const char *b,
                            tt_array *out) {
    bool turned = g->trans & 1, other = g->trans & 2;
    /* Sizes along which the elements of a matrix are neighbours: in all matrices that have them. */
    int64_t m = turned ? up(g->m) : g->m, n = up(g->n), k = turned && !other ? g->k : up(g->k);
    matrix x = {left, a, g->lda, {turned ? g->k : g->m, turned ? g->m : g->k}, {turned ? k : m, turned ? m : k}, NULL};
    matrix y = {right, b, g->ldb, {other ? g->n : g->k, other ? g->k : g->n}, {other ? n : k, other ? k : n}, NULL};
    matrix z = {out, out->data, g->n, {g->m, g->n}, {m, n}, NULL};
    if ((is_ready(&x) && is_ready(&y) && is_ready(&z)) || !is_worth(g)) return 0;
    bool done = prepare(&x) && prepare(&y) && (is_ready(&z) || make_copy(&z));
    if (done) {
        tt_gemm p = *g;
        p.m = m, p.n = n, p.k = k;
        p.lda = x.copy ? x.wanted[1] : x.ld;
        p.ldb = y.copy ? y.wanted[1] : y.ld;
        done = tt_cuda_multiply(&p, x.copy ? x.copy->data : a, y.copy ? y.copy->data : b,
                                z.copy ? z.copy->data : out->data) &&
               (!z.copy || move(&z, true));
    }
    tt_array *copies[] = {x.copy, y.copy, z.copy};
    for (int i = 0; i < 3; i++)
        if (copies[i]) tt_free(copies[i]);
    return done ? 1 : -1;
}
