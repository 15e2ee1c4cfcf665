/* Fused mode's planner, first part: which operators run together.
 *
 * Note [Planning]
 * Every node has a space, its iteration shape without dimensions of size 1. A kernel is a set of nodes of one space
 * that run together, block by block; one whose reductions are over whole rows also takes nodes of the rows' space
 * ("level 0": one value for each row) that work with what those reductions give. Nodes are taken in the order in which
 * they were recorded, and each goes to a kernel that can take it:
 * - a value that another node of the kernel made for the very same elements is passed on in a register;
 * - one that comes through memory must have been written by a kernel that runs before;
 * - a write must come after all earlier reads and writes of its storage: in a kernel that runs later, or in the same
 *   one when they are to the same elements in the same order.
 * What runs before what is a partial order, kept as a set of kernels for each kernel, so that small kernels on the way
 * (a scalar between a forward and a backward pass) do not cut a large one in two. The kernels are put in line at the
 * end. Before all that, dead nodes are dropped; after it, a value is stored only if it is used outside of its kernel,
 * and a kernel that stores nothing is dropped, too: that which fills a buffer of which only a part was read, and in
 * registers. What is then one operator on a device is left to its eager kernel. */
#include "fuse/plan.h"
#include <stdlib.h>
#include <string.h>

#define MAX_OPERANDS 40  /* of a kernel, in memory */
#define FEW_OPERANDS 10  /* so far nodes may join a kernel that have nothing in common with it */
#define SMALL 16384      /* elements: so little work that strangers had better share a kernel */
#define UNIT 32768       /* elements that a thread may well take at a time */
#define SHORT_ROW 8      /* shorter rows are left to the eager loop */
#define MANY_COLUMNS 32768 /* of so many a device's eager kernel adds up few rows faster, above all of the half types */
#define FEW_ROWS 32
#define FEW_HALF_ROWS 1024

typedef struct {
    int writer; /* the last node that wrote it; -1 */
    int reader; /* the last operand (4 * node + its place) that read it through memory since then; -1 */
    int family; /* another storage that some node works on together with it, or itself: see family_of */
} state;

typedef struct {
    tt_node *nodes;
    state *states;
    tt_group *groups;
    int num_groups, words, device;
    uint64_t *before; /* for each kernel, a bit for each that must run before it */
    uint64_t *more; /* those that a node would add */
} planner;

static bool runs_before(const planner *p, int a, int b) {
    return p->before[(size_t)b * (size_t)p->words + (size_t)a / 64] >> (a % 64) & 1;
}

static bool same_space(int nd, const int64_t *space, int other_nd, const int64_t *other) {
    return nd == other_nd && memcmp(space, other, sizeof(int64_t) * (size_t)nd) == 0;
}

static bool same_place(const tt_operand *a, const tt_operand *b, int nd) {
    return a->offset == b->offset && a->dtype == b->dtype &&
           memcmp(a->steps, b->steps, sizeof(int64_t) * (size_t)nd) == 0;
}

/* The level at which the value of `w` can be handed to an operand of a node at `level` of its kernel; -1: it cannot. */
static int handed(const tt_group *d, const tt_node *w, const tt_operand *o, int level) {
    if (w->level == 2) return -1;
    if (w->level == level) return same_place(&w->o[0], o, level ? d->nd : d->kept) ? level : -1;
    if (level == 0 || !same_place(&w->o[0], o, d->kept)) return -1;
    for (int k = d->kept; k < d->nd; k++)
        if (o->steps[k]) return -1;
    return 0;
}

/* Does it add up few rows of many columns? */
static bool has_few_rows(const tt_node *node, int first, int last) {
    int64_t columns = tt_last_size(node->nd, node->space, last + 1);
    int64_t rows = tt_last_size(last + 1, node->space, first);
    return columns >= MANY_COLUMNS && rows < (tt_itemsizes[node->o[1].dtype] < 4 ? FEW_HALF_ROWS : FEW_ROWS);
}

/* The pattern of a node in a kernel of its own, and the number of dimensions that it keeps outside of the reduction. */
static int pattern_of(const planner *p, const tt_node *node, int *kept) {
    int nd = node->nd, first = nd, last = -1;
    *kept = 0;
    if (node->kind != TT_NODE_REDUCE) return TT_PATTERN_POINTWISE;
    if (!node->ordered || !node->mask) return TT_PATTERN_EXTERN;
    for (int d = 0; d < nd; d++)
        if (node->mask >> d & 1) {
            if (first == nd) first = d;
            last = d;
        }
    for (int d = first; d <= last; d++)
        if (!(node->mask >> d & 1)) return TT_PATTERN_EXTERN;
    *kept = first;
    if (last < nd - 1)
        return p->device && has_few_rows(node, first, last) ? TT_PATTERN_EXTERN : TT_PATTERN_OUTER_REDUCTION;
    int64_t row = tt_last_size(nd, node->space, first);
    if (row < SHORT_ROW) return TT_PATTERN_EXTERN;
    return row <= TT_FUSE_LONG_ROW ? TT_PATTERN_ROW_REDUCTION : TT_PATTERN_SPLIT_REDUCTION;
}

/* The node must run after kernel `a`, which it does in kernel k unless k runs before a. */
static bool after(planner *p, int k, int a) {
    if (a == k) return true;
    if (runs_before(p, k, a)) return false;
    p->more[a / 64] |= (uint64_t)1 << (a % 64);
    return true;
}

/* Storages that nodes work on together, element for element, are of one family: what happens to one parameter of a
 * model, say. A kernel of several families would only have more streams of memory to follow. */
static int family_of(planner *p, int storage) {
    while (p->states[storage].family != storage)
        storage = p->states[storage].family = p->states[p->states[storage].family].family;
    return storage;
}

/* Is there an element for each of the node's? */
static bool is_full(const tt_node *node, const tt_operand *o) {
    for (int d = 0; d < node->nd; d++)
        if (o->steps[d] == 0) return false;
    return o->mode != TT_MODE_NUMBER;
}

/* The operand whose family a node belongs to. */
static const tt_operand *lead(const tt_node *node) { return &node->o[node->kind == TT_NODE_REDUCE]; }

static void find_families(planner *p, int num_nodes, int num_storages) {
    for (int s = 0; s < num_storages; s++) p->states[s].family = s;
    for (int i = 0; i < num_nodes; i++) {
        const tt_node *node = &p->nodes[i];
        if (node->dead || node->kind == TT_NODE_REDUCE) continue;
        for (int j = 1; j <= node->n; j++)
            if (is_full(node, &node->o[j])) p->states[family_of(p, node->o[j].id)].family = family_of(p, node->o[0].id);
    }
}

/* Would the node, in kernel k, wait for what it need not wait for, or make the kernel wait? p->more: for what it
 * must. */
static bool delays(const planner *p, int k) {
    uint64_t differ = 0;
    for (int w = 0; w < p->words; w++) differ |= p->more[w] ^ p->before[(size_t)k * (size_t)p->words + (size_t)w];
    return differ != 0;
}

/* Can kernel k take the node at this level? Fills in how its operands would come, and which kernels must run before.
 * `ties`: the values it would get in registers, and the memory it would share. */
static bool takes(planner *p, int k, tt_node *node, int level, int *ties) {
    const tt_group *d = &p->groups[k];
    bool row_value = false;
    *ties = 0;
    memset(p->more, 0, sizeof(uint64_t) * (size_t)p->words);
    for (int j = 1; j <= node->n; j++) {
        tt_operand *o = &node->o[j];
        o->inside = -1;
        if (o->mode == TT_MODE_NUMBER) continue;
        const state *s = &p->states[o->id];
        int at = node->kind == TT_NODE_REDUCE && j == 2 ? 0 : level; /* a reduction's parameter: one for each row */
        if (s->writer >= 0) {
            const tt_node *w = &p->nodes[s->writer];
            if (w->kernel == k) o->inside = handed(d, w, o, at);
            if (w->kernel == k ? o->inside < 0 : !after(p, k, w->kernel)) return false;
            row_value |= o->inside == 0;
        }
        *ties += o->inside >= 0 || (s->reader >= 0 && p->nodes[s->reader / 4].kernel == k && is_full(node, o));
    }
    const tt_operand *out = &node->o[0];
    const state *s = &p->states[out->id];
    int nd = level == 1 ? d->nd : d->kept;
    if (s->writer >= 0) {
        const tt_node *w = &p->nodes[s->writer];
        if (w->kernel == k ? w->level != level || !same_place(&w->o[0], out, nd) : !after(p, k, w->kernel))
            return false;
    }
    for (int r = s->reader; r >= 0; r = p->nodes[r / 4].o[r % 4].next) {
        const tt_node *reader = &p->nodes[r / 4];
        bool same = reader->level == level && reader->kind != TT_NODE_REDUCE && same_place(&reader->o[r % 4], out, nd);
        if (reader->kernel == k ? !same : !after(p, k, reader->kernel)) return false;
    }
    return level != 0 || row_value;
}

/* A reduction of everything (blocks of TT_BLOCK elements in order) may go along with one over rows, where so few rows
 * make whole blocks that they can be one thread's work, and leave some for the others. Not on a device, where rows are
 * spread over threads. */
static bool is_total(const tt_node *node) { return node->mask + 1 == (int64_t)1 << node->nd && node->n == 1; }

static bool goes_along(const planner *p, const tt_group *d, const tt_node *node, int pattern) {
    if (p->device) return false;
    int64_t row = tt_last_size(d->nd, d->space, d->kept), unit = tt_whole_blocks(row) * row;
    return pattern == TT_PATTERN_SPLIT_REDUCTION && d->pattern == TT_PATTERN_ROW_REDUCTION && is_total(node) &&
           (unit <= UNIT || unit <= d->numel / 16);
}

/* Kernel k, if it may take the node: its level there; -1 if not. */
static int suits(planner *p, int k, tt_node *node, int pattern, int kept, int *ties) {
    const tt_group *d = &p->groups[k];
    int level = 1;
    if (pattern == TT_PATTERN_EXTERN || d->pattern == TT_PATTERN_EXTERN) return -1;
    if (d->num_nodes >= TT_FUSE_KERNEL_NODES || d->num_operands + 4 > MAX_OPERANDS) return -1;
    if (same_space(d->nd, d->space, node->nd, node->space)) {
        if (pattern != TT_PATTERN_POINTWISE && d->pattern != TT_PATTERN_POINTWISE && !goes_along(p, d, node, pattern) &&
            (d->pattern != pattern || d->kept != kept || d->mask != node->mask))
            return -1;
    } else if (pattern == TT_PATTERN_POINTWISE && d->pattern == TT_PATTERN_ROW_REDUCTION &&
               same_space(d->kept, d->space, node->nd, node->space))
        level = 0;
    else return -1;
    if (!takes(p, k, node, level, ties)) return -1;
    if (*ties) return level;
    if (d->num_operands > FEW_OPERANDS) return -1;
    if (family_of(p, lead(node)->id) == family_of(p, d->family)) return level;
    return node->numel <= SMALL && !delays(p, k) ? level : -1;
}

static void note_order(planner *p, int k) {
    size_t words = (size_t)p->words;
    uint64_t *mine = p->before + (size_t)k * words;
    for (int a = 0; a < p->num_groups; a++)
        if (p->more[a / 64] >> (a % 64) & 1)
            for (size_t w = 0; w < words; w++) p->more[w] |= p->before[(size_t)a * words + w];
    bool news = false;
    for (size_t w = 0; w < words; w++) {
        news |= (p->more[w] & ~mine[w]) != 0;
        mine[w] |= p->more[w];
    }
    for (int b = 0; news && b < p->num_groups; b++)
        if (runs_before(p, k, b))
            for (size_t w = 0; w < words; w++) p->before[(size_t)b * words + w] |= p->more[w];
}

static void place(planner *p, int i) {
    tt_node *node = &p->nodes[i];
    int kept, pattern = pattern_of(p, node, &kept), found = -1, most = -1, level = 1, ties;
    for (int k = 0; k < p->num_groups; k++) /* where it has most to do with */
        if (suits(p, k, node, pattern, kept, &ties) >= 0 && ties > most) {
            found = k;
            most = ties;
        }
    if (found >= 0) level = suits(p, found, node, pattern, kept, &ties);
    else {
        tt_group *d = &p->groups[found = p->num_groups++];
        *d =
            (tt_group){.nd = node->nd, .numel = node->numel, .pattern = TT_PATTERN_POINTWISE, .family = lead(node)->id};
        memcpy(d->space, node->space, sizeof d->space);
        takes(p, found, node, level, &ties); /* all through memory */
    }
    note_order(p, found);
    tt_group *d = &p->groups[found];
    if (pattern != TT_PATTERN_POINTWISE && d->pattern == TT_PATTERN_POINTWISE) {
        d->pattern = pattern;
        d->kept = kept;
        d->mask = node->mask;
    }
    d->num_nodes++;
    node->kernel = found;
    node->level = pattern == TT_PATTERN_POINTWISE ? level : pattern == TT_PATTERN_ROW_REDUCTION ? 0 : 2;
    for (int j = 1; j <= node->n; j++) {
        tt_operand *o = &node->o[j];
        if (o->mode == TT_MODE_NUMBER) continue;
        state *s = &p->states[o->id];
        o->writer = s->writer;
        if (o->inside >= 0) continue;
        d->num_operands++;
        if (s->writer >= 0) /* through memory: all that was written and not written over has to be there */
            for (int m = 0; m < i; m++)
                if (!p->nodes[m].dead && p->nodes[m].o[0].id == o->id && !p->nodes[m].covered)
                    p->nodes[m].stored = true;
        o->next = s->reader;
        s->reader = 4 * i + j;
    }
    state *s = &p->states[node->o[0].id];
    if (s->writer >= 0) {
        tt_node *w = &p->nodes[s->writer];
        /* Within a kernel only the same elements are written again: see takes. */
        if (w->kernel == found || (w->level == node->level && same_space(w->nd, w->space, node->nd, node->space) &&
                                   node->level != 2 && same_place(&w->o[0], &node->o[0], node->nd)))
            w->covered = true;
    }
    s->writer = i;
    s->reader = -1;
}

/* The kernels in an order in which they can run; `rank` has room for a number of each. */
static void put_in_line(planner *p, int num_nodes, int *rank) {
    tt_group *line = p->groups;
    int placed = 0;
    for (int k = 0; k < p->num_groups; k++) rank[k] = -1;
    while (placed < p->num_groups)
        for (int k = 0; k < p->num_groups; k++) {
            bool ready = rank[k] < 0;
            for (int a = 0; ready && a < p->num_groups; a++) ready = rank[a] >= 0 || !runs_before(p, a, k);
            if (ready) rank[k] = placed++;
        }
    tt_group *old = malloc(sizeof *old * ((size_t)p->num_groups + 1));
    if (!old) {
        p->num_groups = -1;
        return;
    }
    memcpy(old, line, sizeof *old * (size_t)p->num_groups);
    for (int k = 0; k < p->num_groups; k++) line[rank[k]] = old[k];
    for (int i = 0; i < num_nodes; i++)
        if (!p->nodes[i].dead) p->nodes[i].kernel = rank[p->nodes[i].kernel];
    free(old);
}

/* With nothing to fuse a device's eager kernels are best: they are there from the start, and take no more launches. */
static void leave_alone(planner *p, int num_nodes) {
    for (int i = 0; i < num_nodes; i++) {
        const tt_node *node = &p->nodes[i];
        tt_group *d = node->dead ? NULL : &p->groups[node->kernel];
        if (!d || d->num_nodes > 1) continue;
        if (node->kind == TT_NODE_REDUCE) {
            d->pattern = TT_PATTERN_EXTERN;
            d->kept = 0;
        } else d->alone = true;
    }
}

/* Decides what is stored, and drops the kernels that store nothing; `number` has room for one of each. */
static void drop_kernels(planner *p, int num_nodes, const tt_lazy *storages, int *number) {
    int left = 0;
    for (int k = 0; k < p->num_groups; k++) number[k] = -1;
    for (int i = 0; i < num_nodes; i++) {
        tt_node *node = &p->nodes[i];
        if (node->dead) continue;
        node->stored |= !node->covered && storages[node->o[0].id].storage;
        if (node->stored) number[node->kernel] = 0;
    }
    for (int k = 0; k < p->num_groups; k++) {
        if (number[k] < 0) continue;
        p->groups[left] = p->groups[k];
        number[k] = left++;
    }
    for (int i = 0; i < num_nodes; i++) {
        tt_node *node = &p->nodes[i];
        if (node->dead) continue;
        node->kernel = number[node->kernel];
        node->dead = node->kernel < 0;
    }
    p->num_groups = left;
}

int tt_partition_nodes(tt_group *groups, tt_node *nodes, const tt_trace *t) {
    int num_nodes = t->num_nodes, num_storages = t->num_storages, words = num_nodes / 64 + 1;
    planner p = {.nodes = nodes,
                 .device = t->device,
                 .groups = groups,
                 .words = words,
                 .states = malloc(sizeof(state) * ((size_t)num_storages + 1)),
                 .before = calloc((size_t)num_nodes * (size_t)words + 1, sizeof(uint64_t)),
                 .more = malloc(sizeof(uint64_t) * (size_t)words)};
    int *rank = malloc(sizeof(int) * ((size_t)num_nodes + 1));
    if (!p.states || !p.before || !p.more || !rank) p.num_groups = -1;
    else {
        for (int s = 0; s < num_storages; s++) p.states[s] = (state){.writer = -1, .reader = -1};
        find_families(&p, num_nodes, num_storages);
        for (int i = 0; i < num_nodes; i++)
            if (!nodes[i].dead) place(&p, i);
        put_in_line(&p, num_nodes, rank);
        if (p.num_groups >= 0) drop_kernels(&p, num_nodes, t->storages, rank);
        if (p.num_groups >= 0 && t->device) leave_alone(&p, num_nodes);
    }
    free(p.states);
    free(p.before);
    free(p.more);
    free(rank);
    return p.num_groups;
}
