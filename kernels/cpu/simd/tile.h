/* The product of a tile: sums of a few rows times VECTORS vectors of columns that stay in registers; and the lines that
 * are packed as its operands' columns. Included for each type of elements T, with tile_end.h at the end. */
typedef T OF(vector) __attribute__((vector_size(BYTES), aligned(sizeof(T)), may_alias));
#define vec OF(vector)
#define LANES ((int)(BYTES / sizeof(T)))
#define COLUMNS (VECTORS * LANES)

#define ALIGNED (64 / (int)sizeof(T)) /* elements of a line of the cache */
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
INLINE void store_some(T *p, uint32_t mask, vec v, int step) {
    for (int k = 0; k < LANES; k++)
        if (mask >> k & 1) p[k * step] = v[k];
}
#endif

/* Lines of memory that will be read later. While it multiplies, a tile asks for `share` of them every STEPS steps: all
 * at once they would hold up what it reads itself. On one core of a Xeon, with operands in memory, (1024, 1024) by
 * (1024, 256), of which the left one is a transpose: 4.55 -> 3.33 ms (MKL 3.60), packing by whole lines among it. */
typedef struct {
    const T *from;
    int64_t ld, lines, width, at, share; /* the next one is at from[at]; width is at least 1 */
} OF(ahead);

/* `lines` lines of `width` elements within so many steps; if there are too few of these, none. */
INLINE OF(ahead) OF(fetch_within)(int64_t steps, const T *from, int64_t ld, int64_t lines, int64_t width) {
    int64_t share = width <= 0 ? 0 : pieces(lines * pieces(width, ALIGNED), pieces(steps, STEPS));
    return (OF(ahead)){from, ld, share <= MOST_FETCHED ? lines : 0, width, 0, share};
}

INLINE void OF(fetch)(OF(ahead) * s) {
    for (int64_t n = s->share; n > 0 && s->lines > 0; n--) {
        __builtin_prefetch(s->from + s->at, 0, 2);
        s->at += ALIGNED;
        if (s->at >= s->width) s->at = 0, s->from += s->ld, s->lines--;
    }
}

/* A product's operands. a: rows, at a[l a_step + row]. If `by_rows`, a row is runs of `run` elements, of which it has k
 * from element `first` of the first run on: run r of row i is at rows[r a_step + i]. b: l's columns at b + l b_step.
 * The sums are multiplied by `scale`, if it is not NULL; then what `kind` says is added to them. `ahead`: two of
 * them, or NULL. */
typedef struct {
    int64_t k;
    const T *a;
    const T *const *rows;
    int64_t run, first;
    int64_t a_step;
    const T *b;
    int64_t b_step;
    const T *scale;
    int kind;
    const T *add;
    int64_t add_step;
    T *out;
    int64_t out_step;
    OF(ahead) * ahead;
} OF(operands);

/* sum += a b for the columns at b and the rows' elements, which `element` finds for row i */
#define ADD_PRODUCTS(b, element)                                                                                       \
    {                                                                                                                  \
        vec columns[VECTORS];                                                                                          \
        _Pragma("GCC unroll 3") for (int j = 0; j < vectors; j++) columns[j] = *(const vec *)((b) + j * LANES);        \
        _Pragma("GCC unroll 8") for (int i = 0; i < rows; i++) {                                                       \
            vec x = SPLAT(element);                                                                                    \
            _Pragma("GCC unroll 3") for (int j = 0; j < vectors; j++) sum[i][j] = FMA(x, columns[j], sum[i][j]);       \
        }                                                                                                              \
    }

INLINE void OF(tile)(const int rows, const int vectors, const bool by_rows, const OF(operands) * o) {
    vec sum[TILE_ROWS][VECTORS];
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++) sum[i][j] = (vec){0};
    const T *a = o->a, *b = o->b;
    int64_t a_step = o->a_step, b_step = o->b_step;
    const int width = vectors * LANES;
    bool packed = UNROLLED && rows == TILE_ROWS && b_step == width; /* steps whose distances the instructions hold */
    if (by_rows) {
        const T *const *at = o->rows;
        for (int64_t first = o->first, left = o->k; left; first = 0, at += a_step) {
            int64_t n = least(o->run - first, left);
            uintptr_t row[TILE_ROWS]; /* bytes from one position, the only one that is counted up */
#pragma GCC unroll 8
            for (int i = 0; i < rows; i++) row[i] = (uintptr_t)(at[i] + first);
            left -= n;
            uintptr_t l = 0, end = (uintptr_t)n * sizeof(T);
            for (; packed && l + STEPS * sizeof(T) <= end; l += STEPS * sizeof(T), b += STEPS * width) {
                if (o->ahead) OF(fetch)(&o->ahead[0]), OF(fetch)(&o->ahead[1]);
#pragma GCC unroll 8
                for (int step = 0; step < STEPS; step++)
                    ADD_PRODUCTS(b + step * width, *(const T *)(row[i] + l + (uintptr_t)step * sizeof(T)))
            }
            for (; l < end; l += sizeof(T), b += b_step) ADD_PRODUCTS(b, *(const T *)(row[i] + l))
        }
    } else {
        int64_t l = o->k;
        for (; packed && a_step == TILE_ROWS && l >= STEPS; l -= STEPS, a += STEPS * TILE_ROWS, b += STEPS * width) {
            if (o->ahead) OF(fetch)(&o->ahead[0]), OF(fetch)(&o->ahead[1]);
#pragma GCC unroll 8
            for (int step = 0; step < STEPS; step++) {
                if (step % (ALIGNED / TILE_ROWS) == 0) __builtin_prefetch(a + (step + STEPS) * TILE_ROWS);
                ADD_PRODUCTS(b + step * width, a[step * TILE_ROWS + i])
            }
        }
        for (; l > 0; l--, a += a_step, b += b_step) {
            __builtin_prefetch(a + STEPS * a_step);
            ADD_PRODUCTS(b, a[i])
        }
    }
#pragma GCC unroll 8
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 3
        for (int j = 0; j < vectors; j++) {
            vec r = sum[i][j];
            if (o->scale) r *= SPLAT(*o->scale);
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

/* `lines` lines of `depth` elements, as rows of `width`: to[l width + line]. Of each, a stretch at a time stays in the
 * cache. */
static void OF(turn)(const T *from, int64_t ld, int64_t lines, int64_t depth, T *to, int64_t width) {
    for (int64_t first = 0; first < depth; first += STRETCH)
        for (int64_t i = 0, n; i < lines; i += n) {
            const T *in = from + i * ld + first;
            T *out = to + first * width + i;
            int64_t l = 0, end = least(STRETCH, depth - first);
            n = sizeof(T) == 4 && lines - i >= TURNED ? TURNED : least(4, lines - i);
            for (; n >= 4 && l + 4 <= end; l += 4)
                if (sizeof(T) == 8) turn_8(in + l, ld, out + l * width, width);
                else if (n == 4) turn_4(in + l, ld, out + l * width, width);
                else turn_many((const float *)in + l, ld, (float *)out + l * width, width);
            for (; l < end; l++)
                for (int64_t k = 0; k < n; k++) out[l * width + k] = in[k * ld + l];
        }
}
