/* Superinstructions for the interpreter of fused programs: Note [Superinstructions] in superinstructions.h.
 *
 * What they are for: a wheel is used where there is no C compiler, and every kernel's first runs are interpreted.
 * Eleven cheap operators on a million floats (bench fuse, AVX-512, two threads) take 0.12 ms with them, 0.36 ms
 * without, 0.07 ms compiled, 0.5 to 0.9 ms eagerly. */
#include "cpu/superinstructions.h"
#include "cpu/simd.h"
#include <stdlib.h>

enum { NONE, OPERATOR, TO_FLOAT, COPY };
enum { NEVER = 32767, FAR = 8 };

/* Of an operator that has steps, how many operands it takes, and the first step's code; else 0. */
#define IS(op, arity)                                                                                                  \
    case TT_OP_##op: *code = TT_STEP_##op; return arity;
#define IS_1(op) IS(op, 1)
#define IS_2(op) IS(op, 2)
#define IS_3(op) IS(op, 3)
static int steps_of(int op, int *code) {
    switch (op) { TT_CHAIN_1(IS_1) TT_CHAIN_2(IS_2) TT_CHAIN_2_BOOL(IS_2) TT_CHAIN_3(IS_3) IS_3(where) }
    return 0;
}

/* The first step's code of a comparison and the choice by it; 0: there is none. */
static int choice_of(int op) {
#define IS_CHOICE(op)                                                                                                  \
    case TT_OP_##op: return TT_STEP_choose_##op;
    switch (op) { TT_CHAIN_CHOICE(IS_CHOICE) }
    return 0;
}

/* What an instruction is to a superinstruction. */
static int kind_of(const tt_instr *x) {
    int code;
    if (x->level == 0) return NONE;
    if (x->kind == TT_INSTR_OP) return x->dtype == TT_F32 && steps_of(x->op, &code) ? OPERATOR : NONE;
    if (x->kind == TT_INSTR_CAST) return x->dtype == TT_BOOL && x->to == TT_F32 ? TO_FLOAT : NONE;
    return x->dtype == TT_F32 ? COPY : NONE;
}

typedef struct {
    tt_kernel *k;
    tt_step *steps;    /* `run` is a code, for now */
    bool *wanted;      /* of each slot: something after the superinstruction looks at it in memory */
    bool *there;       /* of each slot: its value is in memory */
    bool *whole;       /* of each slot: a block of it is read from memory */
    int a, b;          /* the slots whose values are in A and in B; -1 */
    tt_step *open;     /* an operator's step, whose ending is not chosen yet; NULL */
    bool choice;       /* the next instruction and the one after it are one step */
} maker;

static tt_step *step(maker *m, int code, int slot) {
    tt_step *s = &m->steps[m->k->num_steps++];
    *s = (tt_step){.run = (void *)(intptr_t)code, .slot = (int16_t)slot};
    m->open = NULL;
    return s;
}

static bool end_with(maker *m, int ending) {
    if (!m->open) return false;
    m->open->run = (char *)m->open->run + ending;
    m->open = NULL;
    return true;
}

/* Is it the same for all elements of a block? */
static bool is_number(const maker *m, int slot) {
    int kind = m->k->slots[slot].kind;
    return kind == TT_SLOT_CONST || kind == TT_SLOT_ONE || (kind == TT_SLOT_ROW && m->k->block < 2 * m->k->row);
}

static bool reads(const tt_instr *x, int slot) { return x->in[0] == slot || x->in[1] == slot || x->in[2] == slot; }

/* Does it read a row's value that a superinstruction takes as a number? That is worth a superinstruction of its own. */
static bool reads_row(const maker *m, const tt_instr *x) {
    bool row = false;
    for (int j = 0; j < 2 && x->in[1] >= 0 && x->in[2] < 0; j++)
        row |= m->k->slots[x->in[j]].kind == TT_SLOT_ROW && is_number(m, x->in[j]);
    return row;
}

/* The first instruction that reads the slot, from number i on. */
static int next_use(const maker *m, int slot, int i, int end) {
    while (i < end && !reads(&m->k->instrs[i], slot)) i++;
    return slot < 0 || i >= end ? NEVER : i;
}

static void load(maker *m, int slot) {
    bool is_bool = m->k->slots[slot].dtype == TT_BOOL, number = is_number(m, slot);
    step(m, is_bool ? TT_STEP_LOAD_BOOL : number ? TT_STEP_LOAD_NUMBER : TT_STEP_LOAD, slot);
    m->whole[slot] |= is_bool || !number;
    m->a = slot;
}

/* Brings one of n operands to A, unless one is there. */
static void fetch(maker *m, const tt_instr *x, int n) {
    int from = -1;
    for (int j = 0; j < n; j++)
        if (x->in[j] == m->a) return;
    for (int j = 0; j < n; j++)
        if (x->in[j] == m->b) {
            step(m, TT_STEP_RECALL, 0);
            m->a = m->b;
            return;
        }
    for (int j = n - 1; j >= 0; j--)
        if (!is_number(m, x->in[j])) from = x->in[j];
    load(m, from < 0 ? x->in[0] : from);
}

static void operate(maker *m, const tt_instr *x) {
    int code = 0, n = steps_of(x->op, &code), places[3] = {0, 0, 0};
    if (n == 3) fetch(m, x, n);
    for (int j = 0; j < n; j++)
        places[j] = x->in[j] == m->a                  ? TT_IN_A
                    : x->in[j] == m->b                ? TT_IN_B
                    : n > 1 && is_number(m, x->in[j]) ? TT_IN_C
                                                      : TT_IN_M;
    bool numbers = n == 3 && places[0] == TT_IN_A && places[1] == TT_IN_C && places[2] == TT_IN_C;
    int form = 0;
    for (int j = 0; j < n; j++) { /* a slot of numbers has room for a block of them: it may be read as memory too */
        if (n == 3 && places[j] == TT_IN_C && !numbers) places[j] = TT_IN_M;
        form = form * TT_NUM_PLACES + places[j];
        m->whole[x->in[j]] |= places[j] == TT_IN_M;
    }
    tt_step *s = step(m, code + form * TT_ENDINGS, x->in[0]);
    s->more = x->in[1];
    s->third = x->in[2];
    s->to = x->out;
    m->open = s;
}

/* Does instruction i compare with a number, only for the choice that follows? */
static bool is_choice(const maker *m, int i, int end) {
    if (i + 1 >= end) return false;
    const tt_instr *x = &m->k->instrs[i], *y = x + 1;
    if (kind_of(x) != OPERATOR || !choice_of(x->op) || is_number(m, x->in[0]) || !is_number(m, x->in[1])) return false;
    return kind_of(y) == OPERATOR && y->op == TT_OP_where && y->in[0] == x->out && !m->wanted[x->out] &&
           next_use(m, x->out, i + 2, end) == NEVER;
}

static int place_of(const maker *m, int slot) {
    return slot == m->a ? TT_IN_A : slot == m->b ? TT_IN_B : is_number(m, slot) ? TT_IN_C : TT_IN_M;
}

/* The step of a comparison x, whose operand is in A or B, and of the choice after it. */
static void choose(maker *m, const tt_instr *x) {
    int form = place_of(m, x->in[0]);
    for (int j = 1; j < 3; j++) {
        int place = place_of(m, x[1].in[j]);
        form = form * TT_NUM_PLACES + place;
        m->whole[x[1].in[j]] |= place == TT_IN_M;
    }
    tt_step *s = step(m, choice_of(x->op) + form * TT_ENDINGS, x->in[1]);
    s->more = x[1].in[1];
    s->third = x[1].in[2];
    s->to = x[1].out;
    m->open = s;
}

static void store(maker *m, int slot, bool kept) {
    bool is_bool = m->k->slots[slot].dtype == TT_BOOL;
    if (kept) step(m, is_bool ? TT_STEP_STORE_KEPT_BOOL : TT_STEP_STORE_KEPT, slot);
    else if (!end_with(m, TT_STORED)) step(m, is_bool ? TT_STEP_STORE_BOOL : TT_STEP_STORE, slot);
    m->there[slot] = true;
}

/* Instruction i has left its result in A, where the next one finds it. For those that come later it is kept in B, or in
 * memory. */
static void keep(maker *m, int i, int end) {
    int slot = m->a, compared = is_choice(m, i + 1, end) ? m->k->instrs[i + 1].in[0] : -1;
    m->choice = compared >= 0 && (compared == slot || compared == m->b);
    int use = next_use(m, slot, i + 2 + m->choice, end), other = next_use(m, m->b, i + 1, end);
    if (m->wanted[slot]) store(m, slot, false);
    if (use == NEVER) return;
    if (m->choice && compared != slot) { /* B stays as it is */
        if (!m->there[slot]) store(m, slot, false);
        return;
    }
    if (other != NEVER && !m->there[m->b] && !m->there[slot]) {
        if (other <= use + FAR) { /* storing it costs no step of its own */
            store(m, slot, false);
            return;
        }
        store(m, m->b, true);
    }
    if (other == NEVER || (m->there[m->b] && (use < other || !m->there[slot]))) {
        if (!end_with(m, TT_KEPT)) step(m, TT_STEP_KEEP, 0);
        m->b = slot;
    }
}

/* May a value be made in the place of an operand? */
static bool share(const tt_kernel *k, int slot, int operand) {
    const tt_slot *s = &k->slots[slot], *o = &k->slots[operand];
    if (s->buffer >= 0 && s->buffer == o->buffer) return true;
    for (int i = 0; i < k->num_stores && o->kind == TT_SLOT_LOAD; i++)
        if (k->stores[i].slot == slot && k->accesses[k->stores[i].access].storage == k->accesses[o->index].storage)
            return true;
    return false;
}

/* True if no store of the superinstruction aliases one of its loads: then elements may be computed twice. */
static bool may_run_twice(const maker *m, int first, int end) {
    const tt_instr *instrs = m->k->instrs;
    for (int i = first; i < end; i++)
        for (int j = first; j < end && m->there[instrs[i].out]; j++)
            for (int o = 0; o < 3 && instrs[j].in[o] >= 0; o++) {
                bool inside = false;
                for (int p = first; p < j; p++) inside |= instrs[p].out == instrs[j].in[o];
                if (!inside && share(m->k, instrs[i].out, instrs[j].in[o])) return false;
            }
    return true;
}

static void make_superinstruction(maker *m, int first, int end) {
    tt_kernel *k = m->k;
    tt_superinstruction *made = &k->superinstructions[k->num_superinstructions++];
    *made = (tt_superinstruction){.first_instr = (int16_t)first, .end_instr = (int16_t)end, .first_step = k->num_steps};
    m->a = m->b = -1;
    m->open = NULL;
    for (int s = 0; s < k->num_slots; s++) m->there[s] = true;
    for (int i = first; i < end; i++) m->there[k->instrs[i].out] = false;
    m->choice = is_choice(m, first, end);
    if (m->choice) load(m, k->instrs[first].in[0]);
    for (int i = first; i < end; i++) {
        const tt_instr *x = &k->instrs[i];
        int kind = kind_of(x);
        if (m->choice) {
            choose(m, x++);
            i++;
        } else if (kind == OPERATOR) operate(m, x);
        else {
            fetch(m, x, 1);
            if (kind == TO_FLOAT) step(m, TT_STEP_BOOL_TO_FLOAT, 0);
        }
        m->a = x->out;
        keep(m, i, end);
    }
    made->twice = may_run_twice(m, first, end);
    step(m, TT_STEP_END, k->num_steps - made->first_step);
}

/* Which slots are looked at by anything else than the instructions before `end`? */
static void find_wanted(const tt_kernel *k, int end, bool *wanted) {
    for (int s = 0; s < k->num_slots; s++) wanted[s] = k->slots[s].last > k->slots[s].stage;
    for (int i = 0; i < k->num_stores; i++) wanted[k->stores[i].slot] = true;
    for (int i = 0; i < k->num_reductions && k->pattern != TT_PATTERN_EXTERN; i++) wanted[k->reductions[i].slot] = true;
    for (int i = end; i < k->num_instrs; i++)
        for (int j = 0; j < 3; j++)
            if (k->instrs[i].in[j] >= 0) wanted[k->instrs[i].in[j]] = true;
}

/* Instructions that are run by themselves read blocks. */
static void find_whole(maker *m, int first, int end) {
    for (int i = first; i < end; i++)
        for (int j = 0; j < 3; j++)
            if (m->k->instrs[i].in[j] >= 0) m->whole[m->k->instrs[i].in[j]] = true;
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
                x->late |=
                    in && in->kind == TT_SLOT_LOAD && k->accesses[in->index].storage == k->accesses[x->access].storage;
            }
            made |= y->out == x->slot;
        }
    }
}

/* A bool is best made right before it is wanted, when it is still in A: a comparison moves down to the first
 * instruction that reads it. */
void tt_delay_bools(tt_kernel *k) {
    for (int i = k->num_instrs - 2; i >= 0; i--) {
        const tt_instr x = k->instrs[i];
        if (kind_of(&x) != OPERATOR || k->slots[x.out].dtype != TT_BOOL) continue;
        int to = i;
        for (; to + 1 < k->num_instrs; to++) {
            const tt_instr *y = &k->instrs[to + 1];
            if (y->stage != x.stage || y->level != x.level || reads(y, x.out)) break;
            k->instrs[to] = *y;
        }
        k->instrs[to] = x;
    }
}

/* Which pair two instructions are. */
static int pair_of(const tt_instr *x, const tt_instr *y) {
    if (x->kind != TT_INSTR_OP || y->kind != TT_INSTR_OP || x->dtype != TT_F32 || y->dtype != TT_F32) return TT_NO_PAIR;
    if (x->level != 1 || y->level != 1 || x->stage != y->stage) return TT_NO_PAIR;
    if (x->in[0] != y->in[1] || x->out == y->in[0]) return TT_NO_PAIR;
#define IS_PAIR(op_, derivative)                                                                                       \
    if (x->op == TT_OP_##op_ && y->op == TT_OP_##derivative) return TT_PAIR_##op_;
    TT_PAIRS(IS_PAIR)
    return TT_NO_PAIR;
}

/* Puts two instructions side by side: what wants the first one's result, directly or not, goes after the two, all else
 * before them. Where they are then; -1: the last one wants it. */
static int bring_together(tt_kernel *k, int first, int last) {
    tt_instr later[TT_FUSE_KERNEL_NODES], x = k->instrs[first], y = k->instrs[last];
    int num_later = 0, at = first;
    for (int i = first + 1; i <= last; i++) {
        bool waits = reads(&k->instrs[i], x.out);
        for (int j = 0; j < num_later; j++) waits |= reads(&k->instrs[i], later[j].out);
        if (waits && (i == last || num_later == TT_FUSE_KERNEL_NODES)) return -1;
        if (waits) later[num_later++] = k->instrs[i];
    }
    for (int i = first + 1, j = 0; i < last; i++)
        if (j < num_later && later[j].out == k->instrs[i].out) j++;
        else k->instrs[at++] = k->instrs[i];
    k->instrs[at] = x;
    k->instrs[at + 1] = y;
    for (int j = 0; j < num_later; j++) k->instrs[at + 2 + j] = later[j];
    return at;
}

/* Operators that begin alike go side by side. There is one of the same x, and perhaps several derivatives. */
void tt_pair_up(tt_kernel *k) {
    tt_instr *x = k->instrs;
    for (int slot = 0, i, j; slot < k->num_slots; slot++) {
        for (i = 0; i < k->num_instrs && x[i].out != slot;) i++;
        for (j = 0; i < k->num_instrs && j < k->num_instrs && !pair_of(&x[i], &x[j]);) j++;
        if (i == k->num_instrs || j == k->num_instrs) continue;
        int at = i < j ? bring_together(k, i, j) : bring_together(k, j, i);
        if (at < 0 || i < j) continue;
        const tt_instr derivative = x[at];
        x[at] = x[at + 1];
        x[at + 1] = derivative;
    }
    for (int i = 0; i + 1 < k->num_instrs; i++) x[i].pair = (int16_t)pair_of(&x[i], &x[i + 1]);
}

/* The steps, with the functions of each instruction set. */
static bool link_steps(tt_kernel *k, const tt_step *steps) {
    int n = k->num_steps;
    if (!(k->steps = calloc(TT_ISAS * (size_t)n + 1, sizeof *k->steps))) return false;
    for (int isa = 0; tt_get_isa(isa); isa++)
        for (int i = 0; i < n; i++) {
            k->steps[isa * n + i] = steps[i];
            k->steps[isa * n + i].run = tt_get_isa(isa)->steps[(intptr_t)steps[i].run];
        }
    return true;
}

bool tt_make_superinstructions(tt_kernel *k) {
    find_late_stores(k);
    size_t slots = (size_t)k->num_slots, instrs = (size_t)k->num_instrs;
    maker m = {.k = k, .wanted = calloc(3 * slots + 1, 1), .steps = malloc(sizeof *m.steps * (6 * instrs + 1))};
    m.there = m.wanted + slots;
    m.whole = m.there + slots;
    k->superinstructions = malloc(sizeof *k->superinstructions * (instrs + 1));
    bool ok = m.wanted && m.steps && k->superinstructions;
    for (int p = 0; ok && p < 2 * k->num_stages; p++) {
        tt_part *part = &k->parts[p];
        part->first_super = k->num_superinstructions;
        for (int i = part->first_instr, end; i < part->end_instr; i = end + 1) {
            for (end = i; end < part->end_instr && kind_of(&k->instrs[end]) != NONE;) end++;
            if (end - i < 2 && (end == i || !reads_row(&m, &k->instrs[i]))) {
                find_whole(&m, i, end + 1 < part->end_instr ? end + 1 : part->end_instr);
                continue;
            }
            find_wanted(k, end, m.wanted);
            make_superinstruction(&m, i, end);
            find_whole(&m, end, end + 1 < part->end_instr ? end + 1 : part->end_instr);
        }
        part->end_super = k->num_superinstructions;
    }
    for (int s = 0; ok && s < k->num_slots; s++)
        if (k->slots[s].kind == TT_SLOT_ROW && is_number(&m, s)) k->slots[s].index = !m.whole[s];
    ok = ok && link_steps(k, m.steps);
    free(m.wanted);
    free(m.steps);
    return ok;
}
