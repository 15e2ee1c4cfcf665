/* Fused mode's interpreter, inner part: the work on one block. A kernel whose stages were compiled takes the compiled
 * functions in the place of their instructions; all else is the same. */
#include "cpu/superinstructions.h"
#include "cpu/random.h"
#include "cpu/interpret.h"
#include <string.h>

#define SLICE 512    /* elements that several loops work on in turn */

typedef tt_kernel_job job;

typedef tt_kernel_worker worker;

static tt_strided_iter iterator_of(const job *j, int access) {
    const tt_access *a = &j->k->accesses[access];
    bool rows = a->level == 0 && j->k->pattern == TT_PATTERN_ROW_REDUCTION;
    return (tt_strided_iter){.ndim = rows ? j->k->kept : j->k->ndim,
                             .size = tt_itemsizes[a->dtype],
                             .shape = j->k->shape,
                             .strides = a->strides,
                             .data = j->data[access]};
}

/* Where n elements from `at` on lie together; NULL if they do not. */
static char *in_place(const worker *w, int access, int64_t at, int64_t n) {
    const tt_access *a = &w->k->accesses[access];
    if (a->flat) return w->j->data[access] + at * tt_itemsizes[a->dtype];
    tt_strided_iter x = iterator_of(w->j, access);
    int last = x.ndim - 1;
    int64_t row = x.shape[last], in_row = at % row, rest = at / row;
    if (in_row + n > row || (x.strides[last] != x.size && n > 1)) return NULL;
    char *p = x.data + in_row * x.strides[last];
    for (int d = last - 1; d >= 0; d--) {
        p += rest % x.shape[d] * x.strides[d];
        rest /= x.shape[d];
    }
    return p;
}

static char *buffer_of(const worker *w, int slot) {
    int at = w->k->slots[slot].buffer;
    return at < 0 ? NULL : w->arena + (int64_t)at * 64;
}

char *tt_worker_load(const worker *w, int slot, int64_t at, int64_t n) {
    int access = w->k->slots[slot].index;
    char *p = in_place(w, access, at, n);
    if (p) return p;
    tt_strided_iter x = iterator_of(w->j, access);
    tt_strided_move(&x, at, n, p = buffer_of(w, slot), true);
    return p;
}

/* The slots whose place does not depend on the block. */
static void begin_work(worker *w) {
    const tt_kernel *k = w->k;
    for (int s = 0; s < k->num_slots; s++) {
        const tt_slot *x = &k->slots[s];
        int size = tt_itemsizes[x->dtype];
        char *p = w->p[s] = buffer_of(w, s);
        if (w->j->repeated[s]) {
            tt_strided_iter a = iterator_of(w->j, x->index);
            tt_strided_move(&a, 0, k->numel < k->block ? k->numel : k->block, p, true);
        }
        if (x->kind != TT_SLOT_CONST && x->kind != TT_SLOT_ONE) continue;
        if (x->kind == TT_SLOT_CONST) {
            const tt_number *c = &w->j->numbers[x->index];
            tt_isa->casts[c->dtype][x->dtype](p, &c->bits, 1);
        } else memcpy(p, w->j->data[x->index], (size_t)size);
        int64_t n = x->level ? k->block : k->together;
        if (n > 1) tt_move(p + size, size, p, 0, n - 1, size);
    }
}

static const tt_part *part_of(const tt_kernel *k, int stage, int level) { return &k->parts[2 * stage + 1 - level]; }

/* Elements of a row's value that only superinstructions read: as many as are worked on at a time after one. */
static bool is_single(const tt_kernel *k, int slot) {
    return k->slots[slot].kind == TT_SLOT_ROW && k->slots[slot].index;
}

/* One instruction, on the elements of the block from number `from` to `end`. */
static void instruction(const worker *w, const tt_instr *x, int64_t from, int64_t end) {
    const tt_slot *slots = w->k->slots;
    char *p[4] = {w->p[x->out] + from * tt_itemsizes[slots[x->out].dtype]};
    for (int j = 0; j < 3 && x->in[j] >= 0; j++)
        p[j + 1] = w->p[x->in[j]] + (is_single(w->k, x->in[j]) ? 0 : from * tt_itemsizes[slots[x->in[j]].dtype]);
    if (x->kind == TT_INSTR_OP) tt_isa->ops[x->op][x->dtype](p, end - from);
    else if (x->kind == TT_INSTR_CAST) tt_isa->casts[x->dtype][x->to](p[0], p[1], end - from);
    else memcpy(p[0], p[1], (size_t)((end - from) * tt_itemsizes[x->dtype]));
}

/* The same of a pair, whose first is x. */
static void pair(const worker *w, const tt_instr *x, int64_t from, int64_t end) {
    int slots[4] = {x[0].out, x[1].out, x[0].in[0], x[1].in[0]};
    char *p[4];
    for (int j = 0; j < 4; j++) p[j] = w->p[slots[j]] + from * 4;
    tt_isa->pairs[x->pair](p, end - from);
}

static bool is_one_loop(const tt_kernel *k, const tt_part *part) {
    const tt_superinstruction *super = &k->superinstructions[part->first_super];
    if (part->first_super == part->end_super) return part->end_instr - part->first_instr < 2;
    return super->first_instr == part->first_instr && super->end_instr == part->end_instr;
}

/* Those of a stage, on n elements. Several loops over memory go slice by slice: the processor asks for what follows in
 * a page of it while they compute, and not beyond the page. */
static void instructions(const worker *w, int stage, int level, int64_t n) {
    const tt_kernel *k = w->k;
    const tt_part *part = part_of(k, stage, level);
    int64_t slice = is_one_loop(k, part) ? n : SLICE;
    for (int64_t from = 0, end; from < n; from = end) {
        end = n - from < 2 * slice ? n : from + slice;
        for (int i = part->first_instr, c = part->first_super; i < part->end_instr;) {
            const tt_instr *x = &k->instrs[i];
            const tt_superinstruction *super = &k->superinstructions[c];
            if (x->pair) pair(w, x, from, end);
            else if (c == part->end_super || super->first_instr != i) instruction(w, x, from, end);
            else {
                const tt_step *steps = k->steps + tt_isa_index * k->num_steps + super->first_step;
                int64_t done = tt_isa->superinstruction(steps, w->p, from, end, super->twice);
                for (int64_t stop; done < end; done = stop) {
                    stop = end - done < TT_MOST_LEFT ? end : done + TT_MOST_LEFT;
                    for (int left = i; left < super->end_instr; left++) instruction(w, &k->instrs[left], done, stop);
                }
                i = super->end_instr - 1;
                c++;
            }
            i += x->pair ? 2 : 1;
        }
    }
}

static char *draw_block(const worker *w, const tt_slot *x, char *buffer, int64_t at, int64_t n) {
    tt_draw draw = tt_draw_of(x, w->j->numbers);
    return tt_random_block(&draw, x->dtype, buffer, at, n);
}

/* memcpy knows wider stores than this file is compiled for. */
#define SPREAD(T)                                                                                                      \
    for (int64_t at = 0; at < n; at += row, value += sizeof(T)) {                                                      \
        T v, *p = (T *)to + at;                                                                                        \
        memcpy(&v, value, sizeof v);                                                                                   \
        int64_t done = row < 64 ? row : 64;                                                                            \
        for (int64_t i = 0; i < done; i++) p[i] = v;                                                                   \
        for (int64_t m; done < row; done += m) {                                                                       \
            m = row - done < done ? row - done : done;                                                                 \
            memcpy(p + done, p, (size_t)m * sizeof(T));                                                                \
        }                                                                                                              \
    }

/* For each of n elements its row's value. Rows worked on one at a time have one value for the whole block and for those
 * that follow; compiled functions take it as it is. */
static char *spread(const worker *w, int slot, int64_t n, int64_t in_group) {
    const tt_kernel *k = w->k;
    int size = tt_itemsizes[k->slots[slot].dtype];
    char *value = w->p[k->slots[slot].from] + in_group / k->row * size, *to = buffer_of(w, slot);
    if (w->j->compiled && k->block < 2 * k->row) return value;
    if (is_single(k, slot) && n > TT_MOST_LEFT) n = TT_MOST_LEFT;
    int64_t row = k->row < n ? k->row : n;
    if (in_group % k->row == 0) switch (size) {
        case 1: SPREAD(uint8_t) break;
        case 2: SPREAD(uint16_t) break;
        case 4: SPREAD(uint32_t) break;
        case 8: SPREAD(uint64_t) break;
        default: SPREAD(tt_complex128) break;
        }
    return to;
}

/* Finds the slots for a stage's work on n elements from `at` on; `in_group`: their place in values that cross
 * stages. */
static void begin_block(worker *w, int stage, int level, int64_t at, int64_t n, int64_t in_group) {
    const tt_kernel *k = w->k;
    const tt_part *part = part_of(k, stage, level);
    int end = w->j->compiled ? part->end_use : part->more_use;
    for (int i = part->first_use; i < end; i++) {
        int s = k->uses[i];
        const tt_slot *x = &k->slots[s];
        if (w->j->repeated[s]) continue;
        if (x->kind == TT_SLOT_LOAD) w->p[s] = tt_worker_load(w, s, at, n);
        else if (x->kind == TT_SLOT_RANDOM) w->p[s] = draw_block(w, x, buffer_of(w, s), at, n);
        else if (x->kind == TT_SLOT_ROW) w->p[s] = spread(w, s, n, in_group);
        else w->p[s] = buffer_of(w, s) + (level == 1 && x->last > x->stage ? in_group * tt_itemsizes[x->dtype] : 0);
    }
    for (int i = part->first_store; i < part->end_store;
         i++) { /* a value made in this stage may be made where it belongs */
        const tt_store *x = &k->stores[i];
        const tt_slot *s = &k->slots[x->slot];
        if (s->kind != TT_SLOT_TEMP || s->stage != stage || s->last > stage || (x->late && !w->j->compiled)) continue;
        char *p = in_place(w, x->access, at, n);
        if (p && w->p[x->slot] == buffer_of(w, x->slot)) w->p[x->slot] = p;
    }
}

static void end_block(worker *w, int stage, int level, int64_t at, int64_t n) {
    const tt_part *part = part_of(w->k, stage, level);
    for (int i = part->first_store; i < part->end_store; i++) {
        const tt_store *x = &w->k->stores[i];
        char *p = in_place(w, x->access, at, n), *from = w->p[x->slot];
        if (p == from) continue;
        tt_strided_iter to = iterator_of(w->j, x->access);
        if (p) memcpy(p, from, (size_t)(n * to.size));
        else tt_strided_move(&to, at, n, from, false);
    }
}

void tt_worker_block(worker *w, int stage, int64_t at, int64_t n, int64_t in_group) {
    begin_block(w, stage, 1, at, n, in_group);
    if (w->j->compiled) ((void (*)(char **, int64_t))w->k->compiled[stage])(w->p, n);
    else instructions(w, stage, 1, n);
    end_block(w, stage, 1, at, n);
}

void tt_worker_rows(worker *w, int stage, int64_t first, int64_t rows) {
    begin_block(w, stage, 0, first, rows, 0);
    instructions(w, stage, 0, rows);
    end_block(w, stage, 0, first, rows);
}

void tt_worker_start(worker *w, const job *j, char **slots) {
    *w = (worker){.j = j, .k = j->k, .p = slots};
    for (int i = 0;; i = (i + 1) % j->arenas->num) /* there are as many as threads: one is free */
        if (!__atomic_exchange_n(&j->arenas->busy[i], 1, __ATOMIC_ACQUIRE)) {
            w->which = i;
            break;
        }
    w->arena = j->arenas->memory + w->which * j->arenas->size;
    begin_work(w);
}

void tt_worker_stop(worker *w) { __atomic_store_n(&w->j->arenas->busy[w->which], 0, __ATOMIC_RELEASE); }
