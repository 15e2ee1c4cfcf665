/* Ranges, and indices of triangles. */
#include "api/create.h"
#include "backend/backend.h"
#include "backend/now.h"
#include "scalar/half.h"

static tt_array *filled(const char *name, const tt_range *r, int dtype, int64_t n) {
    tt_array *out = tt_empty(dtype, 1, &n);
    if (!out || TT_WORK(name, range, out, r)) return out;
    tt_free(out);
    return NULL;
}

tt_array *tt_arange(int dtype, int64_t n, double fstart, double fstep, int64_t istart, int64_t istep) {
    if (!tt_has_order("arange", dtype)) return NULL;
    tt_range r = {.kind = tt_is_floating(dtype) ? TT_RANGE_STEPPED : TT_RANGE_INTEGERS,
                  .start = fstart,
                  .step = fstep,
                  .first = istart,
                  .by = istep};
    return filled("arange", &r, dtype, n);
}

static double rounded(int dtype, double x) {
    return dtype == TT_F32    ? (float)x
           : dtype == TT_F16  ? tt_round_f16_f32((float)x)
           : dtype == TT_BF16 ? tt_round_bf16_f32((float)x)
                              : x;
}

/* n numbers between two ends: the ends, and the step, are those of the dtype. */
static tt_range range_between(int kind, int dtype, int64_t n, double start, double end) {
    start = rounded(dtype, start), end = rounded(dtype, end);
    double step = n > 1 ? rounded(dtype, rounded(dtype, end - start) / rounded(dtype, (double)(n - 1))) : 0;
    return (tt_range){.kind = kind, .start = start, .end = end, .step = step};
}

tt_array *tt_linspace(int dtype, int64_t n, double start, double end) {
    tt_range r = range_between(TT_RANGE_BETWEEN, dtype, n, start, end);
    return filled("linspace", &r, dtype, n);
}

tt_array *tt_logspace(int dtype, int64_t n, double start, double end, double base) {
    tt_range r = range_between(TT_RANGE_POWER, dtype, n, start, end);
    r.base = base;
    return filled("logspace", &r, dtype, n);
}

static int64_t within(int64_t x, int64_t low, int64_t high) { return x < low ? low : x > high ? high : x; }

/* The elements on and below a diagonal: one more in each row, from the first row that has any to the first that has
 * all. */
static int64_t lower_count(int64_t rows, int64_t cols, int64_t offset) {
    int64_t begin = within(-offset, 0, rows), full = within(cols - offset, begin, rows);
    int64_t first = begin + 1 + offset, between = full - begin;
    return between * first + between * (between - 1) / 2 + (rows - full) * cols;
}

tt_array *tt_triangle(int dtype, int64_t rows, int64_t cols, int64_t offset, int upper) {
    int64_t shape[2] = {2, 0}, element[2] = {rows, cols}, total;
    if (rows < 0 || cols < 0)
        return tt_fail(TT_RUNTIME_ERROR, "%s_indices: rows and columns must not be negative, got %lld and %lld",
                       upper ? "triu" : "tril", (long long)rows, (long long)cols);
    if ((total = tt_numel(2, element)) < 0) return NULL;
    if (!total) rows = 0;
    if (offset > cols) offset = cols;
    if (offset < -rows - 1) offset = -rows - 1;
    tt_range r = {.kind = upper ? TT_RANGE_TRIU : TT_RANGE_TRIL, .rows = rows, .cols = cols, .offset = offset};
    shape[1] = upper ? total - lower_count(rows, cols, offset - 1) : lower_count(rows, cols, offset);
    tt_array *out = tt_empty(dtype, 2, shape);
    if (!out) return NULL;
    if (TT_WORK("tril_indices", range, out, &r)) return out;
    tt_free(out);
    return NULL;
}

int64_t tt_read_int(tt_array *a) {
    int64_t value;
    tt_looks++;
    tt_convert(&value, TT_I64, a->data, a->dtype);
    return value;
}

double tt_read_float(tt_array *a) {
    double value;
    tt_looks++;
    tt_convert(&value, TT_F64, a->data, a->dtype);
    return value;
}
