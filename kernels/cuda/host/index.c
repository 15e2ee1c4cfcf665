/* Reading and writing by index tensors on a device: what gather.c of the CPU plans, done by kernels.
 *
 * Offsets are not stored: each kernel computes them from the index tensors (positions.cuh), reporting what is out of
 * range (Note [Faults]). Reads, and writes that cannot meet, move elements of up to 16 bytes. Where several positions
 * may mean one element:
 *  - a write that replaces first lets each position claim its element, the last in the order of the index staying; then
 *    only those that stayed write.
 *  - an update sorts the positions by element, stably, and goes through those of each element in order (segments.cuh).
 * So results do not depend on the order in which threads run. */
#include "cuda/host/radix.h"
#include "backend/now.h"
#include <string.h>

enum { GET, PUT, CLAIM, PUT_LAST, KEYS };
#define WIDE 8
#define HASHED 16
#define WIDE_KEYS 32
#define SIMPLE 64
#define EACH 4
#define CARRIED 32 /* of segments */
#define MAX_BLOCKS_Y 1024

static int64_t gcd(int64_t a, int64_t b) {
    while (b) {
        int64_t rest = a % b;
        a = b;
        b = rest;
    }
    return a;
}

static int bits_of(int64_t x) { return x > 1 ? 64 - __builtin_clzll((uint64_t)(x - 1)) : 0; }

/* What all of the table's offsets are multiples of, and how many multiples there may be. */
typedef struct {
    int64_t grain, slots;
} span;

static void reach(span *s, int64_t *last, int64_t size, int64_t step) {
    if (size < 2 || step == 0) return;
    s->grain = gcd(step, s->grain);
    *last += (size - 1) * step;
}

/* Several index tensors as one walk over the index's shape, innermost first: dimensions that are one stretch for all of
 * them are merged. */
static bool set_walk(tt_positions *p, const tt_index_where *w, tt_array *const *in, int item) {
    for (int d = w->ndim - 1; d >= 0; d--) {
        int64_t size = w->shape[d], own = w->steps ? w->steps[d] * item : 0, step[TT_INDEX_TENSORS];
        if (size == 1) continue;
        int last = p->ndim - 1;
        bool merges = last >= 0 && own == p->table_step[last] * p->size[last];
        for (int k = 0; k < p->n; k++) {
            int at = d - (w->ndim - in[k]->ndim);
            step[k] = at < 0 || in[k]->shape[at] == 1 ? 0 : in[k]->strides[at] * tt_itemsizes[in[k]->dtype];
            merges = merges && step[k] == p->index_step[k][last] * p->size[last];
        }
        if (merges) {
            p->size[last] *= size;
            continue;
        }
        if (p->ndim == TT_CUDA_DIMS) return tt_cuda_too_deep("index");
        p->size[p->ndim] = size;
        p->table_step[p->ndim] = own;
        for (int k = 0; k < p->n; k++) p->index_step[k][p->ndim] = step[k];
        p->ndim++;
    }
    return true;
}

static bool set_tensor(tt_positions *p, span *s, int64_t *last, const tt_indexed *v, int k, int item, int *used) {
    const int64_t *shape = v->shape + v->dim[k], *strides = v->strides + v->dim[k];
    tt_index_tensor *t = &p->of[k];
    int64_t sizes[TT_MAX_NDIM], steps[TT_MAX_NDIM];
    int merged = 0;
    t->total = 1;
    t->dim = v->source[k];
    t->first = *used;
    for (int d = 0; d < v->span[k]; d++) {
        t->total *= shape[d];
        tt_merge_dim(&merged, sizes, steps, shape[d], strides[d] * item);
    }
    if (!t->total) {
        tt_fail(TT_INDEX_ERROR, "index is out of bounds for dimension %d with size 0", t->dim);
        return false;
    }
    if (!merged) sizes[0] = 1, steps[0] = 0, merged = 1;
    if (*used + merged > TT_CUDA_DIMS) return tt_cuda_too_deep("index");
    for (int d = merged - 1; d >= 0; d--, (*used)++) {
        p->part_size[*used] = sizes[d];
        p->part_step[*used] = steps[d];
        reach(s, last, sizes[d], steps[d]);
    }
    t->parts = merged;
    return true;
}

/* The positions' part of the arguments; *in are the index tensors on the device. */
static bool set_positions(tt_positions *p, span *s, const tt_index_where *w, tt_array *const *in, int64_t m, int item) {
    int used = 0;
    int64_t last = 0;
    *s = (span){.grain = 0};
    if (w->n > TT_INDEX_TENSORS) {
        tt_fail(TT_NOT_IMPLEMENTED, "index: more than %d index tensors on a CUDA device", TT_INDEX_TENSORS);
        return false;
    }
    p->fault = tt_cuda_fault();
    p->m = m;
    p->n = w->n;
    p->rule = w->rule + 1;
    p->own = w->steps != NULL;
    for (int k = 0; k < w->n; k++) {
        if (!set_tensor(p, s, &last, w->view, k, item, &used)) return false;
        p->of[k].data = in[k]->data;
        p->of[k].dtype = in[k]->dtype;
    }
    if (!set_walk(p, w, in, item)) return false;
    for (int d = 0; d < p->ndim; d++) reach(s, &last, p->size[d], p->table_step[d]);
    if (!s->grain) s->grain = item;
    s->slots = last / s->grain + 1;
    for (int d = 0; d < p->ndim; d++)
        if (p->size[d] < (int64_t)1 << 31) p->by[d] = tt_divider_of(p->size[d]);
    return true;
}

/* The logarithm of how many elements can move together: up to 16 bytes, where everything is a multiple of that.
 * `given`: the bytes of an element of the rows. */
static int growth(const tt_moves *j, const span *s, int item, int given) {
    int log = 0, largest = item > given ? item : given;
    if (!j->post || j->post_strides[j->post - 1] != item || !j->row_step) return 0;
    int64_t run = j->post_shape[j->post - 1], steps = (int64_t)(intptr_t)j->table | s->grain;
    for (int d = 0; d < j->pre; d++) steps |= j->pre_strides[d];
    for (int d = 0; d < j->post - 1; d++) steps |= j->post_strides[d];
    while (largest << (log + 1) <= 16 && !(run & ((2 << log) - 1)) && !(steps & ((item << (log + 1)) - 1)) &&
           !((intptr_t)j->rows & ((given << (log + 1)) - 1)))
        log++;
    return log;
}

/* `log`: of the elements that count as one. */
static void set_around(tt_around *a, const tt_moves *j, int log) {
    int dims = 0;
    a->npre = j->npre;
    a->npost = j->npost;
    a->pre = j->pre;
    a->post = j->post;
    for (int d = j->pre - 1; d >= 0; d--) {
        a->size[dims] = j->pre_shape[d];
        a->step[dims++] = j->pre_strides[d];
    }
    for (int d = j->post - 1; d >= 0; d--) {
        a->size[dims] = j->post_shape[d];
        a->step[dims++] = j->post_strides[d];
    }
    if (log) {
        a->size[j->pre] >>= log;
        a->step[j->pre] <<= log;
        a->npost >>= log;
    }
    for (int d = 0; d < dims; d++)
        if (a->size[d] < (int64_t)1 << 31) a->by[d] = tt_divider_of(a->size[d]);
    if (a->npost < (int64_t)1 << 31) a->by_npost = tt_divider_of(a->npost);
    if (j->m < (int64_t)1 << 31) a->by_m = tt_divider_of(j->m);
}

static bool launch(tt_index_args *p, int op, int variant, int64_t total) {
    bool simple = p->at.n == 1 && p->at.of[0].parts == 1;
    int64_t each = TT_CUDA_THREADS * (op == GET || op == KEYS ? EACH : 1);
    p->total = total;
    if (total >= (int64_t)1 << 31) variant |= WIDE;
    if (simple) variant |= SIMPLE;
    return TT_LAUNCH(tt_key(TT_FAMILY_index, op, variant, simple ? p->at.of[0].dtype : 0, 0, 0, 0, 0),
                     (total + each - 1) / each, 1, TT_CUDA_THREADS, 0, *p);
}

/* Claims by number where there are few elements for each position, by hashing otherwise. */
static bool claim(tt_index_args *p, const span *s, int64_t m, int *variant, tt_array **last, tt_array **keys) {
    int64_t slots = s->slots;
    if (m > INT32_MAX) {
        tt_fail(TT_RUNTIME_ERROR, "index_put_: at most 2^31 - 1 positions can be written on a CUDA device, got %lld",
                (long long)m);
        return false;
    }
    p->claims.grain = s->grain;
    if (slots > 4096 && slots > 8 * m) {
        for (slots = 64; slots < 2 * m;) slots *= 2;
        *variant |= HASHED;
        if (!(*keys = tt_full_now(TT_I64, 1, &slots, TT_KIND_INT, 0, -1))) return false;
        p->claims.keys = (uint64_t *)(*keys)->data;
        p->claims.mask = (uint64_t)slots - 1;
    }
    if (!(*last = tt_full_now(TT_I32, 1, &slots, TT_KIND_INT, 0, -1))) return false;
    p->claims.last = (int32_t *)(*last)->data;
    return launch(p, CLAIM, *variant & HASHED, m);
}

static bool put(tt_index_args *p, const tt_moves *j, const span *s, int log, int64_t total) {
    tt_array *last = NULL, *keys = NULL;
    int variant = log;
    bool together = j->m > 1 && j->row_step;
    bool done = (!together || claim(p, s, j->m, &variant, &last, &keys)) &&
                launch(p, together ? PUT_LAST : PUT, variant, total);
    if (last) tt_free(last);
    if (keys) tt_free(keys);
    return done;
}

static bool update(tt_index_args *p, tt_moves *j, const span *s, int dtype, int rows_dtype, int how) {
    tt_radix_sort sort = {.n = 0};
    int item = tt_itemsizes[dtype], bits = bits_of(s->slots), log = growth(j, s, item, tt_itemsizes[rows_dtype]);
    int variant = bits > 32 ? 16 : 0;
    bool done = tt_radix_sort_begin(&sort, j->m, bits > 32) && tt_radix_sort_room(&sort);
    p->claims.grain = s->grain;
    if (done) p->sort_keys = sort.keys->data;
    for (int d = 0; d < TT_CUDA_DIMS; d++) p->at.table_step[d] /= s->grain, p->at.part_step[d] /= s->grain;
    /* single numbers of four bytes are sorted themselves, in place of their places */
    bool carried = j->npre * j->npost == 1 && tt_itemsizes[rows_dtype] == 4 && j->row_step == 4;
    sort.carried = carried ? (const uint32_t *)j->rows : NULL;
    sort.leaves = carried && bits > 8 && bits <= 32;
    done = done && launch(p, KEYS, bits > 32 ? WIDE_KEYS : 0, j->m) && tt_radix_sort_keys(&sort, bits, 0);
    if (done) {
        tt_segment_args q = {.table = j->table,
                             .rows = carried ? sort.numbers->data : j->rows,
                             .m = j->m,
                             .row_step = j->row_step,
                             .grain = s->grain,
                             .keys = sort.keys->data,
                             .order = carried ? NULL : (uint32_t *)sort.numbers->data,
                             .left = sort.left,
                             .slots = s->slots};
        if (carried) variant |= CARRIED;
        set_around(&q.around, j, 0);
        int64_t across = j->npost >> log, work = j->npre * across, y;
        if (j->npre * j->npost >= (int64_t)1 << 31) variant |= WIDE;
        while (q.lanes_log < 6 && 2 << q.lanes_log <= across) q.lanes_log++;
        y = (work + (1 << q.lanes_log) - 1) >> q.lanes_log;
        int64_t threads = j->m << q.lanes_log;
        if (sort.leaves) variant |= TT_SEGMENTS_LEFT, threads = (j->m + TT_OWN - 1) / TT_OWN * 32;
        done = TT_LAUNCH(tt_key(TT_FAMILY_segments, how, log | variant, dtype, rows_dtype, 0, 0, 0),
                         (threads + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, y < MAX_BLOCKS_Y ? y : MAX_BLOCKS_Y,
                         TT_CUDA_THREADS, 0, q);
    }
    tt_radix_sort_end(&sort);
    return done;
}

/* The index tensors on tt_device: those of the CPU are copied. False: an error, and none in `on`. */
static bool bring(int n, tt_array *const *indices, tt_array **on) {
    for (int k = 0; k < n; k++) {
        on[k] = indices[k]->storage->device ? tt_alias(indices[k])
                                            : tt_empty(indices[k]->dtype, indices[k]->ndim, indices[k]->shape);
        bool good = on[k] && (indices[k]->storage->device || tt_copy_now(on[k], indices[k]) == 0);
        if (good) continue;
        for (int i = 0; i <= k; i++)
            if (on[i]) tt_free(on[i]);
        return false;
    }
    return true;
}

bool tt_cuda_move_indexed(tt_moves *j, const tt_index_where *w, int dtype, int rows_dtype, int how) {
    tt_array *on[TT_MAX_NDIM];
    tt_index_args p = {.table = j->table, .rows = j->rows};
    span s;
    int item = tt_itemsizes[dtype];
    int64_t numel = j->npre * j->m * j->npost;
    if (!numel) return true;
    if (j->pre + j->post > TT_CUDA_DIMS) return tt_cuda_too_deep("index");
    if (!bring(w->n, w->indices, on)) return false;
    bool done = set_positions(&p.at, &s, w, on, j->m, item);
    if (done && how != TT_MOVE_GET && how != TT_MOVE_PUT) done = update(&p, j, &s, dtype, rows_dtype, how);
    else if (done) {
        int grown = growth(j, &s, item, item), log = bits_of(item) + grown;
        p.row_step = j->row_step << grown;
        set_around(&p.around, j, grown);
        done = how == TT_MOVE_GET ? launch(&p, GET, log, numel >> grown) : put(&p, j, &s, log, numel >> grown);
    }
    for (int k = 0; k < w->n; k++) tt_free(on[k]);
    return done;
}
