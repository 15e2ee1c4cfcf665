/* One row of keys of type T; sort.c includes this file for each, with OF(name) the function's name. IS_NAN(e), SAME(a,
 * b) and INDEX(e) ask a key. */

/* The keys in x; the positions chosen, in order, to `chosen`. */
static void OF(choose)(const job *j, T *x, T *spare, int64_t *chosen) {
    int64_t n = j->s->n, k = j->s->k, nans = 0;
    T *s = x;
    switch (j->s->what) {
    case TT_SORT: s = OF(tt_sort)(x, spare, n, j->bits); break;
    case TT_TOPK: s = OF(tt_select)(x, spare, n, k, j->bits); break;
    case TT_MODE: {
        int64_t best = 0, last = 0;
        s = OF(tt_sort)(x, spare, n, j->bits);
        for (int64_t i = 0, start = 0; i < n; i++)
            if (i + 1 == n || !SAME(s[i], s[i + 1])) {
                if (i + 1 - start > best) best = i + 1 - start, last = i;
                start = i + 1;
            }
        *chosen = INDEX(s[last]);
        return;
    }
    default:
        if (j->s->what != TT_KTH) {
            if (tt_is_floating(j->s->a->dtype))
                for (int64_t i = 0; i < n; i++) nans += IS_NAN(x[i]);
            if (nans && j->s->what == TT_MEDIAN) k = n - nans;
            else k = nans == n ? 0 : (n - nans - 1) / 2;
        }
        OF(tt_nth)(x, n, k);
        *chosen = INDEX(x[k]);
        return;
    }
    for (int64_t i = 0; i < j->s->out_n; i++) chosen[i] = INDEX(s[i]);
}

#undef T
#undef OF
#undef IS_NAN
#undef SAME
#undef INDEX
