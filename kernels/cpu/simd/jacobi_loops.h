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

/* Takes element (q, p), p < q, of the matrix of which `a` has the lower triangle to 0, where `active`. `v` has the
 * eigenvectors so far as rows, or is NULL. Returns the element's square. */
INLINE vec OF(rotate)(vec *a, vec *v, int n, int p, int q, mask active) {
    vec *row_p = a + p * n, *row_q = a + q * n, of_q = row_q[p], zero = {0}, one = zero + 1;
    vec twice = of_q + of_q, gap = row_q[q] - row_p[p];
    vec size = SQRT(gap * gap + twice * twice); /* tan of the smaller of both angles */
    mask turns = active & ((twice > TINY) | (twice < -TINY));
    vec below = gap + SELECT(gap < 0, -size, size);
    vec t = SELECT(turns, twice / SELECT(turns, below, one), zero);
    vec c = one / SQRT(one + t * t), s = c * t;
    for (int k = 0; k < p; k++) OF(turn)(row_p + k, row_q + k, c, s);
    for (int k = p + 1; k < q; k++) OF(turn)(a + k * n + p, row_q + k, c, s);
    for (int k = q + 1; k < n; k++) OF(turn)(a + k * n + p, a + k * n + q, c, s);
    row_p[p] -= t * of_q;
    row_q[q] += t * of_q;
    row_q[p] = SELECT(turns, zero, of_q);
    for (int k = 0; v && k < n; k++) OF(turn)(v + p * n + k, v + q * n + k, c, s);
    return of_q * of_q;
}

/* The triangles, scaled by powers of two to elements of at most 1. */
static void OF(load)(const tt_jacobi *w, vec *a, int *powers) {
    int n = w->n;
    T most[TT_JACOBI_LANES] = {0}, scales[TT_JACOBI_LANES];
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            for (int r = 0; r < LANES; r++) {
                T x = ((const T *)w->a[r])[w->upper ? j + i * n : i + j * n], size = x < 0 ? -x : x;
                a[i * n + j][r] = x;
                if (size > most[r]) most[r] = size;
            }
    for (int r = 0; r < LANES; r++) {
        powers[r] = 0;
        if (most[r] > 0) (void)frexp((double)most[r], powers + r);
        if (powers[r] < -1000) powers[r] = -1000; /* whose inverse is a number */
        if (sizeof(T) == 4 && powers[r] < -120) powers[r] = -120;
        scales[r] = (T)ldexp(1, -powers[r]);
    }
    for (int i = 0; i < n; i++)
        for (int j = 0; j <= i; j++)
            for (int r = 0; r < LANES; r++) a[i * n + j][r] *= scales[r];
}

static void OF(eigh)(tt_jacobi *w) {
    int n = w->n, powers[TT_JACOBI_LANES];
    vec *a = (vec *)w->room, *v = w->vectors ? a + n * n : NULL, zero = {0};
    OF(load)(w, a, powers);
    for (int k = 0; v && k < n * n; k++) v[k] = zero + (T)(k % (n + 1) == 0);
    mask active = zero == zero, some = active;
    for (int sweep = 0; sweep < TT_JACOBI_SWEEPS && some[0]; sweep++) {
        vec rest = zero;
        for (int p = 0; p < n - 1; p++)
            for (int q = p + 1; q < n; q++) rest += OF(rotate)(a, v, n, p, q, active);
        /* what was left when the sweep began to work on it: of that its rotations leave the square */
        active &= rest > EPSILON * EPSILON;
        some[0] = 0;
        for (int r = 0; r < LANES; r++) some[0] |= active[r];
    }
    for (int r = 0; r < w->count; r++) {
        int order[TT_JACOBI_MOST];
        w->done[r] = !active[r];
        if (!w->done[r]) continue;
        for (int k = 0, i; k < n; k++) {
            for (i = k; i > 0 && a[order[i - 1] * (n + 1)][r] > a[k * (n + 1)][r]; i--) order[i] = order[i - 1];
            order[i] = k;
        }
        for (int k = 0; k < n; k++) {
            ((T *)w->values[r])[k] = (T)ldexp((double)a[order[k] * (n + 1)][r], powers[r]) + 0;
            for (int i = 0; v && i < n; i++) ((T *)w->a[r])[i + k * n] = v[order[k] * n + i][r] + 0; /* no -0 */
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
