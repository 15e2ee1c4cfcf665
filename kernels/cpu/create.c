/* Ranges, computed in float64 or int64 block by block and cast; indices of triangles. */
#include "cpu/cpu.h"
#include "scalar/math_f64.h"
#include "scalar/sequence.h"

typedef struct range {
    const tt_range *r;
    tt_array *out;
    double (*value)(const struct range *job, int64_t k); /* NULL: integers */
} range;

static double stepped(const range *job, int64_t k) {
    const tt_range *r = job->r;
    return r->start + (double)k * r->step;
}

/* From both ends to the middle, so that the last value is the end exactly. */
#define BETWEEN(along)                                                                                                 \
    static double between_##along(const range *job, int64_t k) {                                                       \
        const tt_range *r = job->r;                                                                                    \
        int64_t n = job->out->numel;                                                                                   \
        return k < n / 2 || n == 1 ? tt_along_##along(r->start, r->step, k)                                            \
                                   : tt_along_##along(r->end, -r->step, n - 1 - k);                                    \
    }
BETWEEN(f64)
BETWEEN(f32)
BETWEEN(f16)
BETWEEN(bf16)

static double power(const range *job, int64_t k) {
    const tt_range *r = job->r;
    return tt_pow_f64(r->base, tt_exponent_f64(r->start, r->end, r->step, job->out->numel, k));
}

static void fill_range(void *context, int64_t begin, int64_t end) {
    const range *job = context;
    int size = tt_itemsizes[job->out->dtype];
    union {
        double f[TT_BLOCK];
        int64_t i[TT_BLOCK];
    } block;
    for (int64_t at = begin; at < end; at += TT_BLOCK) {
        int64_t n = end - at < TT_BLOCK ? end - at : TT_BLOCK;
        if (job->value)
            for (int64_t k = 0; k < n; k++) block.f[k] = job->value(job, at + k);
        else /* unsigned: an overflow wraps */
            for (int64_t k = 0; k < n; k++)
                block.i[k] = (int64_t)((uint64_t)job->r->first + (uint64_t)(at + k) * (uint64_t)job->r->by);
        tt_isa->casts[job->value ? TT_F64 : TT_I64][job->out->dtype](job->out->data + at * size, &block, n);
    }
}

/* Row and column of each element, in the two rows of `out`. */
static void triangle(tt_array *out, const tt_range *r) {
    int size = tt_itemsizes[out->dtype];
    char *row = out->data, *col = out->data + out->shape[1] * size;
    bool upper = r->kind == TT_RANGE_TRIU; /* the rows before its first element, or after its last, may be many */
    int64_t first = !upper && r->offset < 0 ? -r->offset : 0;
    int64_t last = upper && r->cols - r->offset < r->rows ? r->cols - r->offset : r->rows;
    for (int64_t k = first; k < last; k++) {
        int64_t begin, end;
        tt_range_row(r, k, &begin, &end);
        for (int64_t c = begin; c < end; c++, row += size, col += size) {
            tt_isa->casts[TT_I64][out->dtype](row, &k, 1);
            tt_isa->casts[TT_I64][out->dtype](col, &c, 1);
        }
    }
}

bool tt_cpu_range(tt_array *out, const tt_range *r) {
    int d = out->dtype;
    range job = {r, out,
                 r->kind == TT_RANGE_STEPPED   ? stepped
                 : r->kind == TT_RANGE_BETWEEN ? (d == TT_F32    ? between_f32
                                                  : d == TT_F16  ? between_f16
                                                  : d == TT_BF16 ? between_bf16
                                                                 : between_f64)
                 : r->kind == TT_RANGE_POWER   ? power
                                               : NULL};
    if (r->kind >= TT_RANGE_TRIL) triangle(out, r);
    else if (out->numel) tt_parallel(out->numel, 1 << 14, fill_range, &job);
    return true;
}
