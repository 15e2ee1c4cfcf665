/* Reductions on a device: which form, how many thread blocks. The plan is the CPU's. */
#include "cuda/host/cuda.h"
#include "cuda/host/last_block.h"
#include "cuda/device/reduce_args.h"
#include <string.h>

#define BUSY 16896  /* thread blocks from which on more, with less to do each, gain nothing */
#define FULL 1056   /* warps; with fewer, they had better be more with less to do each */
#define WARPS (TT_CUDA_THREADS / 32)
#define LEVELS 11   /* log of what a thread joins alone: struct levels in reduce.cuh */
#define BATCH_LOG 3 /* of which JOIN takes so many at once */

static int log_of(int64_t n) { /* the least k with 1 << k >= n */
    int k = 0;
    while ((int64_t)1 << k < n) k++;
    return k;
}
static int64_t divided(int64_t n, int64_t by) { return (n + by - 1) / by; }

static void set_dims(tt_reduce_dims *to, const tt_dims *from, int64_t total) {
    to->n = from->n;
    to->narrow = total < (int64_t)1 << 31;
    to->step[0] = 0;
    for (int k = 0; k < from->n; k++) {
        const int64_t size = from->size[from->n - 1 - k];
        if (to->narrow) to->by[k] = tt_divider_of(size);
        else to->size[k] = size;
        to->step[k] = from->step[from->n - 1 - k];
    }
}

bool tt_cuda_too_deep(const char *op) {
    tt_fail(TT_NOT_IMPLEMENTED, "%s: more than %d dimensions that cannot be merged, on a CUDA device", op,
            TT_CUDA_DIMS);
    return false;
}

/* Few elements to a result are no reason to run over rows where a warp takes several results at once. */
static void prefer_fold(tt_reduction *g) {
    int64_t along = g->run.n ? g->run.step[g->run.n - 1] : 0;
    if (!g->rows || along == 0 || along > g->inner_step) return;
    g->rows = false;
    g->inner = 1;
    g->outer.n++;
}

static bool join_parts(int64_t key, int variant, const tt_reduce_args *p, tt_array *parts, tt_array *part_index) {
    tt_reduce_args j = {.out = p->out,
                        .index = p->index,
                        .parts = parts->data,
                        .param = p->param,
                        .kept = p->kept,
                        .count = p->count,
                        .inner = p->inner,
                        .by = p->by};
    j.part_index = part_index ? (int64_t *)part_index->data : NULL;
    int columns = p->inner >= 32 ? 5 : log_of(p->inner);
    while (columns > 0 && (p->count > (int64_t)(TT_CUDA_THREADS >> columns) << 7)) columns--;
    bool many = p->count > TT_CUDA_THREADS >> columns << BATCH_LOG;
    int threads = many ? TT_RED_MANY : TT_CUDA_THREADS;
    j.tiles = divided(p->inner, 1 << columns);
    j.log_per = log_of(divided(p->count, threads >> columns));
    if (j.log_per > LEVELS + BATCH_LOG) {
        tt_fail(TT_RUNTIME_ERROR, "reduction: %lld elements of one result are more than a device reduces",
                (long long)p->reduced);
        return false;
    }
    variant = (variant & ~15) | TT_RED_JOIN | (columns | many << 4) << TT_RED_OWN;
    return TT_LAUNCH(key | (int64_t)variant << 36, p->kept / p->inner * j.tiles, 1, threads, 0, j);
}

bool tt_cuda_join_parts(int reducer, int acc, tt_array *parts, int64_t count, int64_t outer, int64_t inner, int dtype,
                        char *out) {
    tt_reduce_args p = {.out = out, .kept = outer * inner, .inner = inner, .count = count, .reduced = count * TT_BLOCK};
    return join_parts(tt_key(TT_FAMILY_reduce, reducer, 0, acc, acc, acc, dtype, 0), 0, &p, parts, NULL);
}

/* Are the elements at all steps of the first n of these dimensions aligned for an access of so many bytes? */
static bool aligned(const tt_reduction *g, const tt_dims *d, int n, int64_t to) {
    bool fits = (intptr_t)g->a->data % to == 0;
    for (int k = 0; k < n; k++) fits &= d->step[k] % to == 0;
    return fits;
}

/* Log of the blocks that a warp has at a time: a load takes their elements 16 bytes at once, so they are to lie
 * together. */
static int log_wide(const tt_reduction *g) {
    int k = g->stored == 16  ? 0
            : g->stored == 8 ? 1
            : g->stored == 4 ? 2
            : g->stored == 2 ? 3
                             : 4,
        inner = g->run.n - 1;
    if (inner < 0 || g->run.step[inner] != g->stored || g->blocks == 1) return 0;
    int64_t together = g->run.size[inner]; /* a single result may end anywhere */
    while (k && (((g->kept > 1 || inner > 0) && together % ((int64_t)TT_BLOCK << k)) ||
                 g->kept * g->blocks >> k < FULL || !aligned(g, &g->outer, g->outer.n, (int64_t)g->stored << k) ||
                 !aligned(g, &g->run, inner, (int64_t)g->stored << k)))
        k--;
    return g->stored << k < 4 ? 0 : k; /* the kernel knows no narrower loads */
}

/* A result's blocks are shared out among the warps of a thread block, and further blocks of threads. */
static int split_fold(const tt_reduction *g, tt_reduce_args *p, int64_t *x) {
    if (p->blocks == 1) {
        int lanes = p->reduced >= 32 ? 5 : log_of(p->reduced), each = log_of(divided(p->reduced, 32));
        int64_t per = (int64_t)(TT_CUDA_THREADS >> lanes) * (each < 3 ? 8 >> each : 1);
        *x = divided(p->kept, per);
        return lanes | each << 3;
    }
    int wide = log_wide(g);
    p->blocks = divided(p->blocks, 1 << wide);
    p->log_warps = log_of(p->blocks < WARPS ? p->blocks : WARPS);
    int64_t most = divided(p->blocks, 1 << p->log_warps), across = divided(p->kept, WARPS >> p->log_warps);
    while (!wide && p->log_per < LEVELS && (int64_t)1 << p->log_per < most &&
           across * divided(most, (int64_t)1 << p->log_per) > BUSY)
        p->log_per++;
    p->count = divided(most, (int64_t)1 << p->log_per);
    *x = across * p->count;
    return 5 | 5 << 3 | wide << 6;
}

/* May the last of the thread blocks that share results join the parts? */
static bool may_be_last(const tt_reduction *g, const tt_reduce_args *p, int columns) {
    int64_t shared = g->rows ? p->kept / p->inner * p->tiles : p->kept;
    return p->count > 1 && p->count <= (TT_CUDA_THREADS >> columns) * TT_RED_PARTS && shared <= TT_CUDA_COUNTERS;
}

/* Few thread blocks are made more by fewer columns for each, while those still fill a sector of memory. */
int tt_cuda_columns(int64_t inner, int size, int64_t others) {
    int columns = inner >= 32 ? 5 : log_of(inner);
    while (columns > 3 && (size << columns) > 32 && others * divided(inner, 1 << columns) < TT_CUDA_ENOUGH) columns--;
    return columns;
}

/* Log of the columns that a thread reads at once: 4 bytes of elements that are less. */
static int log_together(const tt_reduction *g) {
    int k = g->stored == 1 ? 2 : g->stored == 2 ? 1 : 0;
    if (g->run.n != 1 || g->inner_step != g->stored || g->run.step[0] == g->stored) return 0;
    while (k && (g->inner % ((int64_t)1 << k) || g->inner < (int64_t)32 << k ||
                 !aligned(g, &g->outer, g->outer.n, (int64_t)g->stored << k) ||
                 !aligned(g, &g->run, g->run.n, (int64_t)g->stored << k)))
        k--;
    return k;
}

static int split_rows(const tt_reduction *g, tt_reduce_args *p, int64_t *x) {
    int64_t outer = p->kept / p->inner;
    int together = log_together(g);
    int columns = tt_cuda_columns(p->inner >> together, g->stored << together, outer * p->blocks);
    int64_t threads = TT_CUDA_THREADS >> columns, at_once = threads > TT_LANES ? threads / TT_LANES : 1;
    p->count = p->blocks;
    p->tiles = divided(p->inner, 1 << (columns + together));
    *x = outer * divided(p->blocks, at_once) * p->tiles;
    return columns | together << 4;
}

static void add_dims(int *n, int64_t *sizes, int64_t *steps, const tt_dims *from, int count, int item) {
    for (int k = 0; k < count; k++) {
        sizes[*n] = from->size[k];
        steps[(*n)++] = from->step[k] / item;
    }
}

/* Dimensions that a kernel has no room for: the elements are copied, in the plan's order, which leaves one of each
 * kind. */
static bool reduce_copy(const tt_reduction *g, int reducer, int acc, int then, double by, const tt_array *param,
                        int dtype, char *out, int64_t *index) {
    int64_t sizes[TT_MAX_NDIM], steps[TT_MAX_NDIM];
    tt_array from = *g->a;
    from.ndim = 0;
    from.shape = sizes;
    from.strides = steps;
    from.numel = g->kept * g->reduced;
    add_dims(&from.ndim, sizes, steps, &g->outer, g->outer.n + g->rows, g->stored);
    add_dims(&from.ndim, sizes, steps, &g->run, g->run.n, g->stored);
    tt_update_flags(&from);
    tt_array *plain = tt_empty(from.dtype, from.ndim, sizes);
    tt_reduction h;
    bool ok = plain && tt_cuda_copy_array(plain, &from);
    if (ok) {
        tt_array flat = *plain;
        flat.ndim = 2;
        flat.shape = (int64_t[]){g->kept, g->reduced};
        flat.strides = (int64_t[]){g->reduced, 1};
        tt_reduction_plan(&h, &flat, 2, g->read, g->acc_size, true);
        ok = tt_cuda_reduction(&h, reducer, acc, then, by, param, dtype, out, index);
    }
    if (plain) tt_free(plain);
    return ok;
}

bool tt_cuda_reduction(tt_reduction *g, int reducer, int acc, int then, double by, const tt_array *param, int dtype,
                       char *out, int64_t *index) {
    if (g->outer.n + g->rows > TT_CUDA_DIMS || g->run.n > TT_CUDA_DIMS)
        return reduce_copy(g, reducer, acc, then, by, param, dtype, out, index);
    prefer_fold(g);
    tt_reduce_args p = {.in = g->a->data,
                        .out = out,
                        .index = index,
                        .param = param ? param->data : NULL,
                        .kept = g->kept,
                        .reduced = g->reduced,
                        .blocks = g->blocks,
                        .count = 1,
                        .inner = g->inner,
                        .inner_step = g->inner_step,
                        .tiles = 1,
                        .by = by};
    set_dims(&p.outer, &g->outer, g->kept);
    set_dims(&p.run, &g->run, g->reduced);
    int64_t x, key = tt_key(TT_FAMILY_reduce, reducer, 0, g->a->dtype, g->read, acc, dtype, 0);
    int run_kind = g->run.n > 1 ? (p.run.narrow ? TT_RED_DIMS : TT_RED_FAR) : TT_RED_STEP;
    if (g->run.n == 0 || (g->run.n == 1 && g->run.step[0] == g->stored)) run_kind = TT_RED_FLAT;
    int own = g->rows ? split_rows(g, &p, &x) : split_fold(g, &p, &x);
    int variant = (g->rows ? TT_RED_OUTER : TT_RED_INNER) | run_kind << 2 | then << TT_RED_THEN;
    if (index) variant |= TT_RED_INDEXED;
    int columns = g->rows ? (own & 15) + (own >> 4) : 0;
    if (may_be_last(g, &p, columns) && !tt_cuda_counters(&p.counters)) return false;
    if (p.counters && g->rows) p.log_per = log_of(divided(p.count, TT_CUDA_THREADS >> columns));
    tt_array *parts = NULL, *part_index = NULL;
    bool ok = true;
    if (p.count > 1) {
        ok = (parts = tt_cuda_temporary(acc, p.kept * p.count)) &&
             (!index || (part_index = tt_cuda_temporary(TT_I64, p.kept * p.count)));
        if (ok) p.parts = parts->data;
        if (part_index) p.part_index = (int64_t *)part_index->data;
    }
    int form = variant | own << TT_RED_OWN | (p.counters ? TT_RED_LAST : 0);
    ok = ok && TT_LAUNCH(key | (int64_t)form << 36, x, 1, TT_CUDA_THREADS, 0, p) &&
         (!parts || p.counters || join_parts(key, variant, &p, parts, part_index));
    if (parts) tt_free(parts);
    if (part_index) tt_free(part_index);
    return ok;
}
