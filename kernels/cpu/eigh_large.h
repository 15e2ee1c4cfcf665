/* Eigenvectors of a large real symmetric matrix: LAPACK's syevd, but for its last step, which takes two fifths of the
 * time. lapack_routines.h includes this file.
 *
 * Note [Reflections together]
 * LAPACK makes A tridiagonal by reflections I - tau v v^T; those of its eigenvectors are applied to the eigenvectors of
 * that. PANEL of them, one after the other, are I - V T V^T, and the inverse of T has 1 / tau on its diagonal and above
 * it what V^T V has (Joffrain et al. 2006, "Accumulating Householder transformations, revisited"). So two products and
 * a triangular system do for as many columns as a thread likes to take: always COLUMNS of them. */
typedef struct {
    int n, rows, width; /* rows of the eigenvectors that change, and reflections */
    const T *v; /* (rows, width) */
    T *inverse, *room, *z;
} OF(reflections);

static void OF(reflect)(void *context, int64_t begin, int64_t end) {
    const OF(reflections) *r = context;
    for (int64_t block = begin; block < end; block++) {
        int64_t first = block * COLUMNS;
        int cols = r->n - first < COLUMNS ? (int)(r->n - first) : COLUMNS;
        T *z = r->z + (r->n - r->rows) + first * r->n, *w = r->room + first * PANEL; /* (width, cols), in rows */
        tt_triangle t = {r->width, true, false, 1, PANEL, cols, cols};
        LAPACK(gemm)
        (COL_MAJOR, TRANS, NO_TRANS, cols, r->width, r->rows, 1, z, r->n, r->v, r->rows, 0, w, cols);
        OF(substitute)(t, r->inverse, w);
        LAPACK(gemm)
        (COL_MAJOR, NO_TRANS, TRANS, r->rows, cols, r->width, -1, r->v, r->rows, w, cols, 1, z, r->n);
    }
}

/* Reflections [first, first + width) as V and the inverse of T. Reflection i leaves the first i + 1 rows alone. */
static void OF(gather_reflections)(OF(reflections) * r, T *v, const T *a, const T *tau, int64_t first) {
    for (int64_t j = 0; j < r->width; j++) {
        const T *column = a + first + 1 + (first + j) * r->n;
        for (int64_t i = 0; i < r->rows; i++)
            v[i + j * r->rows] = tau[first + j] == 0 || i < j ? 0 : i == j ? 1 : column[i];
    }
    LAPACK(gemm)
    (COL_MAJOR, TRANS, NO_TRANS, r->width, r->width, r->rows, 1, v, r->rows, v, r->rows, 0, r->inverse, PANEL);
    for (int64_t j = 0; j < r->width; j++) r->inverse[j * (PANEL + 1)] = tau[first + j] == 0 ? 1 : 1 / tau[first + j];
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

/* Is it large, and far from overflow? syevd scales others. */
static bool OF(is_large)(const tt_matrix *c) {
    const T *a = c->a;
    T most = 0, limit = sizeof(T) == 4 ? (T)1e15 : (T)1e145;
    if (asks(c) || c->n < LARGE) return false;
    for (int64_t j = 0; j < c->n; j++)
        most = OF(largest)(a + j * (c->n + 1) - (c->option ? j : 0), c->option ? j + 1 : c->n - j, most);
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
    T *inverse = work, *v = inverse + PANEL * PANEL, *room = v + (int64_t)n * PANEL;
    for (int64_t first = (n - 2) / PANEL * PANEL; first >= 0 && !info; first -= PANEL) {
        int rows = n - 1 - (int)first;
        OF(reflections) r = {n, rows, rows < PANEL ? rows : PANEL, v, inverse, room, z};
        OF(gather_reflections)(&r, v, a, tau, first);
        int64_t blocks = pieces(n, COLUMNS);
        tt_parallel(blocks, c->shared ? 1 : blocks, OF(reflect), &r);
    }
    memcpy(a, z, (size_t)square * sizeof(T));
    return info;
}
