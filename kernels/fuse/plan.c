/* Fused mode's planner: from a trace to kernels. And the table of programs. See Note [Planning] in partition.c. */
#include "core/fork.h"
#include "fuse/plan.h"
#include <stdlib.h>
#include <string.h>

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
    const int64_t *w = t->encoding, *shape = NULL;
    int ndim = 0;
    for (int i = 0; i < t->num_nodes; i++) {
        tt_node *node = &nodes[i];
        int64_t head = *w++, ids = *w++, flags = head >> 32, mask = 0;
        node->kind = head & 255;
        node->op = head >> 8 & 255;
        node->dtype = head >> 16 & 255;
        node->n = head >> 24 & 255;
        node->recipe = flags & TT_WORD_RECIPE;
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

/* A storage that holds one number throughout is as good as the number. */
static void forward_numbers(const tt_trace *t, tt_node *nodes, int *fill) {
    for (int s = 0; s < t->num_storages; s++) fill[s] = -1;
    for (int i = 0; i < t->num_nodes; i++) {
        tt_node *node = &nodes[i];
        for (int k = 1; k <= node->n; k++) {
            tt_operand *o = &node->o[k];
            if (o->mode == TT_MODE_NUMBER || fill[o->id] < 0 || t->numbers[fill[o->id]].dtype != o->dtype) continue;
            if (node->kind == TT_NODE_REDUCE) continue;
            o->mode = TT_MODE_NUMBER;
            o->id = fill[o->id];
        }
        const tt_operand *out = &node->o[0], *in = &node->o[1];
        bool one = node->kind == TT_NODE_COPY && node->whole && in->mode == TT_MODE_NUMBER &&
                   t->numbers[in->id].dtype == out->dtype;
        fill[out->id] = one ? in->id : -1;
    }
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

/* Programs. */

static void free_plan(tt_plan *plan) {
    tt_program *p = &plan->program;
    for (int k = 0; k < p->num_kernels; k++) {
        free(p->kernels[k].slots);
        free(p->kernels[k].instrs);
        free(p->kernels[k].parts);
        free(p->kernels[k].uses);
        free(p->kernels[k].accesses);
        free(p->kernels[k].stores);
        free(p->kernels[k].reductions);
        free(p->kernels[k].superinstructions);
        free(p->kernels[k].steps);
        free(p->kernels[k].compiled);
    }
    free(p->kernels);
    free(p->encoding);
    free(plan->temporaries);
    free(plan);
}

/* Finds the kernels that may run side by side with those before them: neither reads nor writes what the other
 * writes. */
static bool find_neighbours(tt_program *p) {
    int *seen = calloc(2 * (size_t)p->num_storages + 1, sizeof *seen),
        wave = 0; /* waves that read a storage, that wrote it */
    if (!seen) return false;
    for (int i = 0; i < p->num_kernels; i++) {
        tt_kernel *k = &p->kernels[i];
        bool alone = k->pattern == TT_PATTERN_EXTERN || (i && p->kernels[i - 1].pattern == TT_PATTERN_EXTERN);
        for (int pass = 0; pass < 2; pass++) { /* look; then note down */
            for (int a = 0; a < k->num_accesses; a++) {
                bool writes = false;
                for (int x = 0; x < k->num_stores; x++) writes |= k->stores[x].access == a;
                for (int x = 0; x < k->num_reductions; x++) writes |= k->reductions[x].access == a;
                int *s = &seen[2 * k->accesses[a].storage];
                if (pass) s[writes] = wave;
                else alone |= s[1] == wave || (writes && s[0] == wave);
            }
            if (!pass) {
                k->beside = i && !alone;
                wave += !k->beside;
            }
        }
    }
    free(seen);
    return true;
}

/* Packs temporaries (no outside reference, live between kernels) into one arena: disjoint live ranges share space. */
static bool plan_temporaries(tt_plan *plan, const tt_trace *t) {
    tt_program *p = &plan->program;
    if (!(plan->temporaries = calloc((size_t)t->num_storages + 1, sizeof *plan->temporaries))) return false;
    int *number = malloc(sizeof(int) * ((size_t)t->num_storages + 1)), n = 0;
    if (!number) return false;
    for (int s = 0; s < t->num_storages; s++) number[s] = -1;
    for (int k = 0, wave = 0; k < p->num_kernels; k++) {
        wave += !p->kernels[k].beside;
        for (int a = 0; a < p->kernels[k].num_accesses; a++) {
            int s = p->kernels[k].accesses[a].storage;
            if (t->storages[s].storage) continue;
            if (number[s] < 0) {
                number[s] = n++;
                plan->temporaries[number[s]] =
                    (tt_temporary){.storage = s, .first = wave, .nbytes = t->storages[s].nbytes};
            }
            plan->temporaries[number[s]].last = wave;
        }
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

/* Bytes of memory that operators run one by one would touch. One that is recorded as several nodes reads what it did
 * not make itself, once, and writes what the last of them does. */
static bool count_eager(tt_program *p, const tt_node *nodes, int num_nodes) {
    int *known = calloc((size_t)p->num_storages + 1, sizeof *known), operator= 1; /* by which operator last */
    if (!known) return false;
    for (int i = 0; i < num_nodes; i++, operator++) {
        bool several = i + 1 < num_nodes && nodes[i + 1].recipe;
        for (;; i++) {
            const tt_node *node = &nodes[i];
            bool last = i + 1 == num_nodes || !nodes[i + 1].recipe;
            for (int k = node->n; k >= 0; k--) {
                const tt_operand *o = &node->o[k];
                if (o->mode == TT_MODE_NUMBER || (k == 0 && !last)) continue;
                if (k && several && known[o->id] == operator) continue;
                int64_t bytes = tt_itemsizes[o->dtype];
                for (int d = 0; d < node->nd; d++)
                    if (node->kind == TT_NODE_REDUCE && k == 0 ? !(node->mask >> d & 1) : o->steps[d] != 0)
                        bytes *= node->space[d];
                *(k ? &p->eager_reads : &p->eager_writes) += bytes;
                known[o->id] = operator;
            }
            known[node->o[0].id] = operator;
            if (last) break;
        }
    }
    free(known);
    return true;
}

static tt_plan *make_plan(const tt_trace *t) {
    static int64_t number;
    tt_plan *plan = calloc(1, sizeof *plan);
    tt_node *nodes = read_nodes(t);
    tt_group *groups = malloc(sizeof(tt_group) * (size_t)t->num_nodes);
    int *fill = malloc(sizeof(int) * ((size_t)t->num_storages + 1)), num_groups = 0;
    bool ok = plan && nodes && groups && fill;
    if (ok) forward_numbers(t, nodes, fill);
    ok = ok && find_dead(t, nodes) && (num_groups = tt_partition_nodes(groups, nodes, t)) >= 0;
    if (ok) {
        tt_program *program = &plan->program;
        program->number = __atomic_add_fetch(&number, 1, __ATOMIC_RELAXED);
        program->num_nodes = t->num_nodes;
        program->num_storages = t->num_storages;
        program->num_constants = t->num_numbers;
        program->device = t->device;
        program->kernels = calloc((size_t)num_groups + 1, sizeof *program->kernels);
        ok = program->kernels;
        for (int k = 0; ok && k < num_groups; k++) {
            program->num_kernels = k + 1;
            ok = tt_lower_kernel(&program->kernels[k], &groups[k], k, nodes, t->num_nodes);
            program->kernels[k].program = program->number;
            program->kernels[k].device = program->device;
            program->reads += program->kernels[k].reads;
            program->writes += program->kernels[k].writes;
        }
        ok = ok && find_neighbours(program) && plan_temporaries(plan, t);
        ok = ok && count_eager(program, nodes, t->num_nodes);
    }
    free(nodes);
    free(groups);
    free(fill);
    if (ok) return plan;
    if (plan) free_plan(plan);
    return tt_fail(TT_OUT_OF_MEMORY, "fuse: out of memory: no room for a program's plan");
}

#define BUCKETS 4096
#define MOST_PROGRAMS 4096
static tt_plan *table[BUCKETS];
static int num_plans;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;

static void at_fork(int phase) { tt_fork_lock(&lock, phase); }
TT_AT_FORK(TT_FORK_PLANS, at_fork)

static uint64_t hash_of(const int64_t *words, int64_t n) {
    uint64_t h = 0x9e3779b97f4a7c15u ^ (uint64_t)n;
    for (int64_t i = 0; i < n; i++) {
        h = (h ^ (uint64_t)words[i]) * 0xd6e8feb86659fd93u;
        h ^= h >> 32;
    }
    return h;
}

/* Too many programs (their shapes change all the time): evicts those that are not running. The lock is held. */
static void evict(void) {
    for (int b = 0; b < BUCKETS; b++)
        for (tt_plan **at = &table[b]; *at;) {
            tt_plan *plan = *at;
            bool used = __atomic_load_n(&plan->users, __ATOMIC_ACQUIRE) > 0;
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

/* The key: the words, of each storage its size and whether anyone can see it, and the device. */
tt_program *tt_program_of(tt_trace *t, int *hit) {
    int64_t n = t->encoded + t->num_storages + 1;
    if (!tt_trace_room(t, t->num_storages + 1))
        return tt_fail(TT_OUT_OF_MEMORY, "fuse: out of memory: no room for a trace");
    int64_t *key = t->encoding;
    for (int s = 0; s < t->num_storages; s++)
        key[t->encoded + s] = t->storages[s].nbytes << 1 | (t->storages[s].storage != NULL);
    key[n - 1] = t->device;
    uint64_t hash = hash_of(key, n);
    pthread_mutex_lock(&lock);
    tt_plan *plan = table[hash % BUCKETS];
    while (plan && (plan->hash != hash || plan->program.encoded != n ||
                    memcmp(plan->program.encoding, key, (size_t)n * 8) != 0))
        plan = plan->next;
    if (plan) __atomic_fetch_add(&plan->users, 1, __ATOMIC_RELAXED); /* tt_program_done takes no lock */
    pthread_mutex_unlock(&lock);
    *hit = plan != NULL;
    if (plan) return &plan->program;
    if (!(plan = make_plan(t))) return NULL;
    plan->hash = hash;
    plan->users = 1;
    plan->program.encoded = n;
    if (!(plan->program.encoding = malloc((size_t)n * 8))) {
        free_plan(plan);
        return tt_fail(TT_OUT_OF_MEMORY, "fuse: out of memory: no room for a program's plan");
    }
    memcpy(plan->program.encoding, key, (size_t)n * 8);
    pthread_mutex_lock(&lock);
    if (num_plans >= MOST_PROGRAMS) evict();
    plan->next = table[hash % BUCKETS];
    table[hash % BUCKETS] = plan;
    num_plans++;
    pthread_mutex_unlock(&lock);
    return &plan->program;
}
