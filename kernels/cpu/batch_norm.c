/* Normalisation of channels. Where a channel's elements lie in runs, a thread takes whole channels, so that all but the
 * first pass over one find it in the cache; where channels lie closest together, rows of them are shared out. Elements
 * of a half type become float32, and results such, a few at a time, in the cache. */
#include "cpu/batch_norm.h"
#include "backend/plain.h"
#include "cpu/cpu.h"
#include "cpu/reduce.h"
#include <string.h>

TT_ISA_TABLES(tt_batch_table, tt_batch)

#define GRAIN 32768 /* elements that are worth a thread */
#define TILE TT_BATCH_TILE
#define ROOM 2048 /* elements of a half type that are computed at once */
#define WHOLE 16384 /* bytes of a channel that is brought together once for all its passes */
#define GROUP 524288 /* ... of a group */

enum { X, G, WEIGHT, BIAS, MEAN, RSTD, OPERANDS };

typedef struct {
    const tt_batch_loops *loops;
    const tt_reducer *sum, *devsq;
    const char *x, *g;
    char *out;
    const char *weight, *mean, *rstd;
    char *totals, *products; /* of each channel: sums of x and of (x - mean)^2, or of g and of g (x - mean) */
    char *scale, *shift, *slope; /* tt_batch_numbers */
    char *of_weight, *of_bias;
    char *parts; /* [channels][2][blocks], or [2][blocks][channels] */
    int64_t channels, inner, n, blocks;
    int size, stored; /* of a number computed, and of an element of x, g and out */
    tt_cast_loop widen, narrow; /* from the one to the other and back; NULL where they are the same */
} job;

static int64_t grain_of(int64_t elements) { return elements >= GRAIN ? 1 : GRAIN / elements; }

static int64_t in_block(const job *j, int64_t block) {
    int64_t rest = j->n - block * TT_BLOCK;
    return rest < TT_BLOCK ? rest : TT_BLOCK;
}

/* Channels whose elements lie in runs */

typedef struct {
    const job *j;
    int64_t channel;
    int pass;
    const char *x, *g; /* all elements of the channel, one after another; NULL: a block at a time is brought together */
} channel_pass;
enum { SUM, DEVSQ, GRADIENT };

/* n of a channel's elements, one after another. */
static const char *elements_of(const job *j, const char *x, int64_t channel, int64_t first, int64_t n, char *room) {
    int64_t run = first / j->inner, start = first % j->inner;
    x += (run * j->channels + channel) * j->inner * j->stored;
    if (!j->widen) {
        if (start + n <= j->inner) return x + start * j->size;
        j->loops->gather(room, x, start, j->inner, j->channels * j->inner, n);
        return room;
    }
    for (int64_t done = 0; done < n; start = 0, x += j->channels * j->inner * j->stored) {
        int64_t m = j->inner - start < n - done ? j->inner - start : n - done;
        j->widen(room + done * j->size, x + start * j->stored, m);
        done += m;
    }
    return room;
}

/* All elements of a channel, where they fit into the room; else NULL. */
static const char *whole_channel(const job *j, const char *x, int64_t channel, char *room) {
    return j->n * j->size <= WHOLE ? elements_of(j, x, channel, 0, j->n, room) : NULL;
}

static void sum_blocks(void *context, int64_t begin, int64_t end) {
    const channel_pass *w = context;
    const job *j = w->j;
    const char *mean = (w->pass == GRADIENT ? j->mean : j->totals) + w->channel * j->size;
    char rooms[2][TT_BLOCK * 8] __attribute__((aligned(64)));
    char *first = j->parts + 2 * w->channel * j->blocks * j->size, *second = first + j->blocks * j->size;
    for (int64_t b = begin; b < end; b++) {
        int64_t from = b * TT_BLOCK, n = in_block(j, b);
        const char *x = w->x ? w->x + from * j->size : elements_of(j, j->x, w->channel, from, n, rooms[0]);
        if (w->pass == GRADIENT) {
            const char *g = w->g ? w->g + from * j->size : elements_of(j, j->g, w->channel, from, n, rooms[1]);
            j->loops->sums(first + b * j->size, second + b * j->size, g, x, mean, n);
        } else if (w->pass == SUM) j->sum->reduce_block(first + b * j->size, x, n, NULL);
        else j->devsq->reduce_block(second + b * j->size, x, n, mean);
    }
}

/* Sums of a channel, of the threads that are free. */
static void sum_channel(const job *j, int64_t c, int pass, const char *x, const char *g) {
    channel_pass w = {j, c, pass, x, g};
    tt_parallel(j->blocks, grain_of(TT_BLOCK), sum_blocks, &w);
    char *parts = j->parts + 2 * c * j->blocks * j->size, *to[2] = {j->totals, j->products};
    for (int k = 0; k < 2; k++, parts += j->blocks * j->size) {
        if (k == 0 ? pass == DEVSQ : pass == SUM) continue;
        tt_join_blocks(j->sum, parts, j->blocks, j->size, 1);
        memcpy(to[k] + c * j->size, parts, (size_t)j->size);
    }
}

static void channel_statistics(const job *j, int64_t c, const char *x) {
    sum_channel(j, c, SUM, x, NULL);
    j->loops->divide(j->totals + c * j->size, 1, (double)j->n);
    sum_channel(j, c, DEVSQ, x, NULL);
}

static void statistics_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    char room[WHOLE] __attribute__((aligned(64)));
    for (int64_t c = begin; c < end; c++) channel_statistics(j, c, whole_channel(j, j->x, c, room));
}

static void sums_range(void *context, int64_t begin, int64_t end) {
    for (int64_t c = begin; c < end; c++) sum_channel(context, c, GRADIENT, NULL, NULL);
}

/* What the sums of n channels from c on say. */
static void set_slopes(const job *j, int64_t c, int64_t n) {
    int64_t at = c * j->size;
    j->loops->slopes(j->scale + at, j->shift + at, j->slope + at, j->of_weight + at, j->of_bias + at,
                     j->weight ? j->weight + at : NULL, j->rstd + at, j->totals + at, j->products + at, n,
                     (double)j->n);
}

static tt_batch_numbers numbers_of(const job *j, int64_t c) {
    int64_t at = c * j->size;
    return (tt_batch_numbers){j->mean + at, j->scale + at, j->shift + at, j->slope ? j->slope + at : NULL};
}

/* The numbers of the channels from c on. */
static tt_batch_numbers from_channel(const job *j, const tt_batch_numbers *numbers, int64_t c) {
    const void *all[] = {numbers->mean, numbers->scale, numbers->shift, numbers->slope};
    for (int k = 0; k < 4; k++)
        if (all[k]) all[k] = (const char *)all[k] + c * j->size;
    return (tt_batch_numbers){all[0], all[1], all[2], all[3]};
}

/* n elements as numbers: the result, or the gradient. */
static void compute(const job *j, void *out, const void *g, const void *x, const tt_batch_numbers *numbers, int64_t n,
                    int64_t row) {
    if (j->g) j->loops->gradient(out, g, x, numbers, n, row);
    else j->loops->normalize(out, x, numbers, n, row);
}

/* The same of a half type: whole rows, or where a row is long parts of one. */
static void write_halves(const job *j, int64_t from, int64_t n, const tt_batch_numbers *numbers, int64_t row) {
    float x[ROOM] __attribute__((aligned(64))), g[ROOM] __attribute__((aligned(64)));
    float out[ROOM] __attribute__((aligned(64)));
    for (int64_t at = 0, m; at < n; at += m) {
        int64_t column = row ? at % row : 0, first = (from + at) * j->stored;
        m = n - at < ROOM ? n - at : ROOM;
        if (row && row <= ROOM && m < n - at) m -= m % row;
        if (row > ROOM && m > row - column) m = row - column;
        tt_batch_numbers of = from_channel(j, numbers, column);
        if (!j->g || of.slope) j->widen(x, j->x + first, m);
        if (j->g) j->widen(g, j->g + first, m);
        compute(j, out, g, x, &of, m, row < m ? row : row ? m : 0);
        j->narrow(j->out + first, out, m);
    }
}

static void write_elements(const job *j, int64_t from, int64_t n, const tt_batch_numbers *numbers, int64_t row) {
    int64_t at = from * j->size;
    if (j->widen) write_halves(j, from, n, numbers, row);
    else compute(j, j->out + at, j->g ? j->g + at : NULL, j->x + at, numbers, n, row);
}

/* Where no sums are needed: of a half type short runs become numbers together. */
static void runs_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    float room[ROOM] __attribute__((aligned(64)));
    const char *in = j->g ? j->g : j->x;
    int64_t together = j->widen && j->inner <= ROOM ? ROOM / j->inner : 1, pitch = j->inner * j->stored;
    for (int64_t u = begin, m; u < end; u += m) {
        m = end - u < together ? end - u : together;
        if (m > 1) j->widen(room, in + u * pitch, m * j->inner);
        for (int64_t k = 0; k < m; k++) {
            tt_batch_numbers numbers = numbers_of(j, (u + k) % j->channels);
            float *run = room + k * j->inner;
            if (m > 1) compute(j, run, run, run, &numbers, j->inner, 0);
            else write_elements(j, u * j->inner, j->inner, &numbers, 0);
        }
        if (m > 1) j->narrow(j->out + u * pitch, room, m * j->inner);
    }
}

/* The gradients of whole channels, sums and all. */
static void gradient_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    char rooms[2][WHOLE] __attribute__((aligned(64)));
    for (int64_t c = begin; c < end; c++) {
        const char *x = whole_channel(j, j->x, c, rooms[0]), *g = whole_channel(j, j->g, c, rooms[1]);
        sum_channel(j, c, GRADIENT, x, g);
        set_slopes(j, c, 1);
        tt_batch_numbers numbers = numbers_of(j, c);
        bool made = x && j->narrow;
        if (made) compute(j, rooms[0], g, x, &numbers, j->n, 0);
        for (int64_t done = 0; done < j->n; done += j->inner) {
            int64_t at = done * j->channels + c * j->inner;
            if (made) j->narrow(j->out + at * j->stored, rooms[0] + done * j->size, j->inner);
            else write_elements(j, at, j->inner, &numbers, 0);
        }
    }
}

/* A thread to a channel; where there are fewer of them than threads, these share the blocks of each. */
static void over_channels(job *j, tt_range_fn fn) {
    tt_parallel(j->channels, j->channels < tt_get_num_threads() ? j->channels : grain_of(j->n), fn, j);
}

/* Channels that lie closest together */

static void sum_rows_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    char tiles[2][TT_LANES * TILE] __attribute__((aligned(64)));
    int64_t width = TILE / j->size, across = (j->channels + width - 1) / width, bytes = j->channels * j->size;
    for (int64_t u = begin; u < end; u++) {
        int64_t block = u / across, left = u % across * width, n = in_block(j, block);
        int64_t w = j->channels - left < width ? j->channels - left : width, pitch = w * j->size;
        int64_t step = j->channels * j->stored, at = block * TT_BLOCK * step + left * j->stored;
        j->loops->sums_rows(tiles[0], tiles[1], j->g + at, j->x + at, j->mean + left * j->size, step, n, w, j->widen);
        int64_t live = n < TT_LANES ? n : TT_LANES;
        for (int64_t h = TT_LANES / 2; h > 0; h /= 2)
            if (live > h) {
                for (int k = 0; k < 2; k++) j->sum->join(tiles[k], tiles[k] + h * pitch, (live - h) * w);
                live = h;
            }
        for (int k = 0; k < 2; k++)
            memcpy(j->parts + (k * j->blocks + block) * bytes + left * j->size, tiles[k], (size_t)pitch);
    }
}

static void sum_rows(job *j) {
    int64_t width = TILE / j->size, bytes = j->channels * j->size;
    tt_parallel(j->blocks * ((j->channels + width - 1) / width), grain_of(TT_BLOCK * width), sum_rows_range, j);
    char *to[2] = {j->totals, j->products};
    for (int k = 0; k < 2; k++) {
        char *parts = j->parts + k * j->blocks * bytes;
        tt_join_blocks(j->sum, parts, j->blocks, bytes, j->channels);
        memcpy(to[k], parts, (size_t)bytes);
    }
}

static void rows_range(void *context, int64_t begin, int64_t end) {
    const job *j = context;
    tt_batch_numbers numbers = numbers_of(j, 0);
    write_elements(j, begin * j->channels, (end - begin) * j->channels, &numbers, j->channels);
}

/* Groups of channels that share statistics: a thread takes whole groups */

typedef struct {
    job groups, channels; /* the input as groups, for their statistics, and as channels: of all samples, one by one */
    const char *bias;
    char *means, *rstds; /* of each channel */
    int64_t together, weights;
    double eps;
    bool kept, failed; /* kept: a group's elements of a half type are numbers until its results are there */
} group_job;

/* The sums of a group's channels, from c on. */
static void sum_group(const job *j, int64_t c, int64_t together) {
    char rooms[2][TT_BLOCK * 8] __attribute__((aligned(64)));
    int64_t width = TILE / j->size;
    for (int64_t end = c + together, n; c < end; c += n) {
        char *sum = j->totals + c * j->size, *products = j->products + c * j->size;
        const char *mean = j->mean + c * j->size;
        n = 1;
        if (j->n == 1) { /* a row */
            n = end - c < width ? end - c : width;
            j->loops->sums_rows(sum, products, j->g + c * j->stored, j->x + c * j->stored, mean, 0, 1, n, j->widen);
        } else if (j->blocks == 1) {
            const char *x = elements_of(j, j->x, c, 0, j->n, rooms[0]), *g = elements_of(j, j->g, c, 0, j->n, rooms[1]);
            j->loops->sums(sum, products, g, x, mean, j->n);
        } else sum_channel(j, c, GRADIENT, NULL, NULL);
    }
}

static void group_range(void *context, int64_t begin, int64_t end) {
    group_job *w = context;
    const job *all = &w->groups, *j = &w->channels;
    char *room = NULL;
    if (w->kept && !(room = tt_scratch(all->n * all->size))) {
        __atomic_store_n(&w->failed, true, __ATOMIC_RELAXED);
        return;
    }
    for (int64_t k = begin; k < end; k++) {
        int64_t c = k * w->together, of = k * j->size, at = c * j->size, n = w->together;
        int64_t of_weight = c % w->weights * j->size;
        const char *weight = j->weight ? j->weight + of_weight : NULL;
        if (!j->g) {
            channel_statistics(all, k, room ? elements_of(all, all->x, k, 0, all->n, room) : NULL);
            j->loops->divide(all->products + of, 1, (double)all->n);
            j->loops->rsqrt(all->products + of, 1, w->eps);
        }
        j->loops->fill(w->means + at, all->totals + of, n);
        j->loops->fill(w->rstds + at, all->products + of, n);
        if (j->g) {
            sum_group(j, c, n);
            j->loops->group_slopes(j->scale + at, j->shift + at, j->slope + at, j->products + at, j->totals + at,
                                   weight, all->products + of, n, (double)all->n);
        } else
            j->loops->affine(j->scale + at, j->shift + at, weight, w->bias ? w->bias + of_weight : NULL, j->mean + at,
                             j->rstd + at, n);
        tt_batch_numbers numbers = numbers_of(j, c);
        if (room) {
            for (int64_t i = 0; i < n && j->inner > 1; i++) {
                char *run = room + i * j->inner * j->size;
                numbers = numbers_of(j, c + i);
                compute(j, run, NULL, run, &numbers, j->inner, 0);
            }
            if (j->inner == 1) compute(j, room, NULL, room, &numbers, n, n);
            j->narrow(j->out + c * j->inner * j->stored, room, all->n);
        } else if (j->inner == 1) write_elements(j, c, n, &numbers, n);
        else if (!j->g) runs_range((void *)j, c, c + n);
        else
            for (int64_t i = 0; i < n; i++) {
                numbers = numbers_of(j, c + i);
                write_elements(j, (c + i) * j->inner, j->inner, &numbers, 0);
            }
    }
    tt_scratch_free(room);
}

/* The entries */

static job job_of(const tt_batch_norm_work *w, const tt_plain *in, int dtype) {
    const tt_batch_table *table = tt_batch[tt_isa_index];
    int64_t n = w->outer * w->inner;
    int stored = w->x->dtype;
    return (job){.loops = dtype == TT_F64 ? &table->f64 : &table->f32,
                 .sum = tt_get_reducer(TT_RED_sum, dtype),
                 .devsq = tt_get_reducer(TT_RED_devsq, dtype),
                 .x = tt_plain_data(&in[X]),
                 .g = tt_plain_data(&in[G]),
                 .weight = tt_plain_data(&in[WEIGHT]),
                 .mean = tt_plain_data(&in[MEAN]),
                 .rstd = tt_plain_data(&in[RSTD]),
                 .channels = w->channels,
                 .inner = w->inner,
                 .n = n,
                 .blocks = (n + TT_BLOCK - 1) / TT_BLOCK,
                 .size = tt_itemsizes[dtype],
                 .stored = tt_itemsizes[stored],
                 .widen = stored == dtype ? NULL : tt_isa->casts[stored][dtype],
                 .narrow = stored == dtype ? NULL : tt_isa->casts[dtype][stored]};
}

static bool take(tt_plain *in, const tt_batch_norm_work *w, int dtype) {
    tt_array *all[OPERANDS] = {w->x, w->g, w->weight, w->bias, w->mean, w->rstd};
    for (int k = 0; k < OPERANDS; k++)
        if (!tt_plain_take(&in[k], all[k], k <= G ? w->x->dtype : dtype)) return false;
    return true;
}

/* (1 - momentum) of what it was and `momentum` of the value, rounded to its dtype after each step. */
static void mix(const job *j, tt_array *running, char *room, const char *value, int dtype, double momentum,
                double factor) {
    const tt_cast_loops *casts = tt_isa->casts;
    casts[running->dtype][dtype](room, running->data, j->channels);
    j->loops->multiply(room, j->channels, 1 - momentum);
    casts[dtype][running->dtype](running->data, room, j->channels);
    casts[running->dtype][dtype](room, running->data, j->channels);
    j->loops->mix(room, value, j->channels, momentum, factor);
    casts[dtype][running->dtype](running->data, room, j->channels);
}

bool tt_cpu_batch_statistics(const tt_batch_norm_work *of, const tt_batch_statistics_work *w) {
    int dtype = w->stats->dtype;
    tt_plain in[OPERANDS] = {{0}};
    char *parts = NULL;
    bool ok = take(in, of, dtype);
    if (ok) {
        job j = job_of(of, in, dtype);
        int64_t bytes = j.channels * j.size;
        ok = (parts = j.parts = tt_scratch(2 * bytes * j.blocks));
        j.totals = w->stats->data;
        j.products = j.totals + bytes;
        if (ok && of->inner > 1) over_channels(&j, statistics_range);
        else if (ok) {
            tt_reduction g;
            tt_array rows = *in[X].array;
            rows.ndim = 2;
            rows.shape = (int64_t[]){j.n, j.channels};
            rows.strides = (int64_t[]){j.channels, 1};
            tt_reduction_plan(&g, &rows, tt_bit(0), dtype, j.size, false);
            ok = tt_reduction_run(&g, j.sum, NULL, j.totals, NULL);
            j.loops->divide(j.totals, j.channels, (double)j.n);
            ok = ok && tt_reduction_run(&g, j.devsq, j.totals, j.products, NULL);
        }
        if (ok) {
            double freedom = (double)j.n / (double)(j.n > 1 ? j.n - 1 : 1);
            j.loops->divide(j.products, j.channels, (double)j.n);
            for (int k = 0; k < 2; k++)
                if (w->running[k])
                    mix(&j, w->running[k], parts, k ? j.products : j.totals, dtype, w->momentum, k ? freedom : 1);
            j.loops->rsqrt(j.products, j.channels, w->eps);
        }
    }
    if (parts) tt_scratch_free(parts);
    tt_plain_done(in, OPERANDS);
    return ok;
}

bool tt_cpu_batch_norm_sums(const tt_batch_norm_work *w) {
    int dtype = w->sums->dtype;
    tt_plain in[OPERANDS] = {{0}};
    char *parts = NULL;
    bool ok = take(in, w, dtype);
    if (ok) {
        job j = job_of(w, in, dtype);
        ok = (parts = j.parts = tt_scratch(2 * j.channels * j.size * j.blocks));
        j.totals = w->sums->data;
        j.products = j.totals + j.channels * j.size;
        if (ok && w->inner > 1) over_channels(&j, sums_range);
        else if (ok) sum_rows(&j);
    }
    if (parts) tt_scratch_free(parts);
    tt_plain_done(in, OPERANDS);
    return ok;
}

bool tt_cpu_batch_norm(const tt_batch_norm_work *w) {
    int dtype = tt_compute_dtype(w->x->dtype);
    tt_plain in[OPERANDS] = {{0}};
    char *numbers = NULL;
    bool ok = take(in, w, dtype), with_sums = w->of_weight;
    if (ok) {
        job j = job_of(w, in, dtype);
        int64_t bytes = j.channels * j.size;
        ok = (numbers = tt_scratch(bytes * (3 + (with_sums ? 2 + 2 * j.blocks : 0))));
        j.out = w->out->data;
        j.scale = numbers;
        j.shift = numbers + bytes;
        if (with_sums) {
            j.slope = numbers + 2 * bytes;
            j.totals = numbers + 3 * bytes;
            j.products = numbers + 4 * bytes;
            j.parts = numbers + 5 * bytes;
            j.of_weight = w->of_weight->data;
            j.of_bias = w->of_bias->data;
            if (ok && w->inner == 1) sum_rows(&j);
            if (ok && w->inner == 1) set_slopes(&j, 0, j.channels);
        } else if (ok)
            j.loops->affine(j.scale, j.shift, j.weight, tt_plain_data(&in[BIAS]), j.mean, j.rstd, j.channels);
        if (ok && w->inner > 1 && with_sums) over_channels(&j, gradient_range);
        else if (ok && w->inner > 1) tt_parallel(w->outer * j.channels, grain_of(j.inner), runs_range, &j);
        else if (ok) tt_parallel(j.n, grain_of(j.channels), rows_range, &j);
    }
    if (numbers) tt_scratch_free(numbers);
    tt_plain_done(in, OPERANDS);
    return ok;
}

bool tt_cpu_group_norm(const tt_batch_norm_work *w, int64_t together, double eps) {
    int dtype = w->mean->dtype;
    tt_plain in[OPERANDS] = {{0}};
    char *numbers = NULL;
    bool ok = take(in, w, dtype);
    if (ok) {
        group_job j = {.groups = job_of(w, in, dtype),
                       .channels = job_of(w, in, dtype),
                       .bias = tt_plain_data(&in[BIAS]),
                       .together = together,
                       .weights = w->channels / w->outer,
                       .eps = eps};
        job *all = &j.groups, *each = &j.channels;
        int64_t bytes = w->channels * each->size;
        each->n = w->inner;
        each->blocks = (each->n + TT_BLOCK - 1) / TT_BLOCK;
        all->channels = w->channels / together;
        all->n = all->inner = w->inner * together;
        all->blocks = (all->n + TT_BLOCK - 1) / TT_BLOCK;
        all->totals = w->mean->data;
        all->products = w->rstd->data;
        int64_t parts = w->g ? bytes * each->blocks : all->channels * all->size * all->blocks;
        ok = (numbers = tt_scratch(5 * bytes + 2 * parts));
        each->mean = j.means = numbers;
        each->rstd = j.rstds = numbers + bytes;
        each->scale = numbers + 2 * bytes;
        each->shift = numbers + 3 * bytes;
        each->slope = w->g ? numbers + 4 * bytes : NULL;
        all->parts = each->parts = numbers + 5 * bytes;
        each->out = w->out->data;
        if (w->g) {
            each->products = w->of_weight->data;
            each->totals = w->of_bias->data;
        }
        j.kept = !w->g && all->widen && all->n * all->size <= GROUP;
        if (ok) over_channels(all, group_range);
        if (ok && j.failed) tt_fail(TT_OUT_OF_MEMORY, "group_norm: out of memory for a group's elements");
        ok = ok && !j.failed;
    }
    if (numbers) tt_scratch_free(numbers);
    tt_plain_done(in, OPERANDS);
    return ok;
}
