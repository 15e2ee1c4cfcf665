/* Sorting and selection along one dimension: rows as keys with indices, sorted, and gathered by them. */
#include "cuda/host/cuda.h"
#include "cpu/simd.h"
#include "cpu/reduce.h"
#include "cpu/sort.h"
#include "api/sort.h"
#include <string.h>

#define GRAIN 4096
#define LONG (1 << 16) /* rows from here on are shared out, not the rows among threads */

enum { KTH, MEDIAN, NANMEDIAN, MODE, SORT, TOPK }; /* as in cuda/device/sort_args.h */

typedef struct {
    const tt_array *a;
    int what, bits;
    bool descending, failed;
    int64_t k, n, step, dim; /* elements of a row, bytes between them */
    tt_dims rows, out_rows;  /* where a row starts in the operand; in the results, in elements */
    int64_t out_step, out_n;
    tt_array *values;
    int64_t *indices;
} job;

#define IS_NAN_PACKED(e) ((uint32_t)((e) >> 32) == 0xffffffffu)
#define IS_NAN_KEYED(e) ((e).key == ~(uint64_t)0)
#define SAME_PACKED(a, b) ((a) >> 32 == (b) >> 32)
#define SAME_KEYED(a, b) ((a).key == (b).key)
#define INDEX_PACKED(e) ((int64_t)((e) & 0xffffffffu))
#define INDEX_KEYED(e) ((int64_t)(e).index)

/* One row: its keys in x; the positions chosen, in order, to `chosen`. */
#define CHOOSE(S, E, IS_NAN, SAME, INDEX)                                                       \
    static void choose_##S(const job *j, E *x, E *spare, int64_t *chosen) {                     \
        int64_t n = j->n, k = j->k, nans = 0;                                                   \
        E *s = x;                                                                               \
        switch (j->what) {                                                                      \
        case SORT: s = tt_sort_##S(x, spare, n, j->bits); break;                                \
        case TOPK: s = tt_select_##S(x, spare, n, k, j->bits); break;                           \
        case MODE: {                                                                            \
            int64_t best = 0, last = 0;                                                         \
            s = tt_sort_##S(x, spare, n, j->bits);                                              \
            for (int64_t i = 0, start = 0; i < n; i++)                                          \
                if (i + 1 == n || !SAME(s[i], s[i + 1])) {                                      \
                    if (i + 1 - start > best) best = i + 1 - start, last = i;                   \
                    start = i + 1;                                                              \
                }                                                                               \
            *chosen = INDEX(s[last]);                                                           \
            return;                                                                             \
        }                                                                                       \
        default:                                                                                \
            if (j->what != KTH) {                                                               \
                if (tt_is_floating(j->a->dtype))                                                \
                    for (int64_t i = 0; i < n; i++) nans += IS_NAN(x[i]);                       \
                if (nans && j->what == MEDIAN) k = n - nans;                                    \
                else k = nans == n ? 0 : (n - nans - 1) / 2;                                    \
            }                                                                                   \
            tt_nth_##S(x, n, k);                                                                \
            *chosen = INDEX(x[k]);                                                              \
            return;                                                                             \
        }                                                                                       \
        for (int64_t i = 0; i < j->out_n; i++) chosen[i] = INDEX(s[i]);                         \
    }
CHOOSE(packed, tt_packed, IS_NAN_PACKED, SAME_PACKED, INDEX_PACKED)
CHOOSE(keyed, tt_keyed, IS_NAN_KEYED, SAME_KEYED, INDEX_KEYED)

#define PUT(T)                                                                                  \
    for (int64_t i = 0; i < j->out_n; i++) {                                                    \
        T value;                                                                                \
        memcpy(&value, row + chosen[i] * (int64_t)sizeof value, sizeof value);                  \
        memcpy(out + i * j->out_step * (int64_t)sizeof value, &value, sizeof value);            \
    }

static void run_rows(void *context, int64_t begin, int64_t end) {
    job *j = context;
    int size = tt_itemsizes[j->a->dtype];
    bool narrow = tt_key_is_narrow(j->a->dtype), flat = j->step == size;
    int64_t keys = j->n * (narrow ? 8 : 16), chosen_bytes = j->out_n * 8;
    char *room = tt_scratch(2 * keys + chosen_bytes + (flat ? 0 : j->n * 8));
    if (!room) {
        __atomic_store_n(&j->failed, true, __ATOMIC_RELAXED);
        return;
    }
    int64_t *chosen = (int64_t *)(room + 2 * keys);
    char *gathered = room + 2 * keys + chosen_bytes;
    for (int64_t r = begin; r < end; r++) {
        const char *row = j->a->data + tt_dims_offset(&j->rows, r);
        int64_t at = tt_dims_offset(&j->out_rows, r);
        if (!flat) {
            tt_move(gathered, size, row, j->step, j->n, size);
            row = gathered;
        }
        if (narrow) {
            tt_make_packed((tt_packed *)room, row, j->a->dtype, j->n, j->descending);
            choose_packed(j, (tt_packed *)room, (tt_packed *)(room + keys), chosen);
        } else {
            tt_make_keyed((tt_keyed *)room, row, j->a->dtype, j->n, j->descending);
            job row_job = *j;
            if (j->what == SORT && j->a->dtype == TT_I64) row_job.bits = tt_compact_keys((tt_keyed *)room, j->n);
            choose_keyed(&row_job, (tt_keyed *)room, (tt_keyed *)(room + keys), chosen);
        }
        char *out = j->values->data + at * size;
        switch (size) {
        case 1: PUT(uint8_t) break;
        case 2: PUT(uint16_t) break;
        case 4: PUT(uint32_t) break;
        default: PUT(uint64_t) break;
        }
        for (int64_t i = 0; i < j->out_n; i++) j->indices[at + i * j->out_step] = chosen[i];
    }
    tt_scratch_free(room);
}

static bool run_on_device(const job *j, int64_t rows) {
    tt_sort_args p = {.in = j->a->data, .values = j->values->data, .indices = j->indices, .rows = rows, .n = j->n, .k = j->k,
                      .out_n = j->out_n, .step = j->step, .out_step = j->out_step};
    for (int d = j->rows.n - 1; d >= 0; d--) {
        int64_t size = j->rows.size[d], in = j->rows.step[d], out = j->out_rows.step[d], last = p.dims - 1;
        if (size == 1) continue;
        if (last >= 0 && in == p.row_step[last] * p.size[last] && out == p.out_row_step[last] * p.size[last]) {
            p.size[last] *= size;
            continue;
        }
        p.size[p.dims] = size;
        p.row_step[p.dims] = in;
        p.out_row_step[p.dims++] = out;
    }
    return tt_cuda_sort_along(j->what, j->a->dtype, j->descending, &p);
}

static tt_array *run(job *j, const char *op, tt_array *a, int64_t out_n, bool keepdim, tt_array **indices) {
    int64_t shape[TT_MAX_NDIM], rows = 1;
    int ndim = 0, size = tt_itemsizes[a->dtype];
    j->a = a;
    j->n = a->ndim ? a->shape[j->dim] : 1;
    j->step = a->ndim ? a->strides[j->dim] * size : size;
    j->out_n = out_n;
    j->bits = tt_itemsizes[a->dtype] == 1 ? 8 : a->dtype == TT_I16 ? 16 : tt_key_is_narrow(a->dtype) ? 32 : 64;
    if (j->n >= (int64_t)1 << 32) return tt_fail(TT_RUNTIME_ERROR, "%s: at most 2^32 - 1 elements can be sorted", op);
    for (int d = 0; d < a->ndim; d++)
        if (d != j->dim || keepdim) shape[ndim++] = d == j->dim ? out_n : a->shape[d];
    tt_array *values = tt_empty(a->dtype, ndim, shape);
    *indices = values ? tt_empty(TT_I64, ndim, shape) : NULL;
    if (!*indices) {
        if (values) tt_free(values);
        return NULL;
    }
    if (!values->numel) return values;
    int64_t step = 1;
    j->out_step = 1;
    for (int d = a->ndim - 1; d >= 0; d--) {
        if (d == j->dim) {
            j->out_step = step;
            step *= out_n;
        }
        else step *= a->shape[d];
    }
    for (int d = 0; d < a->ndim; d++) {
        if (d == j->dim) continue;
        int64_t below = 1;
        for (int e = d + 1; e < a->ndim; e++) below *= e == j->dim ? out_n : a->shape[e];
        j->rows.size[j->rows.n] = j->out_rows.size[j->rows.n] = a->shape[d];
        j->rows.step[j->rows.n] = a->strides[d] * size;
        j->out_rows.step[j->rows.n++] = below;
        rows *= a->shape[d];
    }
    j->out_rows.n = j->rows.n;
    j->values = values;
    j->indices = (int64_t *)(*indices)->data;
    if (tt_device) {
        if (run_on_device(j, rows)) return values;
        tt_free(values);
        tt_free(*indices);
        return NULL;
    }
    int64_t grain = j->n >= LONG ? rows : GRAIN / j->n;
    tt_parallel(rows, grain < 1 ? 1 : grain, run_rows, j);
    if (!j->failed) return values;
    tt_free(values);
    tt_free(*indices);
    return tt_fail(TT_OUT_OF_MEMORY, "%s: out of memory for the keys of rows of %lld elements", op, (long long)j->n);
}

static bool good_dim(const char *op, const tt_array *a, int64_t *dim) {
    int64_t n = a->ndim ? a->ndim : 1;
    if (*dim < -n || *dim >= n) {
        tt_fail(TT_INDEX_ERROR, "%s: Dimension out of range (expected to be in range of [%lld, %lld], but got %lld)", op,
                (long long)-n, (long long)n - 1, (long long)*dim);
        return false;
    }
    if (*dim < 0) *dim += n;
    return true;
}

tt_array *tt_sort(tt_array *a, int64_t dim, int descending, tt_array **indices) {
    TT_ON_DEVICE(NULL, "sort", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!good_dim("sort", a, &dim)) return NULL;
    job j = {.what = SORT, .descending = descending, .dim = dim};
    return run(&j, "sort", a, a->ndim ? a->shape[dim] : 1, true, indices);
}

tt_array *tt_topk(tt_array *a, int64_t k, int64_t dim, int largest, tt_array **indices) {
    TT_ON_DEVICE(NULL, "topk", 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!good_dim("topk", a, &dim)) return NULL;
    if (a->dtype == TT_BOOL) return tt_fail(TT_RUNTIME_ERROR, "topk: not implemented for 'bool'");
    int64_t n = a->ndim ? a->shape[dim] : 1;
    if (k < 0 || k > n)
        return tt_fail(TT_RUNTIME_ERROR, "topk: selected index k out of range: k is %lld, dimension %lld has %lld elements",
                       (long long)k, (long long)dim, (long long)n);
    job j = {.what = TOPK, .descending = largest, .dim = dim, .k = k};
    if (a->ndim == 0) j.k = k = 1; /* a number is its own largest, even of none: as in PyTorch */
    return run(&j, "topk", a, k, true, indices);
}

tt_array *tt_pick(int what, tt_array *a, int64_t k, int64_t dim, int keepdim, tt_array **indices) {
    static const char *const names[] = {"kthvalue", "median", "nanmedian", "mode"};
    const char *op = names[what];
    TT_ON_DEVICE(NULL, op, 1, &a);
    if (!tt_ready(a)) return tt_decline();
    if (!good_dim(op, a, &dim)) return NULL;
    if (a->dtype == TT_BOOL && what != MODE) return tt_fail(TT_RUNTIME_ERROR, "%s: not implemented for 'bool'", op);
    int64_t n = a->ndim ? a->shape[dim] : 1;
    if (n == 0)
        return tt_fail(TT_INDEX_ERROR, "%s(): Expected reduction dim %lld to have non-zero size.", op, (long long)dim);
    if (what == KTH && (k < 1 || k > n))
        return tt_fail(TT_RUNTIME_ERROR, "kthvalue(): selected number k out of range for dimension %lld: k is %lld, of "
                       "%lld elements", (long long)dim, (long long)k, (long long)n);
    job j = {.what = what, .dim = dim, .k = k - 1};
    return run(&j, op, a, 1, keepdim, indices);
}
