/* Fused mode's planner, second part: the instructions of a kernel and the slots where its values stand. */
#include "cpu/superinstructions.h"
#include "fuse/plan.h"
#include <stdlib.h>
#include <string.h>

#define LONE_ROW 512 /* rows this long are worked on one at a time, so that a row's value is one number */
#define POINTWISE_BLOCK 4096 /* elements of a POINTWISE block, if its values need little memory */
#define GROUP 4096   /* elements of such rows that go through a stage together */

typedef struct {
    tt_kernel *k;
    const tt_group *d;
    tt_node *nodes;
    int room_slots, room_instrs, room_accesses, room_stores, room_reductions;
    bool failed;
} emitter;

/* Makes room for one more in an array; its number. */
#define MORE(e, field, count, room)                                                                                    \
    do {                                                                                                               \
        if ((e)->k->count == (e)->room) {                                                                              \
            (e)->room = 2 * (e)->room + 16;                                                                            \
            void *more_ = realloc((e)->k->field, sizeof *(e)->k->field * (size_t)(e)->room);                           \
            if (!more_) {                                                                                              \
                (e)->failed = true;                                                                                    \
                return 0;                                                                                              \
            }                                                                                                          \
            (e)->k->field = more_;                                                                                     \
        }                                                                                                              \
    } while (0)

static int add_slot(emitter *e, tt_slot s) {
    MORE(e, slots, num_slots, room_slots);
    s.last = s.stage;
    s.buffer = -1;
    e->k->slots[e->k->num_slots] = s;
    return e->k->num_slots++;
}

static int add_access(emitter *e, const tt_operand *o, int level) {
    tt_kernel *k = e->k;
    int nd = level ? e->d->nd : e->d->kept;
    tt_access a = {
        .storage = o->id, .dtype = (int16_t)o->dtype, .level = (int16_t)level, .offset = o->offset, .one = 1};
    for (int d = 0; d < nd; d++) {
        a.strides[d] = o->steps[d];
        a.one &= o->steps[d] == 0;
    }
    for (int i = 0; i < k->num_accesses; i++) {
        const tt_access *b = &k->accesses[i];
        if (b->storage == a.storage && b->dtype == a.dtype && b->level == level && b->offset == a.offset &&
            memcmp(b->strides, a.strides, sizeof a.strides) == 0)
            return i;
    }
    MORE(e, accesses, num_accesses, room_accesses);
    k->accesses[k->num_accesses] = a;
    return k->num_accesses++;
}

static void use(emitter *e, int slot, int stage) {
    tt_slot *s = &e->k->slots[slot];
    if (s->last < stage) s->last = (int16_t)stage;
    if (s->kind == TT_SLOT_ROW) use(e, s->from, stage);
}

/* The first stage in which a node at `level` can work with the slot. */
static int ready(const emitter *e, int slot, int level) {
    const tt_slot *s = &e->k->slots[slot];
    if (s->kind == TT_SLOT_ROW) s = &e->k->slots[s->from], level = 1;
    if (s->kind != TT_SLOT_TEMP && s->kind != TT_SLOT_RESULT) return 0;
    return s->stage + (s->level == 0 && level == 1);
}

static int instruction(emitter *e, int kind, int op, int dtype, int to, int level, int n, const int *in, int result,
                       int node) {
    tt_kernel *k = e->k;
    int stage = 0;
    for (int j = 0; j < n; j++) {
        int s = ready(e, in[j], level);
        if (s > stage) stage = s;
    }
    tt_instr x = {.kind = (int16_t)kind,
                  .op = (int16_t)op,
                  .dtype = (int16_t)dtype,
                  .to = (int16_t)to,
                  .stage = (int16_t)stage,
                  .level = (int16_t)level,
                  .in = {-1, -1, -1},
                  .node = node};
    for (int j = 0; j < n; j++) x.in[j] = (int16_t)in[j];
    for (int i = 0; i < k->num_instrs; i++) { /* done already? */
        const tt_instr *y = &k->instrs[i];
        if (y->kind == x.kind && y->op == x.op && y->dtype == x.dtype && y->to == x.to && y->level == x.level &&
            memcmp(y->in, x.in, sizeof x.in) == 0 && kind != TT_INSTR_MOVE)
            return y->out;
    }
    for (int j = 0; j < n; j++) use(e, in[j], stage);
    x.out = (int16_t)add_slot(
        e, (tt_slot){.kind = TT_SLOT_TEMP, .dtype = (int16_t)result, .level = (int16_t)level, .stage = (int16_t)stage});
    MORE(e, instrs, num_instrs, room_instrs);
    k->instrs[k->num_instrs++] = x;
    return x.out;
}

static int cast(emitter *e, int slot, int to, int node) {
    const tt_slot *s = &e->k->slots[slot];
    if (s->dtype == to) return slot;
    return instruction(e, TT_INSTR_CAST, 0, s->dtype, to, s->level, 1, &slot, to, node);
}

static int find_slot(const emitter *e, int kind, int level, int index, int dtype, int from) {
    for (int i = 0; i < e->k->num_slots; i++) {
        const tt_slot *s = &e->k->slots[i];
        if (s->kind == kind && s->level == level && s->index == index && s->dtype == dtype && s->from == from) return i;
    }
    return -1;
}

/* A level-0 value, for the elements of its rows. */
static int spread(emitter *e, int from) {
    const tt_slot *s = &e->k->slots[from];
    int found = find_slot(e, TT_SLOT_ROW, 1, 0, s->dtype, from);
    return found >= 0
               ? found
               : add_slot(e, (tt_slot){.kind = TT_SLOT_ROW, .dtype = s->dtype, .level = 1, .from = (int16_t)from});
}

/* Is there one element in memory for each row? */
static bool one_for_row(const emitter *e, const tt_operand *o) {
    bool moves = false;
    for (int d = 0; d < e->d->nd; d++) {
        if (d >= e->d->kept && o->steps[d]) return false;
        moves |= o->steps[d] != 0;
    }
    return moves;
}

/* An operand of a node at `level`, in the dtype wanted. */
static int operand(emitter *e, const tt_operand *o, int level, int want, int node) {
    if (o->mode == TT_MODE_NUMBER) {
        int found = find_slot(e, TT_SLOT_CONST, level, o->id, want, 0);
        return found >= 0 ? found
                          : add_slot(e, (tt_slot){.kind = TT_SLOT_CONST,
                                                  .dtype = (int16_t)want,
                                                  .level = (int16_t)level,
                                                  .index = o->id});
    }
    if (o->inside >= 0) {
        int slot = cast(e, e->nodes[o->writer].slot, want, node);
        return o->inside == 0 && level == 1 ? spread(e, slot) : slot;
    }
    if (level == 1 && e->k->pattern == TT_PATTERN_ROW_REDUCTION && one_for_row(e, o))
        return spread(e, operand(e, o, 0, want, node));
    int access = add_access(e, o, level);
    if (e->failed) return 0;
    int kind = e->k->accesses[access].one ? TT_SLOT_ONE : TT_SLOT_LOAD;
    int slot = find_slot(e, kind, level, access, o->dtype, 0);
    if (slot < 0)
        slot = add_slot(
            e, (tt_slot){.kind = (int16_t)kind, .dtype = (int16_t)o->dtype, .level = (int16_t)level, .index = access});
    return e->failed ? 0 : cast(e, slot, want, node);
}

/* A copy of a slot's elements, should it be of that kind. */
static int own(emitter *e, int slot, int level, int node, int kind) {
    if (e->failed || e->k->slots[slot].kind != kind) return slot;
    int dtype = e->k->slots[slot].dtype;
    return instruction(e, TT_INSTR_MOVE, 0, dtype, 0, level, 1, &slot, dtype, node);
}

/* Last stage that still reads the memory `o` overwrites (write-after-read). */
static int last_look(const emitter *e, const tt_operand *o) {
    int stage = 0;
    for (int i = 0; i < e->k->num_slots; i++) {
        const tt_slot *s = &e->k->slots[i];
        if ((s->kind == TT_SLOT_LOAD || s->kind == TT_SLOT_ONE) && e->k->accesses[s->index].storage == o->id &&
            s->last > stage)
            stage = s->last;
    }
    return stage;
}

static int store(emitter *e, int slot, const tt_operand *o, int level) {
    int access = add_access(e, o, level), stage = last_look(e, o);
    if (e->failed) return 0;
    tt_slot *s = &e->k->slots[slot];
    int made = s->kind == TT_SLOT_TEMP || s->kind == TT_SLOT_RESULT ? s->stage : ready(e, slot, level);
    if (stage < made) stage = made;
    MORE(e, stores, num_stores, room_stores);
    e->k->stores[e->k->num_stores++] = (tt_store){.slot = (int16_t)slot, .stage = (int16_t)stage, .access = access};
    use(e, slot, stage);
    return 0;
}

static int reduce(emitter *e, tt_node *node, int number) {
    tt_kernel *k = e->k;
    bool rows = k->pattern == TT_PATTERN_ROW_REDUCTION && node->mask == e->d->mask; /* or it is a total */
    tt_kernel_reduction f = {.reducer = (int16_t)node->op,
                             .dtype = (int16_t)node->dtype,
                             .acc = (int16_t)node->o[0].dtype,
                             .param = -1,
                             .out = -1,
                             .access = -1,
                             .node = number};
    if (k->pattern == TT_PATTERN_EXTERN) {
        f.slot = (int16_t)add_access(e, &node->o[1], 1);
    } else {
        int slot = own(e, operand(e, &node->o[1], 1, node->dtype, number), 1, number, TT_SLOT_ROW);
        if (e->failed) return 0;
        f.slot = (int16_t)slot;
        f.stage = (int16_t)ready(e, slot, 1);
        if (node->n == 2 && rows) {
            f.param = (int16_t)operand(e, &node->o[2], 0, node->o[0].dtype, number);
            if (e->failed) return 0;
            const tt_slot *p = &k->slots[f.param];
            int after = p->kind == TT_SLOT_TEMP || p->kind == TT_SLOT_RESULT ? p->stage + 1 : 0;
            if (after > f.stage) f.stage = (int16_t)after;
            use(e, f.param, f.stage);
        }
        use(e, slot, f.stage);
    }
    if (node->n == 2 && !rows) f.param = (int16_t)add_access(e, &node->o[2], 0);
    if (rows)
        f.out =
            (int16_t)(node->slot = add_slot(
                          e,
                          (tt_slot){.kind = TT_SLOT_RESULT, .dtype = node->o[0].dtype, .level = 0, .stage = f.stage}));
    else f.access = add_access(e, &node->o[0], 0);
    MORE(e, reductions, num_reductions, room_reductions);
    k->reductions[k->num_reductions++] = f;
    if (rows && node->stored) store(e, node->slot, &node->o[0], 0);
    return 0;
}

static void compute(emitter *e, tt_node *node, int number) {
    int in[3], level = node->level, dtype = node->dtype;
    if (node->kind == TT_NODE_RANDOM) {
        int slot = add_slot(e, (tt_slot){.kind = TT_SLOT_RANDOM,
                                         .dtype = (int16_t)dtype,
                                         .level = (int16_t)level,
                                         .from = (int16_t)node->op,
                                         .index = node->o[1].id});
        if (!e->failed) node->slot = cast(e, slot, node->o[0].dtype, number);
    } else if (node->kind == TT_NODE_COPY) {
        int slot = operand(e, &node->o[1], level, node->o[0].dtype, number);
        /* Memory may be written over before the copy is used. */
        slot = own(e, own(e, own(e, slot, level, number, TT_SLOT_LOAD), level, number, TT_SLOT_ONE), level, number,
                   TT_SLOT_ROW);
        if (!e->failed) node->slot = slot;
    } else {
        for (int j = 0; j < node->n && !e->failed; j++)
            in[j] = operand(e, &node->o[j + 1], level, tt_compute_of(node->op, j + 1, dtype), number);
        if (e->failed) return;
        int result = tt_compute_of(node->op, 0, dtype);
        node->slot =
            instruction(e, TT_INSTR_OP, node->op, tt_compute_dtype(dtype), 0, level, node->n, in, result, number);
        if (!e->failed) node->slot = cast(e, node->slot, node->o[0].dtype, number);
    }
    if (!e->failed && node->stored) store(e, node->slot, &node->o[0], level);
}

/* Merges dimensions that are one stride for every access. A POINTWISE kernel takes the order of its first store; the
 * order of the others is fixed, and the rows' dimensions stay as they are for the accesses of level 0. */
static void coalesce(tt_kernel *k, const tt_group *d) {
    int order[TT_FUSE_DIMS], merged[TT_FUSE_DIMS], kept = k->pattern == TT_PATTERN_ROW_REDUCTION ? d->kept : 0;
    const tt_access *lead =
        k->pattern == TT_PATTERN_POINTWISE && k->num_stores ? &k->accesses[k->stores[0].access] : NULL;
    for (int i = 0; i < k->num_slots; i++) /* random numbers go by the row-major index */
        if (k->slots[i].kind == TT_SLOT_RANDOM) lead = NULL;
    for (int i = 0; i < d->nd; i++) {
        int at = i;
        while (lead && at > 0 && lead->strides[order[at - 1]] < lead->strides[i]) {
            order[at] = order[at - 1];
            at--;
        }
        order[at] = i;
    }
    k->ndim = 0;
    for (int m = 0; m < d->nd; m++) {
        int i = order[m];
        bool joins = m > kept && k->pattern != TT_PATTERN_EXTERN;
        for (int a = 0; joins && a < k->num_accesses; a++)
            if (k->accesses[a].level == 1)
                joins = k->accesses[a].strides[order[m - 1]] == k->accesses[a].strides[i] * d->space[i];
        if (!joins) k->shape[k->ndim++] = 1;
        merged[m] = k->ndim - 1;
        k->shape[merged[m]] *= d->space[i];
    }
    if (k->ndim == 0) k->shape[k->ndim++] = 1;
    for (int a = 0; a < k->num_accesses; a++) {
        tt_access *x = &k->accesses[a];
        int64_t old[TT_FUSE_DIMS], dense = tt_itemsizes[x->dtype];
        memcpy(old, x->strides, sizeof old);
        if (x->level == 1) {
            memset(x->strides, 0, sizeof x->strides);
            for (int m = 0; m < d->nd; m++) x->strides[merged[m]] = old[order[m]];
        }
        x->flat = 1;
        for (int i = (x->level ? k->ndim : d->kept) - 1; i >= 0; i--) {
            x->flat &= x->strides[i] == dense || k->shape[i] == 1;
            dense *= k->shape[i];
        }
    }
}

static void geometry(tt_kernel *k, const tt_group *d) {
    k->pattern = (int16_t)d->pattern;
    k->kept = (int16_t)d->kept;
    k->numel = d->numel;
    int reduced_end = d->nd;
    if (d->pattern == TT_PATTERN_OUTER_REDUCTION)
        while (!(d->mask >> (reduced_end - 1) & 1)) reduced_end--;
    k->rows = k->row = k->inner = 1;
    for (int i = 0; i < d->nd; i++) *(i < d->kept ? &k->rows : i < reduced_end ? &k->row : &k->inner) *= d->space[i];
    if (d->pattern == TT_PATTERN_EXTERN) k->row = d->mask;
    k->block = d->pattern == TT_PATTERN_POINTWISE ? POINTWISE_BLOCK : TT_BLOCK;
    if (d->numel < k->block) k->block = (d->numel + 63) / 64 * 64;
    k->together = 1;
    if (d->pattern == TT_PATTERN_ROW_REDUCTION && k->row < TT_BLOCK) {
        bool alone = k->row >= LONE_ROW;
        k->together = (alone ? GROUP : TT_BLOCK) / k->row;
        if (k->together > k->rows) k->together = k->rows;
        k->block = alone ? k->row : k->together * k->row;
    }
}

/* Short rows are worked on many at a time: if it can be, a multiple of those after which a broadcast operand repeats,
 * so that it is laid out once for all blocks. */
static void choose_rows(tt_kernel *k) {
    if (k->pattern != TT_PATTERN_ROW_REDUCTION || k->block < 2 * k->row) return;
    int64_t together = k->block / k->row, best = together;
    for (int a = 0; a < k->num_accesses; a++) {
        const tt_access *x = &k->accesses[a];
        int64_t period = 1;
        int d = 0;
        if (x->level == 0 || x->one) continue;
        while (d < k->ndim && x->strides[d] == 0) d++;
        for (int i = d; i < k->ndim; i++) period *= k->shape[i];
        if (d > 0 && period % k->row == 0 && period / k->row <= together)
            best = together / (period / k->row) * (period / k->row);
    }
    k->block = best * k->row;
    k->together = best;
}

/* The rows that are one thread's: with totals, both they and the groups that go through the stages are powers of
 * two. */
static void choose_unit(tt_kernel *k) {
    bool totals = false;
    for (int i = 0; i < k->num_reductions; i++) totals |= k->reductions[i].out < 0;
    k->unit_rows = k->together;
    if (k->pattern != TT_PATTERN_ROW_REDUCTION || !totals) return;
    while (k->together & (k->together - 1)) k->together &= k->together - 1;
    if (k->block > k->together * k->row) k->block = k->together * k->row;
    int64_t whole = tt_whole_blocks(k->row);
    k->unit_rows = whole > k->together ? whole : k->together;
}

/* Stores, in the order of instructions. */
static void sort_stores(tt_kernel *k) {
    for (int i = 1; i < k->num_stores; i++)
        for (int j = i; j > 0; j--) {
            tt_store *x = &k->stores[j - 1], *y = &k->stores[j], swap = *x;
            if (x->stage < y->stage || (x->stage == y->stage && k->slots[x->slot].level >= k->slots[y->slot].level))
                break;
            *x = *y;
            *y = swap;
        }
}

static int by_stage(const void *a, const void *b) {
    const tt_instr *x = a, *y = b;
    if (x->stage != y->stage) return x->stage - y->stage;
    if (x->level != y->level) return y->level - x->level;
    return x->out - y->out; /* slots are numbered in the order of instructions */
}

static int64_t bytes_of(const tt_kernel *k, int access, int kept) {
    const tt_access *a = &k->accesses[access];
    int64_t bytes = tt_itemsizes[a->dtype];
    for (int d = 0; d < (a->level ? k->ndim : kept); d++)
        if (a->strides[d]) bytes *= k->shape[d];
    return bytes;
}

/* Bytes of memory that one run touches: each access once, however many stages look at it. */
static void count_traffic(tt_kernel *k, const tt_group *d) {
    int64_t results = 1;
    for (int i = 0; i < d->nd; i++)
        if (!(d->mask >> i & 1)) results *= d->space[i];
    for (int i = 0; i < k->num_slots; i++)
        if (k->slots[i].kind == TT_SLOT_LOAD || k->slots[i].kind == TT_SLOT_ONE)
            k->reads += bytes_of(k, k->slots[i].index, d->kept);
    for (int i = 0; i < k->num_stores; i++) k->writes += bytes_of(k, k->stores[i].access, d->kept);
    for (int i = 0; i < k->num_reductions; i++) {
        const tt_kernel_reduction *f = &k->reductions[i];
        if (k->pattern == TT_PATTERN_EXTERN) k->reads += bytes_of(k, f->slot, d->kept);
        if (f->access < 0) continue;
        if (k->pattern == TT_PATTERN_ROW_REDUCTION) k->writes += tt_itemsizes[f->acc]; /* a total */
        else k->writes += results * tt_itemsizes[f->acc];
        if (f->param >= 0) k->reads += results * tt_itemsizes[f->acc];
    }
}

bool tt_lower_kernel(tt_kernel *k, const tt_group *d, int number, tt_node *nodes, int num_nodes) {
    emitter e = {.k = k, .d = d, .nodes = nodes};
    geometry(k, d);
    for (int i = 0; i < num_nodes && !e.failed; i++) {
        if (nodes[i].dead || nodes[i].kernel != number) continue;
        if (nodes[i].kind == TT_NODE_REDUCE) reduce(&e, &nodes[i], i);
        else compute(&e, &nodes[i], i);
    }
    if (e.failed) return false;
    coalesce(k, d);
    choose_rows(k);
    choose_unit(k);
    count_traffic(k, d);
    sort_stores(k);
    if (k->num_instrs) qsort(k->instrs, (size_t)k->num_instrs, sizeof *k->instrs, by_stage);
    tt_pair_up(k);
    tt_delay_bools(k);
    int stages = 0, weight = k->num_accesses;
    for (int i = 0; i < k->num_instrs; i++) {
        if (k->instrs[i].stage > stages) stages = k->instrs[i].stage;
        if (k->instrs[i].level == 1) weight += k->instrs[i].kind == TT_INSTR_OP ? tt_op_weight(k->instrs[i].op) : 1;
    }
    for (int i = 0; i < k->num_slots; i++)
        if (k->slots[i].kind == TT_SLOT_RANDOM) weight += 8;
    for (int i = 0; i < k->num_reductions; i++)
        if (k->reductions[i].stage > stages) stages = k->reductions[i].stage;
    for (int i = 0; i < k->num_stores; i++)
        if (k->stores[i].stage > stages) stages = k->stores[i].stage;
    k->num_stages = (int16_t)(stages + 1);
    k->weight = (int16_t)(weight < 30000 ? weight : 30000);
    tt_choose_recomputed(k);
    k->alone = d->alone;
    if (k->alone) tt_kernel_refuse(k);
    for (int i = 0; i < k->num_slots; i++) /* of complex numbers there is no generated code */
        if (tt_is_complex(k->slots[i].dtype)) tt_kernel_refuse(k);
    if (!(k->compiled = calloc((size_t)k->num_stages, sizeof *k->compiled)) || !tt_list_parts(k)) return false;
    if (!tt_allocate_buffers(k)) return false;
    while (k->pattern == TT_PATTERN_POINTWISE && k->arena > 40960 && k->block > 256) {
        k->block /= 2;
        if (!tt_allocate_buffers(k)) return false;
    }
    return tt_make_superinstructions(k); /* looks at buffers */
}
