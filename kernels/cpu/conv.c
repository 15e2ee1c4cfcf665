/* Convolutions along one dimension, by plain loops: rows of the array that is computed are shared out among threads, and
 * an element's sum has one order, over channels and taps, or over the batch and places. */
#include "backend/plain.h"
#include "cpu/cpu.h"
#include <string.h>

#define GRAIN 32768 /* multiplications that are worth a thread */

typedef struct {
    const tt_conv_work *w;
    char *input, *weight, *result; /* contiguous, of one dtype */
} convolution;

/* The places i at which a tap lies on an element of input, at + i stride in [0, length): from the first to before the
 * end. */
static int64_t first_place(const tt_conv_work *w, int64_t at) {
    return at >= 0 ? 0 : (-at + w->stride - 1) / w->stride;
}
static int64_t end_place(const tt_conv_work *w, int64_t at) {
    int64_t n = at >= w->length ? 0 : (w->length - 1 - at) / w->stride + 1;
    return n < w->places ? n : w->places;
}

#define T float
#define A double
#define OF(name) name##_f32
#include "cpu/conv_loops.h"
#define T double
#define A double
#define OF(name) name##_f64
#include "cpu/conv_loops.h"
#define T uint64_t /* wraps as signed integers do */
#define A uint64_t
#define OF(name) name##_i64
#include "cpu/conv_loops.h"

static const tt_range_fn loops[3][3] = {
    {input_f32, weight_f32, result_f32}, {input_f64, weight_f64, result_f64}, {input_i64, weight_i64, result_i64}};

bool tt_cpu_conv1d(const tt_conv_work *w) {
    tt_array *arrays[3] = {w->input, w->weight, w->result};
    int64_t rows[3] = {w->batch * w->groups * w->in, w->groups * w->out * w->in, w->batch * w->groups * w->out};
    int64_t work[3] = {w->out * w->taps * w->places, w->batch * w->taps * w->places, w->in * w->taps * w->places};
    char *data[3];
    int computed = w->computed == w->input ? 0 : w->computed == w->weight ? 1 : 2;
    tt_plain operands[3] = {{0}};
    tt_wide wide;
    bool ok = tt_wide_start(&wide, w->computed, w->compute);
    for (int k = 0; k < 3; k++) {
        ok = ok && (k == computed || tt_plain_take(&operands[k], arrays[k], w->compute));
        data[k] = !ok ? NULL : k == computed ? wide.array->data : operands[k].array->data;
    }
    if (ok) {
        convolution c = {w, data[0], data[1], data[2]};
        int64_t grain = GRAIN / (work[computed] + 1);
        int type = w->compute == TT_F32 ? 0 : w->compute == TT_F64 ? 1 : 2;
        tt_parallel(rows[computed], grain < 1 ? 1 : grain, loops[type][computed], &c);
    }
    tt_plain_done(operands, 3);
    return tt_wide_end(&wide, ok);
}
