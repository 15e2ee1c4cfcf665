/* The product of a tile: sums of a few rows times VECTORS vectors of columns that stay in registers. Included by conv.c
 * for each type of elements T. */
typedef T OF(vector) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
#define vec OF(vector)
#define LANES ((int)(BYTES / sizeof(T)))
#define COLUMNS (VECTORS * LANES)

#define ALL_LANES ((uint32_t)((1ull << LANES) - 1))

#ifdef LANE_LOOP
#undef some_lanes
#define some_lanes OF(some_lanes_of)
INLINE vec some_lanes(vec v, uint32_t mask, const T *p, int step) {
    for (int k = 0; k < LANES; k++)
        if (mask >> k & 1) v[k] = p[k * step];
    return v;
}
#undef store_some
#define store_some OF(store_some_of)
INLINE void store_some(T *p, uint32_t mask, vec v) {
    for (int k = 0; k < LANES; k++)
        if (mask >> k & 1) p[k] = v[k];
}
#endif

/* A product's operands. a: rows, at a[l a_step + row]. If `by_rows`, a row is runs of `run` elements, of which it has k
 * from element `first` of the first run on: run r of row i is at rows[r a_step + i]. b: l's columns at b + l b_step. To
 * the sums is added what `kind` says. */
typedef struct {
    int64_t k;
    const T *a;
    const T *const *rows;
    int64_t run, first;
    int64_t a_step;
    const T *b;
    int64_t b_step;
    int kind;
    const T *add;
    int64_t add_step;
    T *out;
    int64_t out_step;
} OF(operands);

/* sum += a b for the rows' l'th elements, which `element` finds for row i */
#define ADD_PRODUCTS(element)                                                                                          \
    {                                                                                                                  \
        vec columns[VECTORS];                                                                                          \
        _Pragma("GCC unroll 3") for (int j = 0; j < vectors; j++) columns[j] = *(const vec *)(b + j * LANES);          \
        _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) {                                                       \
            vec x = SPLAT(element);                                                                                    \
            _Pragma("GCC unroll 3") for (int j = 0; j < vectors; j++) sum[i][j] = FMA(x, columns[j], sum[i][j]);       \
        }                                                                                                              \
        b += b_step;                                                                                                   \
    }

INLINE void OF(tile)(const int rows, const int vectors, const bool by_rows, const OF(operands) * o) {
    vec sum[TILE_ROWS][VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++) sum[i][j] = (vec){0};
    const T *a = o->a, *b = o->b;
    int64_t a_step = o->a_step, b_step = o->b_step;
    if (by_rows) {
        const T *const *at = o->rows;
        for (int64_t first = o->first, left = o->k; left; first = 0, at += a_step) {
            int64_t n = least(o->run - first, left);
            uintptr_t row[TILE_ROWS]; /* bytes from one position, the only one that is counted up */
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) row[i] = (uintptr_t)(at[i] + first);
            left -= n;
            for (uintptr_t l = 0, end = (uintptr_t)n * sizeof(T); l < end; l += sizeof(T))
                ADD_PRODUCTS(*(const T *)(row[i] + l))
        }
    } else
        for (int64_t l = 0; l < o->k; l++, a += a_step) ADD_PRODUCTS(a[i])
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++) {
            vec r = sum[i][j];
            if (o->kind == MATRIX) r += *(const vec *)(o->add + i * o->add_step + j * LANES);
            else if (o->kind == OF_ROWS) r += SPLAT(o->add[i]);
            *(vec *)(o->out + i * o->out_step + j * LANES) = r;
        }
}

#define TILES(rows, by_rows)                                                                                           \
    if (vectors == 3) OF(tile)(rows, 3, by_rows, &o);                                                                  \
    else if (vectors == 2) OF(tile)(rows, 2, by_rows, &o);                                                             \
    else OF(tile)(rows, 1, by_rows, &o);

/* `m` rows of `vectors` vectors. Without inlining, tiles of 18 shapes would be copied into each caller. */
static __attribute__((noinline)) void OF(product)(int64_t m, int vectors, bool by_rows, OF(operands) o) {
    while (m > 0) {
        int64_t rows = m >= TILE_ROWS ? TILE_ROWS : m >= TILE_ROWS / 2 ? TILE_ROWS / 2 : 1;
        if (by_rows) {
            if (rows == TILE_ROWS) {
                TILES(TILE_ROWS, true)
            } else if (rows == TILE_ROWS / 2) {
                TILES(TILE_ROWS / 2, true)
            } else {
                TILES(1, true)
            }
            o.rows += rows;
        } else {
            if (rows == TILE_ROWS) {
                TILES(TILE_ROWS, false)
            } else if (rows == TILE_ROWS / 2) {
                TILES(TILE_ROWS / 2, false)
            } else {
                TILES(1, false)
            }
            o.a += rows;
        }
        if (o.kind) o.add += o.kind == OF_ROWS ? rows : rows * o.add_step;
        o.out += rows * o.out_step;
        m -= rows;
    }
}
#undef TILES
#undef ADD_PRODUCTS

static void OF(rows_product)(const tt_rows_product *p) {
    for (int64_t s = 0; s < p->strips; s++) {
        OF(operands)
        o = {.k = p->k,
             .rows = (const T *const *)p->rows,
             .run = p->k,
             .b = (const T *)p->b + s * p->k * COLUMNS,
             .b_step = COLUMNS,
             .kind = NOTHING,
             .out = (T *)p->out + s * COLUMNS,
             .out_step = p->out_step};
        OF(product)(p->m, VECTORS, true, o);
    }
}
