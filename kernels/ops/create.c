/* Ranges, computed in float64 or int64 block by block and cast; indices of triangles. */
#include "core/tt.h"
#include "api/create.h"
#include "cpu/simd.h"
#include "cuda/host/cuda.h"
#include "scalar/math_f64.h"
#include <math.h>

typedef struct {
    tt_array *out;
    double start, end, step, base;
    int64_t istart, istep;
    double (*value)(const void *context, int64_t k); /* NULL: integers */
    int kind;                                        /* TT_RANGE_..., which says the same */
} range;

static void fill_range(void *context, int64_t begin, int64_t end) {
    const range *r = context;
    int size = tt_itemsizes[r->out->dtype];
    union {
        double f[TT_BLOCK];
        int64_t i[TT_BLOCK];
    } block;
    for (int64_t at = begin; at < end; at += TT_BLOCK) {
        int64_t n = end - at < TT_BLOCK ? end - at : TT_BLOCK;
        if (r->value)
            for (int64_t k = 0; k < n; k++) block.f[k] = r->value(r, at + k);
        else /* unsigned: an overflow wraps */
            for (int64_t k = 0; k < n; k++)
                block.i[k] = (int64_t)((uint64_t)r->istart + (uint64_t)(at + k) * (uint64_t)r->istep);
        tt_isa->casts[r->value ? TT_F64 : TT_I64][r->out->dtype](r->out->data + at * size, &block, n);
    }
}

static tt_array *filled(range *r, int dtype, int64_t n) {
    r->out = tt_empty(dtype, 1, &n);
    if (r->out && tt_device) {
        tt_range_args p = {.start = r->start, .end = r->end, .step = r->step, .base = r->base, .first = r->istart,
                           .by = r->istep};
        if (tt_cuda_range(r->kind, r->out, &p)) return r->out;
        tt_free(r->out);
        return NULL;
    }
    if (r->out && n) tt_parallel(n, 1 << 14, fill_range, r);
    return r->out;
}

static double stepped(const void *context, int64_t k) {
    const range *r = context;
    return r->start + (double)k * r->step;
}

/* From both ends to the middle, so that the last value is the end exactly. */
static double between(const void *context, int64_t k) {
    const range *r = context;
    int64_t n = r->out->numel;
    return k < n / 2 || n == 1 ? r->start + (double)k * r->step : r->end - (double)(n - 1 - k) * r->step;
}

static double power(const void *context, int64_t k) { return tt_pow_f64(((const range *)context)->base, between(context, k)); }

tt_array *tt_arange(int dtype, int64_t n, double fstart, double fstep, int64_t istart, int64_t istep) {
    range r = {.start = fstart, .step = fstep, .istart = istart, .istep = istep,
               .value = tt_is_floating(dtype) ? stepped : NULL,
               .kind = tt_is_floating(dtype) ? TT_RANGE_STEPPED : TT_RANGE_INTEGERS};
    return filled(&r, dtype, n);
}

tt_array *tt_linspace(int dtype, int64_t n, double start, double end) {
    range r = {.start = start, .end = end, .step = n > 1 ? (end - start) / (double)(n - 1) : 0, .value = between,
               .kind = TT_RANGE_BETWEEN};
    return filled(&r, dtype, n);
}

tt_array *tt_logspace(int dtype, int64_t n, double start, double end, double base) {
    range r = {.start = start, .end = end, .step = n > 1 ? (end - start) / (double)(n - 1) : 0, .base = base,
               .value = power, .kind = TT_RANGE_POWER};
    return filled(&r, dtype, n);
}

/* The elements of row r in the lower triangle are columns 0 to r + offset; in the upper one, r + offset to the end. */
static void row_range(int64_t r, int64_t cols, int64_t offset, int upper, int64_t *begin, int64_t *end) {
    int64_t at = upper ? r + offset : r + offset + 1; /* offset has been clamped: no overflow */
    if (at < 0) at = 0;
    if (at > cols) at = cols;
    *begin = upper ? at : 0;
    *end = upper ? cols : at;
}

tt_array *tt_triangle(int dtype, int64_t rows, int64_t cols, int64_t offset, int upper) {
    int64_t shape[2] = {2, 0}, begin, end, element[2] = {rows, cols}, total;
    if (rows < 0 || cols < 0)
        return tt_fail(TT_RUNTIME_ERROR, "%s_indices: rows and columns must not be negative, got %lld and %lld",
                       upper ? "triu" : "tril", (long long)rows, (long long)cols);
    if ((total = tt_numel(2, element)) < 0) return NULL;
    if (!total) rows = 0;
    if (offset > cols) offset = cols;
    if (offset < -rows - 1) offset = -rows - 1;
    for (int64_t r = 0; r < rows; r++) {
        row_range(r, cols, offset, upper, &begin, &end);
        shape[1] += end - begin;
    }
    tt_array *out = tt_empty(dtype, 2, shape);
    if (!out) return NULL;
    if (tt_device) {
        tt_range_args p = {.rows = rows, .cols = cols, .offset = offset};
        if (tt_cuda_range(upper ? TT_RANGE_TRIU : TT_RANGE_TRIL, out, &p)) return out;
        tt_free(out);
        return NULL;
    }
    int size = tt_itemsizes[dtype];
    char *row = out->data, *col = out->data + shape[1] * size;
    for (int64_t r = 0; r < rows; r++) {
        row_range(r, cols, offset, upper, &begin, &end);
        for (int64_t c = begin; c < end; c++, row += size, col += size) {
            tt_isa->casts[TT_I64][dtype](row, &r, 1);
            tt_isa->casts[TT_I64][dtype](col, &c, 1);
        }
    }
    return out;
}

int64_t tt_read_int(tt_array *a) {
    int64_t value;
    tt_looks++;
    tt_isa->casts[a->dtype][TT_I64](&value, a->data, 1);
    return value;
}

double tt_read_float(tt_array *a) {
    double value;
    tt_looks++;
    tt_isa->casts[a->dtype][TT_F64](&value, a->data, 1);
    return value;
}
