/* Sorting and selecting keys of type T; sort_keys.c includes this file for each, with OF(name) the function's name.
 * LESS(a, b): by key, then index; DIGIT_OF(e, shift): BUCKETS' worth of the key. */

static void OF(insertion)(T *x, int64_t n) {
    for (int64_t i = 1; i < n; i++) {
        T e = x[i];
        int64_t j = i;
        for (; j > 0 && LESS(e, x[j - 1]); j--) x[j] = x[j - 1];
        x[j] = e;
    }
}

static T *OF(merge)(T *x, T *spare, int64_t n) {
    for (int64_t i = 0; i < n; i += FEW) OF(insertion)(x + i, n - i < FEW ? n - i : FEW);
    for (int64_t run = FEW; run < n; run *= 2) {
        for (int64_t i = 0; i < n; i += 2 * run) {
            int64_t a = i, mid = i + run < n ? i + run : n, b = mid, end = mid + run < n ? mid + run : n;
            T *to = spare + i;
            while (a < mid && b < end) {
                bool right = LESS(x[b], x[a]);
                *to++ = right ? x[b] : x[a];
                b += right;
                a += !right;
            }
            while (a < mid) *to++ = x[a++];
            while (b < end) *to++ = x[b++];
        }
        T *swap = x;
        x = spare;
        spare = swap;
    }
    return x;
}

static void OF(count)(void *context, int64_t begin, int64_t end) {
    radix_pass *p = context;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t *table = p->table[piece], last = p->n * (piece + 1) / PIECES;
        const T *x = p->from;
        memset(table, 0, sizeof(int64_t) * BUCKETS);
        for (int64_t i = p->n * piece / PIECES; i < last; i++) table[DIGIT_OF(x[i], p->shift)]++;
    }
}

static void OF(place)(void *context, int64_t begin, int64_t end) {
    radix_pass *p = context;
    for (int64_t piece = begin; piece < end; piece++) {
        int64_t *table = p->table[piece], last = p->n * (piece + 1) / PIECES;
        const T *x = p->from;
        T *to = p->to;
        for (int64_t i = p->n * piece / PIECES; i < last; i++) to[table[DIGIT_OF(x[i], p->shift)]++] = x[i];
    }
}

T *OF(tt_sort)(T *x, T *spare, int64_t n, int bits) {
    if (n <= SOME) return OF(merge)(x, spare, n);
    int pieces = n >= LONG ? PIECES : 1;
    int64_t(*table)[BUCKETS] = tt_scratch((int64_t)sizeof(int64_t) * BUCKETS * PIECES);
    if (!table) return OF(merge)(x, spare, n); /* slower, but needs nothing */
    for (int shift = 0; shift < bits; shift += DIGIT) {
        radix_pass p = {x, spare, n, shift, table};
        int64_t at = 0;
        bool one_bucket = false;
        if (pieces > 1) tt_parallel(PIECES, 1, OF(count), &p);
        else {
            memset(table, 0, sizeof(int64_t) * BUCKETS);
            for (int64_t i = 0; i < n; i++) table[0][DIGIT_OF(x[i], shift)]++;
        }
        for (int d = 0; d < BUCKETS; d++) {
            int64_t before = at;
            for (int piece = 0; piece < pieces; piece++) {
                int64_t many = table[piece][d];
                table[piece][d] = at;
                at += many;
            }
            one_bucket |= at - before == n;
        }
        if (one_bucket) continue; /* this digit is the same in all */
        if (pieces > 1) tt_parallel(PIECES, 1, OF(place), &p);
        else
            for (int64_t i = 0; i < n; i++) spare[table[0][DIGIT_OF(x[i], shift)]++] = x[i];
        T *swap = x;
        x = spare;
        spare = swap;
    }
    tt_scratch_free(table);
    return x;
}

/* Hoare's selection; the pivot is the median of three, at places that a hash chooses. */
void OF(tt_nth)(T *x, int64_t n, int64_t k) {
    int64_t lo = 0, hi = n - 1;
    uint64_t hash = 0x9e3779b97f4a7c15u;
    while (hi - lo >= FEW) {
        int64_t span = hi - lo + 1;
        T pick[3];
        for (int t = 0; t < 3; t++) {
            hash ^= hash << 13, hash ^= hash >> 7, hash ^= hash << 17;
            pick[t] = x[lo + (int64_t)(hash % (uint64_t)span)];
        }
        OF(insertion)(pick, 3);
        T pivot = pick[1];
        int64_t i = lo, j = hi;
        while (i <= j) {
            while (LESS(x[i], pivot)) i++;
            while (LESS(pivot, x[j])) j--;
            if (i <= j) {
                T swap = x[i];
                x[i++] = x[j];
                x[j--] = swap;
            }
        }
        if (k <= j) hi = j;
        else if (k >= i) lo = i;
        else return;
    }
    for (int64_t i = lo + 1; i <= hi; i++) {
        T e = x[i];
        int64_t j = i;
        for (; j > lo && LESS(e, x[j - 1]); j--) x[j] = x[j - 1];
        x[j] = e;
    }
}

/* The k elements up to `last`, sorted; where a radix sort will leave equal ones alone, from where they stood. */
static T *OF(finish)(T *x, T *spare, int64_t n, int64_t k, T last, int bits) {
    int64_t many = 0;
    if (k <= SOME) return OF(tt_sort)(spare, x, k, bits);
    for (int64_t i = 0; i < n; i++)
        if (!LESS(last, x[i])) spare[many++] = x[i];
    return OF(tt_sort)(spare, x, k, bits);
}

T *OF(tt_select)(T *x, T *spare, int64_t n, int64_t k, int bits) {
    if (k == 0) return x;
    if (k <= 2 * FEW && n >= 4 * k) { /* most elements are no better than the worst of the best */
        OF(insertion)(x, k);
        for (int64_t i = k; i < n; i++) {
            if (!LESS(x[i], x[k - 1])) continue;
            T e = x[i];
            int64_t j = k - 1;
            for (; j > 0 && LESS(e, x[j - 1]); j--) x[j] = x[j - 1];
            x[j] = e;
        }
        return x;
    }
    if (k <= n / 8) { /* few are better than the k-th best so far: gather those, and now and then cut them to k */
        int64_t room = 8 * k, many = 0;
        T worst = x[0];
        for (int64_t i = 0; i < n; i++) {
            if (many >= k && i >= room && !LESS(x[i], worst)) continue;
            spare[many++] = x[i];
            if (many == room) {
                OF(tt_nth)(spare, many, k - 1);
                worst = spare[k - 1];
                many = k;
            }
        }
        if (many > k) OF(tt_nth)(spare, many, k - 1);
        return OF(finish)(x, spare, n, k, spare[k - 1], bits);
    }
    if (k > n / 2) return OF(tt_sort)(x, spare, n, bits);
    memcpy(spare, x, (size_t)n * sizeof(T));
    OF(tt_nth)(spare, n, k - 1);
    return OF(finish)(x, spare, n, k, spare[k - 1], bits);
}

#undef T
#undef OF
#undef LESS
#undef DIGIT_OF
