/* A running sum or product of elements of type T, accumulated in A; scan.c includes this file for each, with FUNCTION
 * its name. JOIN(a, b) joins two accumulators; where it costs much, TOTAL(top, sum) of parts PART(top, x) is what a
 * chunk gives, SHARE(top, x) is how tt_log_sum goes on, and ALONE(w, at) does a single scan. Note [The order of a scan]
 * in backend/scan.h. */

static void FUNCTION(const iterator *w, int64_t at, int64_t width) {
#ifdef ALONE
    if (width == 1 && w->n > CHUNK) {
        ALONE(w, at);
        return;
    }
#endif
    const T *x = (const T *)w->a + at;
    T *out = (T *)w->out + at;
    A acc[STRIP], before[STRIP], chunks[STRIP], blocks[STRIP], levels[TT_LEVELS][STRIP];
#ifdef TOTAL
    A sums[STRIP], tops[STRIP], all_sums[STRIP], all_tops[STRIP];
    A level_tops[TT_LEVELS][STRIP] = {{0}}, level_sums[TT_LEVELS][STRIP] = {{0}};
#endif
    int64_t step = w->reverse ? -w->inner : w->inner, i = w->reverse ? (w->n - 1) * w->inner : 0;
    for (int64_t j0 = 0; j0 < w->n; j0 += CHUNK) {
        int64_t n = w->n - j0 < CHUNK ? w->n - j0 : CHUNK, in_block = j0 % TT_BLOCK;
        if (j0 && !in_block) { /* a block more */
            int64_t many = j0 / TT_BLOCK;
            bool has = false;
            for (int l = 0; l < TT_LEVELS; l++) {
                int64_t own = (many - 1) >> TT_LEVEL_LOG * l;
                bool first = l < TT_LEVELS - 1 ? !(own & (TT_LEVEL - 1)) : !own;
                const A *total = l ? levels[l - 1] : chunks;
#ifdef TOTAL
                A *top = level_tops[l], *sum = level_sums[l];
                TT_INDEPENDENT
                for (int64_t k = 0; k < width; k++) {
                    sum[k] = first ? 1 : tt_log_sum(top[k], sum[k], total[k], SHARE(top[k], total[k]));
                    top[k] = first ? total[k] : tt_log_top(top[k], total[k]);
                    levels[l][k] = TOTAL(top[k], sum[k]);
                }
#else
                for (int64_t k = 0; k < width; k++) levels[l][k] = first ? total[k] : JOIN(levels[l][k], total[k]);
#endif
                if ((own & (TT_LEVEL - 1)) != TT_LEVEL - 1) break;
            }
            for (int l = TT_LEVELS - 1; l >= 0; l--) {
                int64_t own = many >> TT_LEVEL_LOG * l;
                if (!(l < TT_LEVELS - 1 ? own & (TT_LEVEL - 1) : own)) continue;
                for (int64_t k = 0; k < width; k++) blocks[k] = has ? JOIN(blocks[k], levels[l][k]) : levels[l][k];
                has = true;
            }
        }
        for (int64_t k = 0; j0 && k < width; k++)
            before[k] = j0 < TT_BLOCK ? chunks[k] : in_block ? JOIN(blocks[k], chunks[k]) : blocks[k];
#ifdef TOTAL
        for (int64_t k = 0; k < width; k++) {
            if (!j0) before[k] = -TT_INF_F64;
            sums[k] = 1;
            tops[k] = x[i + k];
            acc[k] = 0;
        }
        for (int64_t j = 0; j < n; j++) {
            const T *from = x + i + j * step;
            T *to = out + i + j * step;
            TT_INDEPENDENT
            for (int64_t k = 0; k < width; k++) {
                A one = from[k];
                sums[k] = tt_log_sum(before[k], sums[k], one, SHARE(before[k], one));
                before[k] = tt_log_top(before[k], one);
                to[k] = (T)TOTAL(before[k], sums[k]);
                tops[k] = tt_log_top(tops[k], one);
            }
        }
        if (j0 + n == w->n) return;
        for (int64_t j = 0; j < n; j++) {
            const T *from = x + i + j * step;
            TT_INDEPENDENT
            for (int64_t k = 0; k < width; k++) acc[k] += PART(tops[k], from[k]);
        }
        TT_INDEPENDENT
        for (int64_t k = 0; k < width; k++) {
            A total = TOTAL(tops[k], acc[k]);
            all_sums[k] = in_block ? tt_log_sum(all_tops[k], all_sums[k], total, SHARE(all_tops[k], total)) : 1;
            all_tops[k] = in_block ? tt_log_top(all_tops[k], total) : total;
            chunks[k] = TOTAL(all_tops[k], all_sums[k]);
        }
#else
        if (width == 1) { /* in registers */
            A one = x[i], earlier = before[0];
            int64_t here = i;
            out[here] = (T)(j0 ? JOIN(earlier, one) : one);
            for (int64_t j = 1; j < n; j++) {
                one = JOIN(one, x[here += step]);
                out[here] = (T)(j0 ? JOIN(earlier, one) : one);
            }
            acc[0] = one;
        } else {
            for (int64_t k = 0; k < width; k++) {
                acc[k] = x[i + k];
                out[i + k] = (T)(j0 ? JOIN(before[k], acc[k]) : acc[k]);
            }
            for (int64_t j = 1; j < n; j += 2) { /* two at a time: the sums move less */
                int64_t more = j + 1 < n ? step : 0;
                const T *from = x + i + j * step, *from2 = from + more;
                T *to = out + i + j * step, *to2 = to + more;
                if (j0 && more) {
                    TT_INDEPENDENT
                    for (int64_t k = 0; k < width; k++) {
                        A one = JOIN(acc[k], from[k]), two = JOIN(one, from2[k]), earlier = before[k];
                        to[k] = (T)JOIN(earlier, one);
                        to2[k] = (T)JOIN(earlier, two);
                        acc[k] = two;
                    }
                } else {
                    TT_INDEPENDENT
                    for (int64_t k = 0; k < width; k++) {
                        acc[k] = JOIN(acc[k], from[k]);
                        to[k] = (T)(j0 ? JOIN(before[k], acc[k]) : acc[k]);
                        if (more) {
                            acc[k] = JOIN(acc[k], from2[k]);
                            to2[k] = (T)acc[k];
                        }
                    }
                }
            }
        }
        for (int64_t k = 0; k < width; k++) chunks[k] = in_block ? JOIN(chunks[k], acc[k]) : acc[k];
#endif
        i += n * step;
    }
}

#undef FUNCTION
#undef T
#undef A
#undef JOIN
#undef ALONE
#undef PART
#undef SHARE
#undef TOTAL
