/* Fused mode's planner: from a recording to kernels. And the table of programs.
 *
 * Note [Planning]
 * Every node has a space, the shape it walks over without dimensions of size 1. A kernel is a set of nodes of one space
 * that run together, block by block; one whose reductions are over whole rows also takes nodes of the rows' space
 * ("level 0": one value for each row) that work with what those reductions give. Nodes are taken in order, and each goes
 * to the first kernel that comes no earlier than those it depends on and can take it:
 * - a value that another node of the kernel made for the very same elements is passed on in a register;
 * - one that comes through memory must have been written by an earlier kernel;
 * - a write must come after all earlier reads and writes of its storage: in a later kernel, or in the same one when
 *   they are to the same elements in the same order.
 * Before that, what nobody will look at is dropped; after that, a value is written to memory only if someone outside of
 * its kernel wants it. */
#include "fuse_plan.h"
#include <stdlib.h>
#include <string.h>

#define MAX_OPERANDS 40  /* of a kernel, in memory */
#define MAX_NODES TT_FUSE_KERNEL_NODES
#define FEW_OPERANDS 10  /* so far strangers may join a kernel */
#define SHORT_ROW 8      /* shorter rows are left to the reduction's own walk */

/* Reading the words. */

static const int64_t *read_operand(const int64_t *w, tt_node *node, tt_operand *o, int ndim, const int64_t *shape) {
    int size = tt_itemsizes[o->dtype], n;
    const int64_t *sizes, *strides = NULL;
    int64_t step = 1, plain[TT_MAX_NDIM];
    if (o->mode == TT_MODE_FULL) {
        o->offset = *w++;
        n = (int)*w++;
        sizes = w;
        strides = w + n;
        w += 2 * n;
    } else {
        n = ndim;
        sizes = shape;
        for (int d = n - 1; d >= 0; d--) {
            plain[d] = step;
            step *= shape[d];
        }
        strides = plain;
    }
    bool result = node->kind == TT_NODE_REDUCE && o == &node->o[0];
    for (int d = 0, at = 0; d < (result ? n : ndim); d++) {
        int mine = result ? d : d - (ndim - n);
        if (result ? sizes[d] == 1 : shape[d] == 1) continue;
        o->steps[at++] = mine < 0 || sizes[mine] == 1 ? 0 : strides[mine] * size;
    }
    return w;
}

static tt_node *read_nodes(const tt_trace *t) {
    tt_node *nodes = calloc((size_t)t->num_nodes, sizeof *nodes);
    if (!nodes) return NULL;
    const int64_t *w = t->words, *shape = NULL;
    int ndim = 0;
    for (int i = 0; i < t->num_nodes; i++) {
        tt_node *node = &nodes[i];
        int64_t head = *w++, ids = *w++, flags = head >> 32, mask = 0;
        node->kind = head & 255;
        node->op = head >> 8 & 255;
        node->dtype = head >> 16 & 255;
        node->n = head >> 24 & 255;
        if (flags & TT_WORD_SHAPE) {
            ndim = (int)*w++;
            shape = w;
            w += ndim;
        }
        if (node->kind == TT_NODE_REDUCE) mask = *w++;
        node->numel = 1;
        for (int d = 0; d < ndim; d++) {
            if (shape[d] == 1) continue;
            if (mask >> d & 1) node->mask |= (int64_t)1 << node->nd;
            node->space[node->nd++] = shape[d];
            node->numel *= shape[d];
        }
        for (int k = 0; k <= node->n; k++) {
            tt_operand *o = &node->o[k];
            o->mode = flags >> (1 + 2 * k) & 3;
            o->dtype = flags >> (9 + 4 * k) & 15;
            o->id = ids >> (16 * k) & 0xffff;
            o->writer = o->inside = -1;
            if (o->mode != TT_MODE_NUMBER) w = read_operand(w, node, o, ndim, shape);
        }
        int64_t results = node->numel;
        if (node->kind == TT_NODE_REDUCE) {
            results = 1;
            int64_t dense = tt_itemsizes[node->o[1].dtype];
            node->ordered = true;
            for (int d = node->nd - 1; d >= 0; d--) {
                node->ordered &= node->o[1].steps[d] == dense;
                dense *= node->space[d];
                if (!(node->mask >> d & 1)) results *= node->space[d];
            }
        }
        node->whole = results * tt_itemsizes[node->o[0].dtype] == t->storages[node->o[0].id].nbytes;
    }
    return nodes;
}

/* Backwards: who wants what. */
static bool find_dead(const tt_trace *t, tt_node *nodes) {
    char *wanted = calloc((size_t)t->num_storages, 1);
    if (!wanted) return false;
    for (int s = 0; s < t->num_storages; s++) wanted[s] = t->storages[s].storage != NULL;
    for (int i = t->num_nodes - 1; i >= 0; i--) {
        tt_node *node = &nodes[i];
        node->dead = !wanted[node->o[0].id];
        if (node->dead) continue;
        if (node->whole) wanted[node->o[0].id] = 0;
        for (int k = 1; k <= node->n; k++)
            if (node->o[k].mode != TT_MODE_NUMBER) wanted[node->o[k].id] = 1;
    }
    free(wanted);
    return true;
}

/* Placing. */

typedef struct {
    int writer;               /* the last node that wrote it; -1 */
    int reader, operand;      /* the last node that read it through memory, in the latest kernel; -1 */
    bool mixed;               /* that kernel reads it in more than one way */
} state;

static bool same_space(int nd, const int64_t *space, int other_nd, const int64_t *other) {
    return nd == other_nd && memcmp(space, other, sizeof(int64_t) * (size_t)nd) == 0;
}

static bool same_place(const tt_operand *a, const tt_operand *b, int nd) {
    return a->offset == b->offset && a->dtype == b->dtype && memcmp(a->steps, b->steps, sizeof(int64_t) * (size_t)nd) == 0;
}

/* The level at which the value of `w` can be handed to an operand of a node at `level` of its kernel; -1: it cannot. */
static int handed(const tt_draft *d, const tt_node *w, const tt_operand *o, int level) {
    if (w->level == 2) return -1;
    if (w->level == level) return same_place(&w->o[0], o, level ? d->nd : d->kept) ? level : -1;
    if (level == 0 || !same_place(&w->o[0], o, d->kept)) return -1;
    for (int k = d->kept; k < d->nd; k++)
        if (o->steps[k]) return -1;
    return 0;
}

/* How a reduction would be walked in a kernel of its own: the walk, and the dimensions kept outside of it. */
static int walk_of(const tt_node *node, int *kept) {
    int nd = node->nd, first = nd, last = -1;
    *kept = 0;
    if (!node->ordered || !node->mask) return TT_WALK_CALL;
    for (int d = 0; d < nd; d++)
        if (node->mask >> d & 1) {
            if (first == nd) first = d;
            last = d;
        }
    for (int d = first; d <= last; d++)
        if (!(node->mask >> d & 1)) return TT_WALK_CALL;
    *kept = first;
    if (last < nd - 1) return TT_WALK_COLUMNS;
    int64_t row = tt_last_size(nd, node->space, first);
    return row < SHORT_ROW ? TT_WALK_CALL : row <= TT_FUSE_LONG_ROW ? TT_WALK_ROWS : TT_WALK_FOLD;
}

typedef struct {
    tt_node *nodes;
    state *states;
    tt_draft *drafts;
    int num_drafts;
} planner;

/* Can kernel k take node i at this level? Fills in how its operands would come. */
static bool takes(const planner *p, int k, tt_node *node, int level, bool *friend) {
    const tt_draft *d = &p->drafts[k];
    *friend = d->num_operands <= FEW_OPERANDS;
    bool row_value = false;
    for (int j = 1; j <= node->n; j++) {
        tt_operand *o = &node->o[j];
        o->inside = -1;
        if (o->mode == TT_MODE_NUMBER) continue;
        const state *s = &p->states[o->id];
        int at = level;
        if (node->kind == TT_NODE_REDUCE && j == 2) at = 0; /* its parameter: one for each row */
        if (s->writer >= 0) {
            const tt_node *w = &p->nodes[s->writer];
            if (w->kernel > k) return false;
            if (w->kernel == k && (o->inside = handed(d, w, o, at)) < 0) return false;
            row_value |= o->inside == 0;
        }
        *friend |= o->inside >= 0 || (s->reader >= 0 && p->nodes[s->reader].kernel == k);
    }
    const tt_operand *out = &node->o[0];
    const state *s = &p->states[out->id];
    int nd = level == 1 ? d->nd : d->kept;
    if (s->writer >= 0) {
        const tt_node *w = &p->nodes[s->writer];
        if (w->kernel > k || (w->kernel == k && (w->level != level || level == 2 || !same_place(&w->o[0], out, nd)))) return false;
    }
    if (s->reader >= 0) {
        const tt_node *r = &p->nodes[s->reader];
        if (r->kernel > k) return false;
        if (r->kernel == k && (s->mixed || r->level != level || level == 2 || r->kind == TT_NODE_REDUCE ||
                               !same_place(&r->o[s->operand], out, nd))) return false;
    }
    return level != 0 || row_value;
}

static bool place(planner *p, int i) {
    tt_node *node = &p->nodes[i];
    int kept = 0, walk = node->kind == TT_NODE_REDUCE ? walk_of(node, &kept) : TT_WALK_FLAT;
    int low = 0, found = -1, level = 1;
    for (int j = 0; j <= node->n; j++) {
        const state *s = &p->states[node->o[j].id];
        if (node->o[j].mode == TT_MODE_NUMBER) continue;
        if (s->writer >= 0 && p->nodes[s->writer].kernel > low) low = p->nodes[s->writer].kernel;
    }
    for (int k = low; found < 0 && k < p->num_drafts && walk != TT_WALK_CALL; k++) {
        const tt_draft *d = &p->drafts[k];
        bool friend;
        if (d->walk == TT_WALK_CALL || d->num_nodes >= MAX_NODES || d->num_operands + 4 > MAX_OPERANDS) continue;
        if (same_space(d->nd, d->space, node->nd, node->space)) {
            level = 1;
            if (walk != TT_WALK_FLAT && d->walk != TT_WALK_FLAT &&
                (d->walk != walk || d->kept != kept || d->mask != node->mask)) continue;
        } else if (walk == TT_WALK_FLAT && d->walk == TT_WALK_ROWS && same_space(d->kept, d->space, node->nd, node->space))
            level = 0;
        else continue;
        if (takes(p, k, node, level, &friend) && friend) found = k;
    }
    if (found < 0) {
        tt_draft *d = &p->drafts[found = p->num_drafts++];
        *d = (tt_draft){.nd = node->nd, .numel = node->numel, .walk = TT_WALK_FLAT};
        memcpy(d->space, node->space, sizeof d->space);
        bool friend;
        level = 1;
        takes(p, found, node, level, &friend); /* all through memory */
    }
    tt_draft *d = &p->drafts[found];
    if (walk != TT_WALK_FLAT) {
        d->walk = walk;
        d->kept = kept;
        d->mask = node->mask;
    }
    d->num_nodes++;
    node->kernel = found;
    node->level = level;
    if (node->kind == TT_NODE_REDUCE) node->level = walk == TT_WALK_ROWS ? 0 : 2;
    for (int j = 1; j <= node->n; j++) {
        tt_operand *o = &node->o[j];
        if (o->mode == TT_MODE_NUMBER) continue;
        state *s = &p->states[o->id];
        o->writer = s->writer;
        if (o->inside >= 0) continue;
        d->num_operands++;
        if (s->writer >= 0) /* through memory: all that was written and not written over has to be there */
            for (int m = 0; m < i; m++)
                if (!p->nodes[m].dead && p->nodes[m].o[0].id == o->id && !p->nodes[m].covered) p->nodes[m].stored = true;
        if (s->reader < 0 || p->nodes[s->reader].kernel < found) s->mixed = false;
        else if (p->nodes[s->reader].kernel == found) {
            const tt_node *r = &p->nodes[s->reader];
            s->mixed |= r->level != node->level || !same_place(&r->o[s->operand], o, node->nd);
        } else continue;
        s->reader = i;
        s->operand = j;
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
    s->operand = s->reader = -1;
    return true;
}

/* Programs. */

static void free_plan(tt_plan *plan) {
    tt_program *p = &plan->program;
    for (int k = 0; k < p->num_kernels; k++) {
        free(p->kernels[k].slots);
        free(p->kernels[k].instrs);
        free(p->kernels[k].accesses);
        free(p->kernels[k].stores);
        free(p->kernels[k].folds);
        free(p->kernels[k].compiled);
    }
    free(p->kernels);
    free(p->words);
    free(plan->temporaries);
    free(plan);
}

/* Storages that nobody can see, but that a kernel hands to another: all in one block, side by side in time. */
static bool plan_temporaries(tt_plan *plan, const tt_trace *t) {
    tt_program *p = &plan->program;
    if (!(plan->temporaries = calloc((size_t)t->num_storages + 1, sizeof *plan->temporaries))) return false;
    int *number = malloc(sizeof(int) * ((size_t)t->num_storages + 1)), n = 0;
    if (!number) return false;
    for (int s = 0; s < t->num_storages; s++) number[s] = -1;
    for (int k = 0; k < p->num_kernels; k++)
        for (int a = 0; a < p->kernels[k].num_accesses; a++) {
            int s = p->kernels[k].accesses[a].storage;
            if (t->storages[s].storage) continue;
            if (number[s] < 0) {
                number[s] = n++;
                plan->temporaries[number[s]] = (tt_temporary){.storage = s, .first = k, .nbytes = t->storages[s].nbytes};
            }
            plan->temporaries[number[s]].last = k;
        }
    free(number);
    plan->num_temporaries = n;
    for (int i = 0; i < n; i++) { /* the lowest place that is free as long as it is needed */
        tt_temporary *x = &plan->temporaries[i];
        int64_t size = (x->nbytes + 63) / 64 * 64;
        for (bool moved = true; moved;) {
            moved = false;
            for (int j = 0; j < i; j++) {
                const tt_temporary *y = &plan->temporaries[j];
                if (y->first > x->last || x->first > y->last) continue;
                int64_t end = y->offset + (y->nbytes + 63) / 64 * 64;
                if (x->offset < end && y->offset < x->offset + size) {
                    x->offset = end;
                    moved = true;
                }
            }
        }
        if (x->offset + size > plan->temporary_bytes) plan->temporary_bytes = x->offset + size;
    }
    p->temporaries = plan->temporary_bytes;
    return true;
}

/* Bytes of memory that operators run one by one would touch. */
static void count_eager(tt_program *p, const tt_node *nodes, int num_nodes) {
    for (int i = 0; i < num_nodes; i++) {
        const tt_node *node = &nodes[i];
        for (int k = 0; k <= node->n; k++) {
            if (node->o[k].mode == TT_MODE_NUMBER) continue;
            int64_t bytes = tt_itemsizes[node->o[k].dtype];
            for (int d = 0; d < node->nd; d++)
                if (node->kind == TT_NODE_REDUCE && k == 0 ? !(node->mask >> d & 1) : node->o[k].steps[d] != 0) bytes *= node->space[d];
            *(k ? &p->eager_reads : &p->eager_writes) += bytes;
        }
    }
}

static tt_plan *make_plan(const tt_trace *t) {
    static int64_t number;
    tt_plan *plan = calloc(1, sizeof *plan);
    planner p = {.nodes = read_nodes(t), .states = malloc(sizeof(state) * (size_t)t->num_storages),
                 .drafts = malloc(sizeof(tt_draft) * (size_t)t->num_nodes)};
    bool ok = plan && p.nodes && p.states && p.drafts && find_dead(t, p.nodes);
    if (ok) {
        for (int s = 0; s < t->num_storages; s++) p.states[s] = (state){.writer = -1, .reader = -1, .operand = -1};
        for (int i = 0; i < t->num_nodes; i++)
            if (!p.nodes[i].dead) place(&p, i);
        for (int i = 0; i < t->num_nodes; i++)
            p.nodes[i].stored |= !p.nodes[i].covered && t->storages[p.nodes[i].o[0].id].storage;
        tt_program *program = &plan->program;
        program->number = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
        program->num_nodes = t->num_nodes;
        program->num_storages = t->num_storages;
        program->num_constants = t->num_numbers;
        program->kernels = calloc((size_t)p.num_drafts + 1, sizeof *program->kernels);
        ok = program->kernels;
        for (int k = 0; ok && k < p.num_drafts; k++) {
            program->num_kernels = k + 1;
            ok = tt_emit_kernel(&program->kernels[k], &p.drafts[k], k, p.nodes, t->num_nodes);
            program->kernels[k].program = program->number;
            program->reads += program->kernels[k].reads;
            program->writes += program->kernels[k].writes;
        }
        ok = ok && plan_temporaries(plan, t);
        if (ok) count_eager(program, p.nodes, t->num_nodes);
    }
    free(p.nodes);
    free(p.states);
    free(p.drafts);
    if (ok) return plan;
    if (plan) free_plan(plan);
    return tt_fail(TT_OUT_OF_MEMORY, "fuse: out of memory: no room for a program's plan");
}

#define BUCKETS 4096
#define MOST_PROGRAMS 4096
static tt_plan *table[BUCKETS];
static int num_plans;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static uint64_t hash_of(const int64_t *words, int64_t n) {
    uint64_t h = 0x9e3779b97f4a7c15u ^ (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        h = (h ^ (uint64_t)words[i]) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    return h;
}

/* Too many programs (their shapes change all the time): those that nobody uses just now go. The lock is held. */
static void evict(void) {
    for (int b = 0; b < BUCKETS; b++)
        for (tt_plan **at = &table[b]; *at;) {
            tt_plan *plan = *at;
            bool used = plan->users > 0;
            for (int k = 0; k < plan->program.num_kernels; k++)
                used |= __atomic_load_n(&plan->program.kernels[k].state, __ATOMIC_ACQUIRE) == 1;
            if (used) at = &plan->next;
            else {
                *at = plan->next;
                num_plans--;
                free_plan(plan);
            }
        }
}

void tt_program_done(tt_program *p) { __atomic_fetch_sub(&((tt_plan *)p)->users, 1, __ATOMIC_RELEASE); }

/* The key: the words, and of each storage its size and whether anyone can see it. */
tt_program *tt_program_of(tt_trace *t, int *hit) {
    int64_t n = t->num_words + t->num_storages;
    if (!tt_trace_room(t, t->num_storages)) return tt_fail(TT_OUT_OF_MEMORY, "fuse: out of memory: no room for a recording");
    int64_t *key = t->words;
    for (int s = 0; s < t->num_storages; s++)
        key[t->num_words + s] = t->storages[s].nbytes << 1 | (t->storages[s].storage != NULL);
    uint64_t hash = hash_of(key, n);
    pthread_mutex_lock(&lock);
    tt_plan *plan = table[hash % BUCKETS];
    while (plan && (plan->hash != hash || plan->program.num_words != n || memcmp(plan->program.words, key, (size_t)n * 8) != 0))
        plan = plan->next;
    if (plan) plan->users++;
    pthread_mutex_unlock(&lock);
    *hit = plan != NULL;
    if (plan) return &plan->program;
    if (!(plan = make_plan(t))) return NULL;
    plan->hash = hash;
    plan->users = 1;
    plan->program.num_words = n;
    if (!(plan->program.words = malloc((size_t)n * 8))) {
        free_plan(plan);
        return tt_fail(TT_OUT_OF_MEMORY, "fuse: out of memory: no room for a program's plan");
    }
    memcpy(plan->program.words, key, (size_t)n * 8);
    pthread_mutex_lock(&lock);
    if (num_plans >= MOST_PROGRAMS) evict();
    plan->next = table[hash % BUCKETS];
    table[hash % BUCKETS] = plan;
    num_plans++;
    pthread_mutex_unlock(&lock);
    return &plan->program;
}
