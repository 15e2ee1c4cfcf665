/* Runs kernels of a fused program on the CPU, those that have nothing to do with each other side by side. */
#include "cpu/cpu.h"
#include "cpu/interpret.h"

#define WORK 65536 /* additions that are worth a thread */
#define FEW 8192   /* bytes that may lie on the stack */

/* Does every block see the same elements of the slot? Blocks of these patterns begin at multiples of their length. */
static bool is_repeated(const tt_kernel *k, const tt_slot *x) {
    bool rows = k->pattern == TT_PATTERN_ROW_REDUCTION;
    if (x->kind != TT_SLOT_LOAD || x->level == 0 || !(rows || k->pattern == TT_PATTERN_POINTWISE)) return false;
    if (rows ? k->block < k->row : k->shape[k->ndim - 1] >= TT_ROW) return false;
    const tt_access *a = &k->accesses[x->index];
    int d = 0;
    int64_t period = 1;
    while (d < k->ndim && a->strides[d] == 0) d++;
    if (d == 0) return false;
    for (int i = d; i < k->ndim; i++) period *= k->shape[i];
    for (int i = 0; i < k->num_stores; i++)
        if (k->accesses[k->stores[i].access].storage == a->storage) return false;
    return k->block % period == 0;
}

/* Kernels that run side by side: their work is one list of pieces. */
typedef struct {
    tt_kernel_job *jobs;
    int n;
} group;

static int64_t pieces_of(const tt_kernel_job *j) { return (j->units + j->grain - 1) / j->grain; }

static void group_range(void *context, int64_t begin, int64_t end) {
    const group *g = context;
    int i = 0;
    while (i + 1 < g->n && g->jobs[i + 1].first <= begin) i++;
    for (; i < g->n && g->jobs[i].first < end; i++) {
        tt_kernel_job *j = &g->jobs[i];
        int64_t from = begin > j->first ? (begin - j->first) * j->grain : 0, to = (end - j->first) * j->grain;
        j->range(j, from, to < j->units ? to : j->units);
    }
}

/* Where a kernel's operands lie. `room` is for what a job points to: see room_of. */
static int64_t room_of(const tt_kernel *k) {
    return (k->num_accesses + k->num_reductions) * (int64_t)sizeof(char *) + (k->num_slots + 7) / 8 * 8;
}

static void make_job(tt_kernel_job *j, const tt_kernel *k, char *const *base, const tt_number *numbers, bool compiled,
                     tt_arenas *arenas, char *room) {
    *j = (tt_kernel_job){.k = k, .numbers = numbers, .arenas = arenas, .direct = true, .data = (char **)room};
    j->compiled = __atomic_load_n(&k->state, __ATOMIC_ACQUIRE) == 2 && compiled;
    j->parts = j->data + k->num_accesses;
    j->repeated = (bool *)(j->parts + k->num_reductions);
    for (int s = 0; s < k->num_slots; s++) {
        j->repeated[s] = is_repeated(k, &k->slots[s]);
        j->direct &= k->slots[s].kind != TT_SLOT_RANDOM;
    }
    for (int a = 0; a < k->num_accesses; a++) {
        j->data[a] = base[k->accesses[a].storage] + k->accesses[a].offset;
        j->direct &= k->accesses[a].flat || k->accesses[a].one;
    }
    for (int i = 0; i < k->num_stores; i++) { /* of a number there are only as many copies as a block has elements */
        int kind = k->slots[k->stores[i].slot].kind;
        j->direct &= kind == TT_SLOT_TEMP || kind == TT_SLOT_LOAD;
    }
}

/* False: out of memory, and nothing of these kernels was written. */
bool tt_cpu_run_kernels(const tt_kernel *k, int n, char *const *base, const tt_number *numbers, bool compiled) {
    int64_t room = n * (int64_t)sizeof(tt_kernel_job), pieces = 0, cost = 0, parts = 0;
    tt_arenas arenas = {0};
    for (int i = 0; i < n; i++) room += room_of(&k[i]);
    _Alignas(64) char few[FEW]; /* what is small lies here */
    tt_kernel_job *jobs = room <= FEW ? (void *)few : tt_scratch(room);
    if (!jobs) return false;
    char *at = (char *)(jobs + n);
    for (int i = 0; i < n; i++) {
        tt_kernel_job *j = &jobs[i];
        make_job(j, &k[i], base, numbers, compiled, &arenas, at);
        at += room_of(&k[i]);
        if (k[i].pattern == TT_PATTERN_EXTERN) { /* it is alone */
            bool ok = tt_job_extern(j);
            if ((char *)jobs != few) tt_scratch_free(jobs);
            return ok;
        }
        tt_job_divide(j, WORK);
        j->first = pieces;
        pieces += pieces_of(j);
        cost += k[i].numel * k[i].weight;
        int64_t arena = (tt_job_arena(j) + 127) / 64 * 64;
        if (arena > arenas.size) arenas.size = arena;
        for (int f = 0; f < k[i].num_reductions; f++) parts += (tt_job_parts(j, f) + 63) / 64 * 64;
    }
    int threads = tt_get_num_threads();
    arenas.num = cost <= WORK || pieces <= 1 ? 1 : pieces < threads ? (int)pieces : threads;
    char *free = few + (room <= FEW ? (room + 63) / 64 * 64 : 0);
    int64_t bytes = arenas.num * arenas.size + parts;
    bool ok = (arenas.memory = bytes <= few + FEW - free ? free : tt_scratch(bytes));
    if (ok) {
        at = arenas.memory + arenas.num * arenas.size;
        for (int i = 0; i < n; i++)
            for (int f = 0; f < k[i].num_reductions; f++) {
                jobs[i].parts[f] = at;
                at += (tt_job_parts(&jobs[i], f) + 63) / 64 * 64;
            }
        group g = {jobs, n};
        if (arenas.num == 1) group_range(&g, 0, pieces);
        else if (n == 1) tt_parallel_to_and_fro(jobs->units, jobs->grain, jobs->range, jobs);
        else tt_parallel(pieces, 1, group_range, &g);
        for (int i = 0; i < n; i++) tt_job_write_out(&jobs[i]);
        if (arenas.memory != free) tt_scratch_free(arenas.memory);
    }
    if ((char *)jobs != few) tt_scratch_free(jobs);
    return ok;
}
