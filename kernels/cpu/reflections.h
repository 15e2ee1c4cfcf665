/* Decompositions of a large real matrix by reflections: LAPACK's geqrf and orgqr, and syevd and gesdd, but for their
 * last step, which takes up to two fifths of the time. lapack_routines.h includes this file.
 *
 * Note [Reflections together]
 * LAPACK makes A triangular, tridiagonal, or bidiagonal, by reflections I - tau v v^T, which are applied to the
 * columns that follow, or to the vectors of what is left. PANEL of them, one after the other, are I - V T V^T, and the
 * inverse of T has 1 / tau on its diagonal and above it what V^T V has (Joffrain et al. 2006, "Accumulating
 * Householder transformations, revisited"). So two products and a triangular system do for as many vectors as a thread
 * likes to take. `svd` of 512 x 512 floats on two cores of an EPYC (Zen 4): 36.5 -> 31 ms. */
typedef struct {
    int rows, width; /* numbers of a vector that change, and reflections */
    const T *v; /* (rows, width) */
    T *inverse, *room;
    T *z; /* `count` vectors from these numbers on: columns, `ld` apart, or in rows */
    int ld, count;
    int64_t together; /* vectors of a task */
    bool in_rows, adjoint;
} OF(reflections);

static void OF(reflect)(void *context, int64_t begin, int64_t end) {
    const OF(reflections) *r = context;
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * r->together;
        int cols = (int)least(r->together, r->count - first);
        T *z = r->z + first * (r->in_rows ? 1 : r->ld), *w = r->room + first * PANEL; /* (width, cols), in rows */
        tt_triangle t = {.n = r->width, .upper = !r->adjoint, .step = cols, .count = cols};
        t.row = r->adjoint ? PANEL : 1;
        t.col = r->adjoint ? 1 : PANEL;
        tt_operand v = {r->v, r->rows, false}, vectors = {z, r->ld, !r->in_rows};
        OF(multiply)(r->width, cols, r->rows, 1, v, vectors, 0, w, cols);
        OF(substitute)(t, r->inverse, w);
        tt_operand turned_v = {r->v, r->rows, true}, turned_w = {w, cols, true}, in_rows = {w, cols, false};
        if (r->in_rows) OF(multiply)(r->rows, cols, r->width, -1, turned_v, in_rows, 1, z, r->ld);
        else OF(multiply)(cols, r->rows, r->width, -1, turned_w, v, 1, z, r->ld);
    }
}

/* Makes V, whose memory is given, and the inverse of T. The first reflection's vector lies from `line` on, `along`
 * apart, the next one's `next` further; each begins with a 1 one number later, which is not there. */
static void OF(gather_reflections)(const OF(reflections) * r, T *v, const T *line, int64_t along, int64_t next,
                                   const T *tau) {
    for (int64_t j = 0; j < r->width; j++, line += next) {
        T *to = v + j * r->rows;
        int64_t zeros = tau[j] == 0 ? r->rows : j;
        memset(to, 0, (size_t)zeros * sizeof(T));
        if (zeros < r->rows) to[zeros] = 1;
        for (int64_t i = zeros + 1; i < r->rows; i++) to[i] = line[i * along];
    }
    tt_operand columns = {v, r->rows, false}, turned = {v, r->rows, true};
    OF(multiply)(r->width, r->width, r->rows, 1, columns, turned, 0, r->inverse, PANEL);
    for (int64_t j = 0; j < r->width; j++) r->inverse[j * (PANEL + 1)] = tau[j] == 0 ? 1 : 1 / tau[j];
}

/* Numbers to work in, for vectors of n numbers, and `count` of them. */
static int64_t OF(room_for_reflections)(int64_t n, int64_t count) { return PANEL * (PANEL + n + count); }

/* Applies reflections of `ld` numbers, columns of A `past` below its diagonal or as many rows, to what r says. */
static void OF(apply_panel)(const tt_matrix *c, OF(reflections) r, const T *a, int past, const T *tau, int first,
                            T *work) {
    T *v = work + PANEL * PANEL;
    int64_t along = r.in_rows ? r.ld : 1, next = r.in_rows ? 1 : r.ld, blocks;
    r.together = least(c->together, SIDES);
    blocks = pieces(r.count, r.together);
    r.rows = r.ld - past - first;
    r.inverse = work;
    r.v = v;
    r.room = v + (int64_t)r.ld * PANEL;
    OF(gather_reflections)(&r, v, a + (past + first) * along + first * next, along, next, tau + first);
    tt_parallel(blocks, c->shared ? 1 : blocks, OF(reflect), &r);
}

/* Applies a square A's reflections to the vectors in z; reflection i leaves their first i + `past` numbers alone. */
static void OF(apply_reflections)(const tt_matrix *c, const T *a, int past, bool in_rows, const T *tau, T *z, T *work) {
    int n = c->n;
    for (int first = (n - past - 1) / PANEL * PANEL; first >= 0; first -= PANEL) {
        int64_t at = (int64_t)(past + first) * (in_rows ? n : 1);
        OF(reflections) r = {.width = (int)least(PANEL, n - past - first), .z = z + at, .ld = n, .count = n};
        r.in_rows = in_rows;
        OF(apply_panel)(c, r, a, past, tau, first, work);
    }
}

/* geqrf: a panel's reflections by LAPACK, and all of them together on the columns that follow. */
static int OF(factor_large)(const tt_matrix *c, T *tau) {
    T *work = tt_scratch((OF(room_for_reflections)(c->m, c->n) + PANEL * PANEL) * (int64_t)sizeof(T)), *a = c->a;
    int m = c->m, info = work ? 0 : NO_MEMORY;
    for (int first = 0; first < c->k && !info; first += PANEL) {
        int width = (int)least(PANEL, c->k - first), rest = c->n - first - width;
        T *panel = a + first * (int64_t)(m + 1), *room = work + OF(room_for_reflections)(m, c->n);
        info = LAPACK(geqrf)(COL_MAJOR, m - first, width, panel, m, tau + first, room, PANEL * PANEL);
        OF(reflections) r = {.width = width, .z = panel + width * (int64_t)m, .ld = m, .count = rest, .adjoint = true};
        if (rest && !info) OF(apply_panel)(c, r, a, 0, tau, first, work);
    }
    tt_scratch_free(work);
    return info;
}

/* orgqr: the reflections of the first k columns of A applied to `cols` columns of the identity. */
static int OF(form_large)(const tt_matrix *c, const T *a, const T *tau, T *q, int cols) {
    T *work = tt_scratch(OF(room_for_reflections)(c->m, cols) * (int64_t)sizeof(T));
    if (!work) return NO_MEMORY;
    memset(q, 0, (size_t)c->m * (size_t)cols * sizeof(T));
    for (int64_t j = 0; j < cols; j++) q[j * (c->m + 1)] = 1;
    for (int first = (c->k - 1) / PANEL * PANEL; first >= 0; first -= PANEL) {
        OF(reflections) r = {.width = (int)least(PANEL, c->k - first), .z = q + first * (int64_t)(c->m + 1)};
        r.ld = c->m;
        r.count = cols - first; /* those before are still zeros there */
        OF(apply_panel)(c, r, a, 0, tau, first, work);
    }
    tt_scratch_free(work);
    return 0;
}

/* Is it large, and far from overflow? LAPACK scales others. `part`: 'L' or 'U', or 'A' for all of it. */
static bool OF(is_large)(const tt_matrix *c, char part) {
    const T *a = c->a;
    T most = 0, limit = sizeof(T) == 4 ? (T)1e15 : (T)1e145;
    if (asks(c) || c->n < LARGE || c->m != c->n) return false;
    for (int64_t j = 0; j < c->n; j++) {
        int64_t first = part == 'L' ? j : 0, end = part == 'U' ? j + 1 : c->n;
        most = OF(largest)(a + j * c->n + first, end - first, most);
    }
    return most < limit && most * limit > 1;
}

/* Copies the upper triangle to the lower one, in squares of which a cache holds the lines of both. */
static void OF(mirror)(T *a, int64_t n) {
    for (int64_t column = 0; column < n; column += 32)
        for (int64_t row = 0; row <= column; row += 32)
            for (int64_t i = row; i < row + 32 && i < n; i++)
                for (int64_t j = column > i ? column : i + 1; j < column + 32 && j < n; j++)
                    a[j + i * n] = a[i + j * n];
}

/* `to` = columns of `size` numbers in an order, or in the opposite one. */
static void OF(put_in_order)(T *to, const T *from, int size, const int *order, int n, bool descending) {
    for (int64_t i = 0; i < n; i++)
        memcpy(to + i * size, from + (int64_t)order[descending ? n - 1 - i : i] * size, (size_t)size * sizeof(T));
}

/* The work memory that syevd asks for is as much: two squares and six columns. */
static int OF(eigh_large)(const tt_matrix *c) {
    int n = c->n;
    int64_t square = (int64_t)n * n;
    T *a = c->a, *z = c->work, *e = z + square, *tau = e + n, *work = tau + n;
    int lwork = c->lwork - (int)square - 2 * n;
    if (c->option) OF(mirror)(a, n);
    int info = LAPACK(sytrd)(COL_MAJOR, 'L', n, a, n, c->out[0], e, tau, work, lwork);
    if (!info) info = OF(tridiagonal)(c, c->out[0], e, z, c->iwork);
    if (info) return info;
    OF(apply_reflections)(c, a, 1, false, tau, z, work);
    memcpy(work, c->out[0], (size_t)n * sizeof(T));
    OF(put_in_order)(c->out[0], work, 1, c->iwork, n, false);
    OF(put_in_order)(a, z, n, c->iwork, n, false);
    return 0;
}

/* The work memory that gesdd asks for is as much: three squares and seven columns. */
static int OF(svd_large)(const tt_matrix *c) {
    int n = c->n, lwork = c->lwork - 3 * n, *order = c->iwork;
    int64_t square = (int64_t)n * n;
    T *a = c->a, *values = c->out[1], *e = c->work, *of_columns = e + n, *of_rows = of_columns + n;
    T *u = of_rows + n, *v = u + square, *work = v + square, *u_out = c->out[0], *v_out = c->out[2];
    int info = LAPACK(gebrd)(COL_MAJOR, n, n, a, n, values, e, of_columns, of_rows, u, lwork);
    if (!info) info = OF(bidiagonal)(c, values, e, u, v, order);
    if (info) return info;
    memcpy(work, values, (size_t)n * sizeof(T));
    OF(put_in_order)(values, work, 1, order, n, true);
    OF(put_in_order)(u_out, u, n, order, n, true);
    OF(put_in_order)(u, v, n, order, n, true); /* V's columns, which become rows of V^T */
    OF(to_rows)(u, n, n, n, v_out, n);
    OF(apply_reflections)(c, a, 0, false, of_columns, u_out, work);
    OF(apply_reflections)(c, a, 1, true, of_rows, v_out, work);
    return 0;
}
