/* Products of matrices: float32 and float64 by OpenBLAS, half types through float32, integers by a loop of our own. On a
 * device: kernels/cuda/host/gemm.c.
 *
 * The library (openblas.c) uses one thread: we cut the result into tiles and give each to one call, on our own pool.
 * The tiles depend on the shape alone, so the bits do not depend on the number of threads, and OpenBLAS's threads do
 * not compete with ours. A transposed operand is passed as it lies. */
#include "fuse/jobs.h"
#include "cpu/openblas.h"
#include "cpu/simd.h"
#include "api/blas.h"
#include "cuda/host/cuda.h"
#include <limits.h>
#include <string.h>

#define TILE 512                           /* the most rows and columns of one call */
#define TILE_MIN 64                        /* and the fewest that a tile is cut down to */
#define PARALLEL_WORK ((int64_t)1 << 21)   /* multiplications that are worth a second thread */
#define BEHIND_LEAST ((int64_t)1 << 18)    /* that are worth being done behind */
#define BEHIND_MOST ((int64_t)1 << 26)     /* and, times threads, few enough to be left to one */
#define LARGE_WORK ((int64_t)1 << 27)      /* from here on more tiles, for machines with many cores */

enum { ROW_MAJOR = 101, NO_TRANS = 111, TRANS = 112 };

/* A stack of matrices as a product takes it. */
typedef struct {
    const char *data;
    int64_t rows, cols, row_step, col_step; /* in elements */
    int64_t steps[TT_MAX_NDIM];             /* along the result's batch dimensions; 0 where it is broadcast */
    int64_t ld;                             /* of the stored matrix, which is the transpose if `trans` */
    bool trans;
    tt_array *copy;
} operand;

typedef struct {
    operand a, b;
    int nbatch;
    int64_t batch[TT_MAX_NDIM], stack;      /* the batch dimensions and their product */
    int64_t m, n, k, tile_m, tile_n, across, tiles;
    int dtype;                              /* computed in */
    double alpha, beta;
    char *c;
} product;

/* Does BLAS take the matrix as it lies? */
static bool fits(operand *x) {
    if ((x->col_step == 1 || x->cols <= 1) && (x->rows <= 1 || x->row_step >= x->cols)) {
        x->trans = false;
        x->ld = x->rows <= 1 ? x->cols : x->row_step;
    } else if ((x->row_step == 1 || x->rows <= 1) && (x->cols <= 1 || x->col_step >= x->rows)) {
        x->trans = true;
        x->ld = x->cols <= 1 ? x->rows : x->col_step;
    } else return false;
    if (x->ld < 1) x->ld = 1;
    return x->ld <= INT_MAX;
}

/* Makes the operand one that BLAS takes, of the dtype computed in, by a copy where it must; `whole`: by a copy of every
 * matrix of the stack, the repeated ones too. */
static bool prepare(product *p, operand *x, const tt_array *from, bool always_plain, bool whole) {
    if (from->dtype == p->dtype && fits(x) && !(always_plain && x->trans) && !whole) return true;
    tt_array view = {.storage = from->storage, .data = (char *)(uintptr_t)x->data, .dtype = from->dtype,
                     .ndim = p->nbatch + 2, .numel = x->rows * x->cols};
    for (int d = 0; d < p->nbatch; d++) {
        view.shape[d] = x->steps[d] || whole ? p->batch[d] : 1; /* what is broadcast is copied once */
        view.strides[d] = x->steps[d];
        view.numel *= view.shape[d];
    }
    view.shape[p->nbatch] = x->rows;
    view.shape[p->nbatch + 1] = x->cols;
    view.strides[p->nbatch] = x->row_step;
    view.strides[p->nbatch + 1] = x->col_step;
    if (!(x->copy = tt_empty(p->dtype, view.ndim, view.shape)) || tt_copy_now(x->copy, &view) < 0) return false;
    x->data = x->copy->data;
    for (int d = 0; d < p->nbatch; d++) x->steps[d] = x->steps[d] || whole ? x->copy->strides[d] : 0;
    x->row_step = x->cols;
    x->col_step = 1;
    return fits(x);
}

/* C = A B + beta C modulo 2^bits, for a beta of 0 or 1: one row of A after the other. */
#define INTEGER_PRODUCT(T, U)                                                                    \
    static void product_##T(const product *p, const char *pa, const char *pb, char *pc, int64_t rows, int64_t cols) { \
        const U *a = (const U *)pa, *b = (const U *)pb;                                          \
        U *c = (U *)pc;                                                                          \
        for (int64_t i = 0; i < rows; i++) {                                                     \
            if (p->beta == 0) memset(c + i * p->n, 0, (size_t)cols * sizeof(U));                 \
            for (int64_t l = 0; l < p->k; l++) {                                                 \
                U f = a[i * p->a.ld + l];                                                        \
                const U *row = b + l * p->b.ld;                                                  \
                U *to = c + i * p->n;                                                            \
                for (int64_t j = 0; j < cols; j++) to[j] = (U)(to[j] + 1u * f * row[j]);         \
            }                                                                                    \
        }                                                                                        \
    }
INTEGER_PRODUCT(8, uint8_t) INTEGER_PRODUCT(16, uint16_t) INTEGER_PRODUCT(32, uint32_t) INTEGER_PRODUCT(64, uint64_t)

/* One tile by one call; gemv and dot where the product is a vector or a number. */
#define FLOAT_PRODUCT(s, T)                                                                       \
    static void product_##s(const product *p, const char *pa, const char *pb, char *pc, int rows, int cols) { \
        const T *a = (const T *)pa, *b = (const T *)pb;                                           \
        T *c = (T *)pc, alpha = (T)p->alpha, beta = (T)p->beta;                                   \
        int k = (int)p->k, lda = (int)p->a.ld, ldb = (int)p->b.ld;                                \
        int step_a = p->a.trans ? lda : 1, step_b = p->b.trans ? 1 : ldb;                         \
        if (p->m == 1 && p->n == 1) {                                                             \
            T dot = alpha * tt_blas.s##dot(k, a, step_a, b, step_b);                                 \
            *c = beta == 0 ? dot : dot + beta * *c;                                               \
        } else if (p->n == 1) {                                                                   \
            if (p->a.trans) tt_blas.s##gemv(ROW_MAJOR, TRANS, k, rows, alpha, a, lda, b, step_b, beta, c, 1);  \
            else tt_blas.s##gemv(ROW_MAJOR, NO_TRANS, rows, k, alpha, a, lda, b, step_b, beta, c, 1);          \
        } else if (p->m == 1) {                                                                   \
            if (p->b.trans) tt_blas.s##gemv(ROW_MAJOR, NO_TRANS, cols, k, alpha, b, ldb, a, step_a, beta, c, 1); \
            else tt_blas.s##gemv(ROW_MAJOR, TRANS, k, cols, alpha, b, ldb, a, step_a, beta, c, 1);   \
        } else                                                                                    \
            tt_blas.s##gemm(ROW_MAJOR, p->a.trans ? TRANS : NO_TRANS, p->b.trans ? TRANS : NO_TRANS, rows, cols, k, \
                         alpha, a, lda, b, ldb, beta, c, (int)p->n);                              \
    }
FLOAT_PRODUCT(s, float) FLOAT_PRODUCT(d, double)

static void run_tiles(void *context, int64_t begin, int64_t end) {
    const product *p = context;
    int size = tt_itemsizes[p->dtype];
    for (int64_t item = begin; item < end; item++) {
        int64_t stack = item / p->tiles, tile = item % p->tiles;
        int64_t i = tile / p->across * p->tile_m, j = tile % p->across * p->tile_n;
        int64_t rows = p->m - i < p->tile_m ? p->m - i : p->tile_m, cols = p->n - j < p->tile_n ? p->n - j : p->tile_n;
        const char *a = p->a.data + i * (p->a.trans ? 1 : p->a.ld) * size;
        const char *b = p->b.data + j * (p->b.trans ? p->b.ld : 1) * size;
        char *c = p->c + ((stack * p->m + i) * p->n + j) * size;
        for (int d = p->nbatch - 1; d >= 0; d--) {
            a += stack % p->batch[d] * p->a.steps[d] * size;
            b += stack % p->batch[d] * p->b.steps[d] * size;
            stack /= p->batch[d];
        }
        if (p->dtype == TT_F32) product_s(p, a, b, c, (int)rows, (int)cols);
        else if (p->dtype == TT_F64) product_d(p, a, b, c, (int)rows, (int)cols);
        else if (size == 1) product_8(p, a, b, c, rows, cols);
        else if (size == 2) product_16(p, a, b, c, rows, cols);
        else if (size == 4) product_32(p, a, b, c, rows, cols);
        else product_64(p, a, b, c, rows, cols);
    }
}

static int64_t pieces(int64_t n, int64_t tile) { return (n + tile - 1) / tile; }

/* Tiles as large as TILE allows, but enough of them to share out. A product with a vector is bound by memory. */
static void choose_tiles(product *p) {
    int64_t work = p->m * p->n * p->k, wanted = work >= LARGE_WORK ? 8 : 4;
    bool vector = p->m == 1 || p->n == 1;
    p->tile_m = vector ? (p->m == 1 ? 1 : INT_MAX) : TILE;
    p->tile_n = vector ? (p->n == 1 ? 1 : INT_MAX) : TILE;
    if (vector) {
        int64_t run = 1 + ((int64_t)1 << 17) / (p->k + 1);
        run = run < TILE_MIN ? TILE_MIN : run;
        if (p->n > 1) p->tile_n = run;
        else p->tile_m = run;
    } else if (work > PARALLEL_WORK) {
        for (;;) {
            int64_t tm = p->tile_m < p->m ? p->tile_m : p->m, tn = p->tile_n < p->n ? p->tile_n : p->n;
            if (pieces(p->m, tm) * pieces(p->n, tn) * p->stack >= wanted || tm * tn * p->k < PARALLEL_WORK) break;
            if ((tm >= tn ? tm : tn) < 2 * TILE_MIN) break;
            if (tm > tn) p->tile_m = (pieces(tm, 2) + 15) / 16 * 16;
            else p->tile_n = (pieces(tn, 2) + 15) / 16 * 16;
        }
    }
    p->across = pieces(p->n, p->tile_n);
    p->tiles = pieces(p->m, p->tile_m) * p->across;
}

static void run(product *p) {
    choose_tiles(p);
    int64_t rows = p->tile_m < p->m ? p->tile_m : p->m, cols = p->tile_n < p->n ? p->tile_n : p->n;
    int64_t work = rows * cols * p->k, worth = p->m == 1 || p->n == 1 ? PARALLEL_WORK >> 4 : PARALLEL_WORK;
    tt_parallel(p->stack * p->tiles, work >= worth ? 1 : worth / (work + 1) + 1, run_tiles, p);
}

static bool mismatch(const product *p, const tt_array *a, const tt_array *b) {
    char left[TT_SHAPE_TEXT], right[TT_SHAPE_TEXT];
    if (a->ndim == 1 && b->ndim == 1)
        tt_fail(TT_RUNTIME_ERROR, "inconsistent tensor size, expected tensor [%lld] and src [%lld] to have the same "
                "number of elements, but got %lld and %lld elements respectively", (long long)a->shape[0],
                (long long)b->shape[0], (long long)a->shape[0], (long long)b->shape[0]);
    else if (b->ndim == 1 && a->ndim == 2)
        tt_fail(TT_RUNTIME_ERROR, "size mismatch, got input (%lld), mat (%lldx%lld), vec (%lld)",
                (long long)a->shape[0], (long long)a->shape[0], (long long)a->shape[1], (long long)b->shape[0]);
    else
        tt_fail(TT_RUNTIME_ERROR, "mat1 and mat2 shapes cannot be multiplied (%lldx%lld and %lldx%lld), of tensors "
                "%s and %s", (long long)p->a.rows, (long long)p->a.cols, (long long)p->b.rows,
                (long long)p->b.cols, tt_shape_text(left, a->ndim, a->shape), tt_shape_text(right, b->ndim, b->shape));
    return false;
}

/* The operand's matrix, and its steps along the `nbatch` batch dimensions. A vector is a row or a column. */
static void describe(operand *x, const tt_array *a, bool transpose, bool row, int nbatch) {
    int nd = a->ndim;
    x->data = a->data;
    x->copy = NULL;
    if (nd == 1) {
        x->rows = row ? 1 : a->shape[0];
        x->cols = row ? a->shape[0] : 1;
        x->row_step = row ? 0 : a->strides[0];
        x->col_step = row ? a->strides[0] : 0;
    } else {
        int r = transpose ? nd - 1 : nd - 2, c = transpose ? nd - 2 : nd - 1;
        x->rows = a->shape[r];
        x->cols = a->shape[c];
        x->row_step = a->strides[r];
        x->col_step = a->strides[c];
    }
    for (int d = 0; d < nbatch; d++) {
        int at = nd - 2 - nbatch + d;
        x->steps[d] = nd > 2 && at >= 0 && a->shape[at] != 1 ? a->strides[at] : 0;
    }
}

/* The batch dimensions of the result; with one of `a` only, and rows that follow each other in one step, `a` is a
 * single matrix. */
static bool broadcast_batch(product *p, const tt_array *a, const tt_array *b) {
    int na = a->ndim > 2 ? a->ndim - 2 : 0, nb = b->ndim > 2 ? b->ndim - 2 : 0;
    p->nbatch = na > nb ? na : nb;
    p->stack = 1;
    for (int d = 0; d < p->nbatch; d++) {
        int ia = d - (p->nbatch - na), ib = d - (p->nbatch - nb);
        int64_t x = ia < 0 ? 1 : a->shape[ia], y = ib < 0 ? 1 : b->shape[ib];
        if (x != y && x != 1 && y != 1) {
            tt_fail(TT_RUNTIME_ERROR, "The size of tensor a (%lld) must match the size of tensor b (%lld) at "
                    "non-singleton dimension %d", (long long)x, (long long)y, d);
            return false;
        }
        p->batch[d] = x == 1 ? y : x;
        p->stack *= p->batch[d];
    }
    return true;
}

static void fold_batch(product *p) {
    int64_t rows = p->a.rows, step = p->a.row_step;
    for (int d = p->nbatch - 1; d >= 0; d--) {
        if (p->batch[d] == 1) continue;
        if (p->b.steps[d] != 0) return;
        if (rows == 1) step = p->a.steps[d];
        else if (p->a.steps[d] != rows * step) return;
        rows *= p->batch[d];
    }
    p->a.rows = p->m = rows;
    p->a.row_step = step;
    p->nbatch = 0;
    p->stack = 1;
}

static bool check_dtypes(const tt_array *a, const tt_array *b) {
    if (a->dtype != b->dtype) {
        tt_fail(TT_RUNTIME_ERROR, "expected m1 and m2 to have the same dtype, but got: %s != %s",
                tt_dtype_names[a->dtype], tt_dtype_names[b->dtype]);
        return false;
    }
    if (a->dtype == TT_BOOL) {
        tt_fail(TT_RUNTIME_ERROR, "not implemented for 'bool'");
        return false;
    }
    return true;
}

/* Versions of the first two inputs, as elementwise results carry them: Note [Version counters]. 8: one of them is an
 * inference tensor, which may not be saved. */
static int64_t versions(const tt_array *a, const tt_array *b) {
    int64_t inference = (a->flags | b->flags) & ~tt_thread_flags & TT_FLAG_INFERENCE ? 8 : 0;
    uint64_t va = (uint64_t)a->storage->version & 0x3fffffff, vb = (uint64_t)b->storage->version & 0x3fffffff;
    return inference | (int64_t)(va << 4 | vb << 34);
}

/* The step from each matrix of a stack to the next, through all batch dimensions; -1: there is no one such step. */
static int64_t single_step(const product *p, const operand *x) {
    int64_t step = 0, count = 1;
    for (int d = p->nbatch - 1; d >= 0; d--) {
        if (p->batch[d] == 1) continue;
        if (count == 1) step = x->steps[d];
        else if (x->steps[d] != step * count) return -1;
        count *= p->batch[d];
    }
    return step;
}

static bool prepare_stack(product *p, operand *x, const tt_array *from) {
    return prepare(p, x, from, tt_kind_of(p->dtype) != TT_KIND_FLOAT, single_step(p, x) < 0);
}

/* beta * bias, of the result's shape */
static bool only_bias(product *p, tt_array *out, tt_array *bias) {
    if (p->beta == 0) return tt_fill_now(out, TT_KIND_INT, 0, 0) == 0;
    if (p->beta == 1) return tt_copy_now(out, bias) == 0;
    tt_array *scaled = tt_binary_scalar(tt_op_code("mul"), bias, TT_KIND_FLOAT, p->beta, 0, 0);
    bool done = scaled && tt_copy_now(out, scaled) == 0;
    if (scaled) tt_free(scaled);
    return done;
}

/* The whole product by one call of the device's library: a stack is one operand with a step. */
static bool on_device(product *p, tt_array *out, const tt_array *a, const tt_array *b, tt_array *bias, bool ta) {
    if (!out->numel) return true;
    if (p->k == 0) return only_bias(p, out, bias);
    if (p->nbatch && !ta) fold_batch(p);
    if (!prepare_stack(p, &p->a, a) || !prepare_stack(p, &p->b, b)) return false;
    tt_gemm g = {.m = p->m, .n = p->n, .k = p->k, .lda = p->a.ld, .ldb = p->b.ld, .count = p->stack,
                 .step_a = single_step(p, &p->a), .step_b = single_step(p, &p->b), .dtype = p->dtype,
                 .trans = p->a.trans | p->b.trans << 1};
    return tt_cuda_product(&g, p->a.data, p->b.data, out, p->beta != 0 ? bias : NULL, p->alpha, p->beta);
}

#define SCALE(name, T) \
    static void scale_##name(T *c, int64_t n, T beta) { for (int64_t i = 0; i < n; i++) c[i] = beta * c[i]; }
SCALE(f32, float) SCALE(f64, double)

/* A product that is computed behind: Note [Work behind]. */
typedef struct {
    tt_job job;
    product p;
    tt_storage *storages[3];
} later;

static void run_later(tt_job *job) { run(&((later *)job)->p); }

static bool put_off(const product *p, tt_array *out, tt_array *a, tt_array *b) {
    double work = (double)p->m * (double)p->n * (double)p->k;
    bool worth = work >= BEHIND_LEAST && work * tt_get_num_threads() <= BEHIND_MOST && out->dtype == p->dtype;
    if (!worth || !tt_may_work_behind()) return false;
    later *l = tt_scratch(sizeof *l);
    if (!l) return false;
    *l = (later){{.run = run_later, .num_out = 1, .num = 3, .storages = l->storages}, *p, {out->storage,
                 (p->a.copy ? p->a.copy : a)->storage, (p->b.copy ? p->b.copy : b)->storage}};
    if (tt_work_behind(&l->job)) return true;
    tt_scratch_free(l);
    return false;
}

/* The one entrance: alpha a @ b + beta bias, into a fresh array. `behind`: nobody is likely to look at it at once. */
static tt_array *multiply(tt_array *a, bool ta, tt_array *b, bool tb, tt_array *bias, double beta,
                          double alpha, bool behind) {
    product p = {.alpha = alpha, .beta = bias ? beta : 0};
    int64_t shape[TT_MAX_NDIM];
    tt_array *out = NULL, *wide = NULL, *done = NULL;
    if (!tt_ready(a) || !tt_ready(b) || (bias && !tt_ready(bias))) return tt_decline();
    if (a->ndim == 0 || b->ndim == 0)
        return tt_fail(TT_RUNTIME_ERROR, "both arguments to matmul need to be at least 1D, but they are %dD and %dD",
                       a->ndim, b->ndim);
    if (!check_dtypes(a, b) || (bias && !check_dtypes(a, bias))) return NULL;
    if (!broadcast_batch(&p, a, b)) return NULL;
    describe(&p.a, a, ta, true, p.nbatch);
    describe(&p.b, b, tb, false, p.nbatch);
    if (p.a.cols != p.b.rows) return mismatch(&p, a, b), NULL;
    p.m = p.a.rows;
    p.n = p.b.cols;
    p.k = p.a.cols;
    if (p.k > INT_MAX || p.m > INT_MAX || p.n > INT_MAX)
        return tt_fail(TT_RUNTIME_ERROR, "matrices of more than %d rows or columns are not supported", INT_MAX);
    int nd = p.nbatch;
    memcpy(shape, p.batch, sizeof(int64_t) * (size_t)nd);
    if (a->ndim > 1) shape[nd++] = p.m;
    if (b->ndim > 1) shape[nd++] = p.n;
    if (!(out = tt_empty(a->dtype, nd, shape))) return NULL;
    if (tt_device) {
        p.dtype = a->dtype;
        if (!(wide = out) || !on_device(&p, out, a, b, bias, ta)) goto end;
        out->stamp = versions(a, b);
        done = out;
        goto end;
    }
    p.dtype = tt_compute_dtype(a->dtype);
    bool is_float = tt_kind_of(p.dtype) == TT_KIND_FLOAT;
    wide = p.dtype == out->dtype ? out : tt_empty(p.dtype, nd, shape);
    if (!wide || (p.beta != 0 && tt_copy_now(wide, bias) < 0)) goto end;
    p.c = wide->data;
    if (p.k == 0) {
        if (p.beta == 0 && tt_fill_now(wide, TT_KIND_INT, 0, 0) < 0) goto end;
        if (p.dtype == TT_F32) scale_f32((float *)p.c, out->numel, (float)beta);
        else if (p.dtype == TT_F64) scale_f64((double *)p.c, out->numel, beta);
    } else if (out->numel) {
        if (is_float && !tt_blas_need()) goto end;
        if (p.nbatch) {
            if (!ta) fold_batch(&p);
            if (p.m > INT_MAX) goto end;
        }
        if (!prepare(&p, &p.a, a, !is_float, false) || !prepare(&p, &p.b, b, !is_float, false)) goto end;
        if (!behind || !put_off(&p, out, a, b)) run(&p);
    }
    if (wide != out && tt_copy_now(out, wide) < 0) goto end;
    out->stamp = versions(a, b);
    done = out;
end:
    if (p.a.copy) tt_free(p.a.copy);
    if (p.b.copy) tt_free(p.b.copy);
    if (wide && wide != out) tt_free(wide);
    if (!done) tt_free(out);
    return done;
}

tt_array *tt_matmul(tt_array *a, tt_array *b, int transpose_a, int transpose_b) {
    TT_ON_DEVICE(NULL, "matmul", 2, ((tt_array *[]){a, b}));
    return multiply(a, transpose_a, b, transpose_b, NULL, 0, 1, false);
}

tt_array *tt_addmm(tt_array *input, tt_array *a, tt_array *b, double beta, double alpha) {
    char have[TT_SHAPE_TEXT];
    TT_ON_DEVICE(NULL, "addmm", 3, ((tt_array *[]){a, b, input}));
    if (tt_kind_of(a->dtype) != TT_KIND_FLOAT && (beta != 1 || alpha != 1)) return tt_decline();
    if (a->ndim != 2 || b->ndim != 2)
        return tt_fail(TT_RUNTIME_ERROR, "mat1 and mat2 must be matrices, got %dD and %dD tensors", a->ndim,
                       b->ndim);
    if (a->shape[1] == b->shape[0]) { /* else multiply tells what is wrong */
        bool ok = input->ndim <= 2;
        for (int d = 1; ok && d <= input->ndim; d++) {
            int64_t s = input->shape[input->ndim - d], want = d == 1 ? b->shape[1] : a->shape[0];
            ok = s == 1 || s == want;
        }
        if (!ok)
            return tt_fail(TT_RUNTIME_ERROR, "input of shape %s does not broadcast to (%lld, %lld): The expanded "
                           "size of the tensor must match the existing size", tt_shape_text(have, input->ndim,
                           input->shape), (long long)a->shape[0], (long long)b->shape[1]);
    }
    return multiply(a, false, b, false, input, beta, alpha, false);
}

tt_array *tt_linear(tt_array *x, tt_array *w, tt_array *bias) {
    char have[TT_SHAPE_TEXT];
    TT_ON_DEVICE(NULL, "linear", 3, ((tt_array *[]){x, w, bias}));
    if (w->ndim != 2)
        return tt_fail(TT_RUNTIME_ERROR, "weight must be a matrix, got shape %s",
                       tt_shape_text(have, w->ndim, w->shape));
    if (bias && (bias->ndim != 1 || bias->shape[0] != w->shape[0]) && bias->ndim != 0)
        return tt_fail(TT_RUNTIME_ERROR, "bias of shape %s does not match weight's %lld rows: The expanded size "
                       "of the tensor must match the existing size", tt_shape_text(have, bias->ndim, bias->shape),
                       (long long)w->shape[0]);
    return multiply(x, false, w, true, bias, 1, 1, false);
}

/* All dimensions but the last as one; a copy where the strides do not allow it. */
static tt_array *as_rows(tt_array *a) {
    int64_t cols = a->ndim ? a->shape[a->ndim - 1] : 1, rows = 1;
    for (int d = 0; d + 1 < a->ndim; d++) rows *= a->shape[d];
    int64_t shape[2] = {rows, cols};
    if (!(a->flags & TT_FLAG_CONTIGUOUS)) {
        tt_array *plain = tt_contiguous_now(a);
        if (!plain) return NULL;
        tt_array *flat = tt_reshape_view(plain, 2, shape);
        tt_free(plain);
        return flat;
    }
    return tt_reshape_view(a, 2, shape);
}

tt_array *tt_linear_weight(tt_array *g, tt_array *x) {
    TT_ON_DEVICE(NULL, "linear", 2, ((tt_array *[]){g, x}));
    if (!tt_ready(g) || !tt_ready(x)) return tt_decline();
    if (g->ndim == 2 && x->ndim == 2) return multiply(g, true, x, false, NULL, 0, 1, true);
    tt_array *rows_g = as_rows(g), *rows_x = as_rows(x);
    tt_array *out = rows_g && rows_x ? multiply(rows_g, true, rows_x, false, NULL, 0, 1, true) : NULL;
    if (rows_g) tt_free(rows_g);
    if (rows_x) tt_free(rows_x);
    return out;
}
