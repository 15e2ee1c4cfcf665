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

/* Where a block lies in the right operand. */
static const T *OF(first_of)(const tt_product_block *b) {
    const tt_operand *from = &b->p->b;
    return (const T *)from->data + (from->trans ? b->at + b->column * from->ld : b->column + b->at * from->ld);
}

/* Packs a block in strips. Rows of the matrix go to all strips, one row after the other; columns to one strip after the
 * other. */
static void OF(pack)(const tt_product_block *block) {
    const tt_operand *b = &block->p->b;
    const T *from = OF(first_of)(block);
    T *to = block->strips;
    int64_t cols = block->columns, depth = block->depth;
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
    int64_t whole = m / TILE_ROWS * TILE_ROWS;
    for (int64_t l = 0; l < depth; l++)
        for (int64_t k = 0; k < whole; k += TILE_ROWS)
            memcpy(to + k * depth + l * TILE_ROWS, from + l * ld + k, TILE_ROWS * sizeof(T));
    for (int64_t l = 0; l < depth && whole < m; l++)
        for (int64_t k = whole; k < m; k++) to[whole * depth + l * TILE_ROWS + k - whole] = from[l * ld + k];
}

/* What is packed after this block, if it is of the same columns: of its lines those that fall to rows [row, end). */
static OF(ahead) OF(fetch_next)(const tt_product_block *b, int64_t row, int64_t end, int64_t steps) {
    const tt_float_product *p = b->p;
    const T *next = OF(first_of)(b) + b->depth * (p->b.trans ? 1 : p->b.ld);
    int64_t depth = b->lies ? 0 : least(b->depth, p->k - b->at - b->depth), grain = p->b.trans ? 1 : ALIGNED;
    int64_t parts = pieces(b->columns, grain), from = row * parts / p->m * grain, to = end * parts / p->m * grain;
    if (p->b.trans) return OF(fetch_within)(steps, next + from * p->b.ld, p->b.ld, to - from, depth);
    return OF(fetch_within)(steps, next + from, p->b.ld, depth, to - from);
}

/* The product of a tile's rows, from `row` on, and a block, strip after strip. */
static void OF(multiply_tile)(const tt_product_block *b, int64_t row, int64_t rows, OF(operands) o, T *edge) {
    const tt_float_product *p = b->p;
    T beta = (T)p->beta, *sums = (T *)p->c + row * p->ldc + b->column;
    const T *add = b->at || !p->row ? sums : (const T *)p->row + b->column;
    int64_t add_step = add == sums ? p->ldc : 0;
    o.kind = b->at || p->row || beta != 0 ? MATRIX : NOTHING;
    for (int64_t r = 0; r < rows && !b->at && beta != 0 && beta != 1; r++)
        for (int64_t j = 0; j < b->columns; j++) sums[r * p->ldc + j] *= beta;
    for (int64_t j = 0, width; j < b->columns; j += width) {
        int64_t vectors = OF(strip)(b->columns - j), n = least(vectors * LANES, b->columns - j);
        width = vectors * LANES;
        bool whole = n == width;
        o.b = b->lies ? OF(first_of)(b) + j : (const T *)b->strips + j * b->depth;
        o.b_step = b->lies ? p->b.ld : width;
        o.add = whole ? add + j : edge;
        o.add_step = whole ? add_step : width;
        o.out = whole ? sums + j : edge;
        o.out_step = whole ? p->ldc : width;
        for (int64_t r = 0; !whole && o.kind && r < rows; r++)
            memcpy(edge + r * width, add + r * add_step + j, (size_t)n * sizeof(T));
        OF(product)(rows, (int)vectors, !p->a.trans, o);
        for (int64_t r = 0; !whole && r < rows; r++)
            memcpy(sums + r * p->ldc + j, edge + r * width, (size_t)n * sizeof(T));
    }
}

/* The product of some rows and a block. GROUP of them are fetched, and as columns of a transpose packed, together. */
static void OF(multiply)(const tt_product_block *b, int64_t begin, int64_t end, void *room) {
    const tt_float_product *p = b->p;
    T alpha = (T)p->alpha, *edge = room, *panels = edge + TILE_ROWS * COLUMNS;
    const T *lines[GROUP];
    int64_t ld = p->a.ld;
    OF(ahead) ahead[2]; /* of the left operand, and of the right one */
    OF(operands)
    o = {.k = b->depth, .a_step = TILE_ROWS, .run = b->depth, .scale = alpha == 1 ? NULL : &alpha, .ahead = ahead};
    for (int64_t i = begin, m; i < end; i += m) {
        m = least(GROUP, end - i);
        const T *a = (const T *)p->a.data + (p->a.trans ? i + b->at * ld : b->at + i * ld);
        int64_t steps = pieces(m, TILE_ROWS) * pieces(b->columns, COLUMNS) * b->depth, next = least(m, p->m - i - m);
        ahead[0] = p->a.trans ? OF(fetch_within)(steps, a + m, ld, b->depth, next)
                              : OF(fetch_within)(steps, a + m * ld, ld, next, b->depth);
        ahead[1] = OF(fetch_next)(b, i, i + m, steps);
        if (p->a.trans) OF(pack_panels)(a, ld, m, b->depth, panels);
        for (int64_t k = 0; k < m && !p->a.trans; k++) lines[k] = a + k * ld;
        for (int64_t k = 0; k < m; k += TILE_ROWS) {
            o.a = panels + k * b->depth;
            o.rows = lines + k;
            OF(multiply_tile)(b, i + k, least(TILE_ROWS, m - k), o, edge);
        }
    }
}

static void OF(turn_lines)(const void *from, int64_t ld, int64_t lines, int64_t depth, void *to, int64_t width) {
    OF(turn)(from, ld, lines, depth, to, width);
}
