/* Eigenvalues and eigenvectors of a symmetric tridiagonal matrix, as LAPACK's stedc, by all threads: Note [Divide and
 * conquer] in merge.h. lapack_routines.h includes this file.
 *
 * Less a number beside the diagonal, there and on the diagonal, the matrix is two blocks; then it is
 * Q (D + rho z z^T) Q^T, z being the rows of Q beside the cut. Its eigenvalues are the roots of
 * 1 + rho sum z_i^2 / (D_i - x). */

/* Roots, and their distances from all poles, in columns of Q. */
static void OF(find_eigenvalues)(void *context, int64_t begin, int64_t end) {
    OF(merge) *m = context;
    for (int j = (int)begin + 1; j <= end; j++) {
        int info = 0;
        LAPACK(laed4)(&m->k, &j, m->poles, m->z, m->of[0].q + (j - 1) * m->ld, &m->rho, m->roots + j - 1, &info);
        if (info) __atomic_store_n(&m->info, info, __ATOMIC_RELAXED);
    }
}

static void OF(find_eigenweights)(void *context, int64_t begin, int64_t end) {
    OF(merge) *m = context;
    int64_t from = begin * SPAN, to = least(end * SPAN, m->k);
    const T *poles = m->poles, *distances = m->of[0].q;
    T *w = m->weights;
    for (int64_t i = from; i < to; i++) w[i] = distances[i * (m->ld + 1)];
    for (int64_t j = 0; j < m->k; j++, distances += m->ld) {
        for (int64_t i = from; i < least(to, j); i++) w[i] *= distances[i] / (poles[i] - poles[j]);
        for (int64_t i = most(from, j + 1); i < to; i++) w[i] *= distances[i] / (poles[i] - poles[j]);
    }
    for (int64_t i = from; i < to; i++) w[i] = (T)copysign(sqrt(-w[i]), m->z[i]);
}

/* The vectors of D + rho z z^T. Of two poles LAPACK has given them already. */
static void OF(find_eigenvectors)(void *context, int64_t begin, int64_t end) {
    OF(merge) *m = context;
    for (int64_t j = begin; j < end; j++) {
        T *x = m->of[0].q + j * m->ld;
        for (int i = 0; m->k > 2 && i < m->k; i++) x[i] = m->weights[i] / x[i];
        OF(place_vector)(m, x, m->of[0].vectors + j * m->k);
    }
}

static int OF(merge_eigen)(const tt_matrix *c, const OF(blocks) * b, int from, int middle, int to) {
    int n = to - from, first = middle - from, *order = b->order + from;
    OF(merge) m = {.n = n, .d = b->d + from, .ld = b->n, .order = order, .rho = b->e[middle - 1], .bases = 1};
    m.of[0] = (OF(basis)){.q = b->of[0].q + from * (m.ld + 1), .first = first, .second = first, .rows = n};
    if (!OF(make_room)(&m)) return NO_MEMORY;
    T scale = OF(scale)(m.d, n, OF(largest)(m.d, n, OF(size)(m.rho)));
    T *z = m.weights, sign = m.rho < 0 ? -1 : 1;
    for (int i = 0; i < n; i++) {
        bool second = i >= first;
        z[i] = m.of[0].q[first - !second + i * m.ld] * (T)M_SQRT1_2 * (second ? sign : 1);
        m.kind[i] = second ? IN_SECOND : IN_FIRST;
        order[i] += second ? first : 0;
    }
    m.rho *= 2 * sign / scale;
    OF(sort_both)(m.d, order, first, order + first, n - first, m.place);
    OF(deflate)(&m, m.place, n, OF(tolerance)(OF(largest)(m.d, n, OF(largest)(z, n, 0))));
    int info = OF(run_merge)(c, &m, OF(find_eigenvalues), OF(find_eigenweights), OF(find_eigenvectors));
    OF(multiply_all)(m.d, n, scale);
    tt_scratch_free(m.room);
    return info;
}

static void OF(solve_tridiagonal_blocks)(void *context, int64_t begin, int64_t end) {
    OF(blocks) *b = context;
    for (int part = (int)begin; part < end; part++) {
        int first = OF(start)(b, part), n = OF(start)(b, part + 1) - first, lwork = 1 + 4 * n + n * n;
        T *work = tt_scratch(lwork * (int64_t)sizeof(T) + (3 + 5 * n) * (int64_t)sizeof(int));
        int info = NO_MEMORY;
        if (work)
            info =
                LAPACK(stedc)(COL_MAJOR, 'I', n, b->d + first, b->e + first, b->of[0].q + first * (int64_t)(b->n + 1),
                              b->n, work, lwork, (int *)(work + lwork), 3 + 5 * n);
        if (info) __atomic_store_n(&b->info, info, __ATOMIC_RELAXED);
        for (int i = 0; i < n; i++) b->order[first + i] = i;
        tt_scratch_free(work);
    }
}

/* Of the tridiagonal matrix with diagonal d and e beside it, which is written over: d = eigenvalues, q = eigenvectors
 * in n columns, and the order in which d ascends. */
static int OF(tridiagonal)(const tt_matrix *c, T *d, T *e, T *q, int *order) {
    int n = c->n;
    OF(blocks) b = {.n = n, .parts = 1, .d = d, .e = e, .of = {{.q = q}}, .order = order};
    while (n / b.parts > BLOCK) b.parts *= 2;
    for (int part = 1; part < b.parts; part++) {
        int at = OF(start)(&b, part);
        d[at - 1] -= OF(size)(e[at - 1]);
        d[at] -= OF(size)(e[at - 1]);
    }
    memset(q, 0, (size_t)n * (size_t)n * sizeof(T));
    return OF(conquer)(c, &b, OF(solve_tridiagonal_blocks), OF(merge_eigen));
}
