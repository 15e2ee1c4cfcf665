/* The loops of reducers that read elements of type T and accumulate in A; simd/reduce.c includes this file for each
 * such pair, with OF(name) the function's name. A reducer is three constants: what an element contributes, how two
 * accumulators join, and what joined to anything leaves it as it is. The loops are inlined into a function for each
 * reducer. */

typedef A OF(map_fn)(T x, const A *param, int64_t i);
typedef A OF(join_fn)(A a, A b);

TT_FN void OF(fold)(void *acc, const void *x, int64_t n, const A *p, OF(map_fn) map, OF(join_fn) join, A none) {
    const T *v = x;
    A lane[TT_LANES];
    int64_t i = TT_LANES;
    if (n >= TT_LANES) {
        for (int l = 0; l < TT_LANES; l++) lane[l] = map(v[l], p, 0);
        for (; i + TT_LANES <= n; i += TT_LANES)
            for (int l = 0; l < TT_LANES; l++) lane[l] = join(lane[l], map(v[i + l], p, 0));
        for (int l = 0; i + l < n; l++) lane[l] = join(lane[l], map(v[i + l], p, 0));
    } else
        for (int l = 0; l < TT_LANES; l++) lane[l] = l < n ? map(v[l], p, 0) : none;
    for (int l = 0; l < 16; l++) lane[l] = join(lane[l], lane[l + 16]);
    for (int l = 0; l < 8; l++) lane[l] = join(lane[l], lane[l + 8]);
    for (int l = 0; l < 4; l++) lane[l] = join(lane[l], lane[l + 4]);
    for (int l = 0; l < 2; l++) lane[l] = join(lane[l], lane[l + 2]);
    *(A *)acc = join(lane[0], lane[1]);
}

TT_FN void OF(first)(void *acc, const void *x, int64_t n, const A *p, OF(map_fn) map) {
    A *a = acc;
    const T *v = x;
    TT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) a[i] = map(v[i], p, i);
}

TT_FN void OF(next)(void *acc, const void *x, int64_t n, const A *p, OF(map_fn) map, OF(join_fn) join) {
    A *a = acc;
    const T *v = x;
    TT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) a[i] = join(a[i], map(v[i], p, i));
}

TT_FN void OF(rows)(void *acc, const char *x, int64_t step, int64_t n, int64_t w, const A *p, tt_cast_loop cast,
                    OF(map_fn) map, OF(join_fn) join) {
    T rooms[4][TT_LANE_BYTES / sizeof(T)] __attribute__((aligned(64)));
    for (int64_t r = 0; r < n && r < TT_LANES; r++)
        OF(first)((A *)acc + r * w, tt_as_read(x + r * step, rooms[0], w, cast), w, p, map);
    for (int64_t r0 = TT_LANES; r0 < n; r0 += 4 * TT_LANES)
        for (int64_t r = r0; r < n && r < r0 + TT_LANES; r++) {
            A *to = (A *)acc + (r - r0) * w;
            const char *row = x + r * step;
            int64_t next = TT_LANES * step;
            if (r + 3 * TT_LANES < n) { /* four at a time: the accumulators move less */
                const T *a = tt_as_read(row, rooms[0], w, cast), *b = tt_as_read(row + next, rooms[1], w, cast);
                const T *c = tt_as_read(row + 2 * next, rooms[2], w, cast);
                const T *d = tt_as_read(row + 3 * next, rooms[3], w, cast);
                int64_t k = 0;
                for (; k + TT_LANES <= w; k += TT_LANES) { /* of four maxima in one loop gcc would make branches */
                    A t[TT_LANES];
                    for (int l = 0; l < TT_LANES; l++) t[l] = join(to[k + l], map(a[k + l], p, k + l));
                    for (int l = 0; l < TT_LANES; l++) t[l] = join(t[l], map(b[k + l], p, k + l));
                    for (int l = 0; l < TT_LANES; l++) t[l] = join(t[l], map(c[k + l], p, k + l));
                    for (int l = 0; l < TT_LANES; l++) to[k + l] = join(t[l], map(d[k + l], p, k + l));
                }
                for (; k < w; k++) {
                    A t = join(join(to[k], map(a[k], p, k)), map(b[k], p, k));
                    to[k] = join(join(t, map(c[k], p, k)), map(d[k], p, k));
                }
            } else
                for (int64_t k = r; k < n; k += TT_LANES)
                    OF(next)(to, tt_as_read(x + k * step, rooms[0], w, cast), w, p, map, join);
        }
}

TT_FN void OF(join)(void *acc, const void *other, int64_t n, OF(join_fn) join) {
    A *a = acc;
    const A *b = other;
    TT_INDEPENDENT
    for (int64_t i = 0; i < n; i++) a[i] = join(a[i], b[i]);
}

#undef T
#undef A
#undef OF
