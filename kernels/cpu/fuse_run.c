/* Fused mode's interpreter: runs kernels over memory, block by block. A kernel whose stages were compiled
 * takes the compiled functions in the place of their instructions; all else is the same. */
#include "chain.h"
#include "fuse_run.h"
#include <string.h>

#define SLICE 512    /* elements that several loops work on in turn */
#define WIDE 2048    /* columns that are worked on side by side, at most */
#define RUN 8        /* rows of them that are worked on one after the other, as memory has them; a divisor of TT_LANES */
#define MOST_SLOTS (10 * TT_FUSE_KERNEL_NODES)

typedef tt_kernel_job job;

/* One thread's view of a kernel at work. */
typedef struct {
    const job *j;
    const tt_kernel *k;
    char *arena, **p; /* p: of each slot */
    int which;
} worker;

static tt_walk walk_of(const job *j, int access) {
    const tt_access *a = &j->k->accesses[access];
    bool rows = a->level == 0 && j->k->walk == TT_WALK_ROWS;
    return (tt_walk){.ndim = rows ? j->k->kept : j->k->ndim, .size = tt_itemsizes[a->dtype], .shape = j->k->shape,
                  .strides = a->strides, .data = j->data[access]};
}

/* Where n elements from `at` on lie together; NULL if they do not. */
static char *in_place(const worker *w, int access, int64_t at, int64_t n) {
    const tt_access *a = &w->k->accesses[access];
    if (a->flat) return w->j->data[access] + at * tt_itemsizes[a->dtype];
    tt_walk x = walk_of(w->j, access);
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

static char *load(const worker *w, int slot, int64_t at, int64_t n) {
    int access = w->k->slots[slot].index;
    char *p = in_place(w, access, at, n);
    if (p) return p;
    tt_walk x = walk_of(w->j, access);
    tt_walk_move(&x, at, n, p = buffer_of(w, slot), true);
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
            tt_walk a = walk_of(w->j, x->index);
            tt_walk_move(&a, 0, k->numel < k->block ? k->numel : k->block, p, true);
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

/* Of a row's value that only chains read, there are as many elements as a chain may leave over. */
static bool is_single(const tt_kernel *k, int slot) { return k->slots[slot].kind == TT_SLOT_ROW && k->slots[slot].index; }

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
    const tt_chain *chain = &k->chains[part->first_chain];
    if (part->first_chain == part->end_chain) return part->end_instr - part->first_instr < 2;
    return chain->first_instr == part->first_instr && chain->end_instr == part->end_instr;
}

/* Those of a stage, on n elements. Several loops over memory go slice by slice: the processor asks for what follows in
 * a page of it while they compute, and not beyond the page. */
static void instructions(const worker *w, int stage, int level, int64_t n) {
    const tt_kernel *k = w->k;
    const tt_part *part = part_of(k, stage, level);
    int64_t slice = is_one_loop(k, part) ? n : SLICE;
    for (int64_t from = 0, end; from < n; from = end) {
        end = n - from < 2 * slice ? n : from + slice;
        for (int i = part->first_instr, c = part->first_chain; i < part->end_instr;) {
            const tt_instr *x = &k->instrs[i];
            const tt_chain *chain = &k->chains[c];
            if (x->pair) pair(w, x, from, end);
            else if (c == part->end_chain || chain->first_instr != i) instruction(w, x, from, end);
            else {
                const tt_step *steps = k->steps + tt_isa_index * k->num_steps + chain->first_step;
                int64_t done = tt_isa->chain(steps, w->p, from, end, chain->twice);
                for (int left = i; done < end && left < chain->end_instr; left++)
                    instruction(w, &k->instrs[left], done, end);
                i = chain->end_instr - 1;
                c++;
            }
            i += x->pair ? 2 : 1;
        }
    }
}

static char *draw_block(const worker *w, const tt_slot *x, char *buffer, int64_t at, int64_t n) {
    const tt_number *c = w->j->numbers + x->index;
    tt_draw draw = {.seed = (uint64_t)c[0].bits, .draw = (uint64_t)c[1].bits, .kind = x->from & 7, .digits = x->from >> 3,
                    .low = c[4].bits, .range = (uint64_t)c[5].bits};
    memcpy(&draw.a, &c[2].bits, 8);
    memcpy(&draw.b, &c[3].bits, 8);
    return tt_random_block(&draw, x->dtype, buffer, at, n);
}

/* memcpy knows wider stores than this file is compiled for. */
#define SPREAD(T)                                                                                   \
    for (int64_t at = 0; at < n; at += row, value += sizeof(T)) {                                   \
        T v, *p = (T *)to + at;                                                                     \
        memcpy(&v, value, sizeof v);                                                                \
        int64_t done = row < 64 ? row : 64;                                                         \
        for (int64_t i = 0; i < done; i++) p[i] = v;                                                \
        for (int64_t m; done < row; done += m) {                                                    \
            m = row - done < done ? row - done : done;                                              \
            memcpy(p + done, p, (size_t)m * sizeof(T));                                             \
        }                                                                                           \
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
        default: SPREAD(uint64_t) break;
    }
    return to;
}

/* Finds the slots for a stage's work on n elements from `at` on; `in_group`: their place in values that cross stages. */
static void begin_block(worker *w, int stage, int level, int64_t at, int64_t n, int64_t in_group) {
    const tt_kernel *k = w->k;
    const tt_part *part = part_of(k, stage, level);
    int end = w->j->compiled ? part->end_use : part->more_use;
    for (int i = part->first_use; i < end; i++) {
        int s = k->uses[i];
        const tt_slot *x = &k->slots[s];
        if (w->j->repeated[s]) continue;
        if (x->kind == TT_SLOT_LOAD) w->p[s] = load(w, s, at, n);
        else if (x->kind == TT_SLOT_RANDOM) w->p[s] = draw_block(w, x, buffer_of(w, s), at, n);
        else if (x->kind == TT_SLOT_ROW) w->p[s] = spread(w, s, n, in_group);
        else w->p[s] = buffer_of(w, s) + (level == 1 && x->last > x->stage ? in_group * tt_itemsizes[x->dtype] : 0);
    }
    for (int i = part->first_store; i < part->end_store; i++) { /* a value made in this stage may be made where it belongs */
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
        tt_walk to = walk_of(w->j, x->access);
        if (p) memcpy(p, from, (size_t)(n * to.size));
        else tt_walk_move(&to, at, n, from, false);
    }
}

static void work(worker *w, int stage, int64_t at, int64_t n, int64_t in_group) {
    begin_block(w, stage, 1, at, n, in_group);
    if (w->j->compiled) ((void (*)(char **, int64_t))w->k->compiled[stage])(w->p, n);
    else instructions(w, stage, 1, n);
    end_block(w, stage, 1, at, n);
}

static void start(worker *w, const job *j, char **slots) {
    *w = (worker){.j = j, .k = j->k, .p = slots};
    for (int i = 0;; i = (i + 1) % j->arenas->num) /* there are as many as threads: one is free */
        if (!__atomic_exchange_n(&j->arenas->busy[i], 1, __ATOMIC_ACQUIRE)) {
            w->which = i;
            break;
        }
    w->arena = j->arenas->memory + w->which * j->arenas->size;
    begin_work(w);
}

static void stop(worker *w) { __atomic_store_n(&w->j->arenas->busy[w->which], 0, __ATOMIC_RELEASE); }

static void flat_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const tt_kernel *k = j->k;
    char *slots[MOST_SLOTS];
    worker w;
    int64_t row = k->shape[k->ndim - 1], most = j->direct && j->compiled ? end - begin : k->block;
    start(&w, j, slots);
    for (int64_t at = begin; at < end;) {
        int64_t n = end - at < most ? end - at : most, in_row = at % row;
        if (row >= TT_ROW && n > row - in_row) n = row - in_row;
        work(&w, 0, at, n, 0);
        at += n;
    }
    stop(&w);
}

/* Rows of few elements: their first elements side by side, then their second ones, and so on, so
 * that all rows go through the tree together. */
static void fold_short(const worker *w, const tt_reducer *r, int64_t rows, const char *x, int size, char *out, int acc,
                       const char *param) {
    int64_t row = w->k->row, live = row, pitch = rows * acc;
    char *lanes = w->arena + w->k->arena, *column = lanes + row * pitch;
    for (int64_t l = 0; l < row; l++) {
        tt_move(column, size, x + l * size, row * size, rows, size);
        r->first(lanes + l * pitch, column, rows, param);
    }
    for (int64_t h = TT_LANES / 2; h > 0; h /= 2)
        if (live > h) {
            r->join(lanes, lanes + h * pitch, (live - h) * rows);
            live = h;
        }
    memcpy(out, lanes, (size_t)pitch);
}

/* Reduces the n elements of a block: rows from number q of the group on, or part of one. */
static void fold_block(const worker *w, const tt_fold *f, int64_t q, int64_t done, int64_t n) {
    const tt_reducer *r = tt_get_reducer(f->reducer, f->dtype);
    int size = tt_itemsizes[f->dtype], acc = tt_itemsizes[f->acc];
    const char *param = f->param >= 0 ? w->p[f->param] + q * acc : NULL, *x = w->p[f->slot];
    char *out = w->p[f->out] + q * acc;
    int64_t row = w->k->row;
    if (row > TT_BLOCK) r->fold(w->arena + (int64_t)f->partials * 64 + done / TT_BLOCK * acc, x, n, param);
    else if (row <= TT_SHORT && n >= 8 * row) fold_short(w, r, n / row, x, size, out, acc, param);
    else
        for (; n > 0; n -= row) {
            r->fold(out, x, row, param);
            out += acc;
            x += row * size;
            if (param) param += acc;
        }
}

static bool is_total(const tt_kernel *k, const tt_fold *f) { return k->walk == TT_WALK_ROWS && f->out < 0; }

/* n more elements of all rows, the first of them number `at`: whatever makes a block of TT_BLOCK is reduced. */
static void add_to_total(const worker *w, int i, int64_t at, int64_t n) {
    const tt_fold *f = &w->k->folds[i];
    const tt_reducer *r = tt_get_reducer(f->reducer, f->dtype);
    int64_t size = tt_itemsizes[f->dtype], left = w->k->numel - at / TT_BLOCK * TT_BLOCK;
    char *x = w->p[f->slot], *waiting = w->arena + (int64_t)f->partials * 64;
    for (int64_t m; n > 0; n -= m, at += m, x += m * size, left -= TT_BLOCK) {
        int64_t in_block = at % TT_BLOCK, whole = left < TT_BLOCK ? left : TT_BLOCK;
        m = whole - in_block < n ? whole - in_block : n;
        if (m < whole) memcpy(waiting + in_block * size, x, (size_t)(m * size));
        if (in_block + m == whole)
            r->fold(w->j->parts[i] + at / TT_BLOCK * tt_itemsizes[f->acc], m < whole ? waiting : x, whole, NULL);
    }
}

/* Asks for the memory that the next group of rows will read and write, while this one is worked on: the processor's own
 * prefetchers lose the thread where stages go over rows in cache. */
static void ask_for(const worker *w, int64_t at, int64_t n) {
    const tt_kernel *k = w->k;
    if (at + n > k->numel) n = k->numel - at;
    for (int a = 0; a < k->num_accesses; a++) {
        const tt_access *x = &k->accesses[a];
        if (!x->level || !x->flat) continue;
        int size = tt_itemsizes[x->dtype];
        const char *p = w->j->data[a] + at * size;
        for (int64_t b = 0; b < n * size; b += 64) __builtin_prefetch(p + b, 1, 2);
    }
}

static void rows_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const tt_kernel *k = j->k;
    char *slots[MOST_SLOTS];
    worker w;
    int64_t together = k->together, blocks = (k->row + TT_BLOCK - 1) / TT_BLOCK;
    int64_t last = end * k->unit < k->rows ? end * k->unit : k->rows;
    start(&w, j, slots);
    for (int64_t first = begin * k->unit; first < last; first += together) {
        int64_t rows = last - first < together ? last - first : together;
        int64_t at = first * k->row, whole = rows * k->row;
        const tt_part *loads = &k->parts[2 * k->num_stages];
        for (int i = loads->first_use; i < loads->end_use; i++) slots[k->uses[i]] = load(&w, k->uses[i], first, rows);
        for (int stage = 0; stage < k->num_stages; stage++) {
            for (int64_t done = 0; done < whole; done += k->block) {
                int64_t n = whole - done < k->block ? whole - done : k->block, q = done / k->row;
                if (stage == k->num_stages - 2) ask_for(&w, at + whole + done, n);
                work(&w, stage, at + done, n, done);
                for (int i = 0; i < k->num_folds; i++) {
                    if (k->folds[i].stage != stage) continue;
                    if (k->folds[i].out < 0) add_to_total(&w, i, at + done, n);
                    else fold_block(&w, &k->folds[i], q, done, n);
                }
            }
            for (int i = 0; i < k->num_folds && blocks > 1; i++) {
                const tt_fold *f = &k->folds[i];
                if (f->stage != stage || f->out < 0) continue;
                int acc = tt_itemsizes[f->acc];
                char *parts = w.arena + (int64_t)f->partials * 64;
                tt_join_blocks(tt_get_reducer(f->reducer, f->dtype), parts, blocks, acc, 1);
                memcpy(w.p[f->out], parts, (size_t)acc);
            }
            begin_block(&w, stage, 0, first, rows, 0);
            instructions(&w, stage, 0, rows);
            end_block(&w, stage, 0, first, rows);
        }
    }
    stop(&w);
}

static void fold_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const tt_kernel *k = j->k;
    char *slots[MOST_SLOTS];
    worker w;
    int64_t blocks = (k->row + TT_BLOCK - 1) / TT_BLOCK;
    start(&w, j, slots);
    for (int64_t u = begin; u < end; u++) {
        int64_t which = u / blocks, at = u % blocks * TT_BLOCK, n = k->row - at < TT_BLOCK ? k->row - at : TT_BLOCK;
        work(&w, 0, which * k->row + at, n, 0);
        for (int i = 0; i < k->num_folds; i++) {
            const tt_fold *f = &k->folds[i];
            int acc = tt_itemsizes[f->acc];
            const char *param = f->param >= 0 ? j->data[f->param] + which * acc : NULL;
            tt_get_reducer(f->reducer, f->dtype)->fold(j->parts[i] + u * acc, w.p[f->slot], n, param);
        }
    }
    stop(&w);
}

/* Of a block's lanes, how many its units leave. */
static int64_t lanes_left(const job *j) { return j->shares > 1 ? RUN : 1; }

/* How many columns are worked on side by side: whole rows if possible, for they follow one another in memory. Should
 * that be too little for the threads, they share a block's lanes, or its columns where rows are few or short. */
static void share_columns(job *j, int64_t blocks) {
    const tt_kernel *k = j->k;
    int64_t tiles = (k->inner + WIDE - 1) / WIDE, threads = tt_get_num_threads(), all = k->rows * blocks;
    j->shares = 1;
    if (2 * k->inner > k->block && k->row >= 8 * TT_LANES)
        while (all * tiles * j->shares < 2 * threads && threads > 1 && j->shares < RUN) j->shares *= 2;
    while (all * tiles * j->shares < threads && k->inner / tiles > 256) tiles *= 2;
    j->tile = tiles == 1 ? k->inner : ((k->inner + tiles - 1) / tiles + 63) / 64 * 64;
}

/* Adds a row of `wide` elements, the n-th of its block, to its lane in each fold's accumulators; the first of them is
 * number `from` of its tile. */
static void add_row(const worker *w, int64_t n, int64_t column, int64_t from, int64_t wide, int64_t in_slot, char *acc) {
    for (int i = 0; i < w->k->num_folds; i++) {
        const tt_fold *f = &w->k->folds[i];
        const tt_reducer *red = tt_get_reducer(f->reducer, f->dtype);
        int size = tt_itemsizes[f->dtype], asize = tt_itemsizes[f->acc];
        const char *param = f->param >= 0 ? w->j->data[f->param] + (column + from) * asize : NULL;
        char *to = acc + (n % TT_LANES * w->j->tile + from) * asize;
        (n < TT_LANES ? red->first : red->next)(to, w->p[f->slot] + in_slot * size, wide, param);
        acc += TT_LANES * w->j->tile * 8;
    }
}

/* One block of up to TT_BLOCK rows, one tile of columns, one share of the lanes: TT_LANES rows of accumulators, as in
 * reduce_run.c. Wide tiles go in runs of rows: they follow one another, and their accumulators stay in cache. A share
 * is a part of every run: what l + TT_LANES/2 ... l + RUN are joined with is in the same share as l, and RUN lanes are
 * left for `deliver`. */
static void columns_unit(worker *w, int64_t u, int64_t tiles, int64_t blocks, char *tile) {
    const job *j = w->j;
    const tt_kernel *k = w->k;
    int64_t share = u % j->shares, left = u / j->shares % tiles * j->tile, which = u / j->shares / tiles;
    int64_t block = which % blocks, outer = which / blocks;
    int64_t wide = k->inner - left < j->tile ? k->inner - left : j->tile, column = outer * k->inner + left;
    int64_t row0 = block * TT_BLOCK, n = k->row - row0 < TT_BLOCK ? k->row - row0 : TT_BLOCK;
    int64_t at = (outer * k->row + row0) * k->inner + left, together = tiles == 1 ? k->block / wide : 1;
    int64_t run = RUN / j->shares, first = share * run;
    if (together > 1)
        for (int64_t r = 0; r < n; r += together) {
            int64_t rows = n - r < together ? n - r : together;
            work(w, 0, at + r * k->inner, rows * wide, 0);
            for (int64_t q = 0; q < rows; q++) add_row(w, r + q, column, 0, wide, q * wide, tile);
        }
    else
        for (int64_t lane = first; lane < TT_LANES; lane += RUN)
            for (int64_t r0 = lane; r0 < n; r0 += TT_LANES)
                for (int64_t r = r0; r < n && r < r0 + run; r++)
                    for (int64_t c = 0, m; c < wide; c += m) {
                        m = wide - c < k->block ? wide - c : k->block;
                        work(w, 0, at + r * k->inner + c, m, 0);
                        add_row(w, r, column, c, m, 0, tile);
                    }
    char *acc = tile;
    for (int i = 0; i < k->num_folds; i++) {
        const tt_fold *f = &k->folds[i];
        const tt_reducer *r = tt_get_reducer(f->reducer, f->dtype);
        int64_t asize = tt_itemsizes[f->acc], pitch = j->tile * asize, lanes = lanes_left(j);
        for (int64_t h = TT_LANES / 2; h >= lanes; h /= 2)
            for (int64_t l = 0; l < h && l + h < n; l++)
                if (l % RUN >= first && l % RUN < first + run) r->join(acc + l * pitch, acc + (l + h) * pitch, wide);
        for (int64_t l = first; l < first + run && l < lanes && l < n; l++)
            memcpy(j->parts[i] + (((outer * blocks + block) * lanes + l) * k->inner + left) * asize, acc + l * pitch,
                   (size_t)(wide * asize));
        acc += TT_LANES * j->tile * 8;
    }
}

static void columns_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    const tt_kernel *k = j->k;
    char *slots[MOST_SLOTS];
    worker w;
    int64_t blocks = (k->row + TT_BLOCK - 1) / TT_BLOCK, tiles = (k->inner + j->tile - 1) / j->tile;
    start(&w, j, slots);
    for (int64_t u = begin; u < end; u++) columns_unit(&w, u, tiles, blocks, w.arena + k->arena);
    stop(&w);
}

/* How many accumulators a fold leaves: its blocks' results, or lanes of them. */
static int64_t num_parts(const job *j, const tt_fold *f) {
    const tt_kernel *k = j->k;
    if (is_total(k, f)) return (k->numel + TT_BLOCK - 1) / TT_BLOCK;
    return k->walk == TT_WALK_ROWS ? 0 : k->rows * ((k->row + TT_BLOCK - 1) / TT_BLOCK) * lanes_left(j) * k->inner;
}

int64_t tt_job_parts(const job *j, int fold) {
    const tt_fold *f = &j->k->folds[fold];
    return num_parts(j, f) * tt_itemsizes[f->acc];
}

int64_t tt_job_arena(const job *j) {
    const tt_kernel *k = j->k;
    int64_t extra = k->walk == TT_WALK_COLUMNS ? k->num_folds * TT_LANES * j->tile * 8 : 0;
    if (k->walk == TT_WALK_ROWS && k->row <= TT_SHORT) extra = 2 * k->block * 8; /* see fold_short */
    return k->arena + extra;
}

void tt_job_divide(job *j, int64_t work) {
    const tt_kernel *k = j->k;
    int64_t blocks = (k->row + TT_BLOCK - 1) / TT_BLOCK;
    j->units = k->numel;
    j->grain = work / k->weight;
    j->range = flat_range;
    if (k->walk == TT_WALK_FLAT) {
        j->grain = (j->grain + k->block - 1) / k->block * k->block; /* so that blocks begin where `repeated` has it */
    } else if (k->walk == TT_WALK_ROWS) {
        j->units = (k->rows + k->unit - 1) / k->unit;
        j->grain /= k->unit * k->row;
        j->range = rows_range;
    } else if (k->walk == TT_WALK_FOLD) {
        j->units = k->rows * blocks;
        j->grain /= k->row < TT_BLOCK ? k->row : TT_BLOCK;
        j->range = fold_range;
    } else {
        share_columns(j, blocks);
        j->units = k->rows * blocks * ((k->inner + j->tile - 1) / j->tile) * j->shares;
        j->grain /= (k->row < TT_BLOCK ? k->row : TT_BLOCK) * ((j->tile + j->shares - 1) / j->shares);
        j->range = columns_range;
    }
    if (j->grain < 1) j->grain = 1;
}

/* From the blocks' results to the results. */
void tt_job_deliver(const job *j) {
    const tt_kernel *k = j->k;
    for (int i = 0; i < k->num_folds; i++) {
        const tt_fold *f = &k->folds[i];
        const tt_reducer *r = tt_get_reducer(f->reducer, f->dtype);
        bool total = is_total(k, f);
        int64_t parts = num_parts(j, f), rows = total ? 1 : k->rows, n = total ? 1 : k->inner, lanes = total ? 1 : lanes_left(j);
        int64_t blocks = parts / (rows * n * lanes), bytes = n * tt_itemsizes[f->acc];
        for (int64_t u = 0; u < rows && parts; u++) {
            char *p = j->parts[i] + u * blocks * lanes * bytes;
            for (int64_t b = 0; b < blocks && lanes > 1; b++)
                for (int64_t h = lanes / 2, live = k->row - b * TT_BLOCK; h > 0; h /= 2) {
                    if (live > 2 * h) live = 2 * h;
                    if (live > h) r->join(p + b * lanes * bytes, p + (b * lanes + h) * bytes, (live - h) * n);
                }
            tt_join_blocks(r, p, blocks, lanes * bytes, n);
            memcpy(j->data[f->access] + u * bytes, p, (size_t)bytes);
        }
    }
}

bool tt_job_call(const job *j) {
    const tt_kernel *k = j->k;
    const tt_fold *f = &k->folds[0];
    const tt_access *from = &k->accesses[f->slot];
    int size = tt_itemsizes[from->dtype], acc = tt_itemsizes[f->acc];
    tt_array a = {.data = j->data[f->slot], .dtype = from->dtype, .ndim = k->ndim, .numel = k->numel};
    for (int d = 0; d < k->ndim; d++) {
        a.shape[d] = k->shape[d];
        a.strides[d] = from->strides[d] / size;
    }
    tt_update_flags(&a);
    tt_reduction g;
    tt_reduction_plan(&g, &a, k->row, f->dtype, acc, false);
    char *results = g.in_order ? j->data[f->access] : tt_scratch(g.kept * acc);
    if (!results) return false;
    const char *params = f->param >= 0 ? j->data[f->param] : NULL;
    bool ok = tt_reduction_run(&g, tt_get_reducer(f->reducer, f->dtype), params, results, NULL);
    if (results == j->data[f->access]) return ok;
    tt_array made = {.data = results, .dtype = f->acc, .numel = g.kept}, out = {.data = j->data[f->access], .dtype = f->acc, .numel = g.kept};
    for (int d = 0; d < k->ndim; d++) {
        if (k->row >> d & 1) continue;
        made.shape[made.ndim] = out.shape[made.ndim] = k->shape[d];
        made.strides[made.ndim++] = g.result_strides[d];
    }
    out.ndim = made.ndim;
    tt_set_contiguous(&out);
    ok = ok && tt_copy_now(&out, &made) == 0;
    tt_scratch_free(results);
    return ok;
}
