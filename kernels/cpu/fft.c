/* Fourier transforms on the CPU, by the loops of NumPy's fft (pocketfft).
 *
 * Note [NumPy's loops]
 * The functions of numpy.fft are generalised ufuncs, and what such an object runs is a C function of a published type
 * (PyUFuncGenericFunction): it takes addresses, sizes and strides, and no Python object, so that it needs no GIL.
 * backends/fft.py hands us these functions. Rows are shared out over our threads; each row is one thread's, so that bits do
 * not depend on how many there are. A loop that finds no memory could only tell Python: so we look beforehand whether
 * there is enough. */
#include "api/fft.h"
#include "cpu/cpu.h"
#include <string.h>

#define GRAIN 16384 /* numbers that are worth a thread */

typedef void (*numpy_loop)(char **args, const intptr_t *sizes, const intptr_t *steps, void *data);

static struct {
    numpy_loop run;
    void *data;
} loops[TT_FFT_LOOPS][2];

void tt_fft_use(int loop, int is_double, void *function, void *data) {
    memcpy(&loops[loop][is_double].run, &function, sizeof function);
    loops[loop][is_double].data = data;
}

typedef struct {
    numpy_loop run;
    void *data;
    const tt_fft_work *w;
    int ndim;                       /* of the rows, the last of which `run` walks itself */
    int64_t shape[TT_MAX_NDIM], step_in[TT_MAX_NDIM], step_out[TT_MAX_NDIM]; /* in bytes */
    int64_t in, out, stride_in, stride_out; /* of one row: numbers, and bytes from one to the next */
    bool mirror;                    /* are all of a real row's numbers wanted? */
} fft_job;

/* The numbers that `run` has not written are the conjugates of those that it has. */
#define MIRROR(T)                                                                                                      \
    for (int64_t k = j->out; k < j->w->size; k++) {                                                                    \
        const T *from = (const T *)(row + (j->w->size - k) * j->stride_out);                                           \
        T *to = (T *)(row + k * j->stride_out);                                                                        \
        to[0] = from[0];                                                                                               \
        to[1] = -from[1];                                                                                              \
    }

static void mirror_rows(const fft_job *j, char *row, int64_t rows) {
    for (int64_t step = j->step_out[j->ndim - 1]; rows-- > 0; row += step)
        if (j->w->out->dtype == TT_C64) MIRROR(float) else MIRROR(double)
}

static void run_rows(void *context, int64_t begin, int64_t end) {
    const fft_job *j = context;
    int last = j->ndim - 1;
    float scale_f32 = (float)j->w->scale;
    double scale_f64 = j->w->scale;
    bool wide = tt_real_dtype(j->w->out->dtype) == TT_F64;
    while (begin < end) {
        int64_t rest = begin, first = rest % j->shape[last], count = j->shape[last] - first;
        char *in = j->w->a->data + first * j->step_in[last], *out = j->w->out->data + first * j->step_out[last];
        rest /= j->shape[last];
        for (int d = last - 1; d >= 0; rest /= j->shape[d--]) {
            in += rest % j->shape[d] * j->step_in[d];
            out += rest % j->shape[d] * j->step_out[d];
        }
        if (count > end - begin) count = end - begin;
        char *args[3] = {in, wide ? (char *)&scale_f64 : (char *)&scale_f32, out};
        const intptr_t sizes[3] = {count, j->in, j->out};
        const intptr_t steps[5] = {j->step_in[last], 0, j->step_out[last], j->stride_in, j->stride_out};
        j->run(args, sizes, steps, j->data);
        if (j->mirror) mirror_rows(j, out, count);
        begin += count;
    }
}

/* The rows: all dimensions but one, neighbours taken together where one step walks both. */
static int64_t lay_out(fft_job *j) {
    const tt_array *a = j->w->a, *out = j->w->out;
    int64_t of_a = tt_itemsizes[a->dtype], of_out = tt_itemsizes[out->dtype], rows = 1;
    for (int d = 0; d < a->ndim; d++) {
        int64_t n = a->shape[d], step_in = a->strides[d] * of_a, step_out = out->strides[d] * of_out;
        int k = j->ndim - 1;
        if (d == j->w->dim || n == 1) continue;
        rows *= n;
        if (k >= 0 && j->step_in[k] == n * step_in && j->step_out[k] == n * step_out) j->shape[k] *= n;
        else j->shape[k = j->ndim++] = n;
        j->step_in[k] = step_in;
        j->step_out[k] = step_out;
    }
    if (!j->ndim) {
        j->ndim = 1;
        j->shape[0] = 1;
        j->step_in[0] = j->step_out[0] = 0;
    }
    return rows;
}

bool tt_cpu_fft(const tt_fft_work *w) {
    bool from_real = !tt_is_complex(w->a->dtype), to_real = !tt_is_complex(w->out->dtype);
    int loop = from_real    ? (w->size % 2 ? TT_FFT_REAL_ODD : TT_FFT_REAL_EVEN)
               : to_real    ? TT_FFT_TO_REAL
               : w->forward ? TT_FFT_FORWARD
                            : TT_FFT_INVERSE;
    bool wide = tt_real_dtype(w->out->dtype) == TT_F64;
    fft_job j = {.run = loops[loop][wide].run, .data = loops[loop][wide].data, .w = w};
    if (!j.run) {
        tt_fail(TT_NOT_IMPLEMENTED, "Fourier transforms on the CPU are those of NumPy 2, which is not installed");
        return false;
    }
    int64_t rows = lay_out(&j);
    j.in = w->a->shape[w->dim];
    j.out = from_real ? w->size / 2 + 1 : w->size;
    j.mirror = from_real && w->out->shape[w->dim] > j.out;
    j.stride_in = w->a->strides[w->dim] * tt_itemsizes[w->a->dtype];
    j.stride_out = w->out->strides[w->dim] * tt_itemsizes[w->out->dtype];
    void *enough = tt_scratch(16 * w->size * (wide ? 16 : 8)); /* Note [NumPy's loops] */
    if (!enough) return false;
    tt_scratch_free(enough);
    tt_parallel(rows, GRAIN / w->size + 1, run_rows, &j);
    return true;
}
