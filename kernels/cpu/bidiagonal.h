/* Singular values and vectors of an upper bidiagonal matrix, as LAPACK's bdsdc, by all threads: Note [Divide and
 * conquer] in merge.h. lapack_routines.h includes this file.
 *
 * Less one row, the matrix is two blocks, the first one with a column more than rows: a vector of V without a value, as
 * every block but the last has. In the blocks' vectors the matrix is diagonal but for that row, which is z; its own
 * pole is 0, its column of U would have a one in that row, and its column of V is a mix of the two without a value. The
 * singular values are the roots of 1 + rho sum z_i^2 / (D_i^2 - x^2). */

/* Roots, and in columns of U and V their distances from all poles, and sums with them. */
static void OF(find_singular_values)(void *context, int64_t begin, int64_t end) {
    OF(merge) *m = context;
    for (int j = (int)begin + 1; j <= end; j++) {
        int info = 0;
        LAPACK(lasd4)
        (&m->k, &j, m->poles, m->z, m->of[0].q + (j - 1) * m->ld, &m->rho, m->roots + j - 1,
         m->of[1].q + (j - 1) * m->ld, &info);
        if (info) __atomic_store_n(&m->info, info, __ATOMIC_RELAXED);
    }
}

static void OF(find_singular_weights)(void *context, int64_t begin, int64_t end) {
    OF(merge) *m = context;
    int64_t from = begin * SPAN, to = least(end * SPAN, m->k), last = m->k - 1;
    const T *poles = m->poles, *distances = m->of[0].q, *sums = m->of[1].q;
    T *w = m->weights;
    for (int64_t i = from; i < to; i++) w[i] = distances[i + last * m->ld] * sums[i + last * m->ld];
    for (int64_t j = 0; j < last; j++, distances += m->ld, sums += m->ld) {
        const T *after = poles + j + 1;
        for (int64_t i = from; i < least(to, j + 1); i++)
            w[i] *= distances[i] * sums[i] / (poles[i] - *after) / (poles[i] + *after);
        for (int64_t i = most(from, j + 1); i < to; i++)
            w[i] *= distances[i] * sums[i] / (poles[i] - poles[j]) / (poles[i] + poles[j]);
    }
    for (int64_t i = from; i < to; i++) w[i] = (T)copysign(sqrt(OF(size)(w[i])), m->z[i]);
}

static void OF(find_singular_vectors)(void *context, int64_t begin, int64_t end) {
    OF(merge) *m = context;
    int k = m->k;
    for (int64_t j = begin; j < end; j++) {
        T *x = m->of[0].q + j * m->ld, *y = m->of[1].q + j * m->ld;
        for (int i = 0; i < k; i++) {
            y[i] = m->weights[i] / x[i] / y[i];
            x[i] = m->poles[i] * y[i];
        }
        x[0] = k == 1 ? y[0] : -1;
        if (k == 1) y[0] = 1;
        T *of_u = m->of[0].vectors + j * k;
        OF(place_vector)(m, x, of_u);
        OF(place_vector)(m, y, m->of[1].vectors + j * k);
        x[m->of[0].first] = of_u[m->place[0]]; /* the row between */
    }
}

/* The element of z of the row between, and its column of V: of the two without a value a mix, which leaves the other
 * one none in that row. */
static T OF(mix_columns)(const OF(basis) * v, int64_t ld, int between, T alpha, T beta, bool two, T least_size) {
    T *x = v->q + between * ld, *y = v->q + (v->rows - 1) * ld;
    T one = alpha * x[between], other = two ? beta * y[between + 1] : 0, z = sqrt(one * one + other * other);
    if (z <= least_size) return least_size;
    if (two) OF(rotate)(x, y, v->rows, one / z, other / z);
    return two ? z : one;
}

static int OF(merge_singular)(const tt_matrix *c, const OF(blocks) * b, int from, int middle, int to) {
    int n = to - from - 1, first = middle - from - 1, *order = b->order + from;
    int64_t ld = b->n - 1;
    OF(merge) m = {.n = n, .d = b->d + from, .ld = ld, .order = order, .rho = 1, .bases = 2};
    m.of[0] = (OF(basis)){.q = b->of[0].q + from * (ld + 1), .first = first, .second = first + 1, .rows = n};
    m.of[1] = (OF(basis)){.q = b->of[1].q + from * (ld + 1), .first = first + 1, .second = first + 1};
    m.of[1].rows = to < b->n ? n + 1 : n;
    if (!OF(make_room)(&m)) return NO_MEMORY;
    T *z = m.weights, beta = b->e[middle - 1], bound = OF(largest)(m.d, n, OF(size)(beta));
    T scale = OF(scale)(m.d, n, bound), alpha = m.d[first], least_size = OF(tolerance)(bound / scale);
    m.d[first] = 0;
    beta /= scale;
    for (int i = 0; i < n; i++) {
        bool second = i > first;
        z[i] = second ? beta * m.of[1].q[first + 1 + i * ld] : alpha * m.of[1].q[first + i * ld];
        m.kind[i] = second ? IN_SECOND : i < first ? IN_FIRST : IN_BOTH;
        order[i] += second ? first + 1 : 0;
    }
    m.column[0] = first;
    m.poles[0] = 0;
    m.z[0] = OF(mix_columns)(m.of + 1, ld, first, alpha, beta, to < b->n, least_size);
    m.k = 1;
    OF(sort_both)(m.d, order, first, order + first + 1, n - first - 1, m.place);
    OF(deflate)(&m, m.place, n - 1, least_size);
    if (m.k > 1 && m.poles[1] < least_size / 2) m.poles[1] = least_size / 2;
    double squares = 0;
    for (int i = 0; i < m.k; i++) squares += (double)m.z[i] * (double)m.z[i];
    for (int i = 0; i < m.k; i++) m.z[i] = (T)(m.z[i] / sqrt(squares));
    m.rho = (T)squares;
    int info = OF(run_merge)(c, &m, OF(find_singular_values), OF(find_singular_weights), OF(find_singular_vectors));
    OF(multiply_all)(m.d, n, scale);
    tt_scratch_free(m.room);
    return info;
}

/* LAPACK's V^T goes to columns. */
static void OF(solve_bidiagonal_blocks)(void *context, int64_t begin, int64_t end) {
    OF(blocks) *b = context;
    for (int part = (int)begin; part < end; part++) {
        int ld = b->n - 1, first = OF(start)(b, part), n = OF(start)(b, part + 1) - first - 1, sizes = LEAST_BLOCK;
        int wider = part < b->parts - 1, cols = n + wider, *order = b->order + first, info = NO_MEMORY;
        int64_t at = first * (int64_t)(ld + 1), square = (int64_t)cols * cols;
        T *v = tt_scratch((4 * square + 2 * cols) * (int64_t)sizeof(T) + 8 * n * (int64_t)sizeof(int));
        if (v) {
            T *u = b->of[0].q + at, *work = v + square, *d = b->d + first;
            for (int i = 0; i < n; i++) u[i * (int64_t)(ld + 1)] = 1;
            OF(set_identity)(v, cols);
            LAPACK(lasd0)
            (&n, &wider, d, b->e + first, u, &ld, v, &cols, &sizes, (int *)(work + 3 * square + 2 * cols), work, &info);
            tt_float_product_loops_of(DTYPE)->turn(v, cols, cols, cols, b->of[1].q + at, ld);
            for (int i = 0, j; i < n; i++) {
                for (j = i; j > 0 && d[order[j - 1]] > d[i]; j--) order[j] = order[j - 1];
                order[j] = i;
            }
        }
        if (info) __atomic_store_n(&b->info, info, __ATOMIC_RELAXED);
        tt_scratch_free(v);
    }
}

/* Of the n x n matrix with diagonal d and e above it, which is written over: d = singular values, their vectors in
 * columns of u and v, and the order in which d ascends. */
static int OF(bidiagonal)(const tt_matrix *c, T *d, T *e, T *u, T *v, int *order) {
    int n = c->n;
    OF(blocks) b = {.n = n + 1, .parts = 1, .d = d, .e = e, .of = {{.q = u}, {.q = v}}, .order = order};
    while (b.n / b.parts > BLOCK) b.parts *= 2;
    T least_value = OF(tolerance)(OF(largest)(e, n - 1, OF(largest)(d, n, 0)) / 8);
    for (int i = 0; i < n; i++) /* LAPACK divides by a block's largest number */
        if (OF(size)(d[i]) < least_value) d[i] = (T)copysign(least_value, d[i]);
    memset(u, 0, (size_t)n * (size_t)n * sizeof(T));
    memset(v, 0, (size_t)n * (size_t)n * sizeof(T));
    return OF(conquer)(c, &b, OF(solve_bidiagonal_blocks), OF(merge_singular));
}
