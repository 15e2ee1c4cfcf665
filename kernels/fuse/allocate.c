/* Fused mode's planner, third part: where the values of a kernel lie, and which of them a part of its work looks up. */
#include "fuse/plan.h"
#include <stdlib.h>
#include <string.h>

#define STAGGER 8 /* between buffers, in units of 64 bytes: at distances of 4096 bytes CPUs take them for each other */
#define MOST_RECOMPUTE 4 /* cheap instructions cost less than to write a value and to read it */

/* Buffers: by size of the element, so that one that is free can be taken over. */
typedef struct {
    int64_t next; /* in units of 64 bytes */
    int free[5][256], num_free[5]; /* by the logarithm of an element's bytes */
} arena;

static int units(const tt_kernel *k, const tt_slot *s) {
    int64_t n = k->block;
    if (s->level == 0) n = k->together;
    else if (s->kind == TT_SLOT_TEMP && s->last > s->stage && k->pattern == TT_PATTERN_ROW_REDUCTION)
        n = k->together * k->row;
    if (s->kind == TT_SLOT_RANDOM) n += 128; /* whole groups of them */
    return (int)((n * tt_itemsizes[s->dtype] + 63) / 64);
}

static int take_buffer(arena *m, const tt_kernel *k, const tt_slot *s, bool reusable) {
    int c = __builtin_ctz((unsigned)tt_itemsizes[s->dtype]);
    if (reusable && m->num_free[c]) return m->free[c][--m->num_free[c]];
    int at = (int)m->next;
    m->next += units(k, s) + STAGGER;
    return at;
}

bool tt_allocate_buffers(tt_kernel *k) {
    arena m = {0};
    int *last_use = malloc(sizeof(int) * ((size_t)k->num_slots + 1));
    if (!last_use) return false;
    for (int s = 0; s < k->num_slots; s++) {
        tt_slot *x = &k->slots[s];
        bool direct = x->kind == TT_SLOT_LOAD && k->accesses[x->index].flat;
        last_use[s] = -1;
        x->buffer = -1;
        if (x->kind == TT_SLOT_TEMP && x->level == 1 && x->last == x->stage) continue; /* below */
        if (!direct) x->buffer = take_buffer(&m, k, x, false);
    }
    for (int f = 0; f < k->num_reductions; f++)
        if (k->pattern == TT_PATTERN_ROW_REDUCTION) {
            int64_t blocks = (k->row + TT_BLOCK - 1) / TT_BLOCK, parts = blocks * tt_itemsizes[k->reductions[f].acc];
            k->reductions[f].partials = (int32_t)m.next;
            m.next +=
                k->reductions[f].out < 0 ? TT_BLOCK * tt_itemsizes[k->reductions[f].dtype] / 64 : (parts + 63) / 64;
        }
    for (int i = 0; i < k->num_instrs; i++)
        for (int j = 0; j < 3; j++)
            if (k->instrs[i].in[j] >= 0) last_use[k->instrs[i].in[j]] = i;
    for (int i = 0; i < k->num_stores; i++) last_use[k->stores[i].slot] = k->num_instrs;
    for (int i = 0; i < k->num_reductions && k->pattern != TT_PATTERN_EXTERN; i++)
        last_use[k->reductions[i].slot] = k->num_instrs;
    for (int i = 0; i < k->num_instrs; i++) {
        const tt_instr *x = &k->instrs[i];
        if (i > 0 && x->stage != k->instrs[i - 1].stage) memset(m.num_free, 0, sizeof m.num_free);
        if (x->level == 0) continue;
        for (int j = 0; j < 3; j++) { /* an operand needed no more makes room for the result */
            int s = x->in[j];
            if (s < 0 || (j > 0 && s == x->in[0]) || (j > 1 && s == x->in[1])) continue;
            const tt_slot *y = &k->slots[s];
            int c = __builtin_ctz((unsigned)tt_itemsizes[y->dtype]);
            if (y->kind == TT_SLOT_TEMP && y->level == 1 && y->last == y->stage && last_use[s] == i &&
                m.num_free[c] < 256)
                m.free[c][m.num_free[c]++] = y->buffer;
        }
        tt_slot *out = &k->slots[x->out];
        if (out->buffer < 0) out->buffer = take_buffer(&m, k, out, true);
    }
    k->arena = m.next * 64;
    free(last_use);
    return true;
}

static const tt_instr *maker(const tt_kernel *k, int slot) {
    for (int i = 0; i < k->num_instrs; i++)
        if (k->instrs[i].out == slot) return &k->instrs[i];
    return NULL;
}

/* Rematerialisation cost of a slot, in instructions; more than MOST_RECOMPUTE where memory is cheaper, or the slot
 * cannot be recomputed. */
static int recompute_cost(const tt_kernel *k, int slot) {
    const tt_slot *s = &k->slots[slot];
    int none = MOST_RECOMPUTE + 1, cost = s->kind == TT_SLOT_TEMP ? maker(k, slot)->recompute : 0;
    if (s->kind == TT_SLOT_TEMP) return cost ? cost : none;
    if (s->kind != TT_SLOT_LOAD) return s->kind == TT_SLOT_RANDOM ? none : 0;
    const tt_access *a = &k->accesses[s->index];
    for (int i = 0; i < k->num_stores; i++)
        if (k->accesses[k->stores[i].access].storage == a->storage) return none;
    return a->flat || a->strides[k->ndim - 1] == tt_itemsizes[a->dtype] ? 0 : none;
}

/* Cheap operators whose operands every stage can load are recomputed in each stage that uses them. */
void tt_choose_recomputed(tt_kernel *k) {
    for (int i = 0; i < k->num_instrs && k->pattern == TT_PATTERN_ROW_REDUCTION; i++) { /* operands are made before */
        tt_instr *x = &k->instrs[i];
        bool may = x->level == 1 && x->kind == TT_INSTR_OP && tt_op_weight(x->op) == 1;
        int cost = 1;
        for (int j = 0; j < 3 && x->in[j] >= 0; j++) cost += recompute_cost(k, x->in[j]);
        for (int m = 0; m < k->num_stores; m++) may = may && k->stores[m].slot != x->out;
        for (int m = 0; m < k->num_reductions; m++)
            may = may && (k->reductions[m].slot != x->out || k->reductions[m].stage == x->stage);
        x->recompute = (int16_t)(may && cost <= MOST_RECOMPUTE ? cost : 0);
    }
}

/* Values that stay in their buffer are not listed. */
static void list_use(tt_kernel *k, tt_part *part, int slot, int level) {
    const tt_slot *x = &k->slots[slot];
    bool moves = x->kind == TT_SLOT_TEMP
                     ? x->last > x->stage
                     : x->kind == TT_SLOT_LOAD || x->kind == TT_SLOT_ROW || x->kind == TT_SLOT_RANDOM;
    moves = moves && level;
    for (int i = 0; i < k->num_stores && x->kind == TT_SLOT_TEMP; i++) moves |= k->stores[i].slot == slot;
    if (!moves) return;
    for (int i = part->first_use; i < part->end_use; i++)
        if (k->uses[i] == slot) return;
    k->uses[part->end_use++] = (int16_t)slot;
}

/* The operands of a slot of an earlier stage that this stage recomputes. */
static void list_recomputed(tt_kernel *k, tt_part *part, int slot, int stage) {
    const tt_slot *s = &k->slots[slot];
    const tt_instr *x = s->kind == TT_SLOT_TEMP && s->level == 1 && s->stage < stage ? maker(k, slot) : NULL;
    for (int j = 0; j < 3 && x && x->recompute && x->in[j] >= 0; j++) {
        list_use(k, part, x->in[j], 1);
        list_recomputed(k, part, x->in[j], stage);
    }
}

/* What each part of the work uses. */
bool tt_list_parts(tt_kernel *k) {
    int most = (k->num_stages + 1) * k->num_slots, i = 0, n = 0, s = 0;
    k->parts = calloc(2 * (size_t)k->num_stages + 1, sizeof *k->parts);
    k->uses = malloc(sizeof *k->uses * ((size_t)most + 1));
    if (!k->parts || !k->uses) return false;
    for (int p = 0; p < 2 * k->num_stages; p++) {
        tt_part *part = &k->parts[p];
        int stage = p / 2, level = 1 - p % 2;
        part->first_instr = (int16_t)i;
        part->first_use = part->end_use = (int16_t)n;
        for (; i < k->num_instrs && k->instrs[i].stage == stage && k->instrs[i].level == level; i++) {
            for (int j = 0; j < 3 && k->instrs[i].in[j] >= 0; j++) list_use(k, part, k->instrs[i].in[j], level);
            list_use(k, part, k->instrs[i].out, level);
        }
        part->end_instr = (int16_t)i;
        part->first_store = (int16_t)s;
        for (; s < k->num_stores && k->stores[s].stage == stage && k->slots[k->stores[s].slot].level == level; s++)
            list_use(k, part, k->stores[s].slot, level);
        part->end_store = (int16_t)s;
        for (int f = 0; f < k->num_reductions && level && k->pattern != TT_PATTERN_EXTERN; f++)
            if (k->reductions[f].stage == stage) list_use(k, part, k->reductions[f].slot, level);
        part->more_use = part->end_use;
        for (int m = part->first_instr; m < part->end_instr && level; m++)
            for (int j = 0; j < 3 && k->instrs[m].in[j] >= 0; j++) list_recomputed(k, part, k->instrs[m].in[j], stage);
        n = part->end_use;
    }
    tt_part *loads = &k->parts[2 * k->num_stages];
    loads->first_use = loads->end_use = (int16_t)n;
    for (int j = 0; j < k->num_slots; j++)
        if (k->slots[j].level == 0 && k->slots[j].kind == TT_SLOT_LOAD) k->uses[loads->end_use++] = (int16_t)j;
    return true;
}
