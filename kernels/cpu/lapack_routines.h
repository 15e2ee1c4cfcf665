/* LAPACK on one matrix of elements T; lapack.c includes this file for each dtype. OF(name) names the function for the
 * dtype, LAPACK(name) the library's. A routine gives LAPACK's `info`; asked, it tells how much work memory it wants. */

/* The upper triangle of a matrix with `ld` rows in memory, zeros below it. */
static void OF(copy_upper)(T *to, int rows, int cols, const T *a, int ld) {
    for (int j = 0; j < cols; j++)
        for (int i = 0; i < rows; i++) to[i + (int64_t)j * rows] = i <= j ? a[i + (int64_t)j * ld] : 0;
}

static void OF(clear_triangle)(T *a, int n, bool lower) {
    for (int j = 0; j < n; j++) {
        T *column = a + (int64_t)j * n;
        if (lower) memset(column + j + 1, 0, (size_t)(n - j - 1) * sizeof(T));
        else memset(column, 0, (size_t)j * sizeof(T));
    }
}

static void OF(set_identity)(T *a, int n) {
    memset(a, 0, (size_t)n * (size_t)n * sizeof(T));
    for (int i = 0; i < n; i++) a[i * (int64_t)(n + 1)] = 1;
}

/* Are the elements of a matrix ('A'), or of its upper or lower triangle, finite? LAPACK never ends for some
 * infinities. */
static bool OF(is_finite)(const T *a, int rows, int cols, char part) {
    for (int j = 0; j < cols; j++) {
        int begin = part == 'L' ? j : 0, end = part == 'U' ? j + 1 : rows;
        T sum = 0;
        for (int i = begin; i < end; i++) sum += a[i + (int64_t)j * rows] * 0;
        if (sum != 0) return false;
    }
    return true;
}

/* OpenBLAS takes a pivot that is NaN for a positive one. */
static int OF(cholesky)(const tt_matrix *c) {
    if (asks(c)) return 0;
    const T *a = c->a;
    int n = c->n, info = LAPACK(potrf)(COL_MAJOR, c->option ? 'U' : 'L', n, c->a, at_least_1(n));
    for (int64_t i = 0; !info && i < n; i++)
        if (isnan(a[i * (n + 1)])) info = (int)i + 1;
    OF(clear_triangle)(c->a, n, c->option);
    return info;
}

static int OF(lu_factor)(const tt_matrix *c) {
    return asks(c) ? 0 : LAPACK(getrf)(COL_MAJOR, c->m, c->n, c->a, at_least_1(c->m), c->out[1]);
}

static int OF(lu_solve)(const tt_matrix *c) {
    int ld = at_least_1(c->n);
    if (asks(c)) return 0;
    return LAPACK(getrs)(COL_MAJOR, c->option ? 'T' : 'N', c->n, c->b_cols, c->a, ld, c->pivots, c->b, ld);
}

static int OF(inv)(const tt_matrix *c) {
    if (asks(c)) return 0;
    int ld = at_least_1(c->n);
    OF(set_identity)(c->out[0], c->n);
    int info = LAPACK(getrf)(COL_MAJOR, c->n, c->n, c->a, ld, c->iwork);
    LAPACK(getrs)(COL_MAJOR, 'N', c->n, c->n, c->a, ld, c->iwork, c->out[0], ld);
    return info;
}

static int OF(solve_triangular)(const tt_matrix *c) {
    int side = c->option & 2 ? RIGHT : LEFT, part = !(c->option & 1) == c->row_major ? UPPER : LOWER;
    if (asks(c)) return 0;
    LAPACK(trsm)
    (COL_MAJOR, side, part, c->row_major ? TRANS : NO_TRANS, c->option & 4 ? UNIT : NON_UNIT, c->b_rows, c->b_cols, 1,
     c->a, at_least_1(c->n), c->b, at_least_1(c->b_rows));
    return 0;
}

static int OF(eigenvalues)(const tt_matrix *c, char job) {
    char part = c->option ? 'U' : 'L';
    if (!asks(c) && !OF(is_finite)(c->a, c->n, c->n, part)) return NOT_FINITE;
    return LAPACK(syevd)(COL_MAJOR, job, part, c->n, c->a, at_least_1(c->n), c->out[0], c->work, c->lwork, c->iwork,
                         c->liwork);
}

static int OF(eigh)(const tt_matrix *c) { return OF(eigenvalues)(c, 'V'); }
static int OF(eigvalsh)(const tt_matrix *c) { return OF(eigenvalues)(c, 'N'); }

static int OF(factor)(const tt_matrix *c) {
    return LAPACK(geqrf)(COL_MAJOR, c->m, c->n, c->a, at_least_1(c->m), c->tau, c->work, c->lwork);
}

static int OF(qr)(const tt_matrix *c) {
    int m = c->m, cols = c->option ? m : c->k, info = OF(factor)(c);
    T *q = c->out[0], asked = asks(c) ? *(T *)c->work : 0;
    if (!asks(c)) {
        OF(copy_upper)(c->out[1], cols, c->n, c->a, m);
        memcpy(q, c->a, (size_t)m * (size_t)c->k * sizeof(T));
    }
    if (!info) info = LAPACK(orgqr)(COL_MAJOR, m, cols, c->k, q, at_least_1(m), c->tau, c->work, c->lwork);
    if (asks(c) && asked > *(T *)c->work) *(T *)c->work = asked;
    return info;
}

static int OF(qr_r)(const tt_matrix *c) {
    int info = OF(factor)(c);
    if (!asks(c)) OF(copy_upper)(c->out[0], c->k, c->n, c->a, c->m);
    return info;
}

static int OF(svd)(const tt_matrix *c) {
    T *u = c->out[0], *v = c->out[2];
    if (!c->k && !asks(c)) {
        OF(set_identity)(u, c->option ? c->m : 0);
        OF(set_identity)(v, c->option ? c->n : 0);
        return 0;
    }
    int v_rows = c->option ? c->n : c->k;
    if (!asks(c) && !OF(is_finite)(c->a, c->m, c->n, 'A')) return NOT_FINITE;
    return LAPACK(gesdd)(COL_MAJOR, c->option ? 'A' : 'S', c->m, c->n, c->a, at_least_1(c->m), c->out[1], u,
                         at_least_1(c->m), v, at_least_1(v_rows), c->work, c->lwork, c->iwork);
}

static int OF(svdvals)(const tt_matrix *c) {
    if (!asks(c) && !OF(is_finite)(c->a, c->m, c->n, 'A')) return NOT_FINITE;
    return LAPACK(gesdd)(COL_MAJOR, 'N', c->m, c->n, c->a, at_least_1(c->m), c->out[0], NULL, 1, NULL, 1, c->work,
                         c->lwork, c->iwork);
}

#undef T
#undef OF
#undef LAPACK
