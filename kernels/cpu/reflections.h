/* Eigenvectors and singular vectors of a large real matrix: LAPACK's syevd and gesdd, but for their last step, which
 * takes up to two fifths of the time. lapack_routines.h includes this file.
 *
 * Note [Reflections together]
 * LAPACK makes A tridiagonal, or bidiagonal, by reflections I - tau v v^T, which are applied to the vectors of that.
 * PANEL of them, one after the other, are I - V T V^T, and the inverse of T has 1 / tau on its diagonal and above it
 * what V^T V has (Joffrain et al. 2006, "Accumulating Householder transformations, revisited"). So two products and a
 * triangular system do for as many vectors as a thread likes to take: always COLUMNS of them. `svd` of 512 x 512 floats
 * on two cores of an EPYC (Zen 4): 36.5 -> 31 ms. */
typedef struct {
    int n, rows, width; /* numbers of a vector that change, and reflections */
    const T *v; /* (rows, width) */
    T *inverse, *room, *z;
    bool in_rows; /* vectors are rows of z; else they are columns */
} OF(reflections);

static void OF(reflect)(void *context, int64_t begin, int64_t end) {
    const OF(reflections) *r = context;
    int64_t along = r->in_rows ? r->n : 1, next = r->in_rows ? 1 : r->n;
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * COLUMNS;
        int cols = r->n - first < COLUMNS ? (int)(r->n - first) : COLUMNS;
        T *z = r->z + (r->n - r->rows) * along + first * next,
          *w = r->room + first * PANEL; /* (width, cols), in rows */
        tt_triangle t = {r->width, true, false, 1, PANEL, cols, cols};
        LAPACK(gemm)
        (COL_MAJOR, r->in_rows ? NO_TRANS : TRANS, NO_TRANS, cols, r->width, r->rows, 1, z, r->n, r->v, r->rows, 0, w,
         cols);
        OF(substitute)(t, r->inverse, w);
        int m = r->in_rows ? cols : r->rows, k = r->in_rows ? r->rows : cols;
        const T *left = r->in_rows ? w : r->v, *right = r->in_rows ? r->v : w;
        LAPACK(gemm)(COL_MAJOR, NO_TRANS, TRANS, m, k, r->width, -1, left, m, right, k, 1, z, r->n);
    }
}

/* Reflections [first, first + width) as V and the inverse of T. Reflection i's vector lies in column i of A, or in
 * row i, and begins with a 1, which A does not have. */
static void OF(gather_reflections)(OF(reflections) * r, T *v, const T *a, bool in_rows, const T *tau, int64_t first) {
    int64_t along = in_rows ? r->n : 1, next = in_rows ? 1 : r->n;
    for (int64_t j = 0; j < r->width; j++) {
        const T *line = a + (r->n - r->rows) * along + (first + j) * next;
        for (int64_t i = 0; i < r->rows; i++)
            v[i + j * r->rows] = tau[first + j] == 0 || i < j ? 0 : i == j ? 1 : line[i * along];
    }
    LAPACK(gemm)
    (COL_MAJOR, TRANS, NO_TRANS, r->width, r->width, r->rows, 1, v, r->rows, v, r->rows, 0, r->inverse, PANEL);
    for (int64_t j = 0; j < r->width; j++) r->inverse[j * (PANEL + 1)] = tau[first + j] == 0 ? 1 : 1 / tau[first + j];
}

/* Applies A's reflections to the vectors in z, of which reflection i leaves the first i + `past` numbers alone. */
static void OF(apply_reflections)(const tt_matrix *c, const T *a, int past, bool in_rows, const T *tau, T *z, T *work) {
    int n = c->n;
    T *inverse = work, *v = inverse + PANEL * PANEL, *room = v + (int64_t)n * PANEL;
    for (int64_t first = (n - past - 1) / PANEL * PANEL; first >= 0; first -= PANEL) {
        int rows = n - past - (int)first;
        OF(reflections) r = {n, rows, rows < PANEL ? rows : PANEL, v, inverse, room, z, in_rows};
        OF(gather_reflections)(&r, v, a, in_rows, tau, first);
        int64_t blocks = pieces(n, COLUMNS);
        tt_parallel(blocks, c->shared ? 1 : blocks, OF(reflect), &r);
    }
}

/* The largest of n absolute values, or `most`: in lanes, since the compiler does not reorder comparisons of floats. */
static T OF(largest)(const T *x, int64_t n, T most) {
    T lanes[16] = {0};
    for (int64_t i = 0; i < n; i += 16)
        for (int64_t k = 0, some = n - i < 16 ? n - i : 16; k < some; k++) {
            T size = x[i + k] < 0 ? -x[i + k] : x[i + k];
            lanes[k] = size > lanes[k] ? size : lanes[k];
        }
    for (int k = 0; k < 16; k++) most = lanes[k] > most ? lanes[k] : most;
    return most;
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

/* The work memory that syevd asks for is as much: two squares and six columns. */
static int OF(eigh_large)(const tt_matrix *c) {
    int n = c->n;
    int64_t square = (int64_t)n * n;
    T *a = c->a, *z = c->work, *e = z + square, *tau = e + n, *work = tau + n;
    int lwork = c->lwork - (int)square - 2 * n;
    if (c->option) OF(mirror)(a, n);
    int info = LAPACK(sytrd)(COL_MAJOR, 'L', n, a, n, c->out[0], e, tau, work, lwork);
    if (!info) info = LAPACK(stedc)(COL_MAJOR, 'I', n, c->out[0], e, z, n, work, lwork, c->iwork, c->liwork);
    if (!info) OF(apply_reflections)(c, a, 1, false, tau, z, work);
    memcpy(a, z, (size_t)square * sizeof(T));
    return info;
}

/* The work memory that gesdd asks for is as much: three squares and seven columns. */
static int OF(svd_large)(const tt_matrix *c) {
    int n = c->n, lwork = c->lwork - 3 * n;
    T *a = c->a, *u = c->out[0], *v = c->out[2], *e = c->work, *of_columns = e + n, *of_rows = of_columns + n;
    T *work = of_rows + n;
    int info = LAPACK(gebrd)(COL_MAJOR, n, n, a, n, c->out[1], e, of_columns, of_rows, work, lwork);
    if (!info) info = LAPACK(bdsdc)(COL_MAJOR, 'U', 'I', n, c->out[1], e, u, n, v, n, NULL, NULL, work, c->iwork);
    if (info) return info;
    OF(apply_reflections)(c, a, 0, false, of_columns, u, work);
    OF(apply_reflections)(c, a, 1, true, of_rows, v, work);
    return 0;
}
