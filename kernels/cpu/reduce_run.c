/* Iteration of a reduction over an operand: Note [The tree of a reduction] in backend/reduction.h. */
#include "cpu/simd.h"
#include "core/sizes.h"
#include "cpu/reduce.h"
#include "api/reduce.h"
#include <string.h>

TT_ISA_TABLES(tt_reduce_table, tt_reducers)

#define GRAIN 32768 /* elements a thread should have before another is worth waking */
#define FEWEST 64   /* columns that are worth a walk over rows */
#define WIDE 128    /* from here on rows that follow each other are cast and added one by one */

const tt_reduce_table *tt_get_reduce_table(void) { return tt_reducers[tt_isa_index]; }

const tt_reducer *tt_get_reducer(int reducer, int dtype) {
    const tt_reducer *r = &tt_reducers[tt_isa_index]->of[reducer][dtype];
    return r->reduce_block ? r : NULL;
}

void tt_dims_gather(void *to, const char *base, const tt_dims *d, int64_t i, int64_t n, int size) {
    char *p = to;
    if (d->n == 0) {
        memcpy(p, base, (size_t)size);
        return;
    }
    int last = d->n - 1;
    int64_t row = d->size[last];
    for (int64_t done = 0; done < n;) {
        int64_t in_row = (i + done) % row, m = row - in_row < n - done ? row - in_row : n - done;
        tt_move(p, size, base + tt_dims_offset(d, i + done), d->step[last], m, size);
        p += m * size;
        done += m;
    }
}

typedef struct {
    const tt_reduction *g;
    const tt_reducer *r;
    const char *params;
    char *parts;   /* every block's result: [outer][block][inner] */
    char *results;
    int64_t width,
        tiles; /* columns of a tile, and tiles of `inner`: those of the plan, or so that all threads have some */
    bool merged;   /* rows follow each other in memory: 32 at a time are one stretch */
} pass;

static tt_cast_loop cast_of(const tt_reduction *g) {
    return g->read == g->a->dtype ? NULL : tt_isa->casts[g->a->dtype][g->read];
}

static void inner_range(void *context, int64_t begin, int64_t end) {
    const pass *ps = context;
    const tt_reduction *g = ps->g;
    char raw[TT_BLOCK * TT_MAX_ITEMSIZE] __attribute__((aligned(64))),
        read[TT_BLOCK * TT_MAX_ITEMSIZE] __attribute__((aligned(64)));
    bool flat = g->run.n == 1 && g->run.step[0] == g->stored;
    tt_cast_loop cast = cast_of(g);
    int64_t which = begin / g->blocks, block = begin % g->blocks;
    for (int64_t u = begin; u < end; u++) {
        const char *p = g->a->data + tt_dims_offset(&g->outer, which);
        int64_t at = block * TT_BLOCK, n = g->reduced - at < TT_BLOCK ? g->reduced - at : TT_BLOCK;
        if (flat) p += at * g->stored;
        else {
            tt_dims_gather(raw, p, &g->run, at, n, g->stored);
            p = raw;
        }
        p = tt_as_read(p, read, n, cast);
        ps->r->reduce_block(ps->parts + u * g->acc_size, p, n, ps->params ? ps->params + which * g->acc_size : NULL);
        if (++block == g->blocks) {
            block = 0;
            which++;
        }
    }
}

static void rows_unit(const pass *ps, int64_t u) {
    const tt_reduction *g = ps->g;
    enum { ROOM = TT_LANES * TT_LANE_BYTES };
    char raw[ROOM] __attribute__((aligned(64))), read[ROOM] __attribute__((aligned(64)));
    char tile[ROOM] __attribute__((aligned(64))), many[ROOM] __attribute__((aligned(64)));
    int64_t t = u % ps->tiles, block = u / ps->tiles % g->blocks, outer = u / ps->tiles / g->blocks;
    int64_t left = t * ps->width, w = least(ps->width, g->inner - left);
    int64_t row0 = block * TT_BLOCK, n = g->reduced - row0 < TT_BLOCK ? g->reduced - row0 : TT_BLOCK;
    const char *base = g->a->data + tt_dims_offset(&g->outer, outer) + left * g->inner_step;
    const char *params = ps->params ? ps->params + (outer * g->inner + left) * g->acc_size : NULL;
    int64_t pitch = w * g->acc_size, step = ps->merged ? TT_LANES : 1;
    tt_cast_loop cast = cast_of(g);
    bool wide = ps->merged ? w >= WIDE : g->inner_step == g->stored && g->run.n == 1;
    if (wide) ps->r->rows(tile, base + row0 * g->run.step[0], g->run.step[0], n, w, params, cast);
    else if (params && ps->merged) {
        for (int l = 0; l < TT_LANES; l++) memcpy(many + l * pitch, params, (size_t)pitch);
        params = many;
    }
    for (int64_t j = wide ? n : 0; j < n; j += step) {
        const char *p = base + tt_dims_offset(&g->run, row0 + j);
        int64_t m = (n - j < step ? n - j : step) * w;
        if (g->inner_step != g->stored) {
            tt_move(raw, g->stored, p, g->inner_step, w, g->stored);
            p = raw;
        }
        p = tt_as_read(p, read, m, cast);
        (j < TT_LANES ? ps->r->first : ps->r->next)(tile + j % TT_LANES * pitch, p, m, params);
    }
    int64_t live = n < TT_LANES ? n : TT_LANES;
    for (int64_t h = TT_LANES / 2; h > 0; h /= 2)
        if (live > h) {
            ps->r->join(tile, tile + h * pitch, (live - h) * w);
            live = h;
        }
    memcpy(ps->parts + ((outer * g->blocks + block) * g->inner + left) * g->acc_size, tile, (size_t)pitch);
}

static void outer_range(void *context, int64_t begin, int64_t end) {
    for (int64_t u = begin; u < end; u++) rows_unit(context, u);
}

void tt_join_blocks(const tt_reducer *r, char *parts, int64_t blocks, int64_t bytes, int64_t n) {
    for (int64_t s = 1; s < blocks; s *= 2)
        for (int64_t i = 0; i + s < blocks; i += 2 * s) r->join(parts + i * bytes, parts + (i + s) * bytes, n);
}

static void join_range(void *context, int64_t begin, int64_t end) {
    const pass *ps = context;
    const tt_reduction *g = ps->g;
    int64_t bytes = g->inner * g->acc_size;
    for (int64_t u = begin; u < end; u++) {
        char *p = ps->parts + u * g->blocks * bytes;
        tt_join_blocks(ps->r, p, g->blocks, bytes, g->inner);
        memcpy(ps->results + u * bytes, p, (size_t)bytes);
    }
}

int64_t tt_columns_together(int64_t columns, int64_t limit) {
    int64_t share = most(1, pieces(columns, tt_get_num_threads())), together = pieces(share, pieces(share, limit));
    return least(limit, most(FEWEST, pieces(together, 16) * 16));
}

bool tt_reduction_run(const tt_reduction *g, const tt_reducer *r, const void *params, char *results, char *partials) {
    int64_t outer = g->kept / g->inner, length = least(g->reduced, TT_BLOCK);
    pass ps = {.g = g, .r = r, .params = params, .results = results, .parts = results};
    bool wide = g->rows && g->width >= WIDE;
    ps.width = wide ? tt_columns_together(g->kept * g->reduced / length, g->width) : g->width;
    ps.tiles = pieces(g->inner, ps.width);
    ps.merged = g->rows && ps.tiles == 1 && g->inner_step == g->stored && g->run.n == 1 &&
                g->run.step[0] == g->inner * g->stored;
    if (g->blocks > 1 && !(ps.parts = tt_scratch(g->kept * g->blocks * g->acc_size))) return false;
    int64_t grain = GRAIN / (length * ps.width);
    if (grain < 1) grain = 1;
    tt_parallel(outer * g->blocks * ps.tiles, grain, g->rows ? outer_range : inner_range, &ps);
    if (g->blocks > 1) {
        if (partials) memcpy(partials, ps.parts, (size_t)(g->kept * g->blocks * g->acc_size));
        grain = GRAIN / (g->blocks * g->inner);
        tt_parallel(outer, grain < 1 ? 1 : grain, join_range, &ps);
        tt_scratch_free(ps.parts);
    }
    return true;
}
