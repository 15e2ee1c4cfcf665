/* Products of matrices: float32 and float64 in strips or by OpenBLAS (float_product.c), complex numbers by OpenBLAS,
 * half types block by block (half_product.c), integers by a loop of our own.
 *
 * The library (openblas.c) uses one thread: we cut the result into tiles and give each to one call, on our own pool.
 * Where bits depend on the tiles, these depend on the shape alone, so that they do not depend on the number of threads,
 * and OpenBLAS's threads do not compete with ours. A transposed operand is passed as it lies. */
#include "core/jobs.h"
#include "core/sizes.h"
#include "cpu/cpu.h"
#include "cpu/float_product.h"
#include "cpu/half_product.h"
#include "cpu/openblas.h"
#include <limits.h>
#include <string.h>

#define TILE 512 /* the most rows and columns of one call of the library's */
#define TILE_MIN 64 /* and the fewest that a tile is cut down to */
#define PARALLEL_WORK ((int64_t)1 << 18) /* multiplications that are worth a second thread, */
#define VECTOR_WORK ((int64_t)1 << 17)   /* with a vector, */
#define LIBRARY_WORK ((int64_t)1 << 20)  /* and by the library, whose calls wait for a lock */
#define JOB_LEAST ((int64_t)1 << 18) /* a product that is worth a job */
#define JOB_MOST ((int64_t)1 << 26) /* and, times threads, few enough to be left to one */
#define PACKING_TILES 48 /* multiplications that take as long as packing an element of a half type's tile */
#define TILED_BY 32 /* rows and columns that such tiles take together */
#define LARGE_WORK ((int64_t)1 << 27) /* from here on more tiles, for machines with many cores */

typedef struct {
    const tt_product *p;
    int64_t tile_m, tile_n, across, tiles;
    char *c;
    const tt_float_product_loops *loops; /* Note [Products in strips], or [Products in parts]; or NULL */
    const char *row; /* what is added to each row of such a product, or NULL */
    void *memory; /* for those of one thread, or NULL */
    bool failed; /* out of memory */
} job;

/* C = A B + beta C modulo 2^bits, for a beta of 0 or 1: one row of A after the other. */
#define INTEGER_PRODUCT(T, U)                                                                                          \
    static void product_##T(const job *p, const char *pa, const char *pb, char *pc, int64_t rows, int64_t cols) {      \
        const U *a = (const U *)pa, *b = (const U *)pb;                                                                \
        U *c = (U *)pc;                                                                                                \
        for (int64_t i = 0; i < rows; i++) {                                                                           \
            if (p->p->beta == 0) memset(c + i * p->p->n, 0, (size_t)cols * sizeof(U));                                 \
            for (int64_t l = 0; l < p->p->k; l++) {                                                                    \
                U f = a[i * p->p->a.ld + l];                                                                           \
                const U *row = b + l * p->p->b.ld;                                                                     \
                U *to = c + i * p->p->n;                                                                               \
                for (int64_t j = 0; j < cols; j++) to[j] = (U)(to[j] + 1u * f * row[j]);                               \
            }                                                                                                          \
        }                                                                                                              \
    }
INTEGER_PRODUCT(8, uint8_t)
INTEGER_PRODUCT(16, uint16_t)
INTEGER_PRODUCT(32, uint32_t)
INTEGER_PRODUCT(64, uint64_t)

static tt_float_product as_floats(const tt_product *p, const char *a, const char *b, char *c, int64_t rows,
                                  int64_t cols) {
    tt_operand left = {a, p->a.ld, p->a.trans}, right = {b, p->b.ld, p->b.trans};
    return (tt_float_product){p->dtype, rows, cols, p->k, left, right, p->alpha, p->beta, c, p->n, NULL};
}

/* The numbers that a bias of one dimension adds to each row. */
static const char *row_of(const tt_product *p, const tt_array *bias) {
    if (p->beta != 1 || p->asynchronous || bias->dtype != p->dtype || bias->ndim != 1) return NULL;
    return bias->shape[0] == p->n && bias->strides[0] == 1 ? bias->data : NULL;
}

#define COMPLEX_PRODUCT(s, T)                                                                                          \
    static void product_##s(const tt_product *p, const char *a, const char *b, char *c, int rows, int cols) {          \
        T alpha[2] = {(T)p->alpha, 0}, beta[2] = {(T)p->beta, 0};                                                      \
        tt_blas.s##gemm(ROW_MAJOR, p->a.trans ? TRANS : NO_TRANS, p->b.trans ? TRANS : NO_TRANS, rows, cols,           \
                        (int)p->k, alpha, a, (int)p->a.ld, b, (int)p->b.ld, beta, c, (int)p->n);                       \
    }
COMPLEX_PRODUCT(c, float)
COMPLEX_PRODUCT(z, double)

/* What a thread needs to work in. */
static int64_t memory_of(const job *p) {
    if (p->loops) return tt_strips_memory(p->loops, p->p->n, p->p->k);
    return tt_is_half(p->p->dtype) ? tt_half_memory() : 0;
}

/* One of its tiles, as a product of its own. */
static tt_float_product tile_of(const void *context, int64_t item) {
    const job *p = context;
    int size = tt_itemsizes[p->p->dtype];
    int64_t stack = item / p->tiles, tile = item % p->tiles;
    int64_t i = tile / p->across * p->tile_m, j = tile % p->across * p->tile_n;
    const char *a = p->p->a.data + i * (p->p->a.trans ? 1 : p->p->a.ld) * size;
    const char *b = p->p->b.data + j * (p->p->b.trans ? p->p->b.ld : 1) * size;
    char *c = p->c + ((stack * p->p->m + i) * p->p->n + j) * size;
    for (int d = p->p->nbatch - 1; d >= 0; d--) {
        a += stack % p->p->batch[d] * p->p->a.steps[d] * size;
        b += stack % p->p->batch[d] * p->p->b.steps[d] * size;
        stack /= p->p->batch[d];
    }
    tt_float_product t = as_floats(p->p, a, b, c, least(p->tile_m, p->p->m - i), least(p->tile_n, p->p->n - j));
    if (p->row) t.row = p->row + j * size;
    return t;
}

static void run_tiles(void *context, int64_t begin, int64_t end) {
    job *p = context;
    int size = tt_itemsizes[p->p->dtype];
    void *memory = p->memory;
    if (!memory && memory_of(p) && !(memory = tt_scratch(memory_of(p)))) {
        __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t item = begin; item < end; item++) {
        tt_float_product t = tile_of(p, item);
        int64_t rows = t.m, cols = t.n;
        const char *a = t.a.data, *b = t.b.data;
        char *c = t.c;
        if (p->loops) tt_multiply_strips(p->loops, &t, memory);
        else if (memory) tt_half_product(p->p, a, b, c, rows, cols, memory);
        else if (p->p->dtype == TT_F32 || p->p->dtype == TT_F64) tt_multiply_by_blas(&t);
        else if (p->p->dtype == TT_C64) product_c(p->p, a, b, c, (int)rows, (int)cols);
        else if (p->p->dtype == TT_C128) product_z(p->p, a, b, c, (int)rows, (int)cols);
        else if (size == 1) product_8(p, a, b, c, rows, cols);
        else if (size == 2) product_16(p, a, b, c, rows, cols);
        else if (size == 4) product_32(p, a, b, c, rows, cols);
        else product_64(p, a, b, c, rows, cols);
    }
    if (!p->memory) tt_scratch_free(memory);
}

/* Multiplications, or what takes as long. */
static int64_t work_of(const tt_product *p, int64_t rows, int64_t cols) {
    return rows * cols * p->k / tt_half_speed(p);
}

/* What a product whose bits do not depend on its tiles is cut into: multiples of `rows` and `cols`, of these at least
 * `narrow`, at most `limit` of either; and the multiplications that take as long as packing an element of the left or
 * the right operand. */
typedef struct {
    int64_t rows, cols, narrow, limit, pack_left, pack_right;
} grid;

static grid grid_of(const job *p) {
    const tt_float_product_loops *loops = p->loops;
    if (!loops) return (grid){TILED_BY, TILED_BY, TILED_BY, TILE, PACKING_TILES, PACKING_TILES};
    int64_t left = loops->packs_rows || p->p->a.trans ? loops->packing : 0;
    return (grid){loops->tile_rows, loops->lanes, loops->tile_columns, INT_MAX, left, loops->packing};
}

/* As many tiles for each thread, where the work is worth it: the cut whose tile, with what it packs, is done first. */
static void cut_evenly(job *p, int threads) {
    int64_t m = p->p->m, n = p->p->n, stack = p->p->stack, parts = 1, least_time = INT64_MAX;
    while (stack * parts % threads && stack * parts < 4 * threads) parts++;
    parts = most(1, least(parts, work_of(p->p, m, n) / PARALLEL_WORK));
    grid g = grid_of(p);
    for (int64_t down = 1; down <= parts; down++) {
        if (parts % down) continue;
        int64_t rows = least(g.limit, pieces(pieces(m, down), g.rows) * g.rows);
        int64_t cols = least(g.limit, most(g.narrow, pieces(pieces(n, parts / down), g.cols) * g.cols));
        int64_t high = least(rows, m), wide = least(cols, n);
        int64_t tiles = pieces(pieces(m, rows) * pieces(n, cols), parts);
        int64_t time = tiles * (high * wide + g.pack_right * wide + g.pack_left * high);
        if (time >= least_time) continue;
        least_time = time, p->tile_m = rows, p->tile_n = cols;
    }
}

/* Tiles as large as TILE allows, but enough of them to share out. A product with a vector is bound by memory. */
static void cut(job *p) {
    int64_t work = work_of(p->p, p->p->m, p->p->n), wanted = work >= LARGE_WORK ? 8 : 4;
    bool vector = p->p->m == 1 || p->p->n == 1;
    p->tile_m = vector ? (p->p->m == 1 ? 1 : INT_MAX) : TILE;
    p->tile_n = vector ? (p->p->n == 1 ? 1 : INT_MAX) : TILE;
    if (vector) {
        int64_t run = 1 + ((int64_t)1 << 17) / (p->p->k + 1);
        run = run < TILE_MIN ? TILE_MIN : run;
        if (p->p->n > 1) p->tile_n = run;
        else p->tile_m = run;
    } else if (work > LIBRARY_WORK) {
        for (;;) {
            int64_t tm = p->tile_m < p->p->m ? p->tile_m : p->p->m, tn = p->tile_n < p->p->n ? p->tile_n : p->p->n;
            bool enough = pieces(p->p->m, tm) * pieces(p->p->n, tn) * p->p->stack >= wanted;
            if (enough || work_of(p->p, tm, tn) < LIBRARY_WORK) break;
            if ((tm >= tn ? tm : tn) < 2 * TILE_MIN) break;
            if (tm > tn) p->tile_m = (pieces(tm, 2) + 15) / 16 * 16;
            else p->tile_n = (pieces(tn, 2) + 15) / 16 * 16;
        }
    }
}

/* Is it multiplied in tiles of half types, and surely not line by line? (float16's parts may be infinite: then a tile
 * goes another way.) */
static bool in_tiles(const tt_product *p) {
    return p->dtype == TT_BF16 && least(p->m, p->n) >= TILED_BY && tt_half_speed(p) > 1;
}

static void run(job *p, int threads) {
    bool evenly = p->loops || in_tiles(p->p), vector = p->p->m == 1 || p->p->n == 1;
    if (evenly) cut_evenly(p, threads);
    else cut(p);
    p->across = pieces(p->p->n, p->tile_n);
    p->tiles = pieces(p->p->m, p->tile_m) * p->across;
    if (threads == 1) {
        run_tiles(p, 0, p->p->stack * p->tiles);
        return;
    }
    int64_t rows = p->tile_m < p->p->m ? p->tile_m : p->p->m, cols = p->tile_n < p->p->n ? p->tile_n : p->p->n;
    int64_t work = work_of(p->p, rows, cols);
    int64_t worth = vector ? VECTOR_WORK : evenly ? PARALLEL_WORK : LIBRARY_WORK;
    if (p->loops && work >= worth && p->p->stack * p->tiles <= threads)
        p->failed = !tt_multiply_together(p->loops, tile_of, p, p->p->stack * p->tiles);
    else tt_parallel(p->p->stack * p->tiles, work >= worth ? 1 : worth / (work + 1) + 1, run_tiles, p);
}

#define SCALE(name, T)                                                                                                 \
    static void scale_##name(T *c, int64_t n, T beta) {                                                                \
        for (int64_t i = 0; i < n; i++) c[i] = beta * c[i];                                                            \
    }
SCALE(f32, float)
SCALE(f64, double)

/* A product as an asynchronous job, and its memory: Note [Asynchronous jobs]. */
typedef struct {
    _Alignas(64) tt_job job;
    tt_product product;
    job p;
    tt_storage *storages[3];
} later;

static void run_later(tt_job *job) { run(&((later *)job)->p, 1); }

static bool put_off(const job *p, tt_array *out, const tt_array *a, const tt_array *b) {
    double work = (double)p->p->m * (double)p->p->n * (double)p->p->k;
    bool worth = work >= JOB_LEAST && work * tt_get_num_threads() <= JOB_MOST && out->dtype == p->p->dtype;
    if (!worth) return false;
    later *l = tt_scratch((int64_t)sizeof *l + memory_of(p));
    if (!l) return false;
    *l =
        (later){{.run = run_later, .num_out = 1, .num = 3, .storages = l->storages},
                *p->p,
                *p,
                {out->storage, (p->p->a.copy ? p->p->a.copy : a)->storage, (p->p->b.copy ? p->p->b.copy : b)->storage}};
    l->p.p = &l->product;
    if (p->loops) l->p.memory = l + 1;
    if (tt_job_submit(&l->job)) return true;
    tt_scratch_free(l);
    return false;
}

/* Might several threads work on it, or another one than this? */
static bool may_be_shared(const tt_product *p) {
    return p->asynchronous || (double)p->m * (double)p->n * (double)p->k * (double)p->stack > (double)VECTOR_WORK;
}

bool tt_cpu_product(tt_product *p, tt_array *out, const tt_array *a, const tt_array *b, tt_array *bias) {
    p->dtype = tt_is_floating(a->dtype) ? a->dtype : tt_compute_dtype(a->dtype); /* halves block by block */
    bool is_float = !tt_is_integral(p->dtype), ok = false;
    int claimed = 0, threads = may_be_shared(p) ? tt_get_num_threads() : 1;
    tt_array *wide = p->dtype == out->dtype ? out : tt_empty(p->dtype, out->ndim, out->shape);
    if (!wide) goto end;
    if (p->k == 0) {
        if (p->beta != 0 && tt_copy_now(wide, bias) < 0) goto end;
        if (p->beta == 0 && tt_fill_now(wide, TT_KIND_INT, 0, 0) < 0) goto end;
        int64_t parts = out->numel * (tt_is_complex(p->dtype) ? 2 : 1);
        if (tt_real_dtype(p->dtype) == TT_F32) scale_f32((float *)wide->data, parts, (float)p->beta);
        else if (tt_real_dtype(p->dtype) == TT_F64) scale_f64((double *)wide->data, parts, p->beta);
    }
    if (out->numel && (p->k || tt_is_half(p->dtype))) {
        if (p->nbatch && p->may_fold) tt_product_fold_batch(p);
        if (p->m > INT_MAX) goto end;
        if (!tt_product_prepare(p, &p->a, a, !is_float, false)) goto end;
        if (!tt_product_prepare(p, &p->b, b, !is_float, false)) goto end;
        job j = {.p = p, .c = wide->data};
        if (p->dtype == TT_F32 || p->dtype == TT_F64) {
            tt_float_product floats = as_floats(p, NULL, NULL, NULL, p->m, p->n);
            j.loops = tt_float_product_suits(&floats);
            j.row = j.loops && p->beta != 0 ? row_of(p, bias) : NULL;
        }
        if (p->k && p->beta != 0 && !j.row && tt_copy_now(wide, bias) < 0) goto end;
        if (is_float && !j.loops && !(threads = tt_blas_enter(threads, &claimed))) goto end;
        bool may_wait = p->asynchronous && !tt_is_half(p->dtype); /* its failure could not be told */
        if (!may_wait || threads == 1 || !put_off(&j, out, a, b)) run(&j, threads);
        if (j.failed) {
            tt_fail(TT_OUT_OF_MEMORY, "out of memory for the blocks of a product of %s", tt_dtype_names[p->dtype]);
            goto end;
        }
    }
    ok = wide == out || tt_copy_now(out, wide) == 0;
end:
    tt_blas_leave(claimed);
    if (wide && wide != out) tt_free(wide);
    return ok;
}
