/* Kernels over rows on a device: how a row is shared out. */
#include "backend/now.h"
#include "backend/plain.h"
#include "cuda/device/rows_args.h"
#include "cuda/host/cuda.h"

#define WARPS 32      /* of the largest thread block */
#define RESERVED 1024 /* bytes of shared memory that each thread block takes besides */

static struct {
    int capability;
    int64_t shared;
} processors[TT_CUDA_DEVICES];

int tt_cuda_processor(int device, int capability, int64_t shared) {
    if (device >= 0 && device < TT_CUDA_DEVICES)
        processors[device].capability = capability, processors[device].shared = shared;
    return 0;
}

int tt_cuda_capability(void) { return processors[tt_device - 1].capability; }
int64_t tt_cuda_shared_room(void) { return processors[tt_device - 1].shared; }

/* Who has a row of n elements, when a warp's registers hold `inputs` of them; the grid. `again`: is it read several
 * times? Then it waits in shared memory, where it is long and there is room. */
typedef struct {
    int variant, threads;
    int64_t blocks, shared;
} split;

static split split_rows(int64_t rows, int64_t n, int inputs, int dtype, int compute, bool again) {
    split s = {.threads = TT_CUDA_THREADS};
    if (n <= TT_BLOCK) {
        int each = 0, lanes = 5;
        while (((int64_t)32 << each) < n) each++;
        while (lanes > 0 && (1 << (lanes - 1)) >= n) lanes--;
        /* threads that have little of a row take several, where that leaves enough thread blocks */
        int64_t per = TT_CUDA_THREADS >> lanes,
                more = each < 3 && rows > (per << (3 - each)) * TT_CUDA_ENOUGH ? 3 - each : 0;
        s.blocks = (rows + (per << more) - 1) / (per << more);
        s.variant = TT_ROW_WARP | each << TT_ROW_EACH | lanes << TT_ROW_LANES | (int)more << TT_ROW_ROWS;
        if (1 << (lanes + each) == n) s.variant |= TT_ROW_WHOLE;
        return s;
    }
    int64_t blocks = (n + TT_BLOCK - 1) / TT_BLOCK, most = WARPS / inputs, room = tt_cuda_shared_room();
    int64_t parts = TT_ROW_PARTS(n) * tt_itemsizes[compute], cached = parts + n * tt_itemsizes[dtype] + 16;
    /* Of two thread blocks of a processor one can read a row while the other one computes. */
    bool two = rows >= TT_CUDA_ENOUGH && (!again || 2 * (cached + RESERVED) <= room + RESERVED);
    if (blocks <= most && (!two || inputs > 1 || blocks <= most / 2)) s.variant = TT_ROW_HELD;
    else s.variant = n <= TT_ROW_MOST ? TT_ROW_LONG : TT_ROW_VAST;
    if (n % TT_BLOCK == 0) s.variant |= TT_ROW_WHOLE;
    if ((s.variant & TT_ROW_FORM) == TT_ROW_LONG) {
        bool kept = again && cached <= room;
        if (kept) s.variant |= TT_ROW_CACHED;
        if (two) most /= 2;
        s.shared = kept ? cached : parts;
    }
    int64_t rounds = (blocks + most - 1) / most;
    s.threads = (int)((blocks + rounds - 1) / rounds) * 32;
    s.blocks = rows;
    return s;
}

/* What VAST rows need: room for what their blocks give. False: there is none. */
static bool make_room(const split *s, int64_t rows, int64_t n, tt_array **parts) {
    *parts = NULL;
    if ((s->variant & TT_ROW_FORM) != TT_ROW_VAST) return true;
    return (*parts = tt_cuda_temporary(TT_I64, rows * ((n + TT_BLOCK - 1) / TT_BLOCK))) != NULL;
}

bool tt_cuda_rows_fit(int64_t rows, int64_t n) { return n <= TT_ROW_MOST && (rows >= 32 || n <= 65536); }

static bool softmax_rows(tt_array *out, const tt_array *x, const tt_array *y, int64_t n, bool log) {
    int compute = tt_compute_dtype(x->dtype);
    split s = split_rows(x->numel / n, n, y ? 2 : 1, x->dtype, compute, true);
    tt_softmax_args p = {
        .rows = x->numel / n, .n = (int32_t)n, .out = out->data, .x = x->data, .y = y ? y->data : NULL};
    int64_t key = tt_key(TT_FAMILY_softmax, log + (y ? 2 : 0), s.variant, x->dtype, compute, 0, 0, 0);
    return TT_LAUNCH(key, s.blocks, 1, s.threads, s.shared, p);
}

static bool softmax_columns(tt_array *out, const tt_array *x, const tt_array *y, int64_t n, int64_t inner, bool log) {
    tt_columns_args p = {.n = n, .inner = inner, .out = out->data, .x = x->data, .y = y ? y->data : NULL};
    int64_t outer = x->numel / n / inner, chunks = (n + TT_COLUMN_CHUNK - 1) / TT_COLUMN_CHUNK;
    int columns = 8;
    /* fewer columns to a thread block: more threads to a column */
    while (columns > 0 &&
           (((int64_t)1 << (columns - 1) >= inner) ||
            (columns > 3 && chunks > TT_CUDA_THREADS >> columns && outer * (inner >> columns) < TT_CUDA_ENOUGH)))
        columns--;
    while (chunks > (int64_t)(TT_CUDA_THREADS >> columns) << p.log_per) p.log_per++;
    p.tiles = (inner + (1 << columns) - 1) >> columns;
    int compute = tt_compute_dtype(x->dtype);
    int64_t key = tt_key(TT_FAMILY_softmax_columns, log + (y ? 2 : 0), columns, x->dtype, compute, 0, 0, 0);
    return TT_LAUNCH(key, outer * p.tiles, 1, TT_CUDA_THREADS, 0, p);
}

/* Half types need no copy: kernels read and write them. */
bool tt_cuda_softmax(tt_array *out, tt_array *x, tt_array *y, int64_t n, int64_t inner, bool log) {
    tt_plain p[2] = {{0}};
    bool ok = tt_plain_take(&p[0], x, x->dtype) && tt_plain_take(&p[1], y, x->dtype) &&
              (inner == 1 ? softmax_rows(out, p[0].array, p[1].array, n, log)
                          : softmax_columns(out, p[0].array, p[1].array, n, inner, log));
    tt_plain_done(p, 2);
    return ok;
}

static bool norm(tt_array *out, const tt_array *x, const tt_array *g, const tt_array *weight, const tt_array *bias,
                 const tt_array *mean, const tt_array *rstd, int64_t n, double eps) {
    split s = split_rows(x->numel / n, n, g ? 2 : 1, x->dtype, rstd->dtype, true);
    tt_norm_args p = {.rows = x->numel / n,
                      .n = (int32_t)n,
                      .out = out->data,
                      .x = x->data,
                      .g = g ? g->data : NULL,
                      .weight = weight ? weight->data : NULL,
                      .bias = bias ? bias->data : NULL,
                      .mean = mean ? mean->data : NULL,
                      .rstd = rstd->data,
                      .eps = eps};
    int has = (mean ? 0 : TT_NORM_RMS) | (weight ? TT_NORM_WEIGHT : 0) | (bias ? TT_NORM_BIAS : 0);
    tt_array *parts;
    if (!make_room(&s, p.rows, n, &parts)) return false;
    p.parts = parts ? parts->data : NULL;
    int64_t key = tt_key(TT_FAMILY_norm, g != NULL, s.variant | has << TT_ROW_OWN, x->dtype, rstd->dtype, 0, 0, 0);
    bool ok = TT_LAUNCH(key, s.blocks, 1, s.threads, s.shared, p);
    if (parts) tt_free(parts);
    return ok;
}

bool tt_cuda_norm(tt_array *out, tt_array *x, tt_array *g, tt_array *weight, tt_array *bias, tt_array *mean,
                  tt_array *rstd, int64_t n, double eps) {
    tt_plain p[4] = {{0}};
    bool ok = tt_plain_take(&p[0], x, x->dtype) && tt_plain_take(&p[1], g, x->dtype) &&
              tt_plain_take(&p[2], weight, x->dtype) && tt_plain_take(&p[3], bias, x->dtype) &&
              (!n || norm(out, p[0].array, p[1].array, p[2].array, p[3].array, mean, rstd, n, eps));
    tt_plain_done(p, 4);
    return ok;
}

bool tt_cuda_statistics(int what, tt_array *out, const tt_array *x, int64_t n, double by) {
    int compute = tt_compute_dtype(x->dtype);
    split s = split_rows(x->numel / n, n, 1, x->dtype, compute, true);
    tt_statistics_args p = {.rows = x->numel / n, .n = (int32_t)n, .out = out->data, .x = x->data, .by = by};
    int64_t key = tt_key(TT_FAMILY_statistics, what, s.variant, x->dtype, compute, 0, 0, 0);
    return TT_LAUNCH(key, s.blocks, 1, s.threads, s.shared, p);
}

static bool norm_weight(tt_array *out, const tt_array *g, const tt_array *x, const tt_array *mean, const tt_array *rstd,
                        int64_t n) {
    tt_norm_weight_args p = {.rows = g->numel / n,
                             .n = n,
                             .out = out->data,
                             .g = g->data,
                             .x = x->data,
                             .mean = mean ? mean->data : NULL,
                             .rstd = rstd->data};
    p.blocks = (p.rows + TT_BLOCK - 1) / TT_BLOCK;
    int size = tt_itemsizes[x->dtype],
        two = size == 2 && n % 2 == 0 && n >= 64 && ((intptr_t)p.g | (intptr_t)p.x) % 4 == 0;
    int columns = tt_cuda_columns(n >> two, size << two, p.blocks);
    int64_t threads = TT_CUDA_THREADS >> columns, at_once = threads > 32 ? threads / 32 : 1;
    tt_array *parts = p.blocks > 1 ? tt_cuda_temporary(rstd->dtype, p.blocks * n) : NULL;
    if (p.blocks > 1 && !parts) return false;
    p.parts = parts ? parts->data : NULL;
    p.tiles = ((n >> two) + (1 << columns) - 1) >> columns;
    int variant = (mean ? 0 : TT_NORM_RMS) | (two ? TT_NORM_TWO : 0) | columns << TT_NORM_COLUMNS;
    int64_t key = tt_key(TT_FAMILY_norm_weight, 0, variant, x->dtype, rstd->dtype, 0, 0, 0);
    bool ok = TT_LAUNCH(key, (p.blocks + at_once - 1) / at_once * p.tiles, 1, TT_CUDA_THREADS, 0, p) &&
              (!parts || tt_cuda_join_parts(TT_RED_sum, rstd->dtype, parts, p.blocks, 1, n, out->dtype, out->data));
    if (parts) tt_free(parts);
    return ok;
}

bool tt_cuda_norm_weight(tt_array *out, tt_array *g, tt_array *x, tt_array *mean, tt_array *rstd, int64_t n) {
    tt_plain p[2] = {{0}};
    tt_wide wide = {0};
    bool ok = tt_plain_take(&p[0], g, x->dtype) && tt_plain_take(&p[1], x, x->dtype) &&
              tt_wide_start(&wide, out, x->dtype) && norm_weight(wide.array, p[0].array, p[1].array, mean, rstd, n);
    tt_plain_done(p, 2);
    return tt_wide_end(&wide, ok);
}

/* losses: the dtype of those of rows, where they are wanted */
static bool class_kernel(int what, tt_class_args *p, int dtype, int compute, int losses) {
    split s = split_rows(p->rows, p->n, 1, dtype, compute, what == TT_CLASS_LOGITS);
    p->fault = tt_cuda_fault();
    tt_array *parts;
    if (!make_room(&s, p->rows, p->n, &parts)) return false;
    p->parts = parts ? parts->data : NULL;
    if (p->smoothing != 0) what |= TT_CLASS_SMOOTHED;
    int64_t key = tt_key(TT_FAMILY_class_loss, what, s.variant, dtype, compute, losses, 0, 0);
    bool ok = TT_LAUNCH(key, s.blocks, 1, s.threads, s.shared, *p);
    if (parts) tt_free(parts);
    return ok;
}

static bool class_total(const tt_array *sums, tt_array *out, char *divisor, int compute, bool mean) {
    tt_class_total_args p = {(const double *)sums->data, out->data, divisor, mean};
    return TT_LAUNCH(tt_key(TT_FAMILY_class_total, 0, 0, out->dtype, compute, 0, 0, 0), 1, 1, 32, 0, p);
}

static tt_class_args class_args(const tt_class_work *w, const tt_array *x) {
    int64_t rows = w->rows;
    tt_class_args args = {.rows = rows,
                          .n = (int32_t)w->classes,
                          .x = x ? x->data : NULL,
                          .target = (const int64_t *)w->target->data,
                          .weight = w->weight ? w->weight->data : NULL,
                          .ignore = w->ignore,
                          .smoothing = w->smoothing};
    if (w->stats) {
        args.top = w->stats->data;
        args.log_sum = w->stats->data + rows * tt_itemsizes[w->stats->dtype];
    }
    return args;
}

bool tt_cuda_class_loss(tt_array *out, const tt_class_work *w) {
    int64_t shape[2] = {2, w->rows};
    int compute = w->stats->dtype;
    tt_plain x = {0};
    tt_array *losses = NULL, *sums = NULL;
    bool ok = tt_plain_take(&x, w->x, w->x->dtype) && (!w->reduction || (losses = tt_empty(TT_F64, 2, shape)));
    if (ok) {
        tt_class_args args = class_args(w, x.array);
        if (losses) args.losses = (double *)losses->data;
        else args.out = out->data;
        ok = !w->rows || class_kernel(w->logits ? TT_CLASS_LOGITS : 0, &args, w->x->dtype, compute, out->dtype);
    }
    if (ok && losses)
        ok = (sums = tt_empty(TT_F64, 1, shape)) &&
             (w->rows ? tt_cuda_reduce(sums, losses, 2, TT_RED_sum, TT_F64, TT_F64, TT_RED_ALONE)
                      : tt_fill_now(sums, TT_KIND_FLOAT, 0, 0) == 0) &&
             class_total(sums, out, w->stats->data + 2 * w->rows * tt_itemsizes[compute], compute, w->reduction == 1);
    if (sums) tt_free(sums);
    if (losses) tt_free(losses);
    tt_plain_done(&x, 1);
    return ok;
}

bool tt_cuda_class_loss_backward(tt_array *out, const tt_class_work *w, tt_array *g, tt_array *weight_sum) {
    int compute = w->stats->dtype;
    tt_plain p[2] = {{0}};
    bool ok = tt_plain_take(&p[0], w->x, w->x->dtype) && tt_plain_take(&p[1], g, compute);
    if (ok) {
        tt_class_args args = class_args(w, p[0].array);
        args.out = out->data;
        args.g = tt_plain_data(&p[1]);
        args.each_row = w->reduction == 0;
        if (w->reduction == 1) args.divisor = w->stats->data + 2 * w->rows * tt_itemsizes[compute];
        if (weight_sum) args.weight_sum = (const double *)weight_sum->data;
        ok = class_kernel(TT_CLASS_BACKWARD | (w->logits ? TT_CLASS_LOGITS : 0), &args, w->x->dtype, compute, 0);
    }
    tt_plain_done(p, 2);
    return ok;
}

bool tt_cuda_class_targets(tt_array *out, const tt_class_work *w) {
    tt_class_args args = class_args(w, NULL);
    args.out = out->data;
    return class_kernel(TT_CLASS_TARGETS, &args, out->dtype, tt_compute_dtype(out->dtype), 0);
}
