/* What tridiagonal.h and bidiagonal.h have in common: two blocks' decompositions become that of both.
 * lapack_routines.h includes this file.
 *
 * Note [Divide and conquer]
 * But for one row or number between them, a tridiagonal or bidiagonal matrix is two blocks, of which LAPACK finds
 * values D, the poles, and vectors Q. Of both, the values are roots of an equation, one between each two poles, and the
 * vectors are Q times those of D with a row or a matrix of rank one, which z makes (Cuppen 1981, "A divide and conquer
 * method for the symmetric tridiagonal eigenproblem"). Where an element of z is small, or can be made so by a rotation
 * since two poles are about equal, a column of Q is such a vector: it is deflated. With the z of which the computed
 * roots are the exact ones, the weights, vectors are orthogonal however near roots are (Gu and Eisenstat 1995, "A
 * divide-and-conquer algorithm for the symmetric tridiagonal eigenproblem", and "... for the bidiagonal SVD"). Threads
 * share out roots, and columns of the product with Q; LAPACK merges by one. On two cores of a Xeon, of 512 x 512
 * floats: `eigh` 12.3 -> 9.3 ms, `svd` 26.4 -> 20.1. */

/* Vectors, in columns: `first` rows belong to the first block, those from `second` on to the second. */
typedef struct {
    T *q;
    int first, second, rows;
    T *packed, *vectors; /* columns of Q by kind, and those of D and z */
} OF(basis);

typedef struct {
    int n; /* columns */
    T *d;
    int64_t ld;
    int *order; /* of each block's values, then of all: ascending */
    T rho;
    int k, count[3]; /* poles, and how many of each kind */
    int *column;     /* of Q: the poles', then those that are deflated */
    int *kind;       /* of a column: the block in whose rows it is not zero */
    int *place;      /* of a pole's column among the packed ones, which lie by kind */
    T *poles, *z, *weights, *roots;
    int bases; /* 1 or 2 */
    OF(basis) of[2];
    int64_t together; /* vectors of a task */
    T *room;
    int info;
} OF(merge);

static T OF(size)(T x) { return x < 0 ? -x : x; }

static void OF(rotate)(T *x, T *y, int n, T c, T s) {
    for (int i = 0; i < n; i++) {
        T a = x[i], b = y[i];
        x[i] = c * a + s * b;
        y[i] = c * b - s * a;
    }
}

/* `to` = the order of what two orders sort, by d. */
static void OF(sort_both)(const T *d, const int *one, int ones, const int *other, int others, int *to) {
    for (int i = 0, j = 0; i < ones || j < others;) {
        bool next = j == others || (i < ones && d[one[i]] <= d[other[j]]);
        *to++ = next ? one[i++] : other[j++];
    }
}

/* Values that differ by less are taken to be equal: of numbers up to `most`, LAPACK's. */
static T OF(tolerance)(T most) { return 4 * (sizeof(T) == 4 ? (T)FLT_EPSILON : (T)DBL_EPSILON) * most; }

static bool OF(make_room)(OF(merge) * m) {
    int n = m->n;
    int64_t numbers = 4 * (int64_t)n;
    for (int b = 0; b < m->bases; b++) numbers += (int64_t)n * (m->of[b].rows + n);
    if (!(m->room = tt_scratch(numbers * (int64_t)sizeof(T) + 3 * n * (int64_t)sizeof(int)))) return false;
    m->poles = m->room;
    m->z = m->poles + n;
    m->weights = m->z + n;
    m->roots = m->weights + n;
    T *next = m->roots + n;
    for (int b = 0; b < m->bases; b++) {
        m->of[b].packed = next;
        m->of[b].vectors = next + (int64_t)n * m->of[b].rows;
        next = m->of[b].vectors + (int64_t)n * n;
    }
    m->column = (int *)next;
    m->place = m->column + n;
    m->kind = m->place + n;
    return true;
}

/* Which columns remain, besides k that do: of `count` that `sorted` has, with elements of z in `weights`. */
static void OF(deflate)(OF(merge) * m, const int *sorted, int count, T least_size) {
    int *column = m->column, gone = m->n, last = -1, known = m->k;
    T *z = m->weights, *d = m->d;
    for (int t = 0; t < count; t++) {
        int j = sorted[t];
        bool remains = m->rho * OF(size)(z[j]) > least_size;
        if (remains && last >= 0) {
            T s = z[last], c = z[j], tau = sqrt(c * c + s * s);
            c /= tau;
            s /= -tau;
            if (OF(size)((d[j] - d[last]) * c * s) <= least_size) {
                T lower = d[last] * c * c + d[j] * s * s, upper = d[last] * s * s + d[j] * c * c;
                for (int b = 0; b < m->bases; b++)
                    OF(rotate)(m->of[b].q + last * m->ld, m->of[b].q + j * m->ld, m->of[b].rows, c, s);
                z[j] = tau;
                d[last] = lower;
                d[j] = upper;
                if (m->kind[j] != m->kind[last]) m->kind[j] = IN_BOTH;
                column[--gone] = last;
            } else column[m->k++] = last;
        }
        if (remains) last = j;
        else column[--gone] = j;
    }
    if (last >= 0) column[m->k++] = last;
    for (int i = known; i < m->k; i++) {
        m->poles[i] = d[column[i]];
        m->z[i] = z[column[i]];
    }
}

/* Counts the kinds of poles, and gives each its place among the packed columns. */
static void OF(group)(OF(merge) * m) {
    memset(m->count, 0, sizeof m->count);
    for (int i = 0; i < m->k; i++) m->count[m->kind[m->column[i]]]++;
    int next[3] = {0, m->count[0], m->count[0] + m->count[1]};
    for (int i = 0; i < m->k; i++) m->place[i] = next[m->kind[m->column[i]]]++;
}

/* Of the packed columns, at first those with rows of the first block, then with rows of the second, at last all rows of
 * what is deflated. */
static T *OF(packed_second)(const OF(merge) * m, const OF(basis) * q) {
    return q->packed + (int64_t)(m->count[0] + m->count[1]) * q->first;
}
static T *OF(packed_deflated)(const OF(merge) * m, const OF(basis) * q) {
    return OF(packed_second)(m, q) + (int64_t)(m->count[1] + m->count[2]) * (q->rows - q->second);
}

/* Columns of all bases, one basis after the other. */
static void OF(pack)(void *context, int64_t begin, int64_t end) {
    OF(merge) *m = context;
    for (int64_t item = begin; item < end; item++) {
        const OF(basis) *q = m->of + item / m->n;
        int64_t i = item % m->n, others = q->rows - q->second;
        const T *from = q->q + m->column[i] * m->ld;
        if (i >= m->k) {
            memcpy(OF(packed_deflated)(m, q) + (i - m->k) * q->rows, from, (size_t)q->rows * sizeof(T));
            continue;
        }
        int kind = m->kind[m->column[i]];
        int64_t at = m->place[i];
        if (kind != IN_SECOND) memcpy(q->packed + at * q->first, from, (size_t)q->first * sizeof(T));
        if (kind != IN_FIRST)
            memcpy(OF(packed_second)(m, q) + (at - m->count[0]) * others, from + q->second, (size_t)others * sizeof(T));
    }
}

/* `to` = x / |x|, its k elements in the order of the packed columns. */
static void OF(place_vector)(const OF(merge) * m, const T *x, T *to) {
    double squares[8] = {0}, all = 0; /* the more sums, the smaller their errors */
    for (int i = 0; i < m->k; i++) squares[i % 8] += (double)x[i] * (double)x[i];
    for (int i = 0; i < 8; i++) all += squares[i];
    T scale = (T)(1 / sqrt(all));
    for (int i = 0; i < m->k; i++) to[m->place[i]] = x[i] * scale;
}

/* Columns of a block's rows. */
static void OF(multiply_vectors)(void *context, int64_t begin, int64_t end) {
    OF(merge) *m = context;
    for (int64_t item = begin; item < end; item++) {
        const OF(basis) *q = m->of + item % m->bases;
        bool second = item / m->bases % 2;
        int64_t first = item / m->bases / 2 * m->together;
        int cols = (int)least(m->together, m->k - first), rows = second ? q->rows - q->second : q->first;
        int depth = m->count[1] + m->count[second ? 2 : 0];
        const T *left = second ? OF(packed_second)(m, q) : q->packed;
        const T *right = q->vectors + first * m->k + (second ? m->count[0] : 0);
        T *to = q->q + first * m->ld + (second ? q->second : 0);
        for (int64_t j = 0; !depth && j < cols; j++) memset(to + j * m->ld, 0, (size_t)rows * sizeof(T));
        tt_operand weights = {right, m->k, false}, columns = {left, rows, false};
        if (depth) OF(multiply)(cols, rows, depth, 1, weights, columns, 0, to, m->ld);
    }
}

/* Values and vectors of what remains, then of what is deflated; and their order. */
static void OF(finish)(OF(merge) * m) {
    int n = m->n, k = m->k, *remaining = m->place, *deflated = m->kind;
    for (int b = 0; b < m->bases; b++) {
        const OF(basis) *q = m->of + b;
        const T *from = OF(packed_deflated)(m, q);
        for (int i = k; i < n; i++, from += q->rows) memcpy(q->q + i * m->ld, from, (size_t)q->rows * sizeof(T));
    }
    for (int i = k; i < n; i++) m->roots[i] = m->d[m->column[i]];
    memcpy(m->d, m->roots, (size_t)n * sizeof(T));
    for (int i = 0; i < k; i++) remaining[i] = i;
    for (int i = n - 1, j; i >= k; i--) { /* ascending but for what rotations changed */
        for (j = n - 1 - i; j > 0 && m->d[deflated[j - 1]] > m->d[i]; j--) deflated[j] = deflated[j - 1];
        deflated[j] = i;
    }
    OF(sort_both)(m->d, remaining, k, deflated, n - k, m->order);
}

/* What remains is known. `find_roots` has an item for each pole, and leaves its distances from all poles in columns of
 * Q, which `find_weights`, with an item for each SPAN poles, and `find_vectors` read. */
static int OF(run_merge)(const tt_matrix *c, OF(merge) * m, tt_range_fn find_roots, tt_range_fn find_weights,
                         tt_range_fn find_vectors) {
    OF(group)(m);
    int64_t k = m->k, spans = pieces(k, SPAN), columns = m->bases * (int64_t)m->n;
    int64_t tiles = 2 * m->bases * pieces(k, c->together);
    m->together = c->together;
    tt_parallel(columns, c->shared ? SPAN : columns, OF(pack), m);
    tt_parallel(k, c->shared ? 8 : k, find_roots, m);
    tt_parallel(spans, c->shared ? 1 : spans, find_weights, m);
    tt_parallel(k, c->shared ? 8 : k, find_vectors, m);
    tt_parallel(tiles, c->shared ? 1 : tiles, OF(multiply_vectors), m);
    OF(finish)(m);
    return m->info;
}

/* A matrix in `parts` blocks, which begin at equal shares of n. */
typedef struct {
    int n, parts;
    T *d, *e;
    OF(basis) of[2];
    int *order;
    int info;
} OF(blocks);

static int OF(start)(const OF(blocks) * b, int part) { return (int)((int64_t)b->n * part / b->parts); }

/* Divides numbers, of which the largest is `bound`, by the power of two that makes it about 1, and gives that: squares
 * of what is small or large might leave the range. */
static T OF(scale)(T *d, int n, T bound) {
    int exponent;
    frexp(bound, &exponent);
    T scale = (T)ldexp(1, (int)most(exponent, sizeof(T) == 4 ? FLT_MIN_EXP : DBL_MIN_EXP)); /* no denormal number */
    for (int i = 0; i < n; i++) d[i] /= scale;
    return scale;
}

static void OF(multiply_all)(T *d, int n, T scale) {
    for (int i = 0; i < n; i++) d[i] *= scale;
}

/* The blocks, then what `merge` makes of two neighbours. */
static int OF(conquer)(const tt_matrix *c, OF(blocks) * b, tt_range_fn solve,
                       int (*merge)(const tt_matrix *c, const OF(blocks) * b, int from, int middle, int to)) {
    tt_parallel(b->parts, c->shared ? 1 : b->parts, solve, b);
    for (int half = 1; half < b->parts && !b->info; half *= 2)
        for (int part = 0; part < b->parts && !b->info; part += 2 * half)
            b->info = merge(c, b, OF(start)(b, part), OF(start)(b, part + half), OF(start)(b, part + 2 * half));
    return b->info;
}
