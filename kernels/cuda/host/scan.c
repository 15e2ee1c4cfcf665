/* Scans on a device. Neighbouring elements: in one pass. Others: in one pass where a scan is one block; else totals,
 * what came before each block, results. */
#include "backend/now.h"
#include "backend/plain.h"
#include "cuda/device/scan_args.h"
#include "cuda/host/cuda.h"
#include "scalar/scans.h"

#define SHORT 32 /* scans of fewer neighbouring elements are left to a thread each */
#define MANY 528 /* so many are a thread block each */
#define FEW 1024 /* of no more, what their blocks gave is a thread block's */

static bool launch(int64_t key, int step, int64_t units, tt_scan_args *p) {
    int64_t blocks = (units + TT_SCAN_THREADS - 1) / TT_SCAN_THREADS;
    return TT_LAUNCH(key | (int64_t)step << 36, blocks, 1, TT_SCAN_THREADS, 0, *p);
}

/* Thread blocks that look back at others' totals, in slots on TT_LEVELS levels behind the ticket. */
static bool look_back(int64_t key, int acc, tt_scan_args *p) {
    int64_t warps = TT_SCAN_THREADS / 32, slots = 0, words;
    p->tiles = (p->blocks + warps - 1) / warps;
    for (int level = 0; level < TT_LEVELS; level++) {
        int64_t own = (p->blocks >> TT_LEVEL_LOG * level) + 1;
        p->slots[2 * level] = own;
        slots += own * p->outer;
        if (level < TT_LEVELS - 1) p->slots[2 * level + 1] = slots;
    }
    words = slots * (tt_itemsizes[acc] > 8 ? 4 : 2) + 2;
    tt_array *room = tt_full_now(TT_I64, 1, &words, TT_KIND_INT, 0, 0);
    if (!room) return false;
    p->ticket = (uint32_t *)room->data;
    p->carries = room->data + 16;
    bool ok = launch(key, TT_SCAN_LOOKS, p->outer * p->tiles * TT_SCAN_THREADS, p);
    tt_free(room);
    return ok;
}

static bool scan(int op, int dtype, int acc, bool reverse, tt_scan_args *p) {
    bool blocks = op != TT_SCAN_RECUR && (op != TT_SCAN_LOGSUMEXP || !tt_is_complex(acc)),
         warp = blocks && p->inner == 1 && p->n > SHORT && tt_itemsizes[dtype] <= 8; /* has room for so much */
    int64_t units = p->outer * p->inner;
    p->per = blocks ? TT_BLOCK : p->n;
    p->blocks = (p->n + p->per - 1) / p->per;
    int own = (warp ? TT_SCAN_WARP : 0) | (reverse ? TT_SCAN_REVERSE : 0);
    int64_t key = tt_key(TT_FAMILY_scan, op, 0, dtype, acc, tt_compute_dtype(dtype), 0, 0),
            threads = units * p->blocks * (warp ? 32 : 1);
    if (p->blocks == 1) return launch(key, TT_SCAN_RESULTS | own, threads, p);
    if (warp && p->outer >= MANY && p->blocks <= TT_LEVEL && op < TT_SCAN_MIN)
        return launch(key, TT_SCAN_WHOLE | own, p->outer * TT_SCAN_THREADS, p);
    if (warp) return look_back(key | (int64_t)own << 36, acc, p);
    tt_array *carries = tt_cuda_temporary(acc, units * p->blocks);
    tt_array *index = carries && p->index ? tt_cuda_temporary(TT_I64, units * p->blocks) : NULL;
    bool ok = carries && (index || !p->index);
    if (ok) {
        p->carries = carries->data;
        p->carried_index = index ? (int64_t *)index->data : NULL;
        bool alone = units <= FEW && p->blocks > SHORT;
        ok = launch(key, TT_SCAN_TOTALS | own, threads, p) &&
             (alone ? launch(key, TT_SCAN_CARRIES | TT_SCAN_ALONE, units * TT_SCAN_THREADS, p)
                    : launch(key, TT_SCAN_CARRIES, units, p)) &&
             launch(key, TT_SCAN_RESULTS | own, threads, p);
    }
    if (carries) tt_free(carries);
    if (index) tt_free(index);
    return ok;
}

bool tt_cuda_scan(const tt_scan_work *w) {
    int op = w->op, dtype = w->out->dtype;
    bool converts = op >= TT_SCAN_MIN || (op <= TT_SCAN_PROD && tt_is_differentiable(dtype));
    if (!converts) dtype = w->compute;
    bool parts = op == TT_SCAN_SUM && tt_is_complex(dtype); /* sums of complex numbers are those of their parts */
    int number = tt_compute_dtype(dtype);
    tt_plain p[2] = {{0}};
    tt_wide wide = {0};
    bool ok =
        tt_plain_take(&p[0], w->a, dtype) && tt_plain_take(&p[1], w->b, dtype) && tt_wide_start(&wide, w->out, dtype);
    if (ok) {
        tt_scan_args args = {.outer = 1,
                             .n = 1,
                             .inner = 1,
                             .a = tt_plain_data(&p[0]),
                             .b = tt_plain_data(&p[1]),
                             .out = wide.array->data,
                             .index = w->index ? (int64_t *)w->index->data : NULL};
        for (int d = 0; d < w->out->ndim; d++)
            *(d < w->dim ? &args.outer : d == w->dim ? &args.n : &args.inner) *= w->out->shape[d];
        if (parts) {
            args.inner *= 2;
            dtype = number = tt_real_dtype(dtype);
        }
        int acc = op >= TT_SCAN_RECUR ? number : number == TT_F32 ? TT_F64 : number == TT_C64 ? TT_C128 : number;
        ok = scan(op, dtype, acc, w->reverse, &args);
    }
    tt_plain_done(p, 2);
    return tt_wide_end(&wide, ok);
}
