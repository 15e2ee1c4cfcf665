/* Products with sparse matrices on a device. Places are sorted by row, stably: so a row's sum has one order. */
#include "backend/now.h"
#include "cuda/device/sparse_args.h"
#include "cuda/host/radix.h"

#define MAX_BLOCKS_Y 1024

static tt_sparse_args args_of(const tt_sparse_work *w) {
    return (tt_sparse_args){.rows = (const int64_t *)w->rows->data,
                            .cols = (const int64_t *)w->cols->data,
                            .values = w->values->data,
                            .a = w->a->data,
                            .b = w->b->data,
                            .count = w->count,
                            .k = w->b->shape[1],
                            .num_rows = w->a->shape[0],
                            .num_cols = w->b->shape[0],
                            .fault = tt_cuda_fault()};
}

static bool product(const tt_sparse_work *w, tt_radix_sort *sort) {
    tt_sparse_args p = args_of(w);
    p.keys = sort->keys->data;
    p.order = (const uint32_t *)sort->numbers->data;
    while (p.lanes_log < 6 && 1 << p.lanes_log < p.k) p.lanes_log++;
    int64_t y = (p.k + (1 << p.lanes_log) - 1) >> p.lanes_log;
    return TT_LAUNCH(tt_key(TT_FAMILY_sparse, 0, sort->wide, w->b->dtype, 0, 0, 0, 0),
                     ((p.count << p.lanes_log) + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS,
                     y < MAX_BLOCKS_Y ? y : MAX_BLOCKS_Y, TT_CUDA_THREADS, 0, p);
}

bool tt_cuda_sparse_product(const tt_sparse_work *w) {
    int64_t rows = w->a->shape[0];
    int bits =
        rows > 2 ? 64 - __builtin_clzll((uint64_t)(rows - 1)) : 1; /* sorted even if there is one row: numbered */
    tt_radix_sort sort = {.n = 0};
    if (!w->a->numel) return true;
    if (tt_fill_now(w->a, TT_KIND_FLOAT, 0, 0) < 0) return false;
    if (!w->count) return true;
    bool ok = tt_radix_sort_begin(&sort, w->count, bits > 31) && tt_radix_sort_room(&sort) &&
              tt_copy_now(sort.keys, w->rows) == 0 && tt_radix_sort_keys(&sort, bits, 0) && product(w, &sort);
    tt_radix_sort_end(&sort);
    return ok;
}

bool tt_cuda_sparse_dots(const tt_sparse_work *w) {
    tt_sparse_args p = args_of(w);
    int64_t threads = w->count * TT_SPARSE_LANES;
    return !w->count || TT_LAUNCH(tt_key(TT_FAMILY_sparse, 1, 0, w->b->dtype, 0, 0, 0, 0),
                                  (threads + TT_CUDA_THREADS - 1) / TT_CUDA_THREADS, 1, TT_CUDA_THREADS, 0, p);
}
