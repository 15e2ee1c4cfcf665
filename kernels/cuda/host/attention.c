/* Attention on a device: of half types by cuDNN (tinytorch/backends/cuda/attention.py), where it has a kernel for it,
 * else in tiles of ours: Note [Attention's tiles] in cuda/device/attention_tile.cuh, and
 * cuda/device/attention_wgmma.cuh. */
#include "backend/plain.h"
#include "cuda/device/attention_args.h"
#include "cuda/host/cuda.h"
#include <limits.h>

extern int tt_cuda_attend(int, int, tt_attend *, void **);

#define WARPS 2 /* log, of most thread blocks */

typedef struct {
    tt_attention_args p;
    int dtype, compute, width, out_width; /* widths: what rows in shared memory have room for */
    int variant;
    int64_t heads, of_keys; /* of all of the batch */
} job;

enum { FORWARD, QUERY, KEY }; /* kernels */

/* A kernel's tile: rows and columns of one thread. */
typedef struct {
    int r, c;
    bool tensor; /* do tensor cores multiply? */
} tile;

static int padded(int64_t width) { return width ? (int)(width + 31) / 32 * 32 : 32; }

/* Columns have to be neighbours. */
static bool take(tt_heads *h, tt_plain *plain, tt_array *a) {
    *plain = (tt_plain){a, NULL};
    if (a->shape[3] > 1 && a->strides[3] != 1 && !tt_plain_copy(plain, a, a->dtype)) return false;
    a = plain->array;
    *h = (tt_heads){a->data, a->strides[0], a->strides[1], a->strides[2]};
    return true;
}

static bool in_packs(const tt_heads *h, int size) {
    int pack = TT_ATTENTION_PACK(size);
    return !h->data || ((h->batch | h->head | h->row) % pack == 0 && (intptr_t)h->data % (pack * size) == 0);
}

static tile tile_of(const job *j, int kernel, bool tensor) {
    int e = j->width, v = j->out_width, size = tt_itemsizes[j->compute];
    bool split = j->dtype == TT_F32;
#define OF(KERNEL)                                                                                                     \
    { TT_ATTENTION_R_##KERNEL(tensor, split, e, v, size), TT_ATTENTION_C_##KERNEL(tensor, split, e, v, size), tensor }
    const tile tiles[] = {OF(FORWARD), OF(QUERY), OF(KEY)};
#undef OF
    return tiles[kernel];
}

/* Rows of a warp. */
static int rows_of(const tile *t) { return 32 / TT_ATTENTION_GROUP(t->tensor) * t->r; }

static int64_t shared_of(const job *j, int kernel, const tile *t, int warps) {
    int64_t cols = TT_ATTENTION_GROUP(t->tensor) * t->c, rows = rows_of(t) * warps;
    int pad = t->tensor ? TT_ATTENTION_PACK(tt_itemsizes[j->dtype]) : TT_ATTENTION_PAD;
    int64_t width = j->width + pad, out_width = j->out_width + pad;
    int64_t numbers = rows * (width + (kernel == FORWARD ? 0 : out_width)) +
                      TT_ATTENTION_STAGES(t->tensor) * cols * (width + out_width) +
                      (t->tensor ? 0 : rows * (cols + TT_ATTENTION_PAD_WEIGHTS));
    return numbers * tt_itemsizes[t->tensor ? j->dtype : j->compute];
}

/* Over so many rows of each of `heads`: with smaller blocks where larger ones have no room, or would leave processors
 * without one. */
static bool run(job *j, int kernel, int64_t rows, int64_t heads) {
    static const int families[] = {TT_FAMILY_attention, TT_FAMILY_attention_query, TT_FAMILY_attention_key};
    int64_t room = tt_cuda_shared_room();
    bool wide = TT_ATTENTION_WIDER(j->width, j->out_width) > TT_ATTENTION_TENSOR_KEYS;
    tile t = tile_of(j, kernel, j->compute == TT_F32 && !(kernel == KEY && wide));
    if (shared_of(j, kernel, &t, 1) > room) t = tile_of(j, kernel, false);
    /* a processor is to have eight warps, in two blocks unless these have no room */
    int log = t.tensor && 2 * shared_of(j, kernel, &t, 1 << WARPS) > room ? WARPS + 1 : WARPS;
    int64_t per = rows_of(&t);
    while (log > 0 && (shared_of(j, kernel, &t, 1 << log) > room ||
                       (rows + (per << log) - 1) / (per << log) * heads < TT_CUDA_ENOUGH))
        log--;
    int64_t blocks = (rows + (per << log) - 1) / (per << log), shared = shared_of(j, kernel, &t, 1 << log);
    if (!blocks || !heads) return true;
    if (blocks * heads > INT_MAX || shared > room) {
        tt_fail(TT_NOT_IMPLEMENTED, "scaled_dot_product_attention: heads are too many or too wide for this device");
        return false;
    }
    j->p.blocks = (int32_t)blocks;
    int variant = j->variant | log << TT_ATTENTION_WARPS | (t.tensor ? TT_ATTENTION_TENSOR : 0);
    int64_t key = tt_key(families[kernel], 0, variant, j->dtype, j->compute, 0, 0, 0);
    return TT_LAUNCH(key, blocks * heads, 1, 32 << log, shared, j->p);
}

static bool start(job *j, const tt_attention_work *w, tt_plain *plain) {
    *j = (job){.dtype = w->query->dtype,
               .compute = tt_compute_dtype(w->query->dtype),
               .width = padded(w->width),
               .out_width = padded(w->out_width),
               .heads = w->batch * w->heads,
               .of_keys = w->batch * w->of_keys};
    if (w->rows > INT_MAX / 2 || w->keys > INT_MAX / 2 || w->width > TT_ATTENTION_MOST ||
        w->out_width > TT_ATTENTION_MOST) {
        tt_fail(TT_NOT_IMPLEMENTED, "scaled_dot_product_attention: heads wider than %d on a CUDA device",
                TT_ATTENTION_MOST);
        return false;
    }
    j->p = (tt_attention_args){.heads = (int32_t)w->heads,
                               .group = w->of_keys ? (int32_t)(w->heads / w->of_keys) : 1,
                               .rows = (int32_t)w->rows,
                               .keys = (int32_t)w->keys,
                               .width = (int32_t)w->width,
                               .out_width = (int32_t)w->out_width,
                               .causal = w->causal,
                               .scale = w->scale,
                               .lse = w->lse->data,
                               .from = {w->draw.seed, w->draw.draw, w->draw.place},
                               .kept = w->draw.b,
                               .threshold = tt_draw_threshold(&w->draw)};
    j->variant = (j->width / 32 - 1) << TT_ATTENTION_WIDTH | (j->out_width / 32 - 1) << TT_ATTENTION_OUT_WIDTH |
                 (w->drops ? TT_ATTENTION_DROPS : 0);
    if (w->mask) {
        j->p.mask = w->mask->data;
        for (int d = 0; d < 4; d++) j->p.mask_step[d] = w->mask->shape[d] == 1 ? 0 : w->mask->strides[d];
        j->variant |= (w->mask->dtype == TT_BOOL ? TT_ATTENTION_BOOL : TT_ATTENTION_ADDED) << TT_ATTENTION_MASK;
    }
    return take(&j->p.query, &plain[0], w->query) && take(&j->p.key, &plain[1], w->key) &&
           take(&j->p.value, &plain[2], w->value) && take(&j->p.out, &plain[3], w->out);
}

static void see_packs(job *j) {
    const tt_attention_args *p = &j->p;
    const tt_heads *all[] = {&p->query, &p->key, &p->value, &p->out, &p->g, &p->of_query, &p->of_key, &p->of_value};
    int pack = TT_ATTENTION_PACK(tt_itemsizes[j->dtype]);
    bool packs = p->width % pack == 0 && p->out_width % pack == 0;
    for (int k = 0; k < 8; k++) packs = packs && in_packs(all[k], tt_itemsizes[j->dtype]);
    if (packs) j->variant |= TT_ATTENTION_PACKS;
}

/* 1: the library does not do it, -1: an error. */
static int by_library(const job *j, const tt_attention_work *w) {
    const tt_attention_args *p = &j->p;
    const tt_heads *of[] = {&p->query, &p->key, &p->value, &p->out, &p->g, &p->of_query, &p->of_key, &p->of_value};
    bool may = w->kernel != TT_ATTENTION_OWN && tt_itemsizes[j->dtype] == 2 && !w->mask && !w->drops && j->heads &&
               w->rows && w->keys && w->width && w->out_width;
    int status = 1;
    if (may) {
        tt_attend a = {.batch = w->batch,
                       .heads = w->heads,
                       .of_keys = w->of_keys,
                       .rows = w->rows,
                       .keys = w->keys,
                       .width = w->width,
                       .out_width = w->out_width,
                       .scale = w->scale,
                       .dtype = j->dtype,
                       .causal = w->causal,
                       .backward = w->g != NULL,
                       .align = 4};
        void *tensors[9] = {p->query.data,    p->key.data,    p->value.data,    p->out.data, p->g.data,
                            p->of_query.data, p->of_key.data, p->of_value.data, p->lse};
        for (int k = 0; k < 8; k++) {
            a.steps[k][0] = of[k]->batch, a.steps[k][1] = of[k]->head, a.steps[k][2] = of[k]->row;
            while (tensors[k] && a.align && (intptr_t)tensors[k] % (1 << a.align)) a.align--;
        }
        int device = tt_device - 1;
        TT_LEAVE_TO_PYTHON;
        status = tt_cuda_attend(device, tt_cuda_stream(device), &a, tensors);
        if (status < 0) tt_fail(TT_PYTHON_ERROR, "attention could not be computed");
    }
    if (status == 1 && w->kernel == TT_ATTENTION_LIBRARY && !w->g) {
        tt_fail(TT_RUNTIME_ERROR, "scaled_dot_product_attention: No available kernel: cuDNN has none for this call");
        return -1;
    }
    return status;
}

/* The matrix unit that only Hopper has takes half types. */
#define HOPPER 90
#define WGMMA_MOST TT_ATTENTION_WGMMA_WIDTH(TT_ATTENTION_WGMMA_WIDE)
static bool is_for_wgmma(const job *j, const tt_attention_work *w) {
    return tt_cuda_capability() == HOPPER && tt_itemsizes[j->dtype] == 2 && j->variant & TT_ATTENTION_PACKS &&
           !w->mask && !w->drops && w->width <= WGMMA_MOST && w->out_width <= WGMMA_MOST && j->heads && w->rows &&
           w->keys;
}

static bool derive_part_by_wgmma(job *j, int variant, int64_t rows, int64_t heads) {
    int64_t blocks = (rows + TT_ATTENTION_WGMMA_ROWS - 1) / TT_ATTENTION_WGMMA_ROWS;
    if (blocks * heads > INT_MAX) {
        tt_fail(TT_NOT_IMPLEMENTED, "scaled_dot_product_attention: heads are too many for this device");
        return false;
    }
    j->p.blocks = (int32_t)blocks;
    int64_t key = tt_key(TT_FAMILY_attention_wgmma, 0, variant, j->dtype, j->compute, 0, 0, 0);
    return TT_LAUNCH(key, blocks * heads, 1, 256, TT_ATTENTION_WGMMA_SHARED(variant), j->p);
}

/* Registers have room for the sums of both keys and values where heads are narrow. */
static bool derive_by_wgmma(job *j, const tt_attention_work *w) {
    enum { KEYS = TT_ATTENTION_OF_KEYS, VALUES = TT_ATTENTION_OF_VALUES, WIDE = TT_ATTENTION_WGMMA_WIDE };
    if (TT_ATTENTION_WIDER(w->width, w->out_width) <= TT_ATTENTION_WGMMA_WIDTH(0))
        return derive_part_by_wgmma(j, 0, w->rows, j->heads) &&
               derive_part_by_wgmma(j, KEYS | VALUES, w->keys, j->of_keys);
    return derive_part_by_wgmma(j, WIDE, w->rows, j->heads) &&
           derive_part_by_wgmma(j, WIDE | KEYS, w->keys, j->of_keys) &&
           derive_part_by_wgmma(j, WIDE | VALUES, w->keys, j->of_keys);
}

bool tt_cuda_attention(const tt_attention_work *w) {
    job j;
    tt_plain plain[4] = {{0}};
    bool ok = start(&j, w, plain);
    if (ok) {
        see_packs(&j);
        int status = by_library(&j, w);
        ok = status == 0 || (status == 1 && run(&j, FORWARD, w->rows, j.heads));
    }
    tt_plain_done(plain, 4);
    return ok;
}

bool tt_cuda_attention_backward(const tt_attention_work *w) {
    job j;
    tt_plain plain[5] = {{0}};
    tt_array *delta = NULL;
    bool ok = start(&j, w, plain) && take(&j.p.g, &plain[4], w->g);
    if (ok) {
        tt_heads *of[3] = {&j.p.of_query, &j.p.of_key, &j.p.of_value};
        for (int k = 0; k < 3; k++)
            *of[k] = (tt_heads){w->grads[k]->data, w->grads[k]->strides[0], w->grads[k]->strides[1],
                                w->grads[k]->strides[2]};
        see_packs(&j);
        int status = by_library(&j, w);
        ok = status >= 0;
        if (status == 1) {
            bool wgmma = is_for_wgmma(&j, w);
            ok = (delta = tt_cuda_temporary(j.compute, j.heads * w->rows * (wgmma ? 2 : 1)));
            if (ok) j.p.delta = delta->data;
            ok = ok && (wgmma ? derive_by_wgmma(&j, w)
                              : run(&j, QUERY, w->rows, j.heads) && run(&j, KEY, w->keys, j.of_keys));
        }
    }
    if (delta) tt_free(delta);
    tt_plain_done(plain, 5);
    return ok;
}
