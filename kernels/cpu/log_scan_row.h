/* The logarithms of running sums of neighbouring elements, a block at a time: with its chunks beside each other, what
 * takes long is done for many at once. scan.c includes this file for each type T, with ROW its name and JOIN, PART,
 * SHARE and TOTAL as for scan_loop.h. Note [The order of a scan] in backend/scan.h. */

static void ROW(const iterator *w, int64_t at) {
    const T *x = (const T *)w->a + at;
    T *out = (T *)w->out + at;
    int64_t step = w->reverse ? -w->inner : w->inner, i = w->reverse ? (w->n - 1) * w->inner : 0;
    double v[CHUNK][TT_BLOCK / CHUNK], sums[TT_BLOCK / CHUNK], tops[TT_BLOCK / CHUNK], before[TT_BLOCK / CHUNK];
    double levels[TT_LEVELS] = {0}, level_tops[TT_LEVELS] = {0}, level_sums[TT_LEVELS] = {0};
    double block = 0, all = 0, all_top = 0, all_sum = 0;
    for (int64_t j0 = 0; j0 < w->n; j0 += TT_BLOCK, i += TT_BLOCK * step) {
        int64_t left = w->n - j0 < TT_BLOCK ? w->n - j0 : TT_BLOCK, chunks = (left + CHUNK - 1) / CHUNK;
        int64_t totals = j0 + left < w->n ? chunks : chunks - 1; /* so many are asked for */
        for (int64_t c = 0; c < chunks; c++)
            for (int64_t j = 0; j < CHUNK; j++) {
                int64_t place = c * CHUNK + j;
                v[j][c] = place < left ? (double)x[i + place * step] : 0;
            }
        for (int64_t c = 0; c < totals; c++) tops[c] = v[0][c], sums[c] = 0;
        for (int64_t j = 1; j < CHUNK; j++) {
            TT_INDEPENDENT
            for (int64_t c = 0; c < totals; c++) tops[c] = tt_log_top(tops[c], v[j][c]);
        }
        for (int64_t j = 0; j < CHUNK; j++) {
            TT_INDEPENDENT
            for (int64_t c = 0; c < totals; c++) sums[c] += PART(tops[c], v[j][c]);
        }
        before[0] = j0 ? block : -TT_INF_F64;
        for (int64_t c = 0; c < totals; c++) {
            double total = TOTAL(tops[c], sums[c]);
            all_sum = c ? tt_log_sum(all_top, all_sum, total, SHARE(all_top, total)) : 1.0;
            all_top = c ? tt_log_top(all_top, total) : total;
            all = TOTAL(all_top, all_sum);
            if (c + 1 < chunks) before[c + 1] = j0 ? JOIN(block, all) : all;
        }
        for (int64_t c = 0; c < chunks; c++) tops[c] = before[c], sums[c] = 1;
        for (int64_t j = 0; j < CHUNK; j++) {
            TT_INDEPENDENT
            for (int64_t c = 0; c < chunks; c++) {
                double one = v[j][c];
                sums[c] = tt_log_sum(tops[c], sums[c], one, SHARE(tops[c], one));
                tops[c] = tt_log_top(tops[c], one);
                v[j][c] = TOTAL(tops[c], sums[c]);
            }
        }
        for (int64_t c = 0; c < chunks; c++)
            for (int64_t j = 0; j < CHUNK && c * CHUNK + j < left; j++) out[i + (c * CHUNK + j) * step] = (T)v[j][c];
        int64_t many = j0 / TT_BLOCK;
        double total = all;
        for (int l = 0; l < TT_LEVELS; l++) {
            int64_t own = many >> TT_LEVEL_LOG * l;
            bool first = l < TT_LEVELS - 1 ? !(own & (TT_LEVEL - 1)) : !own;
            level_sums[l] = first ? 1.0 : tt_log_sum(level_tops[l], level_sums[l], total, SHARE(level_tops[l], total));
            level_tops[l] = first ? total : tt_log_top(level_tops[l], total);
            total = levels[l] = TOTAL(level_tops[l], level_sums[l]);
            if ((own & (TT_LEVEL - 1)) != TT_LEVEL - 1) break;
        }
        many++;
        bool has = false;
        for (int l = TT_LEVELS - 1; l >= 0; l--) {
            int64_t own = many >> TT_LEVEL_LOG * l;
            if (!(l < TT_LEVELS - 1 ? own & (TT_LEVEL - 1) : own)) continue;
            block = has ? JOIN(block, levels[l]) : levels[l];
            has = true;
        }
    }
}

#undef ROW
#undef T
#undef JOIN
#undef PART
#undef SHARE
#undef TOTAL
