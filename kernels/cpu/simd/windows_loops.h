/* The loops of pooling for elements of type T, of which LOWEST is the least, and integers MARK of its size; included by
 * windows.c. Where the inner dimension is 1, the elements of a window are walked one by one; else neighbours in it go
 * together. */

static inline T OF(share)(const tt_pool_work *w, tt_window a, tt_window b, tt_window c) {
    if (w->divisor) return (T)w->divisor;
    return (T)(w->padding ? a.span * b.span * c.span : a.count * b.count * c.count);
}

/* One window's maximum: window i of the plane, (a, b, c). */
static void OF(max_window)(const tt_pool_job *j, int64_t outer, int64_t i, tt_window a, tt_window b, tt_window c) {
    const tt_pool_work *w = j->w;
    const T *x = (const T *)j->from + outer * w->in;
    T best = LOWEST;
    int64_t place = (a.first * w->axes[1].in + b.first) * w->axes[2].in + c.first;
    OVER_WINDOW({
        bool better = x[at] > best || IS_NAN(x[at]);
        best = better ? x[at] : best;
        place = better ? at : place;
    })
    ((T *)j->to)[outer * w->out + i] = best;
    if (j->index) j->index[outer * w->out + i] = place;
}

/* Of the maxima of columns, and the rows where they are, those of windows of `taps` columns, `stride` apart: the first
 * in row-major order, or the last NaN. */
static inline __attribute__((always_inline)) void OF(across)(T *best, MARK *row, MARK *tap, const T *columns,
                                                             const MARK *rows, int64_t n, int64_t taps, int64_t step,
                                                             const int64_t stride, const bool marks) {
    for (int64_t i = 0; i < n; i++) {
        best[i] = columns[i * stride];
        if (marks) {
            row[i] = rows[i * stride];
            tap[i] = 0;
        }
    }
    for (int64_t k = 1; k < taps; k++) {
        const T *v = columns + k * step;
        const MARK *r = rows + k * step;
        TT_INDEPENDENT
        for (int64_t i = 0; i < n; i++) {
            T x = v[i * stride], y = best[i];
            if (marks) {
                MARK there = r[i * stride], here = row[i];
                bool better = (x > y) | ((x == y) & (there < here)) | (IS_NAN(x) & (!IS_NAN(y) | (there >= here)));
                best[i] = better ? x : y;
                row[i] = better ? there : here;
                tap[i] = better ? (MARK)k : tap[i];
            } else best[i] = (x > y) | IS_NAN(x) ? x : y;
        }
    }
}

#define ROOM 512 /* columns of the input that are looked at together */

/* A plane's maxima: down the columns first, then across them. */
static inline __attribute__((always_inline)) void OF(max_plane)(const tt_pool_job *j, int64_t outer, const bool marks) {
    const T *x = (const T *)j->from + outer * j->w->in;
    T columns[ROOM], best[TT_POOL_CHUNK];
    MARK rows[ROOM], row[TT_POOL_CHUNK], tap[TT_POOL_CHUNK];
    OVER_WINDOWS({
        /* windows i2 to end, of one number of columns and one distance, that have room */
        int64_t end = i2 + 1, stride = end < w->axes[2].out ? third[end].first - c.first : 1, n;
        int64_t reach = (c.count - 1) * w->axes[2].step + 1;
        int64_t step = reach <= ROOM && a.count && b.count && c.count ? w->axes[2].step : 0;
        while (step && end < w->axes[2].out && end - i2 < TT_POOL_CHUNK && third[end].count == c.count &&
               third[end].first == c.first + (end - i2) * stride && (end - i2) * stride + reach <= ROOM)
            end++;
        n = end - i2;
        if (!step) OF(max_window)(j, outer, i, a, b, c);
        else {
            int64_t width = (n - 1) * stride + reach, number = 0;
            for (int64_t d = 0; d < a.count; d++)
                for (int64_t h = 0; h < b.count; h++, number++) {
                    const T *v = x +
                                 ((a.first + d * w->axes[0].step) * w->axes[1].in + b.first + h * w->axes[1].step) *
                                     w->axes[2].in +
                                 c.first;
                    if (!number) {
                        memcpy(columns, v, (size_t)width * sizeof(T));
                        if (marks) memset(rows, 0, (size_t)width * sizeof(MARK));
                        continue;
                    }
                    TT_INDEPENDENT
                    for (int64_t l = 0; l < width; l++) {
                        bool better = (v[l] > columns[l]) | IS_NAN(v[l]);
                        columns[l] = better ? v[l] : columns[l];
                        if (marks) rows[l] = better ? (MARK)number : rows[l];
                    }
                }
            if (stride == 1) OF(across)(best, row, tap, columns, rows, n, c.count, step, 1, marks);
            else if (stride == 2) OF(across)(best, row, tap, columns, rows, n, c.count, step, 2, marks);
            else OF(across)(best, row, tap, columns, rows, n, c.count, step, stride, marks);
            memcpy((T *)j->to + outer * w->out + i, best, (size_t)n * sizeof(T));
            for (int64_t l = 0; marks && l < n; l++) {
                int64_t d = row[l] / b.count, h = row[l] % b.count;
                j->index[outer * w->out + i + l] =
                    ((a.first + d * w->axes[0].step) * w->axes[1].in + b.first + h * w->axes[1].step) * w->axes[2].in +
                    c.first + l * stride + tap[l] * step;
            }
        }
        i += n - 1;
        i2 += n - 1;
    })
}

static void OF(max)(const tt_pool_job *j, int64_t outer, int64_t column, int64_t width) {
    if (j->w->inner == 1) {
        if (j->index) OF(max_plane)(j, outer, true);
        else OF(max_plane)(j, outer, false);
        return;
    }
    int64_t inner = j->w->inner;
    const T *x = (const T *)j->from + outer * j->w->in * inner + column;
    T *y = (T *)j->to + outer * j->w->out * inner + column, best[TT_POOL_CHUNK];
    int64_t *index = j->index ? j->index + outer * j->w->out * inner + column : NULL;
    MARK where[TT_POOL_CHUNK]; /* numbers of a window's elements */
    OVER_WINDOWS({
        int64_t number = 0;
        for (int64_t l = 0; l < width; l++) {
            best[l] = LOWEST;
            where[l] = 0;
        }
        OVER_WINDOW({
            const T *v = x + at * inner;
            MARK mark = (MARK)number++;
            TT_INDEPENDENT
            for (int64_t l = 0; l < width; l++) {
                bool better = v[l] > best[l] || IS_NAN(v[l]);
                best[l] = better ? v[l] : best[l];
                where[l] = better ? mark : where[l];
            }
        })
        memcpy(y + i * inner, best, (size_t)width * sizeof(T));
        for (int64_t l = 0; index && l < width; l++) {
            int64_t across = c.count ? c.count : 1, down = b.count ? b.count : 1; /* none: a window of padding alone */
            int64_t n = where[l], k = n % across, h = n / across % down, d = n / across / down;
            index[i * inner + l] =
                ((a.first + d * w->axes[0].step) * w->axes[1].in + b.first + h * w->axes[1].step) * w->axes[2].in +
                c.first + k * w->axes[2].step;
        }
    })
}

static void OF(average)(const tt_pool_job *j, int64_t outer, int64_t column, int64_t width) {
    int64_t inner = j->w->inner;
    const T *x = (const T *)j->from + outer * j->w->in * inner + column;
    T *y = (T *)j->to + outer * j->w->out * inner + column, sums[TT_POOL_CHUNK];
    OVER_WINDOWS({
        T share = OF(share)(w, a, b, c);
        if (inner == 1) {
            T sum = 0;
            OVER_WINDOW({ sum += x[at]; })
            y[i] = sum / share;
            continue;
        }
        for (int64_t l = 0; l < width; l++) sums[l] = 0;
        OVER_WINDOW({
            const T *v = x + at * inner;
            TT_INDEPENDENT
            for (int64_t l = 0; l < width; l++) sums[l] += v[l];
        })
        for (int64_t l = 0; l < width; l++) y[i * inner + l] = sums[l] / share;
    })
}

/* All zeros: `width` columns of a plane of the input. */
static T *OF(zeros)(const tt_pool_job *j, int64_t outer, int64_t column, int64_t width) {
    int64_t inner = j->w->inner;
    T *x = (T *)j->to + outer * j->w->in * inner + column;
    if (width == inner) memset(x, 0, (size_t)(j->w->in * inner) * sizeof(T));
    else
        for (int64_t i = 0; i < j->w->in; i++) memset(x + i * inner, 0, (size_t)width * sizeof(T));
    return x;
}

static void OF(max_backward)(const tt_pool_job *j, int64_t outer, int64_t column, int64_t width) {
    int64_t inner = j->w->inner, from = outer * j->w->out * inner + column;
    T *x = OF(zeros)(j, outer, column, width);
    const T *g = (const T *)j->from + from;
    const int64_t *index = j->index + from;
    for (int64_t i = 0; i < j->w->out; i++)
        for (int64_t l = 0; l < width; l++) {
            int64_t at = index[i * inner + l];
            if (at < j->w->in) x[at * inner + l] += g[i * inner + l]; /* else a window of padding alone */
        }
}

static void OF(average_backward)(const tt_pool_job *j, int64_t outer, int64_t column, int64_t width) {
    int64_t inner = j->w->inner;
    T *x = OF(zeros)(j, outer, column, width), parts[TT_POOL_CHUNK];
    const T *g = (const T *)j->from + outer * j->w->out * inner + column;
    OVER_WINDOWS({
        T share = OF(share)(w, a, b, c);
        if (inner == 1) {
            T part = g[i] / share;
            OVER_WINDOW({ x[at] += part; })
            continue;
        }
        for (int64_t l = 0; l < width; l++) parts[l] = g[i * inner + l] / share;
        OVER_WINDOW({
            T *v = x + at * inner;
            TT_INDEPENDENT
            for (int64_t l = 0; l < width; l++) v[l] += parts[l];
        })
    })
}

#undef ROOM
#undef IS_NAN
#undef T
#undef MARK
#undef LOWEST
#undef OF
