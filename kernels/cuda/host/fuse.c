/* Fused mode's kernels on a device: launched where Python has compiled them, bridged until then. One of a single
 * operator is that operator's eager kernel from the start.
 *
 * Bridging runs a kernel's instructions one by one, each as the eager kernel of its operator over the whole space, so
 * the first runs of a program wait for no compiler. Values that the interpreter would keep in a block are temporaries
 * here, each freed after its last use (the stream's order makes that safe). */
#include "backend/now.h"
#include "backend/operators.h"
#include "cuda/device/reduce_args.h"
#include "cuda/host/cuda.h"
#include <stdlib.h>
#include <string.h>

/* A descriptor and its dimensions. */
typedef struct {
    tt_array a;
    int64_t shape[TT_FUSE_DIMS], strides[TT_FUSE_DIMS];
} placed;

typedef struct {
    const tt_kernel *k;
    char *const *base;
    const tt_number *numbers;
    tt_storage here, host; /* what descriptors point to: only the device matters */
    placed *value; /* of each slot: its descriptor; ndim < 0: not there yet */
    tt_array **made; /* of each slot: the temporary that holds it, or NULL */
    int *uses; /* of each slot: how many are still to come */
    int64_t *bits; /* of each slot: a number's */
} bridge;

/* How many of the space's first dimensions a value of level 0 has. */
static int rows_of(const tt_kernel *k) { return k->pattern == TT_PATTERN_ROW_REDUCTION ? k->kept : k->ndim; }

static tt_array *set_shape(bridge *b, placed *p, int dtype, int level, char *data) {
    const tt_kernel *k = b->k;
    tt_array *a = &p->a;
    *a = (tt_array){.storage = &b->here,
                    .data = data,
                    .dtype = (int16_t)dtype,
                    .ndim = k->ndim,
                    .numel = 1,
                    .flags = TT_FLAG_DEVICE,
                    .shape = p->shape,
                    .strides = p->strides};
    for (int d = 0; d < k->ndim; d++) {
        a->shape[d] = level == 1 || d < rows_of(k) ? k->shape[d] : 1;
        a->numel *= a->shape[d];
    }
    return a;
}

static tt_array *lay_out(bridge *b, placed *p, int dtype, int level, char *data) {
    tt_array *a = set_shape(b, p, dtype, level, data);
    tt_set_contiguous(a);
    return a;
}

static tt_array *describe_access(bridge *b, placed *p, const tt_access *x) {
    tt_array *a = set_shape(b, p, x->dtype, x->level, b->base[x->storage] + x->offset);
    int log = __builtin_ctz((unsigned)tt_itemsizes[x->dtype]);
    for (int d = 0; d < a->ndim; d++) a->strides[d] = a->shape[d] == 1 ? 0 : x->strides[d] >> log;
    tt_update_flags(a);
    return a;
}

/* What the slot of an operand or of a number reads. */
static tt_array *describe_slot(bridge *b, placed *p, int64_t *bits, int s) {
    const tt_slot *x = &b->k->slots[s];
    if (x->kind != TT_SLOT_CONST) return describe_access(b, p, &b->k->accesses[x->index]);
    const tt_number *c = &b->numbers[x->index];
    tt_convert(bits, x->dtype, &c->bits, c->dtype);
    p->a = (tt_array){.storage = &b->host,
                      .data = (char *)bits,
                      .dtype = x->dtype,
                      .numel = 1,
                      .flags = TT_FLAG_CONTIGUOUS,
                      .shape = tt_no_dims,
                      .strides = tt_no_dims};
    return &p->a;
}

/* Room for a slot's value. */
static bool make(bridge *b, int s) {
    const tt_slot *x = &b->k->slots[s];
    if (b->made[s]) return true;
    tt_array *a = lay_out(b, &b->value[s], x->dtype, x->level, NULL);
    if (!(b->made[s] = tt_cuda_temporary(x->dtype, a->numel))) return false;
    a->data = b->made[s]->data;
    return true;
}

/* The value of a slot to be read. */
static tt_array *find(bridge *b, int s) {
    const tt_slot *x = &b->k->slots[s];
    tt_array *a = &b->value[s].a;
    if (a->ndim >= 0) return a;
    if (x->kind == TT_SLOT_LOAD || x->kind == TT_SLOT_ONE || x->kind == TT_SLOT_CONST) {
        describe_slot(b, &b->value[s], &b->bits[s], s);
    } else if (x->kind == TT_SLOT_ROW) {
        *a = *find(b, x->from); /* of size 1 along its row: it broadcasts */
    }
    return a;
}

static void done_with(bridge *b, int s) {
    if (s < 0 || --b->uses[s] > 0) return;
    const tt_slot *x = &b->k->slots[s];
    if (b->made[s]) tt_free(b->made[s]);
    b->made[s] = NULL;
    if (x->kind == TT_SLOT_ROW) done_with(b, x->from);
}

static bool instruction(bridge *b, const tt_instr *i) {
    tt_array *in[3];
    int n = 0;
    for (; n < 3 && i->in[n] >= 0; n++) in[n] = find(b, i->in[n]);
    if (!make(b, i->out)) return false;
    tt_array *out = &b->value[i->out].a;
    bool ok =
        i->kind == TT_INSTR_OP ? tt_cuda_elementwise(i->op, i->dtype, out, n, in) : tt_cuda_copy_array(out, in[0]);
    for (int k = 0; k < n; k++) done_with(b, i->in[k]);
    return ok;
}

static void let_go(tt_array **temporary) {
    if (*temporary) tt_free(*temporary);
}

static bool reduce(bridge *b, const tt_kernel_reduction *f) {
    const tt_kernel *k = b->k;
    bool rows = k->pattern == TT_PATTERN_ROW_REDUCTION, call = k->pattern == TT_PATTERN_EXTERN;
    placed accessed;
    tt_array param, *a, *p = NULL;
    int64_t shape[TT_FUSE_DIMS], strides[2][TT_FUSE_DIMS];
    if (call) a = describe_access(b, &accessed, &k->accesses[f->slot]);
    else a = find(b, f->slot);
    if (f->param >= 0 && rows) p = find(b, f->param);
    else if (f->param >= 0) {
        const tt_access *x = &k->accesses[f->param];
        param = (tt_array){.storage = &b->here, .data = b->base[x->storage] + x->offset, .dtype = x->dtype};
        p = &param;
    }
    tt_array plain; /* the space as kept, reduced and kept dimensions, row-major */
    __attribute__((cleanup(let_go))) tt_array *whole = NULL;
    if (!call) {
        char *data = a->data;
        if (a->numel != k->numel || !(a->flags & TT_FLAG_CONTIGUOUS) || !a->storage->device) {
            placed wide;
            if (!(whole = tt_cuda_temporary(f->dtype, k->numel))) return false;
            if (!tt_cuda_copy_array(lay_out(b, &wide, f->dtype, 1, data = whole->data), a)) return false;
        }
        memcpy(shape, (int64_t[]){k->rows, k->row, k->inner}, 3 * sizeof *shape);
        plain = (tt_array){.storage = &b->here,
                           .data = data,
                           .dtype = f->dtype,
                           .ndim = 3,
                           .numel = k->numel,
                           .flags = TT_FLAG_DEVICE,
                           .shape = shape,
                           .strides = strides[0]};
        tt_set_contiguous(&plain);
        a = &plain;
    }
    char *results;
    if (rows) {
        if (!make(b, f->out)) return false;
        results = b->value[f->out].a.data;
    } else {
        const tt_access *x = &k->accesses[f->access];
        results = b->base[x->storage] + x->offset;
    }
    int64_t mask = call ? k->row : 2;
    tt_reduction g;
    tt_reduction_plan(&g, a, mask, f->dtype, tt_itemsizes[f->acc], !call);
    bool ok;
    if (g.in_order) ok = tt_cuda_reduction(&g, f->reducer, f->acc, TT_RED_ALONE, 1, p, f->acc, results, NULL);
    else {
        tt_array *apart = tt_cuda_temporary(f->acc, g.kept), there, out;
        if (!apart) return false;
        ok = tt_cuda_reduction(&g, f->reducer, f->acc, TT_RED_ALONE, 1, p, f->acc, apart->data, NULL);
        there = (tt_array){.storage = &b->here,
                           .data = apart->data,
                           .dtype = f->acc,
                           .numel = g.kept,
                           .flags = TT_FLAG_DEVICE,
                           .shape = shape,
                           .strides = strides[0]};
        for (int d = 0; d < a->ndim; d++) {
            if (mask >> d & 1) continue;
            shape[there.ndim] = a->shape[d];
            strides[0][there.ndim++] = g.result_strides[d];
        }
        out = there;
        out.data = results;
        out.strides = strides[1];
        tt_set_contiguous(&out);
        tt_update_flags(&there);
        ok = ok && tt_cuda_copy_array(&out, &there);
        tt_free(apart);
    }
    if (!call) done_with(b, f->slot);
    if (rows && f->param >= 0) done_with(b, f->param);
    return ok;
}

static void count_uses(bridge *b) {
    const tt_kernel *k = b->k;
    for (int i = 0; i < k->num_instrs; i++)
        for (int n = 0; n < 3; n++)
            if (k->instrs[i].in[n] >= 0) b->uses[k->instrs[i].in[n]]++;
    for (int i = 0; i < k->num_reductions && k->pattern != TT_PATTERN_EXTERN; i++) {
        b->uses[k->reductions[i].slot]++;
        if (k->pattern == TT_PATTERN_ROW_REDUCTION && k->reductions[i].param >= 0) b->uses[k->reductions[i].param]++;
    }
    for (int i = 0; i < k->num_stores; i++) b->uses[k->stores[i].slot]++;
    for (int s = 0; s < k->num_slots; s++)
        if (k->slots[s].kind == TT_SLOT_ROW && b->uses[s]) b->uses[k->slots[s].from]++;
}

/* Stores come last: what is loaded is what was there before the kernel. */
static bool run_bridge(bridge *b) {
    const tt_kernel *k = b->k;
    bool ok = true;
    count_uses(b);
    for (int stage = 0; ok && stage < (k->num_stages ? k->num_stages : 1); stage++) {
        for (int i = 0; ok && i < k->num_instrs; i++)
            if (k->instrs[i].stage == stage && k->instrs[i].level == 1) ok = instruction(b, &k->instrs[i]);
        for (int i = 0; ok && i < k->num_reductions; i++)
            if (k->pattern != TT_PATTERN_ROW_REDUCTION || k->reductions[i].stage == stage)
                ok = reduce(b, &k->reductions[i]);
        for (int i = 0; ok && i < k->num_instrs; i++)
            if (k->instrs[i].stage == stage && k->instrs[i].level == 0) ok = instruction(b, &k->instrs[i]);
    }
    for (int i = 0; ok && i < k->num_stores; i++) {
        placed to;
        tt_array *from = find(b, k->stores[i].slot);
        ok = tt_cuda_copy_array(describe_access(b, &to, &k->accesses[k->stores[i].access]), from);
        done_with(b, k->stores[i].slot);
    }
    for (int s = 0; s < k->num_slots; s++)
        if (b->made[s]) tt_free(b->made[s]);
    return ok;
}

/* The instruction that makes a slot's value; NULL where none does. */
static const tt_instr *maker(const tt_kernel *k, int slot) {
    for (int i = 0; i < k->num_instrs; i++)
        if (k->instrs[i].out == slot) return &k->instrs[i];
    return NULL;
}

/* The slot that was read from memory, or recorded as a number, for a value that is at most converted. */
static int origin(const tt_kernel *k, int slot) {
    for (const tt_instr *i; (i = maker(k, slot)) && i->kind != TT_INSTR_OP;) slot = i->in[0];
    return slot;
}

/* One operator or copy: its eager kernel converts what it reads and writes. */
static bool run_alone(bridge *b) {
    const tt_kernel *k = b->k;
    placed out, value[3];
    int64_t bits[3];
    tt_array *in[3];
    int from = origin(k, k->stores[0].slot), n = 0;
    const tt_instr *op = maker(k, from);
    for (; n < 3 && (op ? op->in[n] >= 0 : n == 0); n++) {
        int s = op ? origin(k, op->in[n]) : from;
        in[n] = describe_slot(b, &value[n], &bits[n], s);
    }
    tt_array *to = describe_access(b, &out, &k->accesses[k->stores[0].access]);
    return op ? tt_cuda_elementwise(op->op, op->dtype, to, n, in) : tt_cuda_copy_array(to, in[0]);
}

static bool run_eagerly(const tt_kernel *k, char *const *base, const tt_number *numbers) {
    size_t n = (size_t)k->num_slots + 1;
    bridge b = {.k = k,
                .base = base,
                .numbers = numbers,
                .here = {.device = (int16_t)tt_device, .refs = 1},
                .host = {.refs = 1}};
    if (k->alone) return run_alone(&b);
    if (k->pattern == TT_PATTERN_EXTERN) return reduce(&b, &k->reductions[0]);
    b.value = malloc(n * sizeof *b.value);
    b.made = calloc(n, sizeof *b.made);
    b.uses = calloc(n, sizeof *b.uses);
    b.bits = calloc(n, sizeof *b.bits);
    bool ok = b.value && b.made && b.uses && b.bits;
    for (int s = 0; ok && s < k->num_slots; s++) b.value[s].a.ndim = -1;
    if (!ok) tt_fail(TT_OUT_OF_MEMORY, "fuse: out of memory: no room to run a kernel");
    else ok = run_bridge(&b);
    free(b.value);
    free(b.made);
    free(b.uses);
    free(b.bits);
    return ok;
}

/* Compiled kernels. */

#define MOST_BYTES 4000 /* of arguments */
#define PARTS 256 /* bytes of shared memory for what the warps of a row have of a reduction */

static int largest_of(const tt_kernel *k) {
    int largest = 1;
    for (int a = 0; a < k->num_accesses; a++)
        if (!k->accesses[a].one && tt_itemsizes[k->accesses[a].dtype] > largest)
            largest = tt_itemsizes[k->accesses[a].dtype];
    return largest;
}

/* Can whole vectors be read and written there? Where the elements of a row are one, nothing is. */
static bool is_aligned(const tt_kernel *k, const tt_access *x, const char *p) {
    if (x->one) return true;
    if (x->flat) return !((intptr_t)p & 15);
    int64_t size = tt_itemsizes[x->dtype], bytes = 16 / largest_of(k) * size, all = (intptr_t)p;
    for (int d = 0; d < k->ndim - 1; d++) all |= x->strides[d];
    return x->strides[k->ndim - 1] != size || !(all & (bytes - 1));
}

/* The arguments in the order of codegen_cuda.py's structure; their bytes, or 0 where there are too many. */
static int pack(char *to, const tt_kernel *k, char *const *base, const tt_number *numbers, char *const *parts,
                bool *aligned) {
    int n = k->num_accesses ? k->num_accesses : 1, nd = k->ndim ? k->ndim : 1, constants = 0;
    int reductions = k->num_reductions ? k->num_reductions : 1;
    for (int s = 0; s < k->num_slots; s++) constants += k->slots[s].kind == TT_SLOT_CONST;
    int64_t head[5] = {k->numel, k->rows, k->row, k->inner, k->detail && k->numel >= TT_BLOCK};
    int64_t bytes =
        40 + 8 * (n + reductions + (constants ? constants : 1) + nd) + (12 * nd + 7) / 8 * 8 + 8 * (int64_t)n * nd;
    if (bytes > MOST_BYTES) return 0;
    char *at = to + 40;
    memset(to, 0, (size_t)bytes);
    for (int a = 0; a < k->num_accesses; a++) {
        char *p = base[k->accesses[a].storage] + k->accesses[a].offset;
        memcpy(at + 8 * a, &p, 8);
        if (!is_aligned(k, &k->accesses[a], p)) head[4] = 0;
    }
    at += 8 * n;
    if (k->num_reductions) memcpy(at, parts, 8 * (size_t)k->num_reductions);
    at += 8 * reductions;
    for (int s = 0, j = 0; s < k->num_slots; s++) {
        if (k->slots[s].kind != TT_SLOT_CONST) continue;
        const tt_number *c = &numbers[k->slots[s].index];
        tt_convert(at + 8 * j++, k->slots[s].dtype, &c->bits, c->dtype);
    }
    at += 8 * (constants ? constants : 1);
    for (int d = 0; d < k->ndim; d++) {
        tt_divider by = tt_divider_of(k->shape[d]);
        memcpy(at + 8 * d, &k->shape[d], 8);
        memcpy(at + 8 * nd + 12 * d, &by, 12);
    }
    at += 8 * nd + (12 * nd + 7) / 8 * 8;
    for (int a = 0; a < k->num_accesses; a++) memcpy(at + 8 * a * nd, k->accesses[a].strides, 8 * (size_t)k->ndim);
    memcpy(to, head, sizeof head);
    *aligned = head[4];
    return (int)bytes;
}

static int64_t divided(int64_t n, int64_t by) { return (n + by - 1) / by; }

static bool launchable(const tt_kernel *k) {
    if (__atomic_load_n(&k->state, __ATOMIC_ACQUIRE) != 2) return false;
    if (k->numel >= (int64_t)1 << 31) return false;
    return k->pattern != TT_PATTERN_ROW_REDUCTION || k->detail + PARTS * k->num_reductions <= tt_cuda_shared_room();
}

int tt_kernel_vectors(const tt_kernel *k) {
    int operands = 0;
    for (int a = 0; a < k->num_accesses; a++) operands += !k->accesses[a].one;
    return tt_cuda_vectors(k->weight, operands, largest_of(k));
}

/* -1: it cannot be, and nothing was done. */
static int launch(const tt_kernel *k, char *const *base, const tt_number *numbers) {
    char args[MOST_BYTES], *parts[TT_FUSE_KERNEL_NODES];
    tt_array *held[TT_FUSE_KERNEL_NODES];
    int64_t blocks = divided(k->row, TT_BLOCK), count = blocks, x, shared = 0, key = tt_fused_key(k->launch);
    int threads = TT_CUDA_THREADS, bytes, made = 0;
    bool ok = true, aligned = false;
    bool partial = k->pattern == TT_PATTERN_SPLIT_REDUCTION || k->pattern == TT_PATTERN_OUTER_REDUCTION;
    if (k->pattern == TT_PATTERN_SPLIT_REDUCTION) count = divided(blocks, TT_CUDA_THREADS / 32);
    for (int i = 0; partial && count == 1 && i < k->num_reductions; i++) { /* what there is to join are the results */
        const tt_access *out = &k->accesses[k->reductions[i].access];
        parts[i] = base[out->storage] + out->offset;
    }
    for (; ok && partial && count > 1 && made < k->num_reductions; made += ok) {
        ok = (held[made] = tt_cuda_temporary(k->reductions[made].acc, k->rows * count * k->inner)) != NULL;
        if (ok) parts[made] = held[made]->data;
    }
    if (ok && !(bytes = pack(args, k, base, numbers, parts, &aligned))) {
        for (int i = 0; i < made; i++) tt_free(held[i]);
        return -1;
    }
    if (k->pattern == TT_PATTERN_POINTWISE) {
        int largest = largest_of(k);
        threads = TT_FLAT_THREADS;
        x = divided(k->numel, aligned ? 16 / largest * threads * k->detail : threads);
    } else if (k->pattern == TT_PATTERN_ROW_REDUCTION) {
        int64_t most = TT_CUDA_THREADS / 32, room = k->detail ? 49152 / k->detail : most, warps = blocks;
        if (blocks == 1) warps = room < 1 ? 1 : room < most ? room : most; /* each has a row */
        threads = 32 * (int)warps;
        shared = blocks == 1 ? k->detail * warps : k->detail;
        x = blocks == 1 ? divided(k->rows, warps) : k->rows;
    } else if (k->pattern == TT_PATTERN_SPLIT_REDUCTION) x = k->rows * count;
    else x = k->rows * blocks * divided(k->inner, k->detail);
    ok = ok && tt_launch(key, x, 1, threads, shared, args, bytes);
    for (int i = 0; i < made; i++) {
        const tt_kernel_reduction *f = &k->reductions[i];
        char *out = base[k->accesses[f->access].storage] + k->accesses[f->access].offset;
        ok = ok && tt_cuda_join_parts(f->reducer, f->acc, held[i], count, k->rows, k->inner, f->acc, out);
        tt_free(held[i]);
    }
    return ok;
}

bool tt_cuda_run_kernels(const tt_kernel *k, int n, char *const *base, const tt_number *numbers, bool compiled) {
    for (int i = 0; i < n; i++) {
        int done = compiled && launchable(&k[i]) ? launch(&k[i], base, numbers) : -1;
        if (!(done < 0 ? run_eagerly(&k[i], base, numbers) : done)) return false;
    }
    return true;
}

int64_t tt_fused_key(int64_t number) { return tt_key(TT_FAMILY_fused, 0, 0, 0, 0, 0, 0, 0) | number << 8; }
