/* Elementwise operators and copies on a device: the kernel's variant, its grid and its arguments.
 *
 * Where all operands lie one after the other (or are one element for all), each thread takes a few elements by accesses
 * of up to 16 bytes. Any other layout is walked, its dimensions sorted and merged as on the CPU, with 32-bit arithmetic
 * where that suffices: by such accesses where within the innermost dimension all operands lie so, element by element
 * elsewhere. */
#include "backend/iterator.h"
#include "backend/now.h"
#include "backend/operators.h"
#include "cuda/host/cuda.h"
#include <string.h>

/* The variant: bits 0-2 the logarithm of a thread's elements at a time, 3 strided, 4 of 64-bit indices, from 5 on two
 * bits for each input: how it is given, 11 integers are divided by elements that only the kernel sees, 12 a thread
 * takes two vectors, from 13 on two bits: log of how many it takes in their stead, as they had to be shorter. */
enum { MANY, ONE, VALUE };
#define STRIDED 8
#define WIDE 16
#define DIVIDES 2048
#define TWICE 4096
#define SHORTER 13

/* A thread that computes for long gains by what two vectors share, if they leave it enough registers. With the
 * functions of the special units one vector was the faster. */
#define HEAVY 32
int tt_cuda_approximate;
int tt_cuda_vectors(int weight, int operands, int largest) {
    return operands <= 2 && weight * (16 / largest) >= HEAVY && !tt_cuda_approximate ? 2 : 1;
}

/* The variant's bits of how inputs are given. */
static int all_given(const tt_iter *it, const int *given) {
    int variant = 0;
    for (int k = 1; k < it->nops; k++) variant |= given[k - 1] << (3 + 2 * k);
    return variant;
}

static bool launch_flat(int64_t key, int variant, int weight, const tt_iter *it, const tt_value *value,
                        const int *given) {
    tt_flat_args p = {.numel = it->numel, .out = it->data[0], .fault = tt_cuda_fault()};
    int log = 4, largest = 1;
    for (int k = 0; k < it->nops; k++) {
        if (k && given[k - 1] == VALUE) continue;
        int size = tt_itemsizes[it->dtype[k]];
        largest = size > largest ? size : largest;
    }
    while (log > 0 && (1 << log) * largest > 16) log--;
    int most = log;
    for (int k = 0; k < it->nops; k++) { /* whole accesses must be aligned */
        if (k) {
            p.in[k - 1] = it->data[k];
            p.value[k - 1] = value[k - 1];
            if (given[k - 1] != MANY) continue;
        }
        while (log > 0 && ((intptr_t)it->data[k] & ((tt_itemsizes[it->dtype[k]] << log) - 1))) log--;
    }
    bool twice = tt_cuda_vectors(weight, it->nops, largest) == 2;
    int shorter = it->numel < (int64_t)TT_CUDA_ENOUGH * TT_FLAT_THREADS << most ? 0 : most - log < 3 ? most - log : 3;
    int64_t tile = (int64_t)TT_FLAT_THREADS << (log + shorter + twice);
    variant |= log | (twice ? TWICE : 0) | shorter << SHORTER | all_given(it, given);
    return TT_LAUNCH(key | (int64_t)variant << 36, (it->numel + tile - 1) / tile, 1, TT_FLAT_THREADS, 0, p);
}

/* Log of the elements in the innermost dimension that a thread takes at once. Of several, inputs with one for them all
 * are then given so. */
static int log_within(const tt_iter *it, int *given) {
    int inner = it->ndim - 1, log = 4;
    bool one[3] = {false, false, false};
    for (int k = 0; k < it->nops; k++) {
        if (k && given[k - 1] == VALUE) continue;
        int64_t size = tt_itemsizes[it->dtype[k]], step = it->strides[k][inner], all = (intptr_t)it->data[k];
        while (log > 0 && (size << log > 16 || it->shape[inner] & ((1 << log) - 1))) log--;
        if (k && step == 0) one[k - 1] = true;
        else if (step != size) return 0;
        else {
            for (int d = 0; d < inner; d++) all |= it->strides[k][d];
            while (log > 0 && all & ((size << log) - 1)) log--;
        }
    }
    for (int k = 1; log > 0 && k < it->nops; k++)
        if (one[k - 1]) given[k - 1] = ONE;
    return log;
}

static bool launch_strided(int64_t key, int variant, const tt_iter *it, const tt_value *value, int *given) {
    tt_strided_args p = {.numel = it->numel, .out = it->data[0], .ndim = it->ndim, .fault = tt_cuda_fault()};
    int64_t reach = it->numel;
    for (int d = 0; d < it->ndim; d++) {
        int from = it->ndim - 1 - d;
        p.size[d] = it->shape[from];
        for (int k = 0; k < it->nops; k++) p.step[k][d] = k && given[k - 1] == VALUE ? 0 : it->strides[k][from];
    }
    for (int k = 0; k < it->nops; k++) {
        int64_t last = 0;
        for (int d = 0; d < it->ndim; d++) last += (p.size[d] - 1) * p.step[k][d];
        reach = last > reach ? last : reach;
        if (k) {
            p.in[k - 1] = it->data[k];
            p.value[k - 1] = value[k - 1];
        }
    }
    if (reach >= (int64_t)1 << 31) variant |= WIDE;
    else
        for (int d = 0; d < p.ndim; d++) p.by[d] = tt_divider_of(p.size[d]);
    int log = log_within(it, given);
    int64_t tile = (int64_t)TT_CUDA_THREADS << log;
    variant |= STRIDED | log | all_given(it, given);
    return TT_LAUNCH(key | (int64_t)variant << 36, (it->numel + tile - 1) / tile, 1, TT_CUDA_THREADS, 0, p);
}

/* One launch for each entry of the outer dimensions that a kernel has no room for. */
static bool launch_deep(int64_t key, int variant, const tt_iter *it, const tt_value *value, const int *given) {
    int outer = it->ndim - TT_CUDA_DIMS;
    tt_iter inner;
    int64_t times = 1;
    inner.nops = it->nops;
    inner.ndim = it->ndim - outer;
    for (int d = 0; d < outer; d++) times *= it->shape[d];
    inner.numel = it->numel / times;
    for (int d = 0; d < inner.ndim; d++) inner.shape[d] = it->shape[outer + d];
    for (int k = 0; k < it->nops; k++) {
        inner.dtype[k] = it->dtype[k];
        inner.compute[k] = it->compute[k];
        for (int d = 0; d < inner.ndim; d++) inner.strides[k][d] = it->strides[k][outer + d];
    }
    for (int64_t i = 0; i < times; i++) {
        int64_t rest = i;
        int given_now[3] = {given[0], given[1], given[2]};
        for (int k = 0; k < it->nops; k++) inner.data[k] = it->data[k];
        for (int d = outer - 1; d >= 0; rest /= it->shape[d--])
            for (int k = 0; k < it->nops; k++)
                if (!k || given[k - 1] != VALUE) inner.data[k] += rest % it->shape[d] * it->strides[k][d];
        if (!launch_strided(key, variant, &inner, value, given_now)) return false;
    }
    return true;
}

/* `it` as on the CPU, coalesced; inputs of the CPU's, one element each, go as values. */
static bool launch(int64_t key, int variant, int weight, tt_iter *it, tt_array *const *in) {
    tt_value value[3] = {{{0}}};
    int given[3] = {MANY, MANY, MANY};
    if (!it->numel) return true;
    for (int k = 1; k < it->nops; k++) {
        if (in[k - 1]->storage->device) continue;
        tt_convert(&value[k - 1], it->compute[k], it->data[k], it->dtype[k]);
        it->dtype[k] = it->compute[k];
        given[k - 1] = VALUE;
    }
    bool flat = it->ndim == 1;
    for (int k = 0; flat && k < it->nops; k++) {
        int size = tt_itemsizes[it->dtype[k]];
        if (k && given[k - 1] == MANY && it->strides[k][0] == 0 && it->numel > 1) given[k - 1] = ONE;
        flat = (k && given[k - 1] != MANY) || it->strides[k][0] == size || it->numel == 1;
    }
    for (int k = 1; !flat && k < it->nops; k++)
        if (given[k - 1] == ONE) given[k - 1] = MANY;
    if (flat) return launch_flat(key, variant, weight, it, value, given);
    return it->ndim <= TT_CUDA_DIMS ? launch_strided(key, variant, it, value, given)
                                    : launch_deep(key, variant, it, value, given);
}

bool tt_cuda_elementwise(int op, int dtype, tt_array *out, int n, tt_array *const *in) {
    tt_iter it;
    tt_iter_elementwise(&it, op, dtype, out, n, in);
    int d[3] = {0};
    for (int k = 0; k < n; k++) d[k] = in[k]->storage->device ? in[k]->dtype : it.compute[k + 1];
    tt_iter_coalesce(&it);
    bool divides = tt_divides_integers(op, dtype) && in[1]->storage->device;
    return launch(tt_key(TT_FAMILY_elementwise, op, 0, tt_compute_dtype(dtype), out->dtype, d[0], d[1], d[2]),
                  divides ? DIVIDES : 0, tt_op_weight(op), &it, in);
}

bool tt_cuda_mul_backward(const tt_array *g, const tt_array *a, const tt_array *b, tt_array *of_a, tt_array *of_b) {
    tt_mul_backward_args p = {
        .numel = g->numel, .g = g->data, .a = a->data, .b = b->data, .of_a = of_a->data, .of_b = of_b->data};
    bool vectors = (((intptr_t)p.g | (intptr_t)p.a | (intptr_t)p.b | (intptr_t)p.of_a | (intptr_t)p.of_b) & 15) == 0;
    int64_t tile = (int64_t)TT_CUDA_THREADS * (vectors ? 16 / tt_itemsizes[g->dtype] : 1);
    return TT_LAUNCH(tt_key(TT_FAMILY_mul_backward, 0, vectors ? TT_MUL_BACKWARD_VECTORS : 0, g->dtype,
                            tt_compute_dtype(g->dtype), 0, 0, 0),
                     (g->numel + tile - 1) / tile, 1, TT_CUDA_THREADS, 0, p);
}

#define LEAST_SIDE 16 /* of a plane that is worth tiles */
#define TILE_SIDE 32 /* and one of its sides must fill a tile */

/* A copy by tiles: not, if its elements lie alike in both, or are few. */
static bool is_transposing(const tt_iter *it, int *along) {
    int inner = it->ndim - 1, to = tt_itemsizes[it->dtype[0]], from = tt_itemsizes[it->dtype[1]];
    if (it->strides[0][inner] != to || it->strides[1][inner] == from || it->shape[inner] < LEAST_SIDE) return false;
    if (it->ndim > TT_CUDA_DIMS) return false;
    for (*along = 0; *along < inner; ++*along)
        if (it->strides[1][*along] == from && it->shape[*along] >= LEAST_SIDE &&
            (it->shape[*along] >= TILE_SIDE || it->shape[inner] >= TILE_SIDE))
            return it->numel < (int64_t)1 << 38; /* a grid has fewer than 2^31 thread blocks */
    return false;
}

static bool transpose(const tt_iter *it, int along) {
    int inner = it->ndim - 1, to = it->dtype[0], from = it->dtype[1], log = 5;
    tt_transpose_args p = {.out = it->data[0],
                           .in = it->data[1],
                           .across = it->shape[inner],
                           .along = it->shape[along],
                           .in_step = it->strides[1][inner],
                           .out_step = it->strides[0][along]};
    if (tt_itemsizes[to] + tt_itemsizes[from] <= 4 && p.across >= 64 && p.along >= 64) log = 6;
    int64_t side = (int64_t)1 << log, blocks;
    p.tiles_across = (uint32_t)((p.across + side - 1) >> log);
    p.tiles_along = (uint32_t)((p.along + side - 1) >> log);
    blocks = (int64_t)p.tiles_across * p.tiles_along;
    for (int d = inner - 1; d >= 0; d--) {
        if (d == along) continue;
        p.size[p.ndim] = (uint32_t)it->shape[d];
        p.in_steps[p.ndim] = it->strides[1][d];
        p.out_steps[p.ndim++] = it->strides[0][d];
        blocks *= it->shape[d];
    }
    return TT_LAUNCH(tt_key(TT_FAMILY_transpose, 0, log, to, from, 0, 0, 0), blocks, 1, TT_CUDA_THREADS, 0, p);
}

/* On one device, or from one element on the CPU. */
static bool move(tt_array *out, tt_array *a) {
    tt_iter it;
    tt_iter_copy(&it, out, a);
    int from = a->storage->device ? a->dtype : out->dtype, along;
    tt_iter_coalesce(&it);
    if (a->storage->device && it.numel && is_transposing(&it, &along)) return transpose(&it, along);
    return launch(tt_key(TT_FAMILY_copy, 0, 0, out->dtype, out->dtype, from, 0, 0), 0, 0, &it, &a);
}

/* Between the CPU and a device contiguous bytes are moved; the rest is done by whoever has the elements. */
static bool upload(tt_array *out, const tt_array *a) {
    if (a->numel == 1) return move(out, (tt_array *)a);
    tt_device = 0;
    tt_array *whole = a->flags & TT_FLAG_CONTIGUOUS ? tt_alias((tt_array *)a) : tt_contiguous_now((tt_array *)a);
    tt_device = out->storage->device;
    if (!whole) return false;
    bool direct = out->flags & TT_FLAG_CONTIGUOUS && out->dtype == a->dtype && out->numel == a->numel;
    tt_array *there = direct ? tt_alias(out) : tt_empty(a->dtype, whole->ndim, whole->shape);
    bool done = there && tt_upload(there->data, whole) && (direct || move(out, there));
    if (there) tt_free(there);
    tt_free(whole);
    return done;
}

static bool download(tt_array *out, const tt_array *a) {
    tt_device = a->storage->device;
    tt_array *whole =
        a->flags & TT_FLAG_CONTIGUOUS ? tt_alias((tt_array *)a) : tt_empty(a->dtype, a->ndim, (int64_t *)a->shape);
    if (!whole) return false;
    bool done = a->flags & TT_FLAG_CONTIGUOUS || move(whole, (tt_array *)a);
    bool direct = out->flags & TT_FLAG_CONTIGUOUS && out->dtype == a->dtype && out->numel == a->numel;
    tt_device = 0;
    tt_array *here = direct ? tt_alias(out) : tt_empty(a->dtype, whole->ndim, whole->shape);
    tt_device = a->storage->device;
    done = done && here && tt_download(here, whole->data);
    tt_device = 0;
    done = done && (direct || tt_copy_now(out, here) == 0);
    if (here) tt_free(here);
    tt_free(whole);
    return done;
}

bool tt_cuda_copy_array(tt_array *out, const tt_array *a) {
    __attribute__((cleanup(tt_leave_device), unused)) int before = tt_device;
    int to = out->storage->device, from = a->storage->device;
    if (!out->numel) return true;
    if (to && from == to) {
        tt_device = to;
        return move(out, (tt_array *)a);
    }
    if (!from) {
        tt_device = to;
        return upload(out, a);
    }
    if (!to) return download(out, a);
    tt_device = 0; /* between two devices, by way of the CPU */
    tt_array *here = tt_empty(a->dtype, a->ndim, (int64_t *)a->shape);
    if (!here) return false;
    bool done = download(here, a);
    tt_device = to;
    done = done && upload(out, here);
    tt_free(here);
    return done;
}

tt_array *tt_to_device(tt_array *a, int device) {
    __attribute__((cleanup(tt_leave_device), unused)) int before = tt_device;
    if (a->storage->lazy && !tt_flush(a, false)) return tt_decline();
    if (a->flags & TT_FLAG_VIEW && a->seen_version != tt_version(a)) return tt_decline();
    tt_device = device;
    tt_pinning = !device && tt_is_non_blocking(); /* a copy that nobody waits for needs page-locked memory */
    tt_array *out = tt_like(a, a->dtype);
    tt_pinning = false;
    if (out && !tt_cuda_copy_array(out, a)) {
        tt_free(out);
        return NULL;
    }
    return out;
}
