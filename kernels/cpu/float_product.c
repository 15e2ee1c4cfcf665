/* Which way a product of float32 or float64 takes: Note [Products in strips]. */
#include "cpu/float_product.h"
#include "core/sizes.h"
#include "core/storage.h"
#include "core/threads.h"
#include "cpu/openblas.h"
#include "cpu/simd.h"

typedef tt_float_product_loops tt_float_product_table[2]; /* float32, float64 */
TT_ISA_TABLES(tt_float_product_table, tt_float_products)

#define SMALL ((int64_t)1 << 20) /* multiplications of a product that BLAS packs faster, or not at all */
#define NARROW 16 /* columns that leave most of a strip empty */
#define FEW_ROWS 16 /* for which it does not pay to pack rows: by 1024 x 1024, 16 rows 0.38 ms, 0.32 where they lie */
#define TASK_WORK ((int64_t)1 << 20) /* multiplications that are worth a task */
#define UNSHARED 3 /* tasks that are left to a tile's own thread: another one has its strips in no cache */
#define PARTS_LEAST 48 /* rows, columns, and their length, that are worth splitting, */
#define PARTS_WORK ((int64_t)1 << 21) /* and multiplications */
#define FEW 32    /* rows for which BLAS takes longer to pack than to multiply */

const tt_float_product_loops *tt_float_product_loops_of(int dtype) {
    return &(*tt_float_products[tt_isa_index])[dtype == TT_F64];
}

bool tt_prefers_strips(void) { return tt_isa_index == TT_ISAS - 1; }

/* Without AVX2 a tile has no instruction that multiplies and adds; with it, it has half of the rows, and of many BLAS
 * makes 5 to 10 % more. If alpha is 0, what is not finite does not count. */
bool tt_suits_strips(const tt_float_product *p) {
    if (p->m == 1 || p->n < NARROW || !p->k || p->alpha == 0 || !tt_isa_index) return false;
    if (!tt_prefers_strips()) return p->b.trans && p->m <= FEW;
    return p->b.trans || (double)p->m * (double)p->n * (double)p->k > SMALL;
}

const tt_float_product_loops *tt_float_product_suits(const tt_float_product *p) {
    if (!tt_suits_strips(p)) return NULL;
    bool large = least(p->m, least(p->n, p->k)) >= PARTS_LEAST && p->m * p->n >= PARTS_WORK / p->k;
    return large && p->dtype == TT_F32 && tt_float_parts() ? tt_float_parts() : tt_float_product_loops_of(p->dtype);
}

/* The depth of slices, which are about equal, and the columns of one that are packed at a time. */
static int64_t deep_of(const tt_float_product_loops *loops, int64_t k) {
    return pieces(pieces(k, pieces(k, loops->depth)), loops->grain) * loops->grain;
}

static int64_t wide_of(const tt_float_product_loops *loops, int64_t n, int64_t deep) {
    int64_t most_columns = loops->columns * loops->depth / deep / loops->tile_columns;
    return least(pieces(n, loops->tile_columns), most(1, most_columns)) * loops->tile_columns;
}

static int64_t strips_bytes(const tt_float_product_loops *loops, int64_t n, int64_t deep) {
    return wide_of(loops, n, deep) * deep * loops->packed;
}

/* Bytes of a thread that multiplies slices of such a depth, as whole lines of the cache; in parts, those of a panel in
 * strips, too. */
static int64_t room_bytes(const tt_float_product_loops *loops, int64_t deep) {
    int64_t bytes = loops->edge + loops->group * deep * loops->packed;
    if (loops == tt_float_parts())
        bytes += tt_strips_memory(tt_float_product_loops_of(TT_F32), loops->tile_columns, deep);
    return pieces(bytes, 64) * 64;
}

int64_t tt_strips_memory(const tt_float_product_loops *loops, int64_t n, int64_t k) {
    int64_t deep = deep_of(loops, k);
    return room_bytes(loops, deep) + strips_bytes(loops, n, deep);
}

/* A product as tasks, which are claimed in order: a block is packed, then multiplied by `rows` rows at a time; then the
 * next block. */
typedef struct {
    tt_float_product p;
    const tt_float_product_loops *loops;
    int64_t deep, wide, slices, rows, runs, num; /* runs of rows; tasks */
    bool lies;
    void *strips;
    int64_t claimed __attribute__((aligned(64))); /* atomic: tasks, */
    int64_t packed, multiplied; /* and those that are done: blocks, and runs of all blocks */
} tasks;

static tasks tasks_of(const tt_float_product_loops *loops, const tt_float_product *p, int64_t rows, void *strips) {
    tasks t = {.p = *p, .loops = loops, .deep = deep_of(loops, p->k)};
    t.wide = wide_of(loops, p->n, t.deep);
    t.slices = pieces(p->k, t.deep);
    t.rows = rows;
    t.runs = pieces(p->m, rows);
    t.num = pieces(p->n, t.wide) * t.slices * (1 + t.runs);
    t.lies = !loops->packs_rows && !p->b.trans && p->m <= FEW_ROWS && p->n % loops->lanes == 0;
    t.strips = strips;
    return t;
}

/* Waits for tasks before the caller's, which threads have claimed and work on. */
static void wait_for(const int64_t *count, int64_t wanted) {
    while (__atomic_load_n(count, __ATOMIC_ACQUIRE) < wanted) tt_pause();
}

/* Claims tasks and does them, until `leave` are left. */
static void work_on(tasks *t, int64_t leave, void *room) {
    const tt_float_product *p = &t->p;
    while (t->num - __atomic_load_n(&t->claimed, __ATOMIC_RELAXED) > leave) {
        int64_t task = __atomic_fetch_add(&t->claimed, 1, __ATOMIC_RELAXED);
        if (task >= t->num) return;
        int64_t block = task / (1 + t->runs), run = task % (1 + t->runs) - 1;
        int64_t column = block / t->slices * t->wide, at = block % t->slices * t->deep;
        int64_t columns = least(t->wide, p->n - column), depth = least(t->deep, p->k - at);
        tt_product_block b = {p, column, columns, at, depth, t->strips, t->lies};
        if (run < 0) {
            wait_for(&t->multiplied, block * t->runs);
            if (!t->lies) t->loops->pack(&b);
            __atomic_store_n(&t->packed, block + 1, __ATOMIC_RELEASE);
        } else {
            wait_for(&t->packed, block + 1);
            t->loops->multiply(&b, run * t->rows, least(run * t->rows + t->rows, p->m), room);
            __atomic_add_fetch(&t->multiplied, 1, __ATOMIC_RELEASE);
        }
    }
}

void tt_multiply_strips(const tt_float_product_loops *loops, const tt_float_product *p, void *memory) {
    tasks t = tasks_of(loops, p, p->m, (char *)memory + room_bytes(loops, deep_of(loops, p->k)));
    work_on(&t, 0, memory);
}

typedef struct {
    tasks *of;
    int64_t num, room;
    char *rooms;
} together;

static void work_on_all(void *context, int64_t begin, int64_t end) {
    together *t = context;
    for (int64_t own = begin; own < end; own++)
        for (int64_t i = 0; i < t->num; i++)
            work_on(&t->of[(own + i) % t->num], i ? UNSHARED : 0, t->rooms + own * t->room);
}

bool tt_multiply_together(const tt_float_product_loops *loops, tt_float_product (*tile)(const void *context, int64_t i),
                          const void *context, int64_t num) {
    tt_float_product p = tile(context, 0); /* no other is larger */
    int64_t deep = deep_of(loops, p.k), tasks_bytes = num * (int64_t)sizeof(tasks);
    int64_t room = room_bytes(loops, deep), strips = pieces(strips_bytes(loops, p.n, deep), 64) * 64;
    char *memory = tt_scratch(tasks_bytes + num * (room + strips));
    if (!memory) return false;
    together t = {(tasks *)memory, num, room, memory + tasks_bytes};
    for (int64_t i = 0; i < num; i++) {
        p = tile(context, i);
        int64_t grain = p.a.trans ? loops->group : loops->group / 2;
        int64_t rows = pieces(TASK_WORK, grain * least(p.n, loops->columns) * deep) * grain;
        t.of[i] = tasks_of(loops, &p, rows, t.rooms + num * room + i * strips);
    }
    tt_parallel(num, 1, work_on_all, &t);
    tt_scratch_free(memory);
    return true;
}

#define BY_BLAS(s, T)                                                                                                  \
    static void by_blas_##s(const tt_float_product *p) {                                                               \
        const T *a = p->a.data, *b = p->b.data;                                                                        \
        T *c = p->c, alpha = (T)p->alpha, beta = (T)p->beta;                                                           \
        int m = (int)p->m, n = (int)p->n, k = (int)p->k, lda = (int)p->a.ld, ldb = (int)p->b.ld;                       \
        int step_a = p->a.trans ? lda : 1, step_b = p->b.trans ? 1 : ldb;                                              \
        if (m == 1 && n == 1) {                                                                                        \
            T dot = alpha * tt_blas.s##dot(k, a, step_a, b, step_b);                                                   \
            *c = beta == 0 ? dot : dot + beta * *c;                                                                    \
        } else if (n == 1) {                                                                                           \
            if (p->a.trans) tt_blas.s##gemv(ROW_MAJOR, TRANS, k, m, alpha, a, lda, b, step_b, beta, c, (int)p->ldc);   \
            else tt_blas.s##gemv(ROW_MAJOR, NO_TRANS, m, k, alpha, a, lda, b, step_b, beta, c, (int)p->ldc);           \
        } else if (m == 1) {                                                                                           \
            if (p->b.trans) tt_blas.s##gemv(ROW_MAJOR, NO_TRANS, n, k, alpha, b, ldb, a, step_a, beta, c, 1);          \
            else tt_blas.s##gemv(ROW_MAJOR, TRANS, k, n, alpha, b, ldb, a, step_a, beta, c, 1);                        \
        } else                                                                                                         \
            tt_blas.s##gemm(ROW_MAJOR, p->a.trans ? TRANS : NO_TRANS, p->b.trans ? TRANS : NO_TRANS, m, n, k, alpha,   \
                            a, lda, b, ldb, beta, c, (int)p->ldc);                                                     \
    }
BY_BLAS(s, float)
BY_BLAS(d, double)

void tt_multiply_by_blas(const tt_float_product *p) { (p->dtype == TT_F64 ? by_blas_d : by_blas_s)(p); }
