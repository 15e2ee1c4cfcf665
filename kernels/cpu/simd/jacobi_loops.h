/* Jacobi's method for elements of type T. Included by jacobi.c for each. */
typedef T OF(vector) __attribute__((vector_size(BYTES), may_alias));
typedef MASK OF(mask) __attribute__((vector_size(BYTES)));
#define vec OF(vector)
#define mask OF(mask)
#define LANES ((int)(BYTES / sizeof(T)))
#define SELECT(m, a, b) ((vec)(((m) & (mask)(a)) | (~(m) & (mask)(b))))

/* (x, y) turned: (c x - s y, s x + c y) */
INLINE void OF(turn)(vec *x, vec *y, vec c, vec s) {
    vec a = *x, b = *y;
    *x = c * a - s * b;
    *y = s * a + c * b;
}

/* The smaller of the two angles that take `off` to 0 beside diagonal elements that differ by `gap`: its tangent, cosine
 * and sine; 0 where not `turns`. */
INLINE void OF(angle)(vec off, vec gap, mask turns, vec *t, vec *c, vec *s) {
    vec twice = off + off, zero = {0}, one = zero + 1, size = SQRT(gap * gap + twice * twice);
    vec below = gap + SELECT(gap < 0, -size, size);
    *t = SELECT(turns, twice / SELECT(turns, below, one), zero);
    *c = one / SQRT(one + *t * *t);
    *s = *c * *t;
}

/* Takes element (q, p), p < q, of the matrix of which `a` has the lower triangle to 0, where `active`. `v` has the
 * eigenvectors so far as rows, or is NULL. Returns the element's square. */
INLINE vec OF(rotate)(vec *a, vec *v, int n, int p, int q, mask active) {
    vec *row_p = a + p * n, *row_q = a + q * n, off = row_q[p], zero = {0}, t, c, s;
    mask turns = active & ((off > TINY) | (off < -TINY));
    OF(angle)(off, row_q[q] - row_p[p], turns, &t, &c, &s);
    for (int k = 0; k < p; k++) OF(turn)(row_p + k, row_q + k, c, s);
    for (int k = p + 1; k < q; k++) OF(turn)(a + k * n + p, row_q + k, c, s);
    for (int k = q + 1; k < n; k++) OF(turn)(a + k * n + p, a + k * n + q, c, s);
    row_p[p] -= t * off;
    row_q[q] += t * off;
    row_q[p] = SELECT(turns, zero, off);
    for (int k = 0; v && k < n; k++) OF(turn)(v + p * n + k, v + q * n + k, c, s);
    return off * off;
}

/* Makes columns p and q of a matrix orthogonal, which lie as rows of `a`, where `active` and they are not. Returns
 * where. */
INLINE mask OF(separate)(vec *a, vec *v, int n, int p, int q, mask active) {
    vec *one = a + p * n, *other = a + q * n, pp = {0}, pq = {0}, qq = {0}, t, c, s;
    for (int k = 0; k < n; k++) {
        pp += one[k] * one[k];
        pq += one[k] * other[k];
        qq += other[k] * other[k];
    }
    mask turns = active & (pq * pq > 64 * EPSILON * EPSILON * (pp * qq)) & ((pq > TINY) | (pq < -TINY));
    OF(angle)(pq, qq - pp, turns, &t, &c, &s);
    for (int k = 0; k < n; k++) OF(turn)(one + k, other + k, c, s);
    for (int k = 0; v && k < n; k++) OF(turn)(v + p * n + k, v + q * n + k, c, s);
    return turns;
}

/* Scales the matrices by powers of two to elements below 1. */
static void OF(scale)(vec *a, int count, int *powers) {
    vec most = {0}, scales;
    for (int k = 0; k < count; k++) {
        vec size = SELECT(a[k] < 0, -a[k], a[k]);
        most = SELECT(size > most, size, most);
    }
    for (int r = 0; r < LANES; r++) {
        powers[r] = 0;
        if (most[r] > 0 && most[r] - most[r] == 0) (void)frexp((double)most[r], powers + r);
        int least = sizeof(T) == 4 ? -120 : -1000; /* whose inverse is a number */
        if (powers[r] < least) powers[r] = least;
        scales[r] = (T)ldexp(1, -powers[r]);
    }
    for (int k = 0; k < count; k++) a[k] *= scales;
}

INLINE bool OF(any)(mask m) {
    bool some = false;
    for (int r = 0; r < LANES; r++) some |= m[r] != 0;
    return some;
}

/* The order in which matrix r's values ascend: of vectors `step` apart. */
static void OF(sort)(const vec *values, int step, int n, int r, int *order) {
    for (int k = 0, i; k < n; k++) {
        for (i = k; i > 0 && values[order[i - 1] * step][r] > values[k * step][r]; i--) order[i] = order[i - 1];
        order[i] = k;
    }
}

static void OF(eigh)(tt_jacobi *w) {
    int n = w->n, powers[TT_JACOBI_LANES];
    vec *a = (vec *)w->room, *v = w->vectors ? a + n * n : NULL, zero = {0};
    for (int k = 0; k < n * n; k++) a[k] = zero;
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            for (int r = 0; r < LANES; r++) a[i * n + j][r] = ((const T *)w->a[r])[w->upper ? j + i * n : i + j * n];
    OF(scale)(a, n * n, powers);
    for (int k = 0; v && k < n * n; k++) v[k] = zero + (T)(k % (n + 1) == 0);
    mask active = zero == zero;
    for (int sweep = 0; sweep < TT_JACOBI_SWEEPS && OF(any)(active); sweep++) {
        vec rest = zero;
        for (int p = 0; p < n - 1; p++)
            for (int q = p + 1; q < n; q++) rest += OF(rotate)(a, v, n, p, q, active);
        active &= rest > EPSILON * EPSILON; /* of what there was, the sweep leaves about the square */
    }
    for (int r = 0; r < w->count; r++) {
        int order[TT_JACOBI_MOST];
        w->done[r] = !active[r];
        if (!w->done[r]) continue;
        OF(sort)(a, n + 1, n, r, order);
        for (int k = 0; k < n; k++) {
            ((T *)w->values[r])[k] = (T)ldexp((double)a[order[k] * (n + 1)][r], powers[r]) + 0; /* no -0 */
            for (int i = 0; v && i < n; i++) ((T *)w->a[r])[i + k * n] = v[order[k] * n + i][r] + 0;
        }
    }
}

static void OF(svd)(tt_jacobi *w) {
    int n = w->n, powers[TT_JACOBI_LANES];
    vec *a = (vec *)w->room, *v = w->vectors ? a + n * n : NULL, zero = {0}, sizes[TT_JACOBI_MOST];
    for (int k = 0; k < n * n; k++)
        for (int r = 0; r < LANES; r++) a[k][r] = ((const T *)w->a[r])[k];
    OF(scale)(a, n * n, powers);
    for (int k = 0; v && k < n * n; k++) v[k] = zero + (T)(k % (n + 1) == 0);
    mask active = zero == zero;
    for (int sweep = 0; sweep < TT_JACOBI_SWEEPS && OF(any)(active); sweep++) {
        mask turned = zero != zero;
        for (int p = 0; p < n - 1; p++)
            for (int q = p + 1; q < n; q++) turned |= OF(separate)(a, v, n, p, q, active);
        active &= turned;
    }
    for (int k = 0; k < n; k++) {
        vec sum = zero;
        for (int i = 0; i < n; i++) sum += a[k * n + i] * a[k * n + i];
        sizes[k] = SQRT(sum);
    }
    for (int r = 0; r < w->count; r++) {
        int order[TT_JACOBI_MOST];
        OF(sort)(sizes, 1, n, r, order);
        T least = sizes[order[0]][r], most = sizes[order[n - 1]][r];
        w->done[r] = !active[r] && least > 64 * EPSILON * most;
        for (int k = 0; k < n && w->done[r]; k++) {
            int from = order[n - 1 - k];
            T size = sizes[from][r];
            ((T *)w->values[r])[k] = (T)ldexp((double)size, powers[r]);
            for (int i = 0; v && i < n; i++) {
                ((T *)w->u[r])[i + k * n] = a[from * n + i][r] / size + 0;
                ((T *)w->v[r])[k + i * n] = v[from * n + i][r] + 0;
            }
        }
    }
}

#undef T
#undef MASK
#undef EPSILON
#undef TINY
#undef OF
#undef SQRT
#undef vec
#undef mask
#undef LANES
#undef SELECT
