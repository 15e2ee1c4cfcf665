/* Systems of equations of real numbers, and the LU and Cholesky factorizations of large matrices, in blocks that
 * threads share out. lapack_routines.h includes this file.
 *
 * Few right-hand sides are the library's: in rows they would leave most of a vector empty. */

static void OF(multiply_by)(const tt_float_product_loops *loops, tt_float_product p) {
    void *memory = p.m && p.n && p.k && tt_prefers_strips() ? tt_scratch(tt_strips_memory(loops, p.n, p.k)) : NULL;
    if (memory) tt_multiply_strips(loops, &p, memory);
    else tt_multiply_by_blas(&p);
    tt_scratch_free(memory);
}

/* c = alpha a b + beta c by this thread: (m, k) times (k, n), in rows. In strips, whatever the sizes: so bits do not
 * depend on how many columns are a task's, and nobody waits for the lock of the library's products. */
static void OF(multiply)(int64_t m, int64_t n, int64_t k, T alpha, tt_operand a, tt_operand b, T beta, T *c,
                         int64_t ldc) {
    tt_float_product p = {DTYPE, m, n, k, a, b, (double)alpha, (double)beta, c, ldc, NULL};
    OF(multiply_by)(tt_float_product_loops_of(DTYPE), p);
}

/* c -= a b, where n may depend on the task: Note [Products in parts]. */
static void OF(subtract)(int64_t m, int64_t n, int64_t k, tt_operand a, tt_operand b, T *c, int64_t ldc) {
    bool parts = DTYPE == TT_F32 && least(m, k) >= DEEP && tt_float_parts();
    tt_float_product p = {DTYPE, m, n, k, a, b, -1, 1, c, ldc, NULL};
    OF(multiply_by)(parts ? tt_float_parts() : tt_float_product_loops_of(DTYPE), p);
}

/* b -= A x, where A has t's strides, and a row of b and of x is t->step long. */
static void OF(subtract_product)(const tt_triangle *t, T *b, int rows, const T *a, int cols, const T *x) {
    tt_operand left = {a, t->col == 1 ? t->row : t->col, t->col != 1}, right = {x, t->step, false};
    OF(subtract)(rows, t->count, cols, left, right, b, t->step);
}

/* Solves a triangular system in place of its right-hand sides: by halves. */
static void OF(substitute)(tt_triangle t, const T *a, T *b) {
    if (t.n <= TT_TRIANGLE_ROWS) {
        tt_triangle_loops[tt_isa_index]->OF(solve)(&t, a, b);
        return;
    }
    tt_triangle head = t, tail = t;
    head.n = (int)pieces(t.n / 2, TT_TRIANGLE_ROWS) * TT_TRIANGLE_ROWS;
    tail.n = t.n - head.n;
    const T *a_tail = a + head.n * (t.row + t.col);
    T *b_tail = b + head.n * t.step;
    if (t.upper) {
        OF(substitute)(tail, a_tail, b_tail);
        OF(subtract_product)(&t, b, head.n, a + head.n * t.col, tail.n, b_tail);
        OF(substitute)(head, a, b);
    } else {
        OF(substitute)(head, a, b);
        OF(subtract_product)(&t, b_tail, tail.n, a + head.n * t.row, head.n, b);
        OF(substitute)(tail, a_tail, b_tail);
    }
}

/* `count` columns of n numbers, `ld` apart, to rows, whose rest becomes zeros; and back. */
static void OF(to_rows)(const T *columns, int64_t ld, int n, int64_t count, T *rows, int64_t step) {
    tt_float_product_loops_of(DTYPE)->turn(columns, ld, count, n, rows, step);
    for (int i = 0; count < step && i < n; i++) memset(rows + i * step + count, 0, (size_t)(step - count) * sizeof(T));
}

static void OF(to_columns)(const T *rows, int64_t step, int n, int64_t count, T *columns, int64_t ld) {
    tt_float_product_loops_of(DTYPE)->turn(rows, step, n, count, columns, ld);
}

/* The exchanges of rows that make P^T B of B, or undo it. */
static void OF(exchange_rows)(T *rows, int64_t step, int64_t count, const int *pivots, int n, bool undo) {
    for (int k = 0; k < n; k++) {
        int i = undo ? n - 1 - k : k;
        T *one = rows + i * step, *other = rows + (pivots[i] - 1) * step;
        for (int64_t j = 0; j < count && one != other; j++) {
            T kept = one[j];
            one[j] = other[j];
            other[j] = kept;
        }
    }
}

#include "cpu/small_systems.h"

typedef struct {
    int triangles; /* which follow one another */
    tt_triangle t[2];
    const T *a; /* of both */
    T *b;
    int64_t count, together; /* right-hand sides, and those of a task */
    const int *pivots; /* or NULL: exchanges of rows before; undone after, if `transposed` */
    bool transposed;
    bool in_rows; /* right-hand sides are; else they are columns */
    bool failed;
} OF(system);

static int64_t OF(padded)(int64_t count) { return pieces(count, TT_TRIANGLE_COLUMNS) * TT_TRIANGLE_COLUMNS; }

static void OF(solve_block)(void *context, int64_t begin, int64_t end) {
    OF(system) *s = context;
    int n = s->t[0].n;
    int64_t width = least(OF(padded)(s->count), s->together);
    T *room = s->in_rows ? NULL : tt_scratch(n * width * (int64_t)sizeof(T));
    if (!s->in_rows && !room) {
        __atomic_store_n(&s->failed, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * s->together, count = least(s->together, s->count - first),
                step = room ? width : s->count;
        T *b = s->b + first * (room ? n : 1), *rows = room ? room : b;
        if (room) OF(to_rows)(b, n, n, count, room, step);
        if (s->pivots && !s->transposed) OF(exchange_rows)(rows, step, count, s->pivots, n, false);
        for (int k = 0; k < s->triangles; k++) {
            tt_triangle t = s->t[k];
            t.step = step;
            t.count = room ? OF(padded)(count) : count;
            OF(substitute)(t, s->a, rows);
        }
        if (s->pivots && s->transposed) OF(exchange_rows)(rows, step, count, s->pivots, n, true);
        if (room) OF(to_columns)(room, step, n, count, b, n);
    }
    tt_scratch_free(room);
}

static int OF(run_system)(const tt_matrix *c, OF(system) * s) {
    s->together = c->together;
    int64_t blocks = pieces(s->count, s->together);
    tt_parallel(blocks, c->shared ? 1 : blocks, OF(solve_block), s);
    return s->failed ? NO_MEMORY : 0;
}

/* A X = B, or A^T X = B, where A = P L U. */
static int OF(solve_factored)(const tt_matrix *c, bool transposed, const T *lu, const int *pivots, T *b, int cols) {
    int n = c->n;
    if (cols < MANY && n <= SMALL) {
        OF(small_solve)(lu, n, pivots, transposed, b, cols);
        return 0;
    }
    if (cols < MANY) {
        int ld = at_least_1(n);
        return LAPACK(getrs)(COL_MAJOR, transposed ? 'T' : 'N', n, cols, lu, ld, pivots, b, ld);
    }
    tt_triangle l = {.n = n, .unit = true, .row = 1, .col = n}, u = {.n = n, .upper = true, .row = 1, .col = n};
    OF(system) s = {.triangles = 2, .t = {l, u}, .a = lu, .b = b, .count = cols, .pivots = pivots};
    if (transposed) {
        tt_triangle lt = {.n = n, .upper = true, .unit = true, .row = n, .col = 1}, ut = {.n = n, .row = n, .col = 1};
        s.t[0] = ut;
        s.t[1] = lt;
        s.transposed = true;
    }
    return OF(run_system)(c, &s);
}

/* One triangle of A, on either side of X. X A = B are rows of A^T X^T = B^T as they lie. */
static int OF(solve_many)(const tt_matrix *c) {
    bool upper = c->option & 1, right = c->option & 2;
    int64_t n = c->n, row = c->row_major ? n : 1, col = c->row_major ? 1 : n;
    tt_triangle t = {.n = c->n, .upper = upper != right, .unit = c->option & 4};
    t.row = right ? col : row;
    t.col = right ? row : col;
    OF(system) s = {.triangles = 1, .t = {t}, .a = c->a, .b = c->b, .in_rows = right};
    s.count = right ? c->b_rows : c->b_cols;
    return OF(run_system)(c, &s);
}

/* Columns of A = P L U that are known, and others that follow them, `together` at a time. */
typedef struct {
    T *a;
    int64_t ld;
    int rows, first, width; /* the known ones are [first, first + width) */
    int begin, end, together;
    const int *pivots; /* of all rows, from 1 */
    bool failed;
} OF(panel);

/* The panel's exchanges of rows, in columns from `begin` on. */
static void OF(exchange_in_columns)(void *context, int64_t first, int64_t end) {
    const OF(panel) *p = context;
    for (int64_t column = p->begin + first; column < p->begin + end; column++) {
        T *x = p->a + column * p->ld;
        for (int i = p->first; i < p->first + p->width; i++) {
            T other = x[p->pivots[i] - 1];
            x[p->pivots[i] - 1] = x[i];
            x[i] = other;
        }
    }
}

/* The panel's exchanges of rows, its L^-1 times the rows beside it, and a product below. */
static void OF(follow_panel)(void *context, int64_t begin, int64_t end) {
    OF(panel) *p = context;
    T *room = tt_scratch(p->width * p->together * (int64_t)sizeof(T));
    if (!room) {
        __atomic_store_n(&p->failed, true, __ATOMIC_RELAXED);
        return;
    }
    const T *l = p->a + p->first * (p->ld + 1);
    for (int64_t block = begin; block < end; block++) {
        int64_t at = block * p->together, first = p->begin + at, count = least(p->together, p->end - first);
        T *top = p->a + p->first + first * p->ld;
        tt_triangle t = {p->width, false, true, 1, p->ld, p->together, OF(padded)(count)};
        OF(exchange_in_columns)(p, at, at + count);
        OF(to_rows)(top, p->ld, p->width, count, room, p->together);
        OF(substitute)(t, l, room);
        OF(to_columns)(room, p->together, p->width, count, top, p->ld);
        tt_operand left = {top, p->ld, false}, right = {l + p->width, p->ld, false};
        int64_t below = p->rows - p->first - p->width;
        OF(subtract)(count, below, p->width, left, right, top + p->width, p->ld);
    }
    tt_scratch_free(room);
}

static bool OF(follow)(const tt_matrix *c, const int *pivots, int first, int width, int begin, int end) {
    int together = width >= 512 ? 128 : 64; /* each packs the panel anew, but the fewer there are, the fewer threads */
    OF(panel) p = {c->a, at_least_1(c->m), c->m, first, width, begin, end, together, pivots, false};
    int64_t blocks = pieces(end - begin, together);
    tt_parallel(blocks, c->shared ? 1 : blocks, OF(follow_panel), &p);
    return !p.failed;
}

/* Columns [first, first + width) of A = P L U, by halves: Toledo 1997, "Locality of reference in LU decomposition with
 * partial pivoting". */
static int OF(factor_columns)(const tt_matrix *c, int *pivots, int first, int width) {
    int ld = at_least_1(c->m), left = width / 2 / PANEL * PANEL;
    if (width < 2 * PANEL) {
        T *corner = (T *)c->a + first * (int64_t)(ld + 1);
        int info = LAPACK(getrf)(COL_MAJOR, c->m - first, width, corner, ld, pivots + first);
        for (int i = first; i < first + width; i++) pivots[i] += first;
        return info > 0 ? info + first : info;
    }
    int info = OF(factor_columns)(c, pivots, first, left);
    if (info == NO_MEMORY || !OF(follow)(c, pivots, first, left, first + left, first + width)) return NO_MEMORY;
    int later = OF(factor_columns)(c, pivots, first + left, width - left);
    OF(panel) right = {.a = c->a, .ld = ld, .first = first + left, .width = width - left, .begin = first};
    right.pivots = pivots;
    tt_parallel(left, c->shared ? COLUMNS : left, OF(exchange_in_columns), &right);
    return later == NO_MEMORY || !info ? later : info;
}

/* What follows a panel: the next panel, what else is right of it, and the exchanges left of it. */
typedef struct {
    const tt_matrix *c;
    int *pivots;
    OF(panel) right, left;
    int next, width; /* of the next panel; 0 columns: there is none */
    int64_t blocks; /* of columns right of it */
    int info;
} OF(round);

static void OF(run_round)(void *context, int64_t begin, int64_t end) {
    OF(round) *r = context;
    const OF(panel) *known = &r->right;
    for (int64_t task = begin; task < end; task++) {
        int64_t left = (task - 1 - r->blocks) * COLUMNS;
        if (task == 0 && r->width) {
            bool ok = OF(follow)(r->c, r->pivots, known->first, known->width, r->next, r->next + r->width);
            r->info = ok ? OF(factor_columns)(r->c, r->pivots, r->next, r->width) : NO_MEMORY;
        } else if (left >= 0) OF(exchange_in_columns)(&r->left, left, least(left + COLUMNS, r->left.end));
        else if (task) OF(follow_panel)(&r->right, task - 1, task);
    }
}

/* One thread goes ahead with the next panel, while the others follow the last one: else they would wait for each panel.
 * On two cores of a Xeon that others used, 512 x 512 floats 1.27 -> 1.08 ms, 2048 x 2048 59 -> 43. */
static int OF(factor_lu)(const tt_matrix *c, int *pivots) {
    int ld = at_least_1(c->m), k = c->k;
    if (c->m <= SMALL && c->n <= SMALL) return OF(small_lu)(c->a, c->m, c->n, pivots);
    if (k < LARGE) return LAPACK(getrf)(COL_MAJOR, c->m, c->n, c->a, ld, pivots);
    int width = k < 1024 ? PANEL : k < 4096 ? 2 * PANEL : 4 * PANEL, together = (int)least(width, 2 * COLUMNS);
    int info = OF(factor_columns)(c, pivots, 0, width), now = width;
    for (int first = 0; first < k && info != NO_MEMORY; first += now, now = (int)least(width, k - first)) {
        int next = first + now, ahead = (int)least(width, k - next);
        OF(round) r = {.c = c, .pivots = pivots, .next = next, .width = ahead};
        r.right = (OF(panel)){c->a, ld, c->m, first, now, next + ahead, c->n, together, pivots, false};
        r.left = (OF(panel)){.a = c->a, .ld = ld, .first = first, .width = now, .end = first, .pivots = pivots};
        r.blocks = pieces(c->n - next - ahead, together);
        int64_t tasks = 1 + r.blocks + pieces(first, COLUMNS);
        tt_parallel(tasks, c->shared ? 1 : tasks, OF(run_round), &r);
        if (r.info == NO_MEMORY || r.right.failed) info = NO_MEMORY;
        else if (!info) info = r.info;
    }
    return info;
}

/* A = L L^T, of which columns from `first` on are known, down to the end of a corner of L. */
typedef struct {
    T *a;
    int n, first, width;
} OF(corner);

/* Rows below a corner times its L^-T, COLUMNS of them at a time. */
static void OF(follow_corner)(void *context, int64_t begin, int64_t end) {
    const OF(corner) *p = context;
    T *l = p->a + p->first * ((int64_t)p->n + 1);
    for (int64_t block = begin; block < end; block++) {
        int64_t at = p->width + block * COLUMNS, count = least(COLUMNS, p->n - p->first - at);
        tt_triangle t = {.n = p->width, .row = 1, .col = p->n, .step = p->n, .count = count};
        OF(substitute)(t, l, l + at);
    }
}

/* Subtracts the product of these rows and their transpose from what lies right of them: squares on or below the
 * diagonal. */
static void OF(subtract_square)(void *context, int64_t begin, int64_t end) {
    const OF(corner) *p = context;
    int64_t n = p->n, next = p->first + p->width, down = pieces(n - next, COLUMNS);
    const T *rows = p->a + p->first * n;
    for (int64_t task = begin; task < end; task++) {
        int64_t row = next + task % down * COLUMNS, col = next + task / down * COLUMNS;
        if (row < col) continue;
        tt_operand left = {rows + col, n, true}, right = {rows + row, n, false};
        T *to = p->a + row + col * n;
        OF(subtract)(least(COLUMNS, n - col), least(COLUMNS, n - row), p->width, left, right, to, n);
    }
}

/* OpenBLAS's shares nothing out, and solves more slowly: on a Xeon's core 512 x 512 floats took 1.1 ms, now 0.8, and
 * 2048 x 2048 on two cores 38, now 29. */
static int OF(factor_cholesky)(const tt_matrix *c) {
    int n = c->n;
    if (n <= SMALL) return OF(small_cholesky)(c->a, n, c->option);
    if (n < LARGE || c->option) return LAPACK(potrf)(COL_MAJOR, c->option ? 'U' : 'L', n, c->a, at_least_1(n));
    for (int first = 0; first < n; first += PANEL) {
        OF(corner) p = {c->a, n, first, (int)least(PANEL, n - first)};
        int info = LAPACK(potrf)(COL_MAJOR, 'L', p.width, p.a + first * ((int64_t)n + 1), n);
        if (info) return first + info;
        int64_t blocks = pieces(n - first - p.width, COLUMNS);
        tt_parallel(blocks, c->shared ? 1 : blocks, OF(follow_corner), &p);
        tt_parallel(blocks * blocks, c->shared ? 1 : blocks * blocks, OF(subtract_square), &p);
    }
    return 0;
}
