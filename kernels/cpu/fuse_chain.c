/* Fused mode's planner, third part: chains of cheap operators for the interpreter. Note [Chains] in chain.h. */
#include "chain.h"
#include "fuse_plan.h"
#include <stdlib.h>

enum { NONE, OPERATOR, TO_FLOAT, COPY };

#define IS(op) case TT_OP_##op:
static int arity_of(int op) {
    switch (op) {
    TT_CHAIN_1(IS) return 1;
    TT_CHAIN_2(IS) return 2;
    TT_CHAIN_3(IS) IS(where) return 3;
    default: return 0;
    }
}

/* What an instruction is to a chain. */
static int kind_of(const tt_instr *x) {
    if (x->level == 0) return NONE;
    if (x->kind == TT_INSTR_OP) return x->dtype == TT_F32 && arity_of(x->op) ? OPERATOR : NONE;
    if (x->kind == TT_INSTR_CAST) return x->dtype == TT_BOOL && x->to == TT_F32 ? TO_FLOAT : NONE;
    return x->dtype == TT_F32 ? COPY : NONE;
}

typedef struct {
    tt_kernel *k;
    const bool *wanted; /* of each slot: its value has to be in memory when the chain is done */
    int acc;            /* the slot whose value the accumulator holds; -1 */
} maker;

static void step(maker *m, int code, int slot, int more) {
    m->k->steps[m->k->num_steps++] = (tt_step){.code = (int16_t)code, .slot = (int16_t)slot, .more = (int16_t)more};
}

/* Is it the same for all elements of a block? */
static bool is_number(const maker *m, int slot) {
    int kind = m->k->slots[slot].kind;
    return kind == TT_SLOT_CONST || kind == TT_SLOT_ONE || (kind == TT_SLOT_ROW && m->k->block < 2 * m->k->row);
}

/* Which operand the accumulator is to hold: what it holds already, or else what comes from memory. */
static int choose(const maker *m, const tt_instr *x, int n) {
    for (int j = 0; j < n; j++)
        if (x->in[j] == m->acc) return j;
    for (int j = 0; j < n; j++)
        if (!is_number(m, x->in[j])) return j;
    return 0;
}

static void fetch(maker *m, int slot) {
    if (slot == m->acc) return;
    bool is_bool = m->k->slots[slot].dtype == TT_BOOL;
    step(m, is_bool ? TT_STEP_LOAD_BOOL : is_number(m, slot) ? TT_STEP_LOAD_NUMBER : TT_STEP_LOAD, slot, 0);
    m->acc = slot;
}

static void operate(maker *m, const tt_instr *x) {
    int n = arity_of(x->op), j = choose(m, x, n), form = j, b = -1, c = -1;
    fetch(m, x->in[j]);
    if (n == 2) {
        b = x->in[1 - j];
        form = b == m->acc ? TT_FORM_AA : is_number(m, b) ? (j == 0 ? TT_FORM_AC : TT_FORM_CA) : (j == 0 ? TT_FORM_AM : TT_FORM_MA);
    } else if (n == 3) {
        b = x->in[j == 0];
        c = x->in[j == 2 ? 1 : 2];
        if (j == 0 && is_number(m, b) && is_number(m, c)) form = TT_FORM_ACC;
    }
    step(m, TT_STEP_OP + x->op * TT_FORMS + form, b, c);
}

/* Does the instruction need the slot anywhere but in the accumulator, given that it is there? */
static bool from_memory(const tt_instr *x, int slot) {
    int uses = 0;
    for (int j = 0; j < 3; j++) uses += x->in[j] == slot;
    return uses > 1 && arity_of(x->op) == 3;
}

static void make_chain(maker *m, int first, int end) {
    tt_kernel *k = m->k;
    k->chains[k->num_chains++] = (tt_chain){(int16_t)first, (int16_t)end, k->num_steps};
    m->acc = -1;
    for (int i = first; i < end; i++) {
        const tt_instr *x = &k->instrs[i];
        int kind = kind_of(x);
        if (kind == OPERATOR) operate(m, x);
        else {
            fetch(m, x->in[0]);
            if (kind == TO_FLOAT) step(m, TT_STEP_BOOL_TO_FLOAT, -1, -1);
        }
        m->acc = x->out;
        bool keep = m->wanted[x->out] || (i + 1 < end && from_memory(&k->instrs[i + 1], x->out));
        for (int l = i + 2; l < end; l++)
            for (int j = 0; j < 3; j++) keep |= k->instrs[l].in[j] == x->out;
        if (keep) step(m, k->slots[x->out].dtype == TT_BOOL ? TT_STEP_STORE_BOOL : TT_STEP_STORE, x->out, -1);
    }
    step(m, TT_STEP_END, -1, -1);
}

/* Which slots are looked at by anything else than the instructions before `end`? */
static void find_wanted(const tt_kernel *k, int end, bool *wanted) {
    for (int s = 0; s < k->num_slots; s++) wanted[s] = k->slots[s].last > k->slots[s].stage;
    for (int i = 0; i < k->num_stores; i++) wanted[k->stores[i].slot] = true;
    for (int i = 0; i < k->num_folds && k->walk != TT_WALK_CALL; i++) wanted[k->folds[i].slot] = true;
    for (int i = end; i < k->num_instrs; i++)
        for (int j = 0; j < 3; j++)
            if (k->instrs[i].in[j] >= 0) wanted[k->instrs[i].in[j]] = true;
}

/* A store whose place is read by an instruction after the one that makes its value is not made in place. */
static void find_late_stores(tt_kernel *k) {
    for (int s = 0; s < k->num_stores; s++) {
        tt_store *x = &k->stores[s];
        bool made = false;
        for (int i = 0; i < k->num_instrs; i++) {
            const tt_instr *y = &k->instrs[i];
            for (int j = 0; made && j < 3; j++) {
                const tt_slot *in = y->in[j] >= 0 ? &k->slots[y->in[j]] : NULL;
                x->late |= in && in->kind == TT_SLOT_LOAD && k->accesses[in->index].storage == k->accesses[x->access].storage;
            }
            made |= y->out == x->slot;
        }
    }
}

bool tt_make_chains(tt_kernel *k) {
    find_late_stores(k);
    bool *wanted = malloc((size_t)k->num_slots + 1);
    k->chains = malloc(sizeof *k->chains * ((size_t)k->num_instrs + 1));
    k->steps = malloc(sizeof *k->steps * (4 * (size_t)k->num_instrs + 1)); /* for each: fetch, work, store, end */
    if (!wanted || !k->chains || !k->steps) {
        free(wanted);
        return false;
    }
    maker m = {.k = k, .wanted = wanted};
    for (int p = 0; p < 2 * k->num_stages; p++) {
        tt_part *part = &k->parts[p];
        part->first_chain = k->num_chains;
        for (int i = part->first_instr, end; i < part->end_instr; i = end + 1) {
            for (end = i; end < part->end_instr && kind_of(&k->instrs[end]) != NONE;) end++;
            if (end - i < 2) continue;
            find_wanted(k, end, wanted);
            make_chain(&m, i, end);
        }
        part->end_chain = k->num_chains;
    }
    free(wanted);
    return true;
}
