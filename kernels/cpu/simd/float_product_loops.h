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

/* `n` elements are asked for ahead. Products of ViT-tiny's layers, whose operands come from memory, on one core of an
 * EPYC: x w^T 101 -> 103 GFLOP/s, g w 106 -> 108, g^T x 101 -> 105. */
INLINE void OF(fetch)(const T *from, int64_t n) {
    for (int64_t l = 0; l < n; l += 64 / (int)sizeof(T)) __builtin_prefetch(from + l, 0, 2);
}

/* Rows of the matrix go to all strips, one row after the other; columns to one strip after the other. */
static void OF(pack_strips)(const tt_operand *b, const T *from, int64_t cols, int64_t depth, T *to) {
    for (int64_t l = 0; l < depth && !b->trans; l++) {
        const T *row = from + l * b->ld;
        if (l + 8 < depth) OF(fetch)(row + 8 * b->ld, cols);
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

/* `m` columns of the transpose as a panel. The lines' next columns are fetched for the panels after it: 1024 x 1024 by
 * 1024 x 1024 takes 0.97 of the time. */
static void OF(pack_panel)(const T *from, int64_t ld, int64_t m, int64_t depth, T *to) {
    if (m == TILE_ROWS)
        for (int64_t l = 0; l < depth; l++) {
            __builtin_prefetch(from + l * ld + 64 / sizeof(T), 0, 2);
            memcpy(to + l * TILE_ROWS, from + l * ld, TILE_ROWS * sizeof(T));
        }
    else
        for (int64_t l = 0; l < depth; l++)
            for (int64_t i = 0; i < m; i++) to[l * TILE_ROWS + i] = from[l * ld + i];
}

/* Columns of the right operand, over a slice: packed in strips, or `rows` of them, `ld` apart. */
typedef struct {
    int64_t cols, depth, ld;
    const T *strips, *rows;
} OF(block);

/* `to` = the product of some rows and a block, and what is to be added: rows, add_step apart, if it is not NULL. */
static void OF(multiply_rows)(const tt_float_product *p, int64_t row, int64_t slice, OF(block) b, const T *add,
                              int64_t add_step, T *to, T *panel, T *edge) {
    T alpha = (T)p->alpha;
    int64_t m = least(TILE_ROWS, p->m - row);
    const T *a = (const T *)p->a.data + (p->a.trans ? row + slice * p->a.ld : slice + row * p->a.ld), *lines[TILE_ROWS];
    bool as_it_lies = b.cols <= FEW_COLUMNS;
    if (p->a.trans && !as_it_lies) OF(pack_panel)(a, p->a.ld, m, b.depth, panel);
    for (int64_t i = 0; i < m && !p->a.trans; i++) lines[i] = a + i * p->a.ld;
    /* The next rows are fetched, a part before each tile: all at once they take 3 % of a ViT-tiny's step on a Xeon. */
    int64_t ahead = p->a.trans || row + 2 * TILE_ROWS > p->m ? b.depth : 0;
    int64_t share = pieces(pieces(b.depth, pieces(b.cols, COLUMNS)), LANES) * LANES;
    for (int64_t j = 0, width; j < b.cols; j += width) {
        int64_t vectors = OF(strip)(b.cols - j), n = least(vectors * LANES, b.cols - j);
        width = vectors * LANES;
        bool whole = n == width;
        for (int64_t i = 0; i < TILE_ROWS && ahead < b.depth; i++)
            OF(fetch)(lines[i] + TILE_ROWS * p->a.ld + ahead, least(share, b.depth - ahead));
        ahead += share;
        OF(operands)
        o = {.k = b.depth,
             .a = as_it_lies ? a : panel,
             .a_step = as_it_lies ? p->a.ld : TILE_ROWS,
             .rows = lines,
             .run = b.depth,
             .b = b.rows ? b.rows + j : b.strips + j * b.depth,
             .b_step = b.rows ? b.ld : width,
             .scale = alpha == 1 ? NULL : &alpha,
             .kind = add ? MATRIX : NOTHING,
             .add = !whole ? edge
                    : add  ? add + j
                           : NULL,
             .add_step = whole ? add_step : width,
             .out = whole ? to + j : edge,
             .out_step = whole ? p->ldc : width};
        for (int64_t i = 0; !whole && add && i < m; i++)
            memcpy(edge + i * width, add + j + i * add_step, (size_t)n * sizeof(T));
        OF(product)(m, (int)vectors, !p->a.trans, o);
        for (int64_t i = 0; !whole && i < m; i++) memcpy(to + j + i * p->ldc, edge + i * width, (size_t)n * sizeof(T));
    }
}

static void OF(multiply)(const tt_float_product *p, void *memory) {
    int64_t most_deep = pieces(pieces(p->k, pieces(p->k, TT_PRODUCT_DEPTH)), 8) * 8; /* slices of about one depth */
    T *edge = memory, *panel = edge + TILE_ROWS * COLUMNS, *strips = panel + TILE_ROWS * most_deep, *c = p->c;
    T beta = (T)p->beta;
    for (int64_t i = 0; beta != 0 && beta != 1 && i < p->m; i++)
        for (int64_t j = 0; j < p->n; j++) c[i * p->ldc + j] *= beta;
    for (int64_t j = 0; j < p->n; j += TT_PRODUCT_COLUMNS)
        for (int64_t l = 0; l < p->k; l += most_deep) {
            OF(block) block = {least(TT_PRODUCT_COLUMNS, p->n - j), least(most_deep, p->k - l), p->b.ld, strips, NULL};
            const T *b = (const T *)p->b.data + (p->b.trans ? l + j * p->b.ld : j + l * p->b.ld);
            if (!p->b.trans && p->m <= FEW_ROWS && p->n % LANES == 0) block.rows = b;
            else OF(pack_strips)(&p->b, b, block.cols, block.depth, strips);
            for (int64_t i = 0; i < p->m; i += TILE_ROWS) {
                T *to = c + i * p->ldc + j;
                const T *add = l ? to : p->row ? (const T *)p->row + j : beta != 0 ? to : NULL;
                OF(multiply_rows)(p, i, l, block, add, !l && p->row ? 0 : p->ldc, to, panel, edge);
            }
        }
}

static void OF(turn_lines)(const void *from, int64_t ld, int64_t lines, int64_t depth, void *to, int64_t width) {
    OF(turn)(from, ld, lines, depth, to, width);
}
