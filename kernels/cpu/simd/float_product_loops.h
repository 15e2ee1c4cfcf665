/* Products of matrices, for each type of elements T: Note [Products in strips] in cpu/float_product.h. */

static void OF(rows_product)(const tt_rows_product *p) {
    int64_t vectors = pieces(p->columns, LANES);
    for (int64_t s = 0; s * VECTORS < vectors; s++) {
        OF(operands)
        o = {.k = p->k,
             .rows = (const T *const *)p->rows,
             .run = p->k,
             .b = (const T *)p->b + s * p->k * COLUMNS,
             .b_step = COLUMNS,
             .kind = NOTHING,
             .out = (T *)p->out + s * COLUMNS,
             .out_step = p->out_step};
        OF(product)(p->m, (int)least(VECTORS, vectors - s * VECTORS), true, o);
    }
}

/* The vectors of the strip that `left` columns begin with. A strip of a single vector would take half as long as one of
 * three. */
static int64_t OF(strip)(int64_t left) {
    int64_t vectors = pieces(left, LANES);
    return vectors == VECTORS + 1 ? 2 : least(VECTORS, vectors);
}

/* Rows of the matrix go to all strips, one row after the other; columns to one strip after the other. */
static void OF(pack_strips)(const tt_operand *b, const T *from, int64_t cols, int64_t depth, T *to) {
    for (int64_t l = 0; l < depth && !b->trans; l++) {
        const T *row = from + l * b->ld;
        for (int64_t j = 0; l + 8 < depth && j < cols; j += ALIGNED) __builtin_prefetch(row + 8 * b->ld + j, 0, 2);
        for (int64_t first = 0, width; first < cols; first += width) {
            width = OF(strip)(cols - first) * LANES;
            int64_t n = least(width, cols - first), j = 0;
            T *out = to + first * depth + l * width;
            for (; j + LANES <= n; j += LANES) *(vec *)(out + j) = *(const vec *)(row + first + j);
            for (; j < width; j++) out[j] = j < n ? row[first + j] : 0;
        }
    }
    for (int64_t first = 0, width; first < cols && b->trans; first += width) {
        width = OF(strip)(cols - first) * LANES;
        int64_t n = least(width, cols - first);
        T *out = to + first * depth;
        OF(turn)(from + first * b->ld, b->ld, n, depth, out, width);
        for (int64_t l = 0; n < width && l < depth; l++)
            for (int64_t j = n; j < width; j++) out[l * width + j] = 0;
    }
}

/* `m` columns of the transpose as panels of TILE_ROWS columns. */
static void OF(pack_panels)(const T *from, int64_t ld, int64_t m, int64_t depth, T *to) {
    for (int64_t l = 0; l < depth && m == GROUP; l++)
        for (int64_t k = 0; k < GROUP; k += TILE_ROWS)
            memcpy(to + k * depth + l * TILE_ROWS, from + l * ld + k, TILE_ROWS * sizeof(T));
    for (int64_t l = 0; l < depth && m < GROUP; l++)
        for (int64_t k = 0; k < m; k++)
            to[k / TILE_ROWS * TILE_ROWS * depth + l * TILE_ROWS + k % TILE_ROWS] = from[l * ld + k];
}

/* Columns of the right operand, over a slice: packed in strips, or `rows` of them, `ld` apart. */
typedef struct {
    int64_t cols, depth, ld;
    const T *strips, *rows;
} OF(block);

/* Where a thread works. */
typedef struct {
    T *edge, *panels, *strips;
    OF(ahead) ahead[2]; /* of the left operand, and of the right one */
} OF(room);

/* `to` = the product of GROUP rows, from `row` on, and a block over the slice that begins at l; and what is to be
 * added: rows, add_step apart, if it is not NULL. */
static void OF(multiply_group)(const tt_float_product *p, int64_t row, int64_t l, OF(block) b, const T *add,
                               int64_t add_step, T *to, OF(room) * room) {
    T alpha = (T)p->alpha;
    int64_t ld = p->a.ld, m = least(GROUP, p->m - row), next = least(GROUP, p->m - row - m);
    int64_t steps = pieces(m, TILE_ROWS) * pieces(b.cols, COLUMNS) * b.depth;
    const T *a = (const T *)p->a.data + (p->a.trans ? row + l * ld : l + row * ld), *lines[GROUP];
    room->ahead[0] = p->a.trans ? OF(fetch_within)(steps, a + m, ld, b.depth, next)
                                : OF(fetch_within)(steps, a + m * ld, ld, next, b.depth);
    if (p->a.trans) OF(pack_panels)(a, ld, m, b.depth, room->panels);
    for (int64_t i = 0; i < m && !p->a.trans; i++) lines[i] = a + i * ld;
    OF(operands)
    o = {.k = b.depth, .a_step = TILE_ROWS, .run = b.depth, .scale = alpha == 1 ? NULL : &alpha, .ahead = room->ahead};
    for (int64_t i = 0; i < m; i += TILE_ROWS) {
        int64_t rows = least(TILE_ROWS, m - i);
        o.a = room->panels + i * b.depth;
        o.rows = lines + i;
        for (int64_t j = 0, width; j < b.cols; j += width) {
            int64_t vectors = OF(strip)(b.cols - j), n = least(vectors * LANES, b.cols - j);
            width = vectors * LANES;
            bool whole = n == width;
            const T *more = add ? add + i * add_step + j : NULL;
            T *sums = to + i * p->ldc + j, *edge = room->edge;
            o.b = b.rows ? b.rows + j : b.strips + j * b.depth;
            o.b_step = b.rows ? b.ld : width;
            o.kind = add ? MATRIX : NOTHING;
            o.add = whole ? more : edge;
            o.add_step = whole ? add_step : width;
            o.out = whole ? sums : edge;
            o.out_step = whole ? p->ldc : width;
            for (int64_t r = 0; !whole && add && r < rows; r++)
                memcpy(edge + r * width, more + r * add_step, (size_t)n * sizeof(T));
            OF(product)(rows, (int)vectors, !p->a.trans, o);
            for (int64_t r = 0; !whole && r < rows; r++)
                memcpy(sums + r * p->ldc, edge + r * width, (size_t)n * sizeof(T));
        }
    }
}

/* Slices of about one depth, and blocks of about one width. */
static void OF(multiply)(const tt_float_product *p, void *memory) {
    int64_t deep = tt_product_deep(p->k), wide = tt_product_wide(p->n, deep, COLUMNS);
    OF(room) room = {.edge = memory};
    room.panels = room.edge + TILE_ROWS * COLUMNS;
    room.strips = room.panels + GROUP * deep;
    T beta = (T)p->beta, *c = p->c;
    for (int64_t i = 0; beta != 0 && beta != 1 && i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) c[i * p->ldc + j] *= beta;
    bool as_it_lies = !p->b.trans && p->m <= FEW_ROWS && p->n % LANES == 0;
    for (int64_t j = 0; j < p->n; j += wide)
        for (int64_t l = 0; l < p->k; l += deep) {
            OF(block) block = {least(wide, p->n - j), least(deep, p->k - l), p->b.ld, room.strips, NULL};
            const T *b = (const T *)p->b.data + (p->b.trans ? l + j * p->b.ld : j + l * p->b.ld);
            if (as_it_lies) block.rows = b;
            else OF(pack_strips)(&p->b, b, block.cols, block.depth, room.strips);
            /* the next slice, which is packed then */
            int64_t steps = pieces(p->m, TILE_ROWS) * pieces(block.cols, COLUMNS) * block.depth;
            int64_t next = as_it_lies ? 0 : least(deep, p->k - l - block.depth);
            room.ahead[1] = p->b.trans ? OF(fetch_within)(steps, b + block.depth, p->b.ld, block.cols, next)
                                       : OF(fetch_within)(steps, b + block.depth * p->b.ld, p->b.ld, next, block.cols);
            for (int64_t i = 0; i < p->m; i += GROUP) {
                T *to = c + i * p->ldc + j;
                const T *add = l ? to : p->row ? (const T *)p->row + j : beta != 0 ? to : NULL;
                OF(multiply_group)(p, i, l, block, add, !l && p->row ? 0 : p->ldc, to, &room);
            }
        }
}

static void OF(turn_lines)(const void *from, int64_t ld, int64_t lines, int64_t depth, void *to, int64_t width) {
    OF(turn)(from, ld, lines, depth, to, width);
}
